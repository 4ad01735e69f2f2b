//! Rounds with the arithmetic of Redisson's `RedissonRedLock`, as its sources of 2026 have it.
//!
//! It differs from published Redlock: members are acquired in turns, each with a share of the wait; the lease is twice
//! the wait until all is acquired, and is then set by a request that does not check the owner; and the time that the
//! round took is compared with the wait only, never with a lease.

use std::time::Duration;

use quorlock::runtime::Time;
use quorlock::transport::{AcquireReply, Cause, Reply};
use quorlock_core::lease::Lease;
use quorlock_core::message::Ttl;

use super::token;
use super::{ConcurrentRequests, Release, Round, RoundEnd, RoundOutcome, Vote};
use crate::model::hold::ModelHold;
use crate::model::waiting::{ModelWaiter, WakeUpKind};
use quorlock_sim_plan::LockKind;

/// The wait of `lock()` for each member, in milliseconds.
const WAIT_MILLIS: u64 = 1_500;

/// The arguments of `tryLock`.
#[derive(Clone, Copy)]
pub(in crate::model) struct TryLock {
    /// How long the call may take. Without it, each member is asked once.
    pub(in crate::model) wait: Option<Duration>,
    /// The lease, or `None` if the watchdog renews a standard one.
    pub(in crate::model) lease: Option<Lease>,
}

impl TryLock {
    /// Returns the arguments with which `lock(lease)` calls it: a part of the lease that is drawn anew for each call.
    pub(in crate::model) fn of_lock(lease: Option<Lease>, members: usize, random: u64) -> Self {
        let base = Duration::from_millis(WAIT_MILLIS * members as u64);
        let wait = lease.map_or(base, |lease| {
            let length = lease.length();
            let least = if length <= base { length / 2 } else { base };
            let span = length.saturating_sub(least).as_nanos().max(1);
            least + Duration::from_nanos((u128::from(random) % span) as u64)
        });
        let wait = Some(wait);
        TryLock { wait, lease }
    }
}

impl Round {
    /// Runs one `tryLock`. What it does not release, stays on the nodes.
    pub(in crate::model) async fn take_turns(mut self, call: TryLock) -> RoundOutcome {
        let outcome = self.turns(call).await;
        // A round that is dropped releases what it may hold, and Redisson does not.
        self.end = RoundEnd::Won;
        outcome
    }

    async fn turns(&mut self, call: TryLock) -> RoundOutcome {
        let lost = RoundOutcome::Refused(Some(Duration::ZERO));
        if !self.acquire_in_turns(call).await {
            return lost;
        }
        if let Some(lease) = call.lease
            && !self.expire(lease).await
        {
            // An exception leaves `lock`, and the members stay locked.
            return RoundOutcome::Failed;
        }
        let Some(tokens) = token::of(self).await else {
            return RoundOutcome::Failed;
        };
        let end = self.lease.term(self.client.clock());
        let term = |vote: &Vote| matches!(vote, Vote::Granted(..)).then_some(end);
        let terms = self.votes.iter().map(term).collect();
        let (client, layout) = (&self.client, &self.layout);
        let hold = ModelHold::new(client, layout, self.owner, self.lease, tokens, terms);
        RoundOutcome::Won(hold)
    }

    /// Acquires a majority, one member after the other. Returns whether it did, within the wait.
    async fn acquire_in_turns(&mut self, call: TryLock) -> bool {
        let of = self.layout.members.len();
        // `RedissonMultiLock` needs all of them, and gives each the whole wait.
        let needs_all = self.client.plan.lock == LockKind::Multi;
        let may_fail = if needs_all { 0 } else { of - (of / 2 + 1) };
        let lease = match (call.lease, call.wait) {
            (Some(_), Some(wait)) => Lease::new(wait * 2).unwrap_or(self.lease),
            _ => self.lease,
        };
        let end = call.wait.map(|wait| self.client.clock() + wait);
        let share = call.wait.map(|wait| match needs_all {
            true => wait,
            false => wait / of as u32,
        });
        let (mut next, mut left) = (0, may_fail);
        while next < of {
            let left_of_wait = end.map(|end| end.since(self.client.clock()));
            let patience = share.zip(left_of_wait).map(|(share, left)| share.min(left));
            self.acquire_member(next, lease, patience).await;
            if !self.is_granted(next) {
                // A majority counts only when a member has failed. Until then all are acquired.
                if of - self.granted().len() == may_fail {
                    break;
                }
                if let Some(fewer) = left.checked_sub(1) {
                    left = fewer;
                } else {
                    self.unlock(self.granted()).await;
                    if end.is_none() {
                        return false;
                    }
                    self.votes.fill(Vote::Unasked);
                    (next, left) = (0, may_fail);
                    if self.is_over(end) {
                        return false;
                    }
                    continue;
                }
            }
            if self.is_over(end) {
                self.unlock(self.granted()).await;
                return false;
            }
            next += 1;
        }
        true
    }

    fn is_over(&self, end: Option<Time>) -> bool {
        end.is_some_and(|end| end <= self.client.clock())
    }

    fn granted(&self) -> Vec<usize> {
        let members = 0..self.votes.len();
        members.filter(|member| self.is_granted(*member)).collect()
    }

    /// Tries to acquire one member, and waits for it for this long.
    async fn acquire_member(&mut self, index: usize, lease: Lease, patience: Option<Duration>) {
        let (client, layout) = (self.client.clone(), self.layout.clone());
        let (Some(member), Some(part)) = (layout.members.get(index), layout.part(index)) else {
            return;
        };
        let until = client.now() + patience.unwrap_or_default();
        let mut waiting = None;
        loop {
            let request = client.acquire(member, self.owner, 1, lease, self.fence());
            let mut asking = ConcurrentRequests::new(&client);
            asking.ask(index, member, request);
            let Some(answer) = asking.next(Time::NEVER).await else {
                return;
            };
            self.note(&answer);
            match &answer.reply {
                Ok(Reply::Acquire(AcquireReply::Refused { ttl, .. })) => {
                    let left = until.since(client.now());
                    if left.is_zero() {
                        return;
                    }
                    let pause = match ttl {
                        Ttl::Millis(millis) => left.min(Duration::from_millis(millis + 1)),
                        Ttl::Unbounded => left,
                    };
                    let waiter = waiting.get_or_insert_with(|| ModelWaiter::new(&part));
                    let at = client.now() + pause;
                    waiter.hear(&client, WakeUpKind::Free, at).await;
                    waiter.clear();
                }
                // Only an answer that did not come in time makes it unlock the member.
                Err(error) if error.cause == Cause::TimedOut => {
                    return self.unlock(vec![index]).await;
                }
                _ => return,
            }
        }
    }

    /// Unlocks members, and waits for the answers without reading them.
    async fn unlock(&self, members: Vec<usize>) {
        let release = Release {
            client: self.client.clone(),
            layout: self.layout.clone(),
            owner: self.owner,
            left: 0,
        };
        release.tell(members).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_drawn_from_the_lease() {
        let wait = |millis, random| {
            let lease = Lease::new(Duration::from_millis(millis)).unwrap();
            TryLock::of_lock(Some(lease), 3, random)
                .wait
                .unwrap()
                .as_millis()
        };
        assert_eq!(wait(200, 0), 100);
        assert_eq!(wait(200, 99_999_999), 199);
        assert_eq!(wait(6_000, 0), 4_500);
        assert!(wait(6_000, u64::MAX) < 6_000);
        let endless = TryLock::of_lock(None, 3, 7);
        assert_eq!(endless.wait, Some(Duration::from_millis(4_500)));
    }
}
