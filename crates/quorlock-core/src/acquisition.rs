//! Rounds until a lock is won or given up.

use std::sync::Arc;
use std::time::Duration;

use crate::quorum::{MemberId, Members};
use crate::round::{Order, Round};
use crate::time::Time;

mod contention;
mod courtesy;
mod loss;
mod pauses;
mod retry;
mod returns;
mod silence;
mod step;
mod wake_ups;

use contention::Contention;
pub use courtesy::Courtesy;
use pauses::Pauses;
pub use retry::{Limit, RetryPolicy};
use returns::Returns;
use silence::Silence;
pub use step::{GiveUp, Patience, Step};
use wake_ups::{WakeUpTally, WakeUps};

/// Rounds, and what happens between them.
///
/// Try; if refused, subscribe; **try again** (the holder may have released in between); then sleep until enough members
/// have published that the name is free, or until enough claims in the way have expired.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Acquisition {
    policy: RetryPolicy,
    patience: Patience,
    member_timeout: Duration,
    members: Arc<Members>,
    step: Step,
    pauses: Pauses,
    lost_rounds: u32,
    contention: Contention,
    /// The last round asked the first member alone, which refused.
    is_postponed: bool,
    last_order: Order,
    last_because: Because,
    /// When the first round began that failed since a quorum last answered. A round that was refused is one that a quorum
    /// answered: it does not end as refused before that is known.
    failing_since: Option<Time>,
    /// Why the last round was lost.
    last_loss: Option<GiveUp>,
    is_listening: bool,
    /// Members whose subscriptions have ended.
    deaf: Vec<MemberId>,
    /// The group of the fair lock in whose queue the acquisition waits, if there is one among the locks.
    queue: Option<usize>,
    /// How often a place in a queue was given up together with what another group had granted.
    lost_places: u32,
    wake_ups: WakeUps,
    returns: Returns,
    silence: Silence,
    /// How long the last round took.
    last_round: Duration,
    /// Whether the members that refused name several owners, and no owner of these holds the lock.
    has_rivals: bool,
    passing: Passing,
    /// So many releases of others are left to those that have waited for longer.
    deference: u32,
}

/// Whether those are let pass who were told that the lock is free.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Passing {
    /// It asks at once.
    No,
    /// It asks at this time, and subscribes meanwhile.
    Until(Time),
    /// They had their time.
    Over,
}

impl Acquisition {
    /// Begins with a round.
    #[must_use]
    pub fn new(
        policy: RetryPolicy,
        patience: Patience,
        member_timeout: Duration,
        members: Arc<Members>,
    ) -> Self {
        Acquisition {
            policy,
            patience,
            member_timeout,
            members,
            step: Step::Ask(Order::Parallel),
            pauses: Pauses::new(&policy),
            lost_rounds: 0,
            contention: Contention::default(),
            is_postponed: false,
            last_order: Order::Parallel,
            last_because: Because::Due,
            failing_since: None,
            last_loss: None,
            is_listening: false,
            deaf: Vec::new(),
            queue: None,
            lost_places: 0,
            wake_ups: WakeUps::default(),
            returns: Returns::new(&policy),
            silence: Silence::default(),
            last_round: Duration::ZERO,
            has_rivals: false,
            passing: Passing::No,
            deference: 0,
        }
    }

    /// The subscriptions of an earlier acquisition are live, and have been since before the first round: what is published
    /// from now on is heard.
    pub fn handle_listening(&mut self) {
        self.is_listening = true;
    }

    /// So many others are known to want the lock, several of them, and this client has had it. One of them passes by the order
    /// of the first round on, and each release is left to the others first, until each of them may have had it.
    ///
    /// A server tells its subscribers in one order, always the same: of ten the first two would have the lock by turns.
    pub fn expect_crowd(&mut self, others: u32) {
        self.deference = others;
        if 1 < self.members.len() {
            self.contention.handle_outrun();
        }
    }

    /// Others were told that this client has released the lock: the first round begins at `until`.
    ///
    /// Without a pause A would have the lock again before B has heard of its release, and B would wait for as long as A
    /// goes on.
    pub fn let_pass(&mut self, until: Time) {
        if self.is_listening {
            self.passing = Passing::Over;
            // Another that has it meanwhile, and releases it, ends the pause: A lets B pass, and B lets A pass again.
            self.wake_ups.wait_for(self.members.all().collect());
            self.step = Step::Sleep(until);
        } else {
            // Most probably another has it by then, and what it publishes is waited for.
            self.passing = Passing::Until(until);
            self.is_listening = true;
            self.step = self.listen(until);
        }
    }

