//! Spans of time, with their textual form such as `250ms`, `1.5s` or `-3s`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in true time since the beginning of a run, or a length of time, in nanoseconds. Written as `40us`, `250ms`,
/// `1.5s`, `2h` or `30d`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SimTime(u64);

impl SimTime {
    /// The length zero, and the beginning of a run.
    pub const ZERO: SimTime = SimTime(0);

    /// Creates a span of nanoseconds.
    #[must_use]
    pub const fn nanos(nanos: u64) -> Self {
        SimTime(nanos)
    }

    /// Creates a span of microseconds.
    #[must_use]
    pub const fn micros(micros: u64) -> Self {
        SimTime(micros.saturating_mul(1_000))
    }

    /// Creates a span of milliseconds.
    #[must_use]
    pub const fn millis(millis: u64) -> Self {
        SimTime(millis.saturating_mul(1_000_000))
    }

    /// Creates a span of seconds.
    #[must_use]
    pub const fn secs(secs: u64) -> Self {
        SimTime(secs.saturating_mul(1_000_000_000))
    }

    /// Returns the span in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the span as a [`Duration`].
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// Returns the sum, or the largest span if it overflows.
    #[must_use]
    pub const fn plus(self, other: SimTime) -> SimTime {
        SimTime(self.0.saturating_add(other.0))
    }

    /// Returns the difference, or zero if it would be negative.
    #[must_use]
    pub const fn minus(self, other: SimTime) -> SimTime {
        SimTime(self.0.saturating_sub(other.0))
    }
}

impl From<Duration> for SimTime {
    fn from(span: Duration) -> Self {
        SimTime(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// A step of a clock, forwards or backwards, in nanoseconds. Written like a [`SimTime`], with a leading `-` for a
/// backward step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClockStep(i64);

impl ClockStep {
    /// Creates a step of nanoseconds.
    #[must_use]
    pub const fn nanos(nanos: i64) -> Self {
        ClockStep(nanos)
    }

    /// Creates a step of milliseconds.
    #[must_use]
    pub const fn millis(millis: i64) -> Self {
        ClockStep(millis.saturating_mul(1_000_000))
    }

    /// Returns the step in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
}

/// The error for a text that is not a span of time.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is not a duration: write for example 40us, 250ms, 1.5s or 2h")]
pub struct NotASpan(String);

const UNITS: [(&str, u64); 9] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("min", MINUTE),
    // Behind those that end with the same letter.
    ("s", 1_000_000_000),
    ("m", MINUTE),
    ("h", 60 * MINUTE),
    ("d", 24 * 60 * MINUTE),
    ("y", 365 * 24 * 60 * MINUTE),
];

/// A minute in nanoseconds.
const MINUTE: u64 = 60_000_000_000;

impl FromStr for SimTime {
    type Err = NotASpan;

    fn from_str(text: &str) -> Result<Self, NotASpan> {
        let wrong = || NotASpan(text.to_owned());
        let (number, unit) = UNITS
            .iter()
            .find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, *unit)))
            .ok_or_else(wrong)?;
        let (whole, part) = number.trim().split_once('.').unwrap_or((number.trim(), ""));
        let is_number = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !is_number(whole) || !is_number(part) || 9 < part.len() {
            return Err(wrong());
        }
        let whole: u64 = whole.parse().map_err(|_| wrong())?;
        let mut nanos = whole.checked_mul(unit).ok_or_else(wrong)?;
        if !part.is_empty() {
            let digits: u64 = part.parse().map_err(|_| wrong())?;
            let scale = 10u128.pow(u32::try_from(part.len()).unwrap_or(9));
            let part = u128::from(digits) * u128::from(unit) / scale;
            nanos = nanos.saturating_add(u64::try_from(part).unwrap_or(0));
        }
        Ok(SimTime(nanos))
    }
}

impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, suffix) = match self.0 {
            0 => return f.write_str("0s"),
            1_000_000_000.. => (1_000_000_000, "s"),
            1_000_000.. => (1_000_000, "ms"),
            1_000.. => (1_000, "us"),
            _ => (1, "ns"),
        };
        let (whole, rest) = (self.0 / unit, self.0 % unit);
        if rest == 0 {
            return write!(f, "{whole}{suffix}");
        }
        let digits = unit.ilog10() as usize;
        let part = format!("{rest:0digits$}");
        write!(f, "{whole}.{}{suffix}", part.trim_end_matches('0'))
    }
}

impl fmt::Debug for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ClockStep {
    type Err = NotASpan;

    fn from_str(text: &str) -> Result<Self, NotASpan> {
        let (span, sign) = match text.strip_prefix('-') {
            Some(rest) => (rest.parse::<SimTime>(), -1),
            None => (text.parse::<SimTime>(), 1),
        };
        let nanos = span.map_err(|_| NotASpan(text.to_owned()))?.0;
        Ok(ClockStep(i64::try_from(nanos).unwrap_or(i64::MAX) * sign))
    }
}

impl fmt::Display for ClockStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        fmt::Display::fmt(&SimTime(self.0.unsigned_abs()), f)
    }
}

impl fmt::Debug for ClockStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

macro_rules! as_text {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        }
    )*};
}

as_text!(SimTime, ClockStep);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_span_reads_back_as_it_was_written() {
        for nanos in [
            0,
            1,
            999,
            1_000,
            1_500,
            250_000_000,
            1_234_567_891,
            60_000_000_000,
        ] {
            let span = SimTime(nanos);
            assert_eq!(span.to_string().parse(), Ok(span), "{span}");
        }
        assert_eq!("1.5s".parse(), Ok(SimTime::millis(1_500)));
        assert_eq!("2min".parse(), Ok(SimTime::secs(120)));
        assert_eq!("2m".parse(), Ok(SimTime::secs(120)));
        assert_eq!("1.5h".parse(), Ok(SimTime::secs(5_400)));
        assert_eq!("365d".parse(), Ok(SimTime::secs(365 * 86_400)));
        assert_eq!("1y".parse(), Ok(SimTime::secs(365 * 86_400)));
        assert_eq!("-3s".parse(), Ok(ClockStep::millis(-3_000)));
        assert_eq!(ClockStep::millis(-1_500).to_string(), "-1.5s");
    }

    #[test]
    fn other_texts_are_no_spans() {
        for text in [
            "",
            "s",
            "1",
            "1 parsec",
            "1.2.3s",
            "-1s",
            "1e3s",
            "99999999999999s",
        ] {
            assert!(text.parse::<SimTime>().is_err(), "{text}");
        }
    }
}
