//! Hold count: the count of a hold is the number of its guards.

use super::{Property, Violation};
use quorlock_sim_world::history::{History, NameId};

pub(super) fn check(history: &History) -> Option<Violation> {
    let wrong = history.counts.iter().find(|c| c.counted != c.expected)?;
    let story = format!(
        "{} has {} guards of a hold that counts {}",
        wrong.process, wrong.expected, wrong.counted
    );
    let violation = Violation::new(Property::HoldCount, wrong.at, history, NameId(0), story);
    Some(violation.by(&[wrong.process]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{history, process};
    use quorlock_sim_world::history::{Count, HoldId};

    #[test]
    fn a_count_that_is_not_the_number_of_guards_is_found() {
        let mut history = history(Vec::new());
        for (counted, expected, is_found) in [(1, 1, false), (3, 3, false), (2, 3, true)] {
            history.counts.push(Count {
                process: process(0),
                hold: HoldId(0),
                at: 0,
                counted,
                expected,
            });
            assert_eq!(check(&history).is_some(), is_found);
        }
    }
}