    /// Whether others were let pass, and whether one of them was there: the first round afterwards was not won.
    #[must_use]
    pub fn was_passed(&self) -> Option<bool> {
        (self.passing != Passing::No).then_some(0 < self.lost_rounds)
    }

    /// The round that began at `began` was won.
    pub fn handle_win(&mut self, now: Time, began: Time) {
        self.last_round = now.since(began).min(self.member_timeout);
    }

    /// Begins anew for another caller, with the subscriptions of the one before, which has the lock for this lease or has
    /// given up.
    ///
    /// Behind one that has it no round is won before it is released. So nothing is asked before that is published: of 50
    /// waiters of one process each would ask all members once for nothing. After a quarter of the lease it asks all the
    /// same, as messages may be lost, and as a holder that dies is replaced by those who have seen its claim.
    #[must_use]
    pub fn begin_again(&self, now: Time, lease: Duration) -> Self {
        let mut anew = self.begin_anew();
        if matches!(self.step, Step::GiveUp(_)) || self.queue.is_some() {
            return anew;
        }
        anew.last_round = self.last_round;
        anew.wake_ups.wait_for(self.members.all().collect());
        anew.step = if self.is_listening {
            Step::Sleep(now + (lease / 4).min(self.policy.poll_cap))
        } else {
            anew.is_listening = true;
            anew.listen(now + self.member_timeout)
        };
        anew
    }

    fn begin_anew(&self) -> Self {
        let mut anew = Acquisition {
            is_listening: self.is_listening,
            deaf: self.deaf.clone(),
            ..Acquisition::new(
                self.policy,
                self.patience,
                self.member_timeout,
                self.members.clone(),
            )
        };
        if let Some(group) = self.queue {
            anew.queue_at(group);
        }
        anew
    }

    /// The lock of this group is a fair one: of several locks it is asked first, and alone.
    ///
    /// Where others are in front of it, nothing else was asked for then, and the acquisition keeps its place. Asked
    /// together with it, another lock may be granted: that must be given back, lest it be kept from others for as long
    /// as the queue takes, and as one owner gives back everything, the place goes with it. Besides, it may be what the
    /// first in that queue is about to ask for.
    pub fn queue_at(&mut self, group: usize) {
        self.queue = Some(group);
        if 1 < self.members.groups().count() {
            self.step = self.ask(Because::Due);
        }
    }

    /// The round that was lost found several owners in its way, and no owner of these holds the lock. Call this before
    /// [`Acquisition::handle_loss`].
    pub fn handle_rivals(&mut self) {
        self.has_rivals = true;
    }

    /// What this round, which was lost, says of members that do not answer. Call this before [`Acquisition::handle_loss`].
    pub fn handle_silence(&mut self, round: &Round) {
        self.silence.handle_loss(self.members.all(), round);
    }

    /// The members that the next round need not wait for: see [`Round::without_waiting_for`].
    #[must_use]
    pub fn mute(&self) -> &[MemberId] {
        self.silence.mute()
    }

    /// The round got a place in the queue of this group, which has to be given up: another group had granted. The next
    /// round begins there. To be called before [`Acquisition::handle_loss`].
    pub fn handle_lost_place(&mut self, group: usize) {
        self.queue = Some(group);
        self.lost_places = self.lost_places.saturating_add(1);
    }

    /// The subscriptions to these members are gone: the owner has changed, and with it where it listens.
    pub fn handle_deaf(&mut self, members: impl IntoIterator<Item = MemberId>) {
        self.deaf = members.into_iter().collect();
    }

    /// What to do now.
    #[must_use]
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// When the first round began that failed since a quorum last answered; `None` while quorums answer.
    #[must_use]
    pub fn failing_since(&self) -> Option<Time> {
        self.failing_since
    }

    /// Why the last round was lost, if one has ended.
    #[must_use]
    pub fn last_loss(&self) -> Option<GiveUp> {
        self.last_loss
    }

    /// When a caller with this limit stops waiting, by what is known now.
    ///
    /// A count of failed rounds would say nothing about time: where connections are refused, five fail within a tenth of
    /// a second, and a server that restarts needs several.
    #[must_use]
    pub fn gives_up_at(&self, limit: Limit) -> Time {
        self.policy.gives_up_at(limit, self.failing_since)
    }

    fn listen(&mut self, until: Time) -> Step {
        self.deaf.clear();
        Step::Listen(until)
    }

