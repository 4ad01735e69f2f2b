//! A storm that a command line selects: a class of faults, and a lock.

use crate::chaos::other_library::NamesOfOthers;
use crate::study::matrix::{CLASSES, CONTENDERS, Candidate, Class, STORM_LOCKS, STORMS_ONLY};
use crate::study::predicted::Expected;
use quorlock_sim_plan::Plan;

/// One lock and the plan of its storm.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) lock: String,
    pub(super) class: String,
    pub(super) plan: Plan,
    pub(super) expected: Expected,
    /// The names of the other library's clients, if every second client is one of them.
    pub(super) beside: Option<NamesOfOthers>,
}

/// Returns the classes of the matrix, and those that only storms have.
pub(super) fn classes() -> impl Iterator<Item = &'static Class> {
    CLASSES.iter().chain(STORMS_ONLY)
}

/// Returns the locks that run on real servers: storms have no stores.
pub(super) fn locks() -> impl Iterator<Item = &'static Candidate> {
    let all = CONTENDERS.iter().chain(STORM_LOCKS);
    all.filter(|lock| classes().any(|class| lock.meets(class)))
}
