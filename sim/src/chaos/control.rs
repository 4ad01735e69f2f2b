//! The controls: for each class of faults, a lock that must break. If it does not break, the runs of the class show
//! nothing.

/// Returns the lock that must break under a class of faults, by its name in the matrix.
pub(crate) fn control_of(class: &str) -> Option<&'static str> {
    match class {
        // A replica that never takes its primary's place breaks no lock.
        "quiet" | "replicas" => None,
        "elections" => Some("ours, a Sentinel group"),
        "cluster failovers" => Some("ours, a cluster"),
        // The product's lock without one of the remedies against these faults, or without both.
        "restarts, amnesia" | "backups, amnesia" | "power loss" => Some("ours, neither"),
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

/// Returns the locks that run under a class in addition to its control, unless the class has no such list of its own.
pub(crate) fn locks_of<'a>(class: &str, usual: &'a [&'a str]) -> &'a [&'a str] {
    match class {
        "elections" => &["ours, a majority of Sentinel groups"],
        "cluster failovers" => &["ours, a majority of shards"],
        _ => usual,
    }
}
