//! Numbers of a plan that are drawn from a distribution, anew for each seed.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use toml::Spanned;
use toml::de::DeValue;

use super::axis::Quantity;
use crate::plan_file::document::{DocumentPart, Misfit};
use crate::study::rate::{Length, unit};
use quorlock_sim_plan::draw::{Draw, Purpose};
use quorlock_sim_plan::time::SimTime;

/// A distribution.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Distribution {
    /// Uniform between two bounds.
    Uniform(Quantity, Quantity),
    /// Uniform in the logarithm, between two bounds above zero.
    LogUniform(Quantity, Quantity),
    /// A law of spans without a bound, under the condition that the span is at most this.
    Cut(Length, SimTime),
}

/// The error for a text that is not a distribution.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} is not a distribution: write uniform(0s, 2s), log-uniform(10ms, 2s), uniform(1, 5), or, with at_most, exponential(2s) or \
     pareto(50ms, 1.1)"
)]
pub(super) struct NotADistribution(String);

impl FromStr for Distribution {
    type Err = NotADistribution;

    fn from_str(text: &str) -> Result<Self, NotADistribution> {
        let wrong = || NotADistribution(text.to_owned());
        let (law, rest) = text.split_once('(').ok_or_else(wrong)?;
        let arguments = rest.trim_end().strip_suffix(')').ok_or_else(wrong)?;
        let (least, most) = arguments.split_once(',').ok_or_else(wrong)?;
        let least = Quantity::read(least).ok_or_else(wrong)?;
        let most = Quantity::read(most).ok_or_else(wrong)?;
        let are_bounds = least.is_like(most) && least.amount() <= most.amount();
        match law.trim() {
            "uniform" if are_bounds => Ok(Distribution::Uniform(least, most)),
            "log-uniform" if are_bounds && 0.0 < least.amount() => {
                Ok(Distribution::LogUniform(least, most))
            }
            _ => Err(wrong()),
        }
    }
}

impl Distribution {
    /// Reads a distribution, which needs a bound if its law has none.
    pub(super) fn read(text: &str, at_most: Option<SimTime>) -> Result<Self, NotADistribution> {
        match (at_most, text.parse()) {
            (Some(cut), Ok(length)) => Ok(Distribution::Cut(length, cut)),
            _ => text.parse(),
        }
    }

    /// Returns the number that a share of all numbers does not exceed.
    pub(super) fn quantile(self, share: f64) -> Quantity {
        match self {
            // Each whole number has the same share.
            Distribution::Uniform(Quantity::Whole(least), Quantity::Whole(most)) => {
                let steps = libm::floor(share * (most - least + 1.0));
                Quantity::Whole((least + steps).min(most))
            }
            Distribution::Uniform(least, most) => {
                least.with(least.amount() + share * (most.amount() - least.amount()))
            }
            Distribution::LogUniform(least, most) => {
                let ratio = most.amount() / least.amount();
                least.with(least.amount() * libm::pow(ratio, share))
            }
            Distribution::Cut(length, cut) => {
                Quantity::Nanos(length.quantile(share, cut).as_nanos() as f64)
            }
        }
    }
}

/// A number of a plan that is drawn.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Drawn {
    /// Its place in the file.
    pub(super) path: String,
    pub(super) span: Range<usize>,
    pub(super) distribution: Distribution,
}

impl Drawn {
    /// Returns the number of a seed, in TOML. It depends on nothing but the seed and the place in the file.
    pub(super) fn of(&self, seed: u64) -> String {
        let mut draw = Draw::new(seed, Purpose::Parameters, place(&self.path));
        self.at(unit(&mut draw))
    }

    /// Returns the number that a share of all numbers does not exceed, in TOML.
    pub(super) fn at(&self, share: f64) -> String {
        self.distribution.quantile(share).setting().toml
    }
}

