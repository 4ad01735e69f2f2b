//! How long an acquisition pauses after a lost round if nothing wakes it earlier.

use std::time::Duration;

use super::retry::RetryPolicy;
use crate::backoff::Backoff;
use crate::time::Time;

/// How many times the pause after a collision doubles at most, starting from two rounds.
const MOST_DOUBLINGS: u32 = 4;

/// How much time a competitor gets to ask the remaining members. It is a multiple of the length of this acquisition's
/// own round, which asked one member.
const ROUND_OF_OTHERS: u32 = 4;

/// Upper bound, in rounds, of the first pause after the competitor that passed has given back its grants.
const ROUNDS_OF_A_HINT: u32 = 8;

/// How long, in rounds, the pause may be at least after places in queues were given up again and again, even if that is
/// longer than the user's cap. If the cap is shorter than a round, no pause keeps the owners apart that collide there.
const ROUNDS_OF_LOST_PLACES: u32 = 32;

/// The shortest length of a round from which pauses are calculated: a fifth of a round on loopback.
///
/// If the clock stands still, as in a test with nodes inside the process, a round takes no time. Suppose A and B
/// collide, and A asks again after a pause of zero. B gives back its grants only when its timer fires, which then never
/// happens.
const LEAST_ROUND: Duration = Duration::from_micros(20);

/// Returns when competitors that begin at `from` have finished their round, estimated by the length of this client's
/// round.
pub(super) fn for_others(from: Time, round: Duration) -> Time {
    from + round.saturating_mul(ROUND_OF_OTHERS)
}

/// The pauses of one acquisition. Each is random, and longer than the previous one of its kind.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Pauses {
    /// Pauses after rounds that failed, and after rounds that may have collided.
    lost: Backoff,
    /// Pauses after known collisions. They last as long as giving back grants takes, and never a second.
    collisions: Backoff,
    /// Pauses after the competitor that passed has given back its grants.
    hints: Backoff,
    /// When the current pause of `hints` ends.
    hint: Option<Time>,
    /// Random bits of the last loss.
    random: u64,
}

impl Pauses {
    pub(super) fn new(policy: &RetryPolicy) -> Self {
        let rounds = Backoff::new(LEAST_ROUND.saturating_mul(2), policy.backoff_cap);
        Pauses {
            lost: Backoff::new(policy.backoff, policy.backoff_cap),
            collisions: rounds.clone().most_doublings(MOST_DOUBLINGS),
            hints: rounds,
            hint: None,
            random: 0,
        }
    }

    /// Handles a lost round.
    pub(super) fn handle_loss(&mut self, random: u64) {
        self.random = random;
        self.hint = None;
    }

    /// Handles a refused round whose vote did not split: all pauses start from the shortest again.
    pub(super) fn reset(&mut self) {
        self.lost.reset();
        self.collisions.reset();
        self.hints.reset();
    }

    /// Returns the end of the pause after a round that failed or may have collided, and took this long.
    pub(super) fn after_loss(&mut self, now: Time, took: Duration) -> Time {
        now + self.lost.next(self.random, took.saturating_mul(2))
    }

    /// Returns the end of the pause after the first member refused. The first member has granted a competitor, which
    /// now asks the rest. A round that began in the meantime would split the vote.
    pub(super) fn after_postponement(&mut self, now: Time, took: Duration) -> Time {
        for_others(self.after_loss(now, took), took)
    }

    /// Returns the end of the pause after a known collision.
    pub(super) fn after_collision(&mut self, now: Time, took: Duration) -> Time {
        now + self.collisions.next(self.random, took.saturating_mul(2))
    }

    /// Returns the end of the pause after a second place in a queue was given up, by a round that took this long.
    pub(super) fn after_lost_places(&mut self, now: Time, took: Duration) -> Time {
        let most = took.saturating_mul(ROUNDS_OF_LOST_PLACES);
        let mut pauses = self.lost.clone().cap_at_least(most);
        let at = now + pauses.next(self.random, took.saturating_mul(2));
        self.lost.next(0, Duration::ZERO);
        at
    }

    /// Returns the end of the pause after the first message of the competitor that passed. The competitor gives back
    /// its grants: the lock is free, or a holder has the other members.
    pub(super) fn after_hint(&mut self, now: Time, round: Duration) -> Time {
        let least = round.saturating_mul(ROUNDS_OF_A_HINT);
        let pause = || now + self.hints.clone().next(self.random, least);
        *self.hint.get_or_insert_with(pause)
    }

    /// Handles the end of a pause at this time. If it was the pause after a hint, the pause after the next hint is
    /// longer.
    pub(super) fn handle_end(&mut self, at: Time) {
        if self.hint == Some(at) {
            self.hints.next(0, Duration::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_that_took_no_time_is_followed_by_a_pause_all_the_same() {
        let mut pauses = Pauses::new(&RetryPolicy::default());
        let now = Time::from_nanos(1);
        pauses.handle_loss(u64::MAX / 2);
        assert!(now + LEAST_ROUND / 2 < pauses.after_collision(now, Duration::ZERO));
        assert!(now + LEAST_ROUND / 2 < pauses.after_hint(now, Duration::ZERO));
        pauses.handle_loss(u64::MAX / 2);
        let second = pauses.after_collision(now, Duration::ZERO);
        assert!(now + LEAST_ROUND < second, "the next one is longer");
    }
}
