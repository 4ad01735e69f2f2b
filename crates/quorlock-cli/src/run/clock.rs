//! A clock that the processes of one machine share.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A time on a clock that never goes back. On Linux it counts the time for which the machine was suspended, as leases
/// do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Moment {
    nanos: u64,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::Monotonic;

impl Moment {
    pub(crate) fn now() -> Self {
        let time = clock_gettime(CLOCK);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
        let nanos = seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        Moment { nanos }
    }

    /// Returns the time that another process of this machine sent.
    pub(crate) fn of_nanos(nanos: u64) -> Self {
        Moment { nanos }
    }

    /// Returns the time as it is sent to another process of this machine.
    pub(crate) fn as_nanos(self) -> u64 {
        self.nanos
    }

    pub(crate) fn after(self, span: Duration) -> Self {
        let span = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Moment {
            nanos: self.nanos.saturating_add(span),
        }
    }

    pub(crate) fn before(self, span: Duration) -> Self {
        let span = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Moment {
            nanos: self.nanos.saturating_sub(span),
        }
    }

    /// Returns the time from `other` to `self`; zero if `other` is later.
    pub(crate) fn since(self, other: Moment) -> Duration {
        Duration::from_nanos(self.nanos.saturating_sub(other.nanos))
    }
}
