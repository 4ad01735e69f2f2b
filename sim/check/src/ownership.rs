//! Ownership: no client changes the claim of another owner.

use super::{Property, Violation};
use quorlock_sim_world::history::History;

pub(super) fn check(history: &History) -> Option<Violation> {
    let theft = history.thefts.first()?;
    let story = format!(
        "node {} let {} release or renew what another client had claimed",
        theft.node, theft.by
    );
    let violation = Violation::new(Property::Ownership, theft.at, history, theft.name, story);
    Some(violation.by(&[theft.by]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{history, process};
    use quorlock_sim_world::history::{NameId, Theft};

    #[test]
    fn a_theft_is_found() {
        let mut history = history(Vec::new());
        assert_eq!(check(&history), None);
        history.thefts.push(Theft {
            at: 5,
            node: 0,
            name: NameId(0),
            by: process(1),
        });
        assert_eq!(check(&history).unwrap().property, Property::Ownership);
    }
}
