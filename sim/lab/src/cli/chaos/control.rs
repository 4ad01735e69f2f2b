//! The controls: for each class of faults, a lock that must break. If it does not break, the runs of the class show
//! nothing.

use crate::study::matrix::StormWork;

/// Returns the lock that must break under a class of faults, by its name in the matrix.
pub(super) fn control_of(class: &str, work: StormWork) -> Option<&'static str> {
    match class {
        // A replica that never takes its primary's place breaks no lock. Neither does a refusal, nor a slot that is moved
        // without a failover: the bystanders of the clients show whether holds are lost. Between restarts locks are seldom
        // held: how long clients wait shows whether nodes are watched.
        "quiet" | "quiet restarts" | "replicas" | "revoked keys" | "half-moved slots" => None,
        "elections" => Some("ours, a Sentinel group"),
        "cluster failovers" => Some("ours, a cluster"),
        // The product's lock without one of the remedies against these faults, or without both. A fair lock needs one
        // node, which has no remedies in plans, so that it breaks itself.
        "restarts, amnesia" | "backups, amnesia" | "power loss" => match work {
            StormWork::Fair => Some("ours, one node"),
            _ => Some("ours, neither"),
        },
        // Only the product's clients read and write, so the control lacks the rule between the two.
        _ if work == StormWork::ReadWrite => Some("ours, one node, writers beside readers"),
        // A lock on a single server has no remedy against these faults.
        "steps"
        | "steps beyond the margin"
        | "drift beyond 1 %"
        | "suspend, clock stops"
        | "eviction"
        | "flush"
        | "failover"
        | "everything, amnesia"
        | "all at once, amnesia" => Some("SET NX, compare"),
        // A late release deletes the claim that another client has at that time.
        _ => Some("SET NX, DEL"),
    }
}

/// Returns the locks that run under a class in addition to its control, unless the class or the work has no such list
/// of its own.
pub(super) fn locks_of<'a>(class: &str, work: StormWork, usual: &'a [&'a str]) -> &'a [&'a str] {
    match (class, work) {
        ("elections", _) => &["ours, a majority of Sentinel groups"],
        ("cluster failovers", _) => &["ours, a majority of shards"],
        ("half-moved slots", _) => &["ours, a cluster", "ours, a majority of shards"],
        (_, StormWork::Fair) => &["ours, one node"],
        _ => usual,
    }
}

/// Returns whether a lock also runs under a class because of the work: several names may lie on different nodes.
pub(super) fn is_of_work(class: &str, work: StormWork, lock: &str) -> bool {
    let has_own_nodes = ["elections", "cluster failovers", "half-moved slots"].contains(&class);
    work == StormWork::Several && !has_own_nodes && lock == "ours, MultiLock"
}
