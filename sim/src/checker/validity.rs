//! A hold is worth what is said of it.

use super::{Property, Violation};
use crate::history::{BeliefStatement, History};

pub(super) fn check(history: &History) -> Option<Violation> {
    let broken = history.broken.first()?;
    let process = broken.process;
    let story = match broken.said {
        BeliefStatement::Acquired => format!("{process} was given a guard that holds nothing"),
        BeliefStatement::Extended => format!(
            "{process} was told that its hold was extended, and it is not valid for as long"
        ),
        BeliefStatement::ValidUntil => {
            format!("a hold of {process} became shorter by what its node confirmed")
        }
        BeliefStatement::Released => format!(
            "{process} was told that its hold was released, and so many nodes have its claim that others are kept out"
        ),
        BeliefStatement::AtMost => {
            format!("a hold of {process} is valid for longer than it may be renewed")
        }
        BeliefStatement::Served => format!(
            "{process} was granted the lock, and its owner still stands in the queue in front of those who wait"
        ),
        BeliefStatement::Lease => format!(
            "a hold of {process} is valid for longer than a lease from when the request that it rests on can have been sent"
        ),
        BeliefStatement::Renewed => {
            format!("{process} lost a hold that was renewed, and nothing was in the way")
        }
    };
    let violation = Violation::new(Property::Validity, broken.at, history, broken.name, story);
    Some(violation.by(&[process]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::samples::{history, process};
    use crate::history::{BrokenStatement, HoldId, NameId};

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
