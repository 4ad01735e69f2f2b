//! Fairness: a fair lock serves its waiters in the order in which they arrived.

use std::collections::BTreeMap;

use quorlock::OwnerId;

use super::{Property, Violation, moment};
use quorlock_sim_world::history::{Answered, History, LockAnswer, NameId};

/// The key of a queue: a name on a node, until the node loses its data.
type FairQueue = (u16, u32, NameId);

/// A waiter with a place in a queue.
#[derive(Clone, Copy)]
struct QueuedWaiter<'a> {
    /// The index of the answer that gave the waiter its place.
    came: usize,
    /// The index of the answer since which the waiter certainly has its place. It is later than `came` if the waiter
    /// was silent for so long that the node may have considered it dead.
    kept: usize,
    last: &'a LockAnswer,
    /// The last millisecond of the waiter's place, by the node's clock.
    until: u64,
    /// Whether the node's clock has been beyond `until`.
    was_dead: bool,
}

/// Finds a waiter that was served before an earlier one that had not left and was alive by the node's clock.
pub(super) fn check(history: &History) -> Option<Violation> {
    let mut queues: BTreeMap<FairQueue, BTreeMap<OwnerId, QueuedWaiter<'_>>> = BTreeMap::new();
    for (index, turn) in history.turns.iter().enumerate() {
        let queue = queues.entry((turn.node, turn.life, turn.name));
        let queue = queue.or_default();
        for waiter in queue.values_mut() {
            waiter.was_dead |= waiter.until < turn.wall;
        }
        match turn.answer {
            Answered::Queued { until } => {
                let known = queue.get(&turn.owner);
                let known = known.map(|waiter| match waiter.was_dead {
                    true => (waiter.came, index, until),
                    false => (waiter.came, waiter.kept, waiter.until.max(until)),
                });
                let (came, kept, until) = known.unwrap_or((index, index, until));
                let waiter = QueuedWaiter {
                    came,
                    kept,
                    last: turn,
                    until,
                    was_dead: false,
                };
                queue.insert(turn.owner, waiter);
            }
            Answered::Served => {
                let came = queue.remove(&turn.owner).map_or(index, |own| own.came);
                let waiting = queue.values().filter(|waiter| !waiter.was_dead);
                let first = waiting.min_by_key(|waiter| waiter.kept);
                if let Some(first) = first.filter(|first| first.kept < came) {
                    return Some(overtaken(history, first, turn));
                }
            }
            Answered::Left(_) => {
                queue.remove(&turn.owner);
            }
            _ => {}
        }
    }
    None
}

fn overtaken(history: &History, first: &QueuedWaiter<'_>, served: &LockAnswer) -> Violation {
    let since = history.turns.get(first.kept).map_or(0, |turn| turn.at);
    let story = format!(
        "node {} served {} at {}, but {} had arrived before, has waited since {} and was last alive at {}",
        served.node,
        served.process,
        moment(served.at),
        first.last.process,
        moment(since),
        moment(first.last.at),
    );
    let violation = Violation::new(Property::Fairness, served.at, history, served.name, story);
    violation.by(&[first.last.process, served.process])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{answered, history};
    use quorlock_sim_world::history::Access;

    const LEFT: Answered = Answered::Left(Access::Alone);

    fn queued(until: u64) -> Answered {
        Answered::Queued { until }
    }

    fn checked(answers: Vec<(u16, u64, Answered)>) -> Option<Violation> {
        let mut history = history(Vec::new());
        let turns = answers
            .into_iter()
            .map(|(client, at, answer)| answered(client, at, answer));
        history.turns = turns.collect();
        check(&history)
    }

    #[test]
    fn whoever_comes_first_is_served_first() {
        let turns = vec![
            (0, 0, Answered::Served),
            (1, 1, queued(100)),
            (2, 2, queued(100)),
            (0, 3, LEFT),
            (1, 4, Answered::Served),
            (1, 5, LEFT),
            (2, 6, Answered::Served),
        ];
        assert_eq!(checked(turns), None);
    }

    #[test]
    fn whoever_overtakes_is_found_whether_from_the_queue_or_from_nowhere() {
        for overtaker in [2, 3] {
            let turns = vec![
                (0, 0, Answered::Served),
                (1, 1, queued(100)),
                (2, 2, queued(100)),
                (0, 3, LEFT),
                (overtaker, 4, Answered::Served),
            ];
            let violation = checked(turns).unwrap();
            assert_eq!(violation.property, Property::Fairness);
            let clients: Vec<u16> = violation.processes.iter().map(|p| p.client).collect();
            assert_eq!(clients, [1, overtaker]);
        }
    }

    #[test]
    fn whoever_gave_up_or_died_is_passed_over_and_whoever_was_heard_of_again_is_not() {
        let gave_up = vec![
            (1, 1, queued(100)),
            (2, 2, queued(100)),
            (1, 3, LEFT),
            (2, 4, Answered::Served),
        ];
        assert_eq!(checked(gave_up), None);
        let died = vec![
            (1, 1, queued(10)),
            (2, 2, queued(100)),
            (2, 11, Answered::Served),
        ];
        assert_eq!(checked(died), None);
        let alive = vec![
            (1, 1, queued(10)),
            (2, 2, queued(100)),
            (1, 9, queued(19)),
            (2, 11, Answered::Served),
        ];
        assert!(checked(alive).is_some());
    }

    #[test]
    fn whoever_may_have_lost_its_place_may_be_overtaken_and_may_overtake() {
        let came_back = vec![(1, 1, queued(10)), (2, 2, queued(100)), (1, 12, queued(22))];
        for served in [1, 2] {
            let mut turns = came_back.clone();
            turns.push((served, 13, Answered::Served));
            assert_eq!(checked(turns), None, "{served}");
        }
        // But waiters that arrive after its return may not overtake it.
        let mut turns = came_back;
        turns.extend([(3, 13, queued(100)), (3, 14, Answered::Served)]);
        assert!(checked(turns).is_some());
    }

    #[test]
    fn a_node_that_forgot_has_a_new_queue_and_other_names_and_nodes_have_their_own() {
        let before = answered(1, 1, queued(100));
        let served = answered(2, 2, Answered::Served);
        for change in [
            |turn: &mut LockAnswer| turn.life = 1,
            |turn: &mut LockAnswer| turn.node = 1,
            |turn: &mut LockAnswer| turn.name = NameId(1),
        ] {
            let mut history = history(Vec::new());
            history.turns = vec![before.clone(), served.clone()];
            assert!(check(&history).is_some());
            history.turns.iter_mut().skip(1).for_each(change);
            assert_eq!(check(&history), None);
        }
    }
}
