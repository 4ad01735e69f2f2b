//! Published numbers that a measurement reproduces.

use serde::{Deserialize, Serialize};

use crate::study::interval::Interval;
use crate::study::measure::{Lost, Measure};

/// A measurement, with the published result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The quantity that is measured.
    pub of: Measure,
    /// The published share, in percent.
    pub published: u64,
    /// The smallest acceptable share, in percent.
    pub min: u64,
    /// The largest acceptable share, in percent.
    pub max: u64,
}

impl Figure {
    /// Returns the reason why the measurement is not acceptable, if it is not.
    pub(super) fn wrong(&self, lost: &Lost) -> Option<String> {
        let interval = Interval::of(lost.lost, lost.acknowledged);
        let percent = interval.share * 100.0;
        let is_right = (self.min as f64..=self.max as f64).contains(&percent);
        (!is_right).then(|| {
            format!(
                "{interval} lost, which is not between {} and {} %",
                self.min, self.max
            )
        })
    }
}
