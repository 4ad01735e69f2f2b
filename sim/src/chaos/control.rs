//! Which lock must break under a class, while the one under test does not: without one a class shows nothing.

/// A lock that must break under a class of faults, by its name in the matrix.
pub(crate) fn control_of(class: &str) -> Option<&'static str> {
    match class {
        "quiet" => None,
        // A remedy of ours against them is left out, or both.
        "restarts, amnesia" | "power loss" => Some("ours, neither"),
        // On one server nothing stands against them.
        "steps"
        | "steps beyond the margin"
        | "drift beyond 1 %"
        | "eviction"
        | "flush"
        | "failover"
        | "everything, amnesia"
        | "all at once, amnesia" => Some("SET NX, compare"),
        // Who comes late deletes what another has by then.
        _ => Some("SET NX, DEL"),
    }
}
