//! Time, as an input of the state machines. Nothing in this crate reads a clock.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A reading of one client's monotonic clock, in nanoseconds since the origin of that clock.
///
/// Readings of two clocks cannot be compared. This also applies to two clients in one process, which may use different
/// clocks. Only durations may be passed from one client to another. The clock should count the time for which the
/// machine was suspended: a lease continues to run while its holder sleeps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The origin of the clock.
    pub const ZERO: Time = Time(0);
    /// A time later than any reading, used for "never".
    pub const NEVER: Time = Time(u64::MAX);

    /// Returns the reading `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }

    /// Returns the reading `millis` milliseconds after the origin.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Time(millis.saturating_mul(1_000_000))
    }

    /// Returns the nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time since `earlier`; zero if `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    /// Saturates at [`Time::NEVER`].
    fn add(self, span: Duration) -> Time {
        Time(
            self.0
                .saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl Sub<Duration> for Time {
    type Output = Time;

    /// Saturates at [`Time::ZERO`].
    fn sub(self, span: Duration) -> Time {
        Time(
            self.0
                .saturating_sub(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::NEVER {
            f.write_str("never")
        } else {
            write!(f, "{:.6}s", Duration::from_nanos(self.0).as_secs_f64())
        }
    }
}

/// Milliseconds of a wall clock since 1970. A client uses it only as a fencing floor. A node uses it to expire claims.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WallMillis(pub u64);

impl WallMillis {
    /// Returns this time plus `millis` milliseconds.
    #[must_use]
    pub const fn plus(self, millis: u64) -> WallMillis {
        WallMillis(self.0.saturating_add(millis))
    }

    /// Returns this time minus `millis` milliseconds, at least 0.
    #[must_use]
    pub const fn minus(self, millis: u64) -> WallMillis {
        WallMillis(self.0.saturating_sub(millis))
    }
}

/// Returns a duration in whole milliseconds, rounded up: the value on the wire is never shorter than the requested one.
#[must_use]
pub fn millis_of(span: Duration) -> u64 {
    let begun = span.subsec_nanos().div_ceil(1_000_000);
    let whole = span.as_secs().saturating_mul(1_000);
    whole.saturating_add(u64::from(begun))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Time::NEVER + Duration::MAX, Time::NEVER);
        assert_eq!(Time::from_millis(1) - Duration::from_secs(1), Time::ZERO);
        assert_eq!(
            Time::from_millis(1).since(Time::from_millis(2)),
            Duration::ZERO
        );
        assert_eq!(millis_of(Duration::MAX), u64::MAX);
    }

    #[test]
    fn spans_round_up_to_whole_milliseconds() {
        assert_eq!(millis_of(Duration::from_nanos(1)), 1);
        assert_eq!(millis_of(Duration::from_millis(7)), 7);
        assert_eq!(millis_of(Duration::from_nanos(7_000_001)), 8);
    }
}
