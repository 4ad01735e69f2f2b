//! Durations, as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// A duration: `500ms`, `30s`, `2m`, `1h`, `1d` or `1.5h`. A bare number is in seconds, as in flock(1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Span(pub(crate) Duration);

impl Span {
    /// The longest duration that is accepted.
    const LONGEST: Duration = quorlock::LocksBuilder::LONGEST_SPAN;
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a duration: write 500ms, 30s, 2m, 1h or 1d");
        let text = text.trim();
        let unit = text.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = text.split_at(unit.unwrap_or(text.len()));
        let seconds = match unit {
            "ms" => 0.001,
            "s" | "" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return Err(wrong()),
        };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        // Rounds to whole milliseconds, because 0.1 has no exact binary representation.
        let millis = (number * seconds * 1_000.0).round();
        let span = Duration::try_from_secs_f64(millis / 1_000.0).map_err(|_| wrong())?;
        if Span::LONGEST < span {
            return Err(format!("{text:?} is more than a hundred years"));
        }
        let span = u64::try_from((span.as_micros() + 500) / 1_000).unwrap_or(u64::MAX);
        Ok(Span(Duration::from_millis(span)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Duration::ZERO => f.write_str("0s"),
            span => fmt::Debug::fmt(&span, f),
        }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_a_number_and_its_unit() {
        for (text, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("30", 30_000),
            ("1.5h", 5_400_000),
            ("0.1s", 100),
            ("2m", 120_000),
            ("2min", 120_000),
            ("1d", 86_400_000),
            ("0", 0),
        ] {
            assert_eq!(
                text.parse(),
                Ok(Span(Duration::from_millis(millis))),
                "{text}"
            );
            let span: Span = text.parse().unwrap();
            assert_eq!(span.to_string().parse(), Ok(span), "{span}");
        }
    }

    #[test]
    fn what_is_no_span_is_said_so() {
        for text in [
            "",
            "s",
            "-1s",
            "1 s",
            "1.2.3s",
            "soon",
            "1w",
            "99999999999d",
            "1e3s",
        ] {
            let error = text.parse::<Span>().unwrap_err();
            assert!(
                error.contains("is not a duration") || error.contains("hundred years"),
                "{error}"
            );
        }
    }
}
