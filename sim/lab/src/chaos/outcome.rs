//! The outcome of each fault of a run.

use std::collections::BTreeMap;

/// Whether a fault began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Struck {
    Yes,
    /// Another fault is using the process.
    PassedOver,
    /// The fault is impossible on real servers, for this reason.
    Lacks(String),
}

/// The numbers of faults that were skipped, or are impossible on real servers.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    /// The number of faults that were skipped because another fault was using the process or the server.
    pub(super) passed_over: u64,
    /// The number of impossible faults, for each reason why they are impossible.
    pub(super) lacking: BTreeMap<String, u64>,
}

impl Effects {
    pub(super) fn add(&mut self, struck: Struck) {
        match struck {
            Struck::Yes => {}
            Struck::PassedOver => self.passed_over += 1,
            Struck::Lacks(why) => *self.lacking.entry(why).or_default() += 1,
        }
    }
}

/// Returns the outcome of a fault whose end may fail.
pub(super) fn done(result: std::io::Result<()>) -> Struck {
    match result {
        Ok(()) => Struck::Yes,
        Err(error) => Struck::Lacks(error.to_string()),
    }
}
