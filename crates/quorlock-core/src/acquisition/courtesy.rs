//! How long a client that has released a lock pauses, so that waiters can acquire it.

use std::time::Duration;

use crate::time::Time;

/// The pause is this many times as long as the release took. It covers the message to the waiters, a round that asks
/// the first member before the rest, and the time until their tasks run.
const ROUND_TRIPS: u32 = 4;

/// The longest pause. A client whose release takes a second has a slow network, and waiting longer would not help.
const LONGEST: Duration = Duration::from_millis(100);

/// After more than this many useless pauses in a row, each twice as long as the previous one, the listeners are
/// assumed not to want the lock.
const MOST_IN_VAIN: u32 = 4;

/// From then on the client pauses only at every second release, then at every fourth, and so on up to this power of
/// two.
const MOST_SKIPPED: u32 = 6;

/// Decides whether a client that releases a lock pauses before it acquires the lock again.
///
/// A and B both acquire again as soon as they have released. A's next round would reach the nodes before B has received
/// the message about the release, and B would wait for as long as A repeats this. The replies to its release tell A
/// that B listens, so A pauses.
///
/// A client that listens but never acquires (a monitor that subscribes to everything) still causes a pause from
/// time to time. A pause is useless if no client has taken the lock by its end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Courtesy {
    in_vain: u32,
    to_skip: u32,
}

impl Courtesy {
    /// Handles a release that ended now, took this long and notified other clients. Returns until when this client lets
    /// them pass; `None` if it does not.
    pub fn handle_release(&mut self, now: Time, took: Duration) -> Option<Time> {
        if 0 < self.to_skip {
            self.to_skip -= 1;
            return None;
        }
        // A waiter that is farther from the nodes needs longer.
        let doubled = match self.in_vain {
            few if few <= MOST_IN_VAIN => 1 << few,
            _ => 1,
        };
        let pause = took.saturating_mul(ROUND_TRIPS).saturating_mul(doubled);
        Some(now + pause.min(LONGEST))
    }

    /// Records that the lock was still free after a pause.
    pub fn handle_vain(&mut self) {
        let most = MOST_IN_VAIN + MOST_SKIPPED;
        self.in_vain = self.in_vain.saturating_add(1).min(most);
        let power = self.in_vain.saturating_sub(MOST_IN_VAIN);
        self.to_skip = (1 << power) - 1;
    }

    /// Records that another client had taken the lock after a pause.
    pub fn handle_taken(&mut self) {
        *self = Courtesy::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn others_have_some_round_trips_and_never_longer_than_a_bound() {
        let mut courtesy = Courtesy::default();
        let at = |millis| Some(Time::from_millis(millis));
        assert_eq!(courtesy.handle_release(Time::ZERO, 2 * MS), at(8));
        assert_eq!(courtesy.handle_release(Time::ZERO, 2_000 * MS), at(100));
    }

    #[test]
    fn one_that_is_far_away_is_given_longer_before_it_is_given_up() {
        let mut courtesy = Courtesy::default();
        let mut pauses = Vec::new();
        for _ in 0..5 {
            pauses.push(courtesy.handle_release(Time::ZERO, MS));
            courtesy.handle_vain();
        }
        let expected = [4, 8, 16, 32, 64].map(|millis| Some(Time::from_millis(millis)));
        assert_eq!(pauses, expected);
    }

    #[test]
    fn a_monitor_that_only_listens_is_let_pass_less_and_less() {
        let mut courtesy = Courtesy::default();
        let mut passes = 0;
        for _ in 0..1_000 {
            if courtesy.handle_release(Time::ZERO, MS).is_some() {
                passes += 1;
                courtesy.handle_vain();
            }
        }
        assert!(passes <= 5 + 6 + 1_000 / 64, "{passes}");
        courtesy.handle_taken();
        assert!(courtesy.handle_release(Time::ZERO, MS).is_some());
    }
}
