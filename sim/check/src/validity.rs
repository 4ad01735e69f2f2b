//! Validity: what guards state about their holds is true.

use super::{Property, Violation};
use quorlock_sim_world::history::{BeliefStatement, History};

pub(super) fn check(history: &History) -> Option<Violation> {
    let broken = history.broken.first()?;
    let process = broken.process;
    let story = match broken.said {
        BeliefStatement::Acquired => format!("{process} got a guard that holds nothing"),
        BeliefStatement::Extended => format!(
            "{process} got the answer that its hold was extended, but the hold is valid for less time"
        ),
        BeliefStatement::ValidUntil => {
            format!("a confirmation of its node shortened a hold of {process}")
        }
        BeliefStatement::Released => format!(
            "{process} got the answer that its hold was released, but enough nodes have its claim to keep others out"
        ),
        BeliefStatement::AtMost => {
            format!("a hold of {process} is valid for longer than it may be renewed")
        }
        BeliefStatement::Served => format!(
            "{process} was granted the lock, but its owner still has its place in the queue in front of the waiters"
        ),
        BeliefStatement::Lease => format!(
            "a hold of {process} is valid for longer than a lease after the earliest time at which its request can have been sent"
        ),
        BeliefStatement::Renewed => {
            format!(
                "{process} lost a hold that was renewed, although nothing prevented its renewal"
            )
        }
    };
    let violation = Violation::new(Property::Validity, broken.at, history, broken.name, story);
    Some(violation.by(&[process]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{history, process};
    use quorlock_sim_world::history::{BrokenStatement, HoldId, NameId};

    #[test]
    fn a_hold_that_is_not_worth_what_was_said_is_found() {
        let mut history = history(Vec::new());
        assert_eq!(check(&history), None);
        for said in [
            BeliefStatement::Acquired,
            BeliefStatement::Extended,
            BeliefStatement::ValidUntil,
            BeliefStatement::Released,
            BeliefStatement::AtMost,
            BeliefStatement::Renewed,
            BeliefStatement::Lease,
            BeliefStatement::Served,
        ] {
            history.broken = vec![BrokenStatement {
                at: 5,
                process: process(1),
                hold: HoldId(0),
                name: NameId(0),
                said,
            }];
            let violation = check(&history).unwrap();
            assert_eq!(violation.property, Property::Validity);
            assert_eq!(violation.processes, [process(1)]);
        }
    }
}
