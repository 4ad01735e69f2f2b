//! Progress: when all faults have ended, the lock is acquired within a bound.

use super::{Property, Violation, moment};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_world::history::{Action, History, Operation, Outcome};

pub(super) fn check(history: &History) -> Option<Violation> {
    after_faults(history)
        .or_else(|| while_waited_for(history))
        .or_else(|| while_free(history))
}

fn after_faults(history: &History) -> Option<Violation> {
    let (from, to) = (history.healed, history.progress_due);
    let asked = |action| matches!(action, Action::Acquire | Action::Try);
    let in_time = |at: u64| from <= at && at <= to;
    let has_asked = history
        .operations
        .iter()
        .any(|op| asked(op.action) && from < op.completed);
    let was_granted = history
        .operations
        .iter()
        .any(|op| asked(op.action) && op.outcome == Outcome::Ok && in_time(op.completed));
    if !history.demands_progress || !has_asked || was_granted {
        return None;
    }
    Some(Violation {
        property: Property::Progress,
        at: SimTime::nanos(to),
        processes: Vec::new(),
        name: None,
        story: format!(
            "everything worked again at {}, and no client had acquired anything by {}",
            moment(from),
            moment(to)
        ),
    })
}

/// Finds a client that waits for longer than the bound while no acquisition of its names succeeds. The bound covers
/// the times for which locks are held and free.
fn while_waited_for(history: &History) -> Option<Violation> {
    let idle = history.idle_within?;
    let is_won = |op: &&Operation| {
        matches!(op.action, Action::Acquire | Action::Try) && op.outcome == Outcome::Ok
    };
    let mut won: Vec<(u64, u64)> = history
        .operations
        .iter()
        .filter(is_won)
        .map(|op| (op.completed, op.names))
        .collect();
    won.sort_unstable();
    let waits = history.operations.iter();
    let waits = waits.filter(|op| op.action == Action::Acquire);
    let (from, to, waiter) = waits
        .filter_map(|op| {
            let until = history.ended(op).min(idle.until);
            let of_these = won.iter().filter(|(_, names)| names & op.names != 0);
            let meanwhile = of_these
                .map(|(at, _)| *at)
                .filter(|at| op.invoked < *at && *at < until);
            let mut from = op.invoked;
            for at in meanwhile.chain([until]) {
                if from + idle.bound < at {
                    return Some((from, from + idle.bound, op));
                }
                from = at;
            }
            None
        })
        .min_by_key(|(_, to, _)| *to)?;
    let story = format!(
        "{} waited, and no client acquired what it waits for between {} and {}",
        waiter.process,
        moment(from),
        moment(to)
    );
    Some(Violation {
        property: Property::Progress,
        at: SimTime::nanos(to),
        processes: vec![waiter.process],
        name: None,
        story,
    })
}

/// Finds a released lock that a client waits for and that no client acquires within the bound, although a threshold of
/// members is free.
fn while_free(history: &History) -> Option<Violation> {
    let idle = history.free_within?;
    let gap = gaps(history)
        .filter(|gap| gap.from + idle.bound < gap.to.min(idle.until))
        .min_by_key(|gap| gap.from)?;
    let story = format!(
        "a lock was released at {}, {} waited for it, and no client had acquired it by {}",
        moment(gap.from),
        gap.waiter.process,
        moment(gap.from + idle.bound)
    );
    Some(Violation {
        property: Property::Progress,
        at: SimTime::nanos(gap.from + idle.bound),
        processes: vec![gap.waiter.process],
        name: None,
        story,
    })
}

/// A period in which a lock was free although a client waited for it.
#[derive(Clone, Copy, Debug)]
pub struct Gap<'a> {
    /// When the release of the lock was confirmed, in nanoseconds of true time.
    pub from: u64,
    /// When the lock was acquired again, in nanoseconds of true time, or `u64::MAX` if it was not.
    pub to: u64,
    /// An acquisition that began to wait at `from` at the latest, and still waited at `to`.
    pub waiter: &'a Operation,
}

