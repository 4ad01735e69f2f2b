//! Processes that a plan stops in the middle of a step.

use crate::world::id::{ClientId, FaultId};
use crate::world::task::Task;

/// A stop that is due at the n-th use of the clocks, timers, randomness or network.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    /// The number of uses that are left.
    left: u32,
    /// How long the stop lasts, in nanoseconds.
    lasts: u64,
    /// The fault that caused the stop, or `None` if the client requested the stop itself.
    fault: Option<FaultId>,
}

impl Stop {
    /// Creates a stop at the `nth` use from now on, counted from 1.
    pub fn new(nth: u32, lasts: u64, fault: Option<FaultId>) -> Self {
        Stop {
            left: nth.max(1),
            lasts: lasts.max(1),
            fault,
        }
    }

    /// Returns how long the stop lasts, in nanoseconds.
    pub fn lasts(self) -> u64 {
        self.lasts
    }

    pub(crate) fn fault(self) -> Option<FaultId> {
        self.fault
    }
}

/// The stops that a process has yet to make.
#[derive(Debug, Default)]
pub struct Stops {
    due: Vec<Stop>,
    /// When the process was first stopped in the current step.
    first: Option<u64>,
}

impl Stops {
    pub(crate) fn push(&mut self, stop: Stop) {
        self.due.push(stop);
    }

    /// Counts a use. Returns the stop that is due at it, if the stop ends before `before`. Otherwise the stop waits
    /// for the next use.
    pub fn count(&mut self, now: u64, before: u64) -> Option<Stop> {
        for stop in &mut self.due {
            stop.left = stop.left.saturating_sub(1);
        }
        let is_due = |stop: &Stop| stop.left == 0 && now.saturating_add(stop.lasts) < before;
        let index = self.due.iter().position(is_due)?;
        Some(self.due.swap_remove(index))
    }

    /// Records that the process is stopped at a time.
    pub fn begin(&mut self, at: u64) {
        self.first.get_or_insert(at);
    }

    /// Takes the time of the first stop since the last call, within one step.
    pub(crate) fn take_first(&mut self) -> Option<u64> {
        self.first.take()
    }

    /// Restores the time of the first stop, unless `first` is `None`.
    pub(crate) fn put_first(&mut self, first: Option<u64>) {
        self.first = first.or(self.first);
    }

    /// Removes all stops, because the process has ended.
    pub fn clear(&mut self) {
        self.due.clear();
        self.first = None;
    }
}

/// The processes that are stopped in the middle of a step, and the tasks of processes that ended while stopped.
#[derive(Debug, Default)]
pub(crate) struct Halt {
    /// Whether a process of this run may be stopped.
    is_armed: bool,
    /// Clients whose processes are stopped, each with the time at which it continues. The last entry continues first.
    standing: Vec<(ClientId, u64)>,
    graves: Vec<Task>,
}

impl Halt {
    /// Resets the state for another run, in which nothing is stopped yet.
    pub(crate) fn disarm(&mut self) {
        self.is_armed = false;
        self.standing.clear();
    }

    pub(crate) fn arm(&mut self) {
        self.is_armed = true;
    }

    #[inline]
    pub(crate) fn is_armed(&self) -> bool {
        self.is_armed
    }

    /// Returns when the process that was stopped last continues.
    pub(crate) fn until(&self) -> u64 {
        self.standing.last().map_or(u64::MAX, |(_, until)| *until)
    }

    /// Returns whether the process of a client is stopped in the middle of a step.
    pub(crate) fn has(&self, client: ClientId) -> bool {
        self.standing
            .iter()
            .any(|(standing, _)| *standing == client)
    }

    pub(crate) fn begin(&mut self, client: ClientId, until: u64) {
        self.standing.push((client, until));
    }

    /// Ends the stop of the process that was stopped last.
    pub(crate) fn end(&mut self) {
        self.standing.pop();
    }

    /// Keeps tasks that must not be dropped before the step has ended.
    pub(crate) fn bury_later(&mut self, tasks: Vec<Task>) {
        self.graves.extend(tasks);
    }

    pub(crate) fn take_graves(&mut self) -> Vec<Task> {
        std::mem::take(&mut self.graves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_that_would_outlast_another_one_waits_for_its_end() {
        let mut stops = Stops::default();
        stops.push(Stop::new(2, 10, None));
        assert!(stops.count(0, u64::MAX).is_none());
        assert!(stops.count(0, 10).is_none());
        assert_eq!(stops.count(5, 16).map(Stop::lasts), Some(10));
        assert!(stops.count(5, 16).is_none());
    }

    #[test]
    fn the_first_stop_of_a_step_counts() {
        let mut stops = Stops::default();
        stops.begin(3);
        stops.begin(7);
        let before = stops.take_first();
        stops.begin(9);
        assert_eq!(stops.take_first(), Some(9));
        stops.put_first(before);
        assert_eq!(stops.take_first(), Some(3));
    }
}
