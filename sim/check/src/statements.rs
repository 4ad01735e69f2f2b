//! Statements: of two requests of one hold, the one with the larger number does not state a shorter lease.
//!
//! Otherwise a contender that was shown the larger number replaces the claim after the shorter lease, while the holder
//! still relies on the longer one.

use super::{Property, Violation};
use quorlock_sim_world::history::History;

pub(super) fn check(history: &History) -> Option<Violation> {
    let shrunk = history.shrunk.first()?;
    let ((before, longer), (after, shorter)) = (shrunk.before, shrunk.after);
    let story = format!(
        "{} stated a lease of {shorter} ms in its request {after}, after {longer} ms in request {before}",
        shrunk.by
    );
    let violation = Violation::new(Property::Statements, shrunk.at, history, shrunk.name, story);
    Some(violation.by(&[shrunk.by]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{history, process};
    use quorlock_sim_world::history::{NameId, ShortenedLease};

    #[test]
    fn a_lease_that_shrinks_is_found() {
        let mut history = history(Vec::new());
        assert_eq!(check(&history), None);
        history.shrunk.push(ShortenedLease {
            at: 5,
            name: NameId(0),
            by: process(1),
            before: (17, 5_000),
            after: (18, 1_000),
        });
        assert_eq!(check(&history).unwrap().property, Property::Statements);
    }
}
