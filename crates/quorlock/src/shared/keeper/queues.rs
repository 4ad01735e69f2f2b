//! Queues whose first waiters were woken on behalf of others, and are passed over if they are not polled.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::time::Time;

use crate::shared::waiters::{DueTurn, FirstInLine, Relief};

/// How soon a woken first waiter must be polled. It is many times what a busy runtime needs, and short for the waiters
/// behind it. A first waiter that is passed over too early only loses its place at the front.
const PATIENCE: Duration = Duration::from_millis(100);

/// The watched queues, ordered by when they are due.
#[derive(Default)]
pub(super) struct WatchedQueues(VecDeque<WatchedQueue>);

/// A queue whose first waiter was woken on behalf of others.
struct WatchedQueue {
    due: Time,
    /// What the last look showed.
    before: DueTurn,
    queue: Arc<dyn FirstInLine>,
}

impl WatchedQueues {
    /// Starts watching these queues.
    pub(super) fn watch(&mut self, queues: Vec<Arc<dyn FirstInLine>>, now: Time) {
        self.0.extend(queues.into_iter().map(|queue| WatchedQueue {
            due: now + PATIENCE,
            before: queue.due(),
            queue,
        }));
    }

    /// Passes over first waiters that were woken a while ago and not polled, although others wait for them.
    pub(super) fn relieve_due(&mut self, now: Time) {
        while let Some(watched) = self.0.pop_front() {
            if now < watched.due {
                self.0.push_front(watched);
                return;
            }
            if let Relief::On(before) = watched.queue.relieve(watched.before) {
                self.0.push_back(WatchedQueue {
                    due: now + PATIENCE,
                    before,
                    queue: watched.queue,
                });
            }
        }
    }

    /// Passes over all first waiters, because the watch ends. The next waiter of each queue takes over and sees that the
    /// client has ended.
    pub(super) fn relieve_all(&mut self) {
        for WatchedQueue { queue, .. } in self.0.drain(..) {
            let due = queue.due();
            queue.relieve(due);
        }
    }

    /// When the next queue is due.
    pub(super) fn poll_timeout(&self) -> Time {
        self.0.front().map_or(Time::NEVER, |watched| watched.due)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A queue with this many waiters whose first waiters are never polled.
    #[derive(Debug)]
    struct Deserted(AtomicU64);

    impl FirstInLine for Deserted {
        fn due(&self) -> DueTurn {
            DueTurn(Some(self.0.load(Ordering::Relaxed)))
        }

        fn relieve(&self, before: DueTurn) -> Relief {
            assert_eq!(before, self.due(), "what was seen at the look before");
            match self.0.fetch_sub(1, Ordering::Relaxed) {
                1 => Relief::Over,
                _ => Relief::On(self.due()),
            }
        }
    }

    fn watched(waiters: u64) -> (Arc<Deserted>, WatchedQueues) {
        let queue = Arc::new(Deserted(AtomicU64::new(waiters)));
        let mut watched = WatchedQueues::default();
        watched.watch(vec![queue.clone()], Time::ZERO);
        (queue, watched)
    }

    #[test]
    fn each_first_waiter_has_its_time_and_the_last_ends_the_watch() {
        let (queue, mut watched) = watched(2);
        let mut left = Vec::new();
        for millis in [0, 99, 100, 199, 200] {
            watched.relieve_due(Time::from_millis(millis));
            left.push(queue.0.load(Ordering::Relaxed));
        }
        assert_eq!(left, [2, 2, 1, 1, 0]);
        assert_eq!(watched.poll_timeout(), Time::NEVER);
    }

    #[test]
    fn a_keeper_that_ends_passes_over_every_first_waiter_at_once() {
        let (queue, mut watched) = watched(2);
        assert_eq!(watched.poll_timeout(), Time::ZERO + PATIENCE);
        watched.relieve_all();
        assert_eq!(queue.0.load(Ordering::Relaxed), 1);
        assert_eq!(watched.poll_timeout(), Time::NEVER);
    }
}
