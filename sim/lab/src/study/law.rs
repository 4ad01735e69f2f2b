//! From what plans follow, besides their seed: what a manifest has of each command.

use serde::{Deserialize, Serialize};

use crate::study::results::{Manifest, ResultsError, Stored};
use crate::study::scenario::{Case, Depth};

/// From what plans follow, besides their seed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Law {
    /// The plans of `explore`.
    Explore {
        /// The flags from which plans are drawn.
        drawn: String,
        /// Whether the campaign continues after a failure.
        goes_on: bool,
    },
    /// The plans of `matrix`.
    Matrix {
        /// The names of the locks.
        locks: Vec<String>,
        /// The names of the classes of fault.
        classes: Vec<String>,
        /// The number of runs of a cell, except for locks in the lane over sockets.
        runs: u64,
        /// The first seed of each cell.
        #[serde(default, skip_serializing_if = "is_zero")]
        first_seed: u64,
    },
    /// The plans of `scenarios`.
    Scenarios {
        /// Which of the seeds are run.
        depth: Depth,
        /// The cases.
        cases: Vec<NamedCase>,
    },
    /// The clusters of `rate`.
    Rate {
        /// The file of the deployment.
        deployment: String,
        /// The name of the lock, if the file has several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lock: Option<String>,
        /// The first seed of each stratum.
        #[serde(default, skip_serializing_if = "is_zero")]
        first_seed: u64,
        /// When the search ends, if its runs are split over machines. Otherwise it may be continued to a narrower bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        split: Option<Split>,
    },
    /// The plans of `study`.
    Study {
        /// The name of the file, without its ending.
        name: String,
        /// The file of the study.
        study: String,
        /// The largest number of runs of a cell.
        runs: u64,
        /// The first seed of each cell.
        first_seed: u64,
    },
}

/// When a search ends whose runs are split over machines.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// It has about this many runs in total.
    pub runs: u64,
    /// The relative error that is enough.
    pub relative_error: f64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(seed: &u64) -> bool {
    *seed == 0
}

/// A case with what the tables say of its scenario.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedCase {
    /// The identifier of the scenario.
    pub id: String,
    /// The title of the scenario.
    pub title: String,
    /// The case.
    pub case: Case,
}

impl Law {
    /// Returns the law of results.
    ///
    /// # Errors
    /// Returns [`ResultsError::Foreign`] if the manifest has none of these.
    pub fn of(stored: &Stored) -> Result<Self, ResultsError> {
        let Manifest { law, .. } = &stored.manifest;
        serde_json::from_value(law.clone()).map_err(|error| ResultsError::Foreign {
            path: stored.folder.clone(),
            reason: format!("the law: {error}"),
        })
    }
}

impl NamedCase {
    /// Returns the name of the cell of the case.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}: {}", self.id, self.case.name)
    }
}
