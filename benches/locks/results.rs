//! What was measured.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::contestant::Contestant;
use crate::turn::{Figures, quantile};

/// The figures of each case and contestant.
#[derive(Default)]
pub(crate) struct Results(pub(crate) BTreeMap<&'static str, BTreeMap<Contestant, Figures>>);

impl Results {
    pub(crate) fn median(&self, case: &str, who: Contestant, figure: &str) -> Option<f64> {
        let values = self.0.get(case)?.get(&who)?.get(figure)?;
        Some(quantile(values, 0.5))
    }

    /// Returns a row of JSON for each figure.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Value> {
        self.0.iter().flat_map(|(case, contestants)| {
            contestants.iter().flat_map(move |(who, figures)| {
                figures.iter().map(move |(figure, values)| {
                    json!({
                        "peer": who.name(),
                        "work": case,
                        "figure": figure,
                        "value": quantile(values, 0.5),
                        "p99": quantile(values, 0.99),
                    })
                })
            })
        })
    }
}
