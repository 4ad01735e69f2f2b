//! Expiry: each node frees the claims of a dead process within their TTL.

use super::{Property, Violation, moment};
use quorlock_sim_world::history::History;

pub(super) fn check(history: &History) -> Option<Violation> {
    let kept = history.overdue.first()?;
    let story = format!(
        "node {} still had {:?} locked for {}, which died at {}, when its TTL was over",
        kept.node,
        history.text(kept.name),
        kept.process,
        moment(kept.died)
    );
    let violation = Violation::new(Property::Expiry, kept.at, history, kept.name, story);
    Some(violation.by(&[kept.process]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{history, process};
    use quorlock_sim_world::history::{NameId, Overdue};

    #[test]
    fn a_claim_that_outlives_its_owner_by_more_than_its_ttl_is_found() {
        let mut history = history(Vec::new());
        assert_eq!(check(&history), None);
        history.overdue.push(Overdue {
            at: 9_000,
            node: 2,
            name: NameId(0),
            process: process(1),
            died: 4_000,
        });
        let violation = check(&history).unwrap();
        assert_eq!(violation.property, Property::Expiry);
        let told =
            "node 2 still had \"a\" locked for client 1, which died at 4us, when its TTL was over";
        assert_eq!(violation.story, told);
    }
}
