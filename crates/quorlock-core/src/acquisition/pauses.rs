//! How long an acquisition pauses after a lost round, if nothing wakes it before.

use std::time::Duration;

use super::retry::RetryPolicy;
use crate::backoff::Backoff;
use crate::time::Time;

/// A pause after a collision is at most so often doubled, from two rounds on.
const MOST_DOUBLINGS: u32 = 4;

/// For so many times the length of its own round, which asked one member, a competitor is given time to ask the others.
const ROUND_OF_OTHERS: u32 = 4;

/// The first pause after the competitor that passed has given back is at most so many rounds.
const ROUNDS_OF_A_HINT: u32 = 8;

/// The shortest round that pauses are reckoned by: a fifth of one on loopback.
///
/// By a clock that stands still, as in a test with nodes inside the process, a round takes no time. A and B collide, A asks again
/// after a pause of nothing, and B, which gives back what it has when its timer fires, never has its turn.
const LEAST_ROUND: Duration = Duration::from_micros(20);

/// When competitors that begin at `from` have had their round, by the length of one's own.
pub(super) fn for_others(from: Time, round: Duration) -> Time {
    from + round.saturating_mul(ROUND_OF_OTHERS)
}

/// The pauses of one acquisition, each random and longer than the one before of its kind.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Pauses {
    /// After rounds that failed, and after those that may have collided.
    lost: Backoff,
    /// After collisions that are known to be some. They last as long as claims are given back, and no second.
    collisions: Backoff,
    /// After the competitor that passed has given back what it had.
    hints: Backoff,
    /// When the present one of these ends.
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

    /// A round was lost.
    pub(super) fn handle_loss(&mut self, random: u64) {
        self.random = random;
        self.hint = None;
    }

    /// A round was refused, and no vote split.
    pub(super) fn reset(&mut self) {
        self.lost.reset();
        self.collisions.reset();
        self.hints.reset();
    }

    /// After a round that failed or may have collided, and took this long.
    pub(super) fn after_loss(&mut self, now: Time, took: Duration) -> Time {
        now + self.lost.next(self.random, took.saturating_mul(2))
    }

    /// After the first member refused, for the sake of a competitor that asks the rest now. A round that began while it does
    /// would split the vote.
    pub(super) fn after_postponement(&mut self, now: Time, took: Duration) -> Time {
        for_others(self.after_loss(now, took), took)
    }

    /// After a collision.
    pub(super) fn after_collision(&mut self, now: Time, took: Duration) -> Time {
        now + self.collisions.next(self.random, took.saturating_mul(2))
    }

    /// From the first message of the competitor that passed: it gives back, and the lock is free or in the hands of a holder
    /// of other members.
    pub(super) fn after_hint(&mut self, now: Time, round: Duration) -> Time {
        let least = round.saturating_mul(ROUNDS_OF_A_HINT);
        let pause = || now + self.hints.clone().next(self.random, least);
        *self.hint.get_or_insert_with(pause)
    }

    /// A pause ended at this time. If it was a hint, and no more, the next one is followed later.
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
