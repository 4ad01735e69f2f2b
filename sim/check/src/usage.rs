//! Usage: writes of two holds do not interleave, and no update is overwritten before it is read.

use super::{Property, Violation, moment};
use quorlock_sim_world::history::{Accepted, History, HoldId, Written};

/// Finds a hold that writes to a resource after a later hold has written to it, or that overwrites a write that it has
/// not read.
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
        if let Some(read_at) = write.read_at.filter(|read_at| *read_at < before.at) {
            let story = format!(
                "{} overwrote at {} what {} had written at {}: it had read at {}",
                write.process,
                moment(write.at),
                before.process,
                moment(before.at),
                moment(read_at),
            );
            let violation = Violation::new(Property::Usage, write.at, history, write.name, story);
            return Some(violation.by(&[write.process, before.process]));
        }
        overtaken.push((write, before.hold));
        // A delayed write of an earlier hold arrives soon, so a few entries are enough.
        if 64 < overtaken.len() {
            overtaken.remove(0);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{history, written};

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

    /// Hold 0 reads at 0 and writes at 20. Hold 1 reads at `read_at` and writes at 30.
    fn updates(read_at: u64, accepted: Accepted) -> History {
        let mut history = history(Vec::new());
        history.writes = vec![written(0, 20, Some(1)), written(1, 30, Some(2))];
        history.writes[0].read_at = Some(0);
        history.writes[0].accepted = accepted;
        history.writes[1].read_at = Some(read_at);
        history
    }

    #[test]
    fn an_update_that_is_overwritten_unread_is_found() {
        let violation = check(&updates(10, Accepted::Yes)).unwrap();
        assert_eq!(violation.property, Property::Usage);
        assert!(violation.story.contains("overwrote"), "{violation}");
        assert_eq!(check(&updates(25, Accepted::Yes)), None);
        assert_eq!(check(&updates(10, Accepted::No)), None);
    }

    #[test]
    fn a_rejected_write_does_no_harm() {
        let mut history = of(&[0, 1, 0]);
        history.writes[2].accepted = Accepted::No;
        assert_eq!(check(&history), None);
    }
}