/// Returns every period in which a lock was free although a client waited for it. Assumes that holds are not nested.
pub fn gaps(history: &History) -> impl Iterator<Item = Gap<'_>> {
    let all = history.operations.iter();
    let released = all.filter(|op| op.action == Action::Release && op.outcome == Outcome::Ok);
    released.filter_map(|release| {
        let from = release.completed;
        let same = history.operations.iter();
        let same = same.filter(|op| op.names & release.names != 0);
        let asked = same.filter(|op| matches!(op.action, Action::Acquire | Action::Try));
        let won = asked.clone().filter(|op| op.outcome == Outcome::Ok);
        // A hold that is won before this release is confirmed leaves no gap here. Its own release is checked instead.
        let next = won
            .map(|op| op.completed)
            .filter(|at| release.invoked < *at);
        let to = next.min().unwrap_or(u64::MAX);
        let mut waits = asked.filter(|op| op.action == Action::Acquire);
        let waiter = waits.find(|op| op.invoked <= from && to <= history.ended(op))?;
        (from < to).then_some(Gap { from, to, waiter })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{acquired, history};
    use quorlock_sim_world::history::Idle;

    #[test]
    fn one_acquisition_in_time_is_enough() {
        let mut history = history(Vec::new());
        (history.healed, history.progress_due) = (100, 200);
        history.demands_progress = true;
        history.operations = vec![acquired(90, 150, Outcome::Ok)];
        assert_eq!(check(&history), None);
    }

    #[test]
    fn none_in_time_is_found() {
        for operation in [
            acquired(90, 201, Outcome::Ok),
            acquired(90, 150, Outcome::Fail),
            acquired(90, u64::MAX, Outcome::Indeterminate),
        ] {
            let mut history = history(Vec::new());
            (history.healed, history.progress_due) = (100, 200);
            history.demands_progress = true;
            history.operations = vec![acquired(0, 50, Outcome::Ok), operation];
            assert_eq!(check(&history).unwrap().property, Property::Progress);
        }
    }

    #[test]
    fn a_lock_that_stands_idle_while_it_is_waited_for_is_found() {
        let mut history = history(Vec::new());
        let bound = Idle {
            bound: 100,
            until: 1_000,
        };
        history.operations = vec![
            acquired(0, 10, Outcome::Ok),
            acquired(10, 200, Outcome::Ok),
            acquired(20, 90, Outcome::Ok),
        ];
        assert_eq!(check(&history), None, "it is not demanded");
        history.idle_within = Some(bound);
        assert_eq!(check(&history).unwrap().at.as_nanos(), 190);
        history.operations.push(acquired(95, 170, Outcome::Ok));
        assert_eq!(check(&history), None);
        history
            .operations
            .push(acquired(890, u64::MAX, Outcome::Indeterminate));
        assert!(check(&history).is_some());
        history.idle_within = Some(Idle {
            until: 990,
            ..bound
        });
        assert_eq!(check(&history), None, "it is over");
    }

    #[test]
    fn a_process_that_has_died_waits_for_nothing() {
        let mut history = history(Vec::new());
        history.idle_within = Some(Idle {
            bound: 100,
            until: 1_000,
        });
        history.operations = vec![acquired(0, u64::MAX, Outcome::Indeterminate)];
        let waiter = history.operations.first().unwrap().process;
        for (died, is_found) in [(100, false), (101, true)] {
            history.died = vec![(waiter, died)];
            assert_eq!(check(&history).is_some(), is_found, "{died}");
        }
    }

    #[test]
    fn a_lock_that_is_free_and_wanted_and_not_acquired_is_found() {
        let released = |invoked, completed| Operation {
            action: Action::Release,
            ..acquired(invoked, completed, Outcome::Ok)
        };
        let mut history = history(Vec::new());
        history.operations = vec![
            acquired(0, 10, Outcome::Ok),
            released(100, 110),
            acquired(50, 300, Outcome::Ok),
        ];
        assert_eq!(check(&history), None, "it is not demanded");
        let bound = |bound| {
            let until = 1_000;
            Some(Idle { bound, until })
        };
        history.free_within = bound(190);
        assert_eq!(check(&history), None);
        history.free_within = bound(189);
        assert_eq!(check(&history).unwrap().at.as_nanos(), 299);
        // Another client has acquired the lock in between.
        history.operations.push(acquired(105, 200, Outcome::Ok));
        assert_eq!(check(&history), None);
        // That client has released the lock, and no client acquires it after that.
        history.operations.push(released(400, 410));
        assert_eq!(check(&history), None, "no client wants it");
        let waits = acquired(300, u64::MAX, Outcome::Indeterminate);
        history.operations.push(waits);
        assert_eq!(check(&history).unwrap().at.as_nanos(), 599);
        history.free_within = Some(Idle {
            bound: 189,
            until: 500,
        });
        assert_eq!(check(&history), None, "it is over");
    }

    #[test]
    fn a_run_in_which_nobody_asked_says_nothing() {
        let mut history = history(Vec::new());
        history.demands_progress = true;
        assert_eq!(check(&history), None);
    }

    #[test]
    fn a_run_that_ends_before_it_is_due_says_nothing() {
        let mut history = history(Vec::new());
        (history.healed, history.progress_due) = (100, 200);
        history.operations = vec![acquired(90, 150, Outcome::Fail)];
        assert_eq!(check(&history), None);
    }
}
