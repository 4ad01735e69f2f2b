//! Pictures of a study, as SVG.

mod cost;
mod curve;
mod forest;
mod frame;
mod heat;
mod survival;

use super::axis::Scale;
use super::file::{Experiment, PictureKind as Kind};
use super::outcome::Outcome;

/// The error when a picture cannot be drawn.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{kind}: {why}")]
pub struct PictureError {
    kind: &'static str,
    why: String,
}

/// Draws a picture of a study.
///
/// # Errors
/// Returns [`PictureError`] if the study does not have what the picture shows.
pub fn draw(kind: Kind, study: &Experiment, outcomes: &[Outcome]) -> Result<String, PictureError> {
    let drawn = match kind {
        Kind::Curve => curve::draw(study, outcomes),
        Kind::HeatMap => heat::draw(study, outcomes),
        Kind::Survival => survival::draw(study, outcomes),
        Kind::Cost => cost::draw(study, outcomes),
        Kind::Forest => forest::draw(study, outcomes),
    };
    drawn.map_err(|why| PictureError {
        kind: kind.name(),
        why,
    })
}

/// Where the settings of an axis are in a picture, and what is written there.
struct Ruler {
    title: String,
    places: Vec<f64>,
    /// The texts of words, which have no numbers.
    words: Option<Vec<String>>,
    scale: Scale,
}

impl Ruler {
    /// Returns the ruler of an axis. `None` if there is no such axis.
    fn of(study: &Experiment, axis: usize) -> Option<Self> {
        let axis = study.axes.get(axis)?;
        let numbers = axis.settings.iter().map(|setting| setting.number);
        let numbers: Option<Vec<f64>> = numbers.collect();
        let is_log = axis.scale == Scale::Log;
        let are_spans = axis
            .settings
            .iter()
            .any(|setting| setting.toml.starts_with('"'));
        let unit = if numbers.is_some() && are_spans {
            ", s"
        } else {
            ""
        };
        let words = axis.settings.iter().map(|setting| setting.text.clone());
        Some(Ruler {
            title: format!("{}{unit}", axis.name),
            words: numbers.is_none().then(|| words.collect()),
            places: match numbers {
                Some(numbers) if is_log => numbers.into_iter().map(libm::log10).collect(),
                Some(numbers) => numbers,
                None => (0..axis.settings.len()).map(|index| index as f64).collect(),
            },
            scale: axis.scale,
        })
    }

    /// Returns what is written at a place.
    fn label(&self, place: f64) -> String {
        if let Some(words) = &self.words {
            let index = place.round();
            let word = words
                .get(index as usize)
                .filter(|_| (place - index).abs() < 1e-9);
            return word.cloned().unwrap_or_default();
        }
        match self.scale {
            Scale::Linear => short(place),
            Scale::Log => short(libm::pow(10.0, place)),
        }
    }

    /// Returns the ends of the ruler, with a margin.
    fn ends(&self) -> (f64, f64) {
        let least = self.places.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self
            .places
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        let margin = match most - least {
            0.0 => 0.5,
            span => 0.03 * span,
        };
        (least - margin, most + margin)
    }
}

/// Formats a number with at most four digits, and without a zero at its end.
fn short(number: f64) -> String {
    if number == 0.0 || 1_000.0 <= number.abs() {
        return format!("{number:.0}");
    }
    let decimals = (3.0 - number.abs().log10().floor()).clamp(0.0, 7.0) as usize;
    let text = format!("{number:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Returns the place of an outcome on an axis.
fn place(study: &Experiment, ruler: &Ruler, axis: usize, outcome: &Outcome) -> Option<f64> {
    let setting = study.points.get(outcome.point)?.get(axis)?;
    let settings = &study.axes.get(axis)?.settings;
    let index = settings.iter().position(|known| known == setting)?;
    ruler.places.get(index).copied()
}

/// Returns the outcomes that are one line of a picture: those of a lock, and of one setting of each axis from `axis` on.
fn lines<'o>(
    study: &Experiment,
    outcomes: &'o [Outcome],
    axis: usize,
) -> Vec<(String, Vec<&'o Outcome>)> {
    let mut found: Vec<(String, Vec<&Outcome>)> = Vec::new();
    for outcome in outcomes {
        let settings = study.points.get(outcome.point).into_iter().flatten();
        let named = study.axes.iter().zip(settings).skip(axis);
        let mut words: Vec<String> = named
            .map(|(axis, setting)| format!("{} = {}", axis.name, setting.text))
            .collect();
        if 1 < study.locks.len() || words.is_empty() {
            words.insert(0, super::print::name(study, outcome.lock).to_owned());
        }
        let name = words.join(", ");
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, line)) => line.push(outcome),
            None => found.push((name, vec![outcome])),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 0.25, 12.5, 5_000.0, -20.0, 0.000_12].map(short);
        assert_eq!(texts, ["0", "0.25", "12.5", "5000", "-20", "0.00012"]);
    }
}
