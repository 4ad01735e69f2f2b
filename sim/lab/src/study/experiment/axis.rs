//! What is varied: the settings of one number of the file.

use std::ops::Range;

use quorlock_sim_plan::time::SimTime;

/// Something that is varied, with its settings.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// Its name in tables and pictures.
    pub name: String,
    /// The places in the file that have the setting.
    pub(super) paths: Vec<String>,
    /// Its place in the text of the file.
    pub(super) span: Range<usize>,
    /// The settings, in their order.
    pub settings: Vec<Setting>,
    /// How a picture shows them.
    pub scale: Scale,
}

/// How the settings of an axis are spaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// By their differences.
    #[default]
    Linear,
    /// By their ratios.
    Log,
}

/// One setting of an axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// The setting as tables show it: `250ms`.
    pub text: String,
    /// The setting in TOML: `"250ms"`.
    pub(super) toml: String,
    /// The setting as a number, in seconds if it is a span. `None` for a word.
    pub number: Option<f64>,
}

/// A number of a plan, in its unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Quantity {
    /// A span of time, or a step of a clock, in nanoseconds.
    Nanos(f64),
    /// A number without a unit.
    Whole(f64),
}

impl Quantity {
    /// Reads a number, or a span such as `250ms` or `-3s`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(number) = text.parse::<i64>() {
            return Some(Quantity::Whole(number as f64));
        }
        let (sign, span) = match text.strip_prefix('-') {
            Some(span) => (-1.0, span),
            None => (1.0, text),
        };
        let span: SimTime = span.parse().ok()?;
        Some(Quantity::Nanos(sign * span.as_nanos() as f64))
    }

    pub(super) fn amount(self) -> f64 {
        match self {
            Quantity::Nanos(amount) | Quantity::Whole(amount) => amount,
        }
    }

    /// Returns this amount in the same unit.
    pub(super) fn with(self, amount: f64) -> Self {
        match self {
            Quantity::Nanos(_) => Quantity::Nanos(amount),
            Quantity::Whole(_) => Quantity::Whole(amount),
        }
    }

    pub(super) fn is_like(self, other: Quantity) -> bool {
        self.with(0.0) == other.with(0.0)
    }

    /// Returns the number as a setting.
    pub(super) fn setting(self) -> Setting {
        let rounded = self.amount().round();
        match self {
            Quantity::Whole(_) => {
                let text = format!("{rounded:.0}");
                Setting {
                    toml: text.clone(),
                    text,
                    number: Some(rounded),
                }
            }
            Quantity::Nanos(_) => {
                let sign = if rounded < 0.0 { "-" } else { "" };
                let span = SimTime::nanos(rounded.abs() as u64);
                Setting {
                    text: format!("{sign}{span}"),
                    toml: format!("\"{sign}{}ns\"", span.as_nanos()),
                    number: Some(rounded / 1e9),
                }
            }
        }
    }
}

/// Returns settings from one bound to the other, both included.
pub(super) fn between(
    from: Quantity,
    until: Quantity,
    points: usize,
    scale: Scale,
) -> Vec<Setting> {
    let steps = points.saturating_sub(1).max(1) as f64;
    let (first, last) = (from.amount(), until.amount());
    let amounts = (0..points).map(|point| {
        let share = point as f64 / steps;
        match scale {
            Scale::Linear => first + share * (last - first),
            Scale::Log => first * libm::pow(last / first, share),
        }
    });
    amounts.map(|amount| from.with(amount).setting()).collect()
}

impl Setting {
    /// Returns a word or a text of the file as a setting.
    pub(super) fn read(text: &str, toml: &str) -> Self {
        let number = match Quantity::read(text) {
            Some(Quantity::Nanos(nanos)) => Some(nanos / 1e9),
            Some(Quantity::Whole(number)) => Some(number),
            None => text.parse().ok(),
        };
        Setting {
            text: text.to_owned(),
            toml: toml.to_owned(),
            number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(from: &str, until: &str, points: usize, scale: Scale) -> Vec<String> {
        let read = |text| Quantity::read(text).unwrap();
        let all = between(read(from), read(until), points, scale);
        all.into_iter().map(|setting| setting.text).collect()
    }

    #[test]
    fn a_range_has_both_of_its_ends() {
        assert_eq!(
            texts("0s", "1s", 5, Scale::Linear),
            ["0s", "250ms", "500ms", "750ms", "1s"]
        );
        assert_eq!(texts("10ms", "1s", 3, Scale::Log), ["10ms", "100ms", "1s"]);
        assert_eq!(texts("-20", "20", 3, Scale::Linear), ["-20", "0", "20"]);
        assert_eq!(texts("-1s", "1h", 2, Scale::Linear), ["-1s", "3600s"]);
    }

    #[test]
    fn spans_are_numbers_in_seconds() {
        assert_eq!(Setting::read("250ms", "\"250ms\"").number, Some(0.25));
        assert_eq!(Setting::read("2d", "\"2d\"").number, Some(172_800.0));
        assert_eq!(Setting::read("7", "7").number, Some(7.0));
        assert_eq!(Setting::read("memory", "\"memory\"").number, None);
    }
}
