//! Orphans: nothing stays locked after all clients have stopped.

use super::{Property, Violation};
use quorlock_sim_world::history::History;

pub(super) fn check(history: &History) -> Option<Violation> {
    let left = history.leftovers.first()?;
    let story = format!(
        "node {} still has {:?} locked, long after all clients have stopped",
        left.node,
        history.text(left.name)
    );
    let at = history.progress_due;
    Some(Violation::new(
        Property::Orphans,
        at,
        history,
        left.name,
        story,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::history;
    use quorlock_sim_world::history::{Leftover, NameId};

    #[test]
    fn a_claim_that_stays_is_found() {
        let mut history = history(Vec::new());
        assert_eq!(check(&history), None);
        history.leftovers.push(Leftover {
            node: 2,
            name: NameId(0),
        });
        assert_eq!(check(&history).unwrap().property, Property::Orphans);
    }
}
