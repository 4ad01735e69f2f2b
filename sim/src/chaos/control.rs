//! The controls: the lock that must break under a class of faults. If no lock breaks under a class, the class shows
//! nothing.

/// Returns the lock that must break under a class of faults, by its name in the matrix.
pub(crate) fn control_of(class: &str) -> Option<&'static str> {
    match class {
        "quiet" => None,
        // Ours without one of the remedies against them, or without both.
        "restarts, amnesia" | "power loss" => Some("ours, neither"),
        // A lock on a single server has no remedy against them.
        "steps"
        | "steps beyond the margin"
        | "drift beyond 1 %"
        | "eviction"
        | "flush"
        | "failover"
        | "everything, amnesia"
        | "all at once, amnesia" => Some("SET NX, compare"),
        // A late release deletes the claim that another client has by then.
        _ => Some("SET NX, DEL"),
    }
}
