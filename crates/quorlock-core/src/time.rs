//! Time as the machines see it: always an input, never read.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A reading of one client's monotonic clock, in nanoseconds since an origin of that clock.
///
/// Readings of two clocks have nothing to do with each other, not even those of two clients in one process, which may
/// have been given clocks of their own: what passes from one to the other is a span. The clock should count the time the machine was
/// suspended: a lease does not stop running while its holder sleeps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);
    /// Later than any reading: "never".
    pub const NEVER: Time = Time(u64::MAX);

    /// The reading `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }

    /// The reading `millis` milliseconds after the origin.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Time(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it is not earlier.
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

/// Milliseconds of a wall clock since 1970. A client uses it for nothing but a fencing floor; a node expires its
/// claims by it, as Redis does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WallMillis(pub u64);

impl WallMillis {
    /// This moment plus `millis` milliseconds.
    #[must_use]
    pub const fn plus(self, millis: u64) -> WallMillis {
        WallMillis(self.0.saturating_add(millis))
    }

    /// This moment minus `millis` milliseconds, not below 0.
    #[must_use]
    pub const fn minus(self, millis: u64) -> WallMillis {
        WallMillis(self.0.saturating_sub(millis))
    }
}

/// A span as whole milliseconds, rounded up: what goes on the wire is never shorter than what was asked.
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
