//! Writes of two holds do not interleave.

use super::{Property, Violation, moment};
use crate::history::{Accepted, History, HoldId, Written};

/// Once another hold has written to a resource, an earlier one must not write there any more.
pub(super) fn check(history: &History) -> Option<Violation> {
    let taken = |w: &&Written| w.accepted == Accepted::Yes;
    let mut last: Vec<Option<&Written>> = vec![None; history.names.len()];
    let mut overtaken: Vec<(&Written, HoldId)> = Vec::new();
    for write in history.writes.iter().filter(taken) {
        let Some(place) = last.get_mut(usize::from(write.name.0)) else {
            continue;
        };
        let before = place.replace(write);
        let Some(before) = before.filter(|before| before.hold != write.hold) else {
            continue;
        };
        let earlier = overtaken
            .iter()
            .find(|(by, hold)| *hold == write.hold && by.name == write.name);
        if let Some((by, _)) = earlier {
            let story = format!(
                "{} wrote at {} although {} had written in between, at {}",
                write.process,
                moment(write.at),
                by.process,
                moment(by.at),
            );
            let violation = Violation::new(Property::Usage, write.at, history, write.name, story);
            return Some(violation.by(&[write.process, by.process]));
        }
        overtaken.push((write, before.hold));
        // A hold that comes back does so soon: a few are enough to remember.
        if 64 < overtaken.len() {
            overtaken.remove(0);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::samples::{history, written};

    fn of(holds: &[u32]) -> History {
        let mut history = history(Vec::new());
        let writes = holds.iter().zip(0..);
        history.writes = writes.map(|(hold, at)| written(*hold, at, None)).collect();
        history
    }

    #[test]
    fn each_hold_writes_as_often_as_it_likes_before_the_next() {
        assert_eq!(check(&of(&[0, 0, 1, 2, 2, 2, 3])), None);
    }

    #[test]
    fn a_hold_that_writes_after_the_next_one_has_is_found() {
        for holds in [&[0, 1, 0][..], &[0, 0, 1, 2, 1], &[0, 1, 2, 0]] {
            let violation = check(&of(holds)).unwrap();
            assert_eq!(violation.property, Property::Usage, "{holds:?}");
        }
    }

    #[test]
    fn a_rejected_write_does_no_harm() {
        let mut history = of(&[0, 1, 0]);
        history.writes[2].accepted = Accepted::No;
        assert_eq!(check(&history), None);
    }
}