/// Returns a number for a path: FNV-1a.
fn place(path: &str) -> u64 {
    path.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

/// Returns everything in a table that is drawn: each table with the key `draw`.
pub(super) fn all(table: &DocumentPart<'_>, within: &str) -> Result<Vec<Drawn>, Misfit> {
    let mut found = Vec::new();
    for (key, value) in table {
        collect(value, &format!("{within}{}", key.get_ref()), &mut found)?;
    }
    Ok(found)
}

fn collect(value: &Spanned<DeValue<'_>>, path: &str, found: &mut Vec<Drawn>) -> Result<(), Misfit> {
    match value.get_ref() {
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, &format!("{path}.{index}"), found)?;
            }
        }
        DeValue::Table(table) if table.contains_key("draw") => {
            found.push(Drawn {
                path: path.to_owned(),
                span: value.span(),
                distribution: distribution(table)?,
            });
        }
        DeValue::Table(table) => {
            for (key, value) in table {
                collect(value, &format!("{path}.{}", key.get_ref()), found)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Reads `{ draw = "..", at_most = ".." }`.
pub(super) fn distribution(table: &DocumentPart<'_>) -> Result<Distribution, Misfit> {
    let mut draw = None;
    let mut at_most = None;
    for (key, value) in table {
        let refuse = |why: &str| Misfit::new(value.span(), format!("{}: {why}", key.get_ref()));
        let text = value.get_ref().as_str();
        match (key.get_ref().as_ref(), text) {
            ("draw", Some(text)) => draw = Some((text, value.span())),
            ("at_most", Some(text)) => {
                let span = text.parse::<SimTime>();
                at_most = Some(span.map_err(|error| refuse(&error.to_string()))?);
            }
            ("draw" | "at_most", None) => return Err(refuse("write a text")),
            _ => return Err(refuse("beside `draw` there is only `at_most`")),
        }
    }
    let (text, span) = draw.ok_or_else(|| {
        let first = table.keys().next().map(|key| key.span());
        Misfit::new(first.unwrap_or_default(), "`draw` is missing")
    })?;
    Distribution::read(text, at_most).map_err(|error| Misfit::new(span, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, at_most: Option<SimTime>) -> [String; 3] {
        let distribution = Distribution::read(text, at_most).unwrap();
        [0.0, 0.5, 0.999_999].map(|share| distribution.quantile(share).setting().text)
    }

    #[test]
    fn quantiles_are_those_of_the_law() {
        assert_eq!(texts("uniform(1, 4)", None), ["1", "3", "4"]);
        assert_eq!(texts("uniform(-2s, 2s)", None)[..2], ["-2s", "0s"]);
        assert_eq!(texts("log-uniform(10ms, 1s)", None)[..2], ["10ms", "100ms"]);
        // Half of an exponential law is below ln 2 times its mean, if hardly anything is cut off.
        let [_, half, most] = texts("exponential(1s)", Some(SimTime::secs(40)));
        assert!(half.starts_with("693.14"), "{half}");
        assert!(most.starts_with("13.8"), "{most}");
    }

    #[test]
    fn what_has_no_bound_needs_one() {
        assert!(Distribution::read("exponential(1s)", None).is_err());
        for text in [
            "uniform(2s, 1s)",
            "uniform(1, 2s)",
            "log-uniform(0s, 1s)",
            "5s",
            "normal(1s, 2s)",
        ] {
            assert!(Distribution::read(text, None).is_err(), "{text}");
        }
    }

    #[test]
    fn seeds_draw_the_whole_range_and_places_are_independent() {
        let distribution: Distribution = "uniform(0, 9)".parse().unwrap();
        let drawn = |path: &str| Drawn {
            path: path.to_owned(),
            span: 0..0,
            distribution,
        };
        let (one, other) = (drawn("plan.a"), drawn("plan.b"));
        let mut seen = [0; 10];
        let mut same = 0;
        for seed in 0..1_000 {
            let number: usize = one.of(seed).parse().unwrap();
            seen[number] += 1;
            same += i32::from(one.of(seed) == other.of(seed));
        }
        assert!(seen.iter().all(|count| 60 < *count), "{seen:?}");
        assert!((60..140).contains(&same), "{same}");
    }
}