    /// Sleeps until `at`, as far as what was published lets it.
    ///
    /// Members that have not published yet are waited for no longer than a round takes: a message may be lost. In
    /// first-member order a single message is mostly a competitor's giving back: that leaves the lock free, or in the hands of
    /// a holder of other members. All ask after some round trips, less and less often if it is the latter.
    fn sleep(&mut self, now: Time, at: Time) -> Step {
        match self.wake_ups.published(&self.members) {
            WakeUpTally::Nothing => Step::Sleep(at),
            WakeUpTally::Enough if 0 < self.deference => self.defer(now, at),
            WakeUpTally::Enough => self.ask(Because::Woken),
            WakeUpTally::Some if self.is_postponed => {
                let hint = self.pauses.after_hint(now, self.last_round);
                Step::Sleep(at.min(hint))
            }
            WakeUpTally::Some if self.lost_rounds == 0 && self.passing == Passing::Over => {
                Step::Sleep(at)
            }
            WakeUpTally::Some if 0 < self.deference => {
                Step::Sleep(at.min(pauses::for_others(now, self.last_round)))
            }
            WakeUpTally::Some => Step::Sleep(at.min(now + self.last_round)),
        }
    }

    /// Asks for what was released when those that have waited for longer have had time to.
    fn defer(&mut self, now: Time, at: Time) -> Step {
        self.deference -= 1;
        self.wake_ups.begin_round();
        self.is_postponed = false;
        if self.lost_rounds == 0 {
            // They are let pass just now.
            return Step::Sleep(at);
        }
        Step::Sleep(pauses::for_others(now, self.last_round))
    }

    fn ask(&mut self, because: Because) -> Step {
        let mut members = self.members.all();
        let is_first_free = members.next().is_some_and(|m| self.wake_ups.has_woken(m));
        self.wake_ups.begin_round();
        self.returns.begin_round();
        self.last_because = because;
        let order = if 1 < self.members.groups().count() {
            match self.queue {
                Some(first) => Order::Canonical { first },
                None if 2 <= self.lost_rounds => Order::Canonical { first: 0 },
                _ => Order::Parallel,
            }
        } else if self.contention.is_contended()
            && (because == Because::Woken || !self.is_postponed || is_first_free)
        {
            // All competitors ask the first member, and one of them gets it. But if it refused, and has not published since,
            // it may be held for long: that must not keep them from a free majority.
            Order::FirstMember
        } else {
            Order::Parallel
        };
        self.last_order = order;
        Step::Ask(order)
    }

    /// Every member's subscription is live.
    pub fn handle_live(&mut self) {
        if !matches!(self.step, Step::Listen(_)) {
            return;
        }
        self.step = match std::mem::replace(&mut self.passing, Passing::Over) {
            Passing::Until(until) => Step::BackOff(until),
            before => {
                self.passing = before;
                self.ask(Because::Due)
            }
        };
    }

    /// A member published that the name is free, or its subscription had a gap.
    pub fn handle_wake(&mut self, now: Time, member: MemberId) {
        if !self.is_listening {
            return;
        }
        match self.step {
            Step::Ask(_) => self.wake_ups.handle_wake(member),
            Step::Sleep(at) => {
                self.wake_ups.handle_wake(member);
                self.step = self.sleep(now, at);
            }
            _ => {}
        }
    }

    /// A member that could not be reached can be reached again. `random` is any 64 random bits.
    pub fn handle_return(&mut self, now: Time, random: u64) {
        match self.step {
            // A's connection comes back while B is waited for: the round that fails because of both is out of date.
            Step::Ask(_) => self.returns.handle_return(),
            Step::BackOff(at) if self.failing_since.is_some() => {
                self.returns.handle_return();
                self.step = Step::BackOff(at.min(self.returns.end_of_pause(now, random)));
            }
            _ => {}
        }
    }

    /// When to call [`Acquisition::handle_timeout`]; [`Time::NEVER`] during a round.
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        match self.step {
            Step::Listen(at) | Step::Sleep(at) | Step::BackOff(at) => at,
            Step::Ask(_) | Step::GiveUp(_) => Time::NEVER,
        }
    }

    /// Time passed.
    pub fn handle_timeout(&mut self, now: Time) {
        if let Step::Listen(at) | Step::Sleep(at) | Step::BackOff(at) = self.step
            && at <= now
        {
            self.pauses.handle_end(at);
            self.step = self.ask(Because::Due);
        }
    }
}

/// Why a round begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Because {
    /// Enough members have published that the name is free, and others have heard it, too.
    Woken,
    /// It is time.
    Due,
}

#[cfg(test)]
mod tests;
