//! Rounds until a lock is won or given up.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::message::Mode;
use crate::quorum::MemberId;
use crate::round::{Loss, Order};
use crate::time::Time;

/// When to try again, and when not any more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RetryPolicy {
    /// The first random pause after a split vote or a failed round is at most this long.
    pub backoff: Duration,
    /// No pause is longer than this.
    pub backoff_cap: Duration,
    /// How many rounds in a row may fail (no quorum answers, or too slowly) before the acquisition does.
    pub failed_rounds: u32,
    /// A waiter asks again after this time even if nothing wakes it and nothing is due to expire.
    pub poll_cap: Duration,
}

impl Default for RetryPolicy {
    /// 10 ms doubling to 1 s; 5 failed rounds; a look every 5 s.
    fn default() -> Self {
        RetryPolicy {
            backoff: Duration::from_millis(10),
            backoff_cap: Duration::from_secs(1),
            failed_rounds: 5,
            poll_cap: Duration::from_secs(5),
        }
    }
}

impl RetryPolicy {
    /// The same with this bound on the first pause.
    #[must_use]
    pub const fn backoff(mut self, first: Duration) -> Self {
        self.backoff = first;
        self
    }

    /// The same with this bound on every pause.
    #[must_use]
    pub const fn backoff_cap(mut self, cap: Duration) -> Self {
        self.backoff_cap = cap;
        self
    }

    /// The same with so many failed rounds in a row before the acquisition fails; at least 1.
    #[must_use]
    pub const fn failed_rounds(mut self, rounds: u32) -> Self {
        self.failed_rounds = rounds;
        self
    }

    /// The same with a look after this time, even if nothing wakes the waiter.
    #[must_use]
    pub const fn poll_cap(mut self, cap: Duration) -> Self {
        self.poll_cap = cap;
        self
    }
}

/// Whether a refusal is waited out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Patience {
    /// One round, whatever comes of it.
    Try,
    /// Until won.
    Wait,
}

/// What to do now.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Run a round in this order and report how it was lost.
    Ask(Order),
    /// Subscribe to every member, report when all are live, go on at this time without those that are not.
    Listen(Time),
    /// Do nothing until this time or a wake-up.
    Sleep(Time),
    /// Do nothing until this time. Wake-ups do not end it: every lost round's clean-up would wake everyone, and
    /// nobody would ever win.
    BackOff(Time),
    /// Give up.
    GiveUp(GiveUp),
}

/// Why an acquisition ends without the lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GiveUp {
    /// Others hold it.
    Contended,
    /// Too many members did not answer, or with an error.
    NoQuorum,
    /// The members answered too slowly for the lease.
    TooSlow,
    /// A lock of another mode stands under the name.
    OtherMode(Mode),
}

/// Rounds, and what happens between them.
///
/// Try; if refused, subscribe; **try again** (the holder may have released in between); then sleep until a wake-up or
/// until enough claims in the way have expired.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Acquisition {
    policy: RetryPolicy,
    patience: Patience,
    member_timeout: Duration,
    groups: usize,
    step: Step,
    backoff: Backoff,
    lost_rounds: u32,
    split_rounds: u32,
    last_order: Order,
    failed_rounds: u32,
    is_listening: bool,
    refused: Vec<MemberId>,
    woken: Vec<MemberId>,
}

impl Acquisition {
    /// Begins with a round. `groups` is how many locks are taken together.
    #[must_use]
    pub fn new(
        policy: RetryPolicy,
        patience: Patience,
        member_timeout: Duration,
        groups: usize,
    ) -> Self {
        Acquisition {
            policy,
            patience,
            member_timeout,
            groups,
            step: Step::Ask(Order::Parallel),
            backoff: Backoff::new(policy.backoff, policy.backoff_cap),
            lost_rounds: 0,
            split_rounds: 0,
            last_order: Order::Parallel,
            failed_rounds: 0,
            is_listening: false,
            refused: Vec::new(),
            woken: Vec::new(),
        }
    }

    /// Begins anew for another caller, with the subscriptions of the one before.
    #[must_use]
    pub fn begin_again(&self) -> Self {
        Acquisition {
            is_listening: self.is_listening,
            ..Acquisition::new(self.policy, self.patience, self.member_timeout, self.groups)
        }
    }

    /// What to do now.
    #[must_use]
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// A round that began at `began` was lost. `random` is any 64 random bits.
    pub fn handle_loss(&mut self, now: Time, began: Time, loss: Loss, random: u64) {
        self.lost_rounds = self.lost_rounds.saturating_add(1);
        let pause =
            |backoff: &mut Backoff| Step::BackOff(now + backoff.next(random, now.since(began) * 2));
        self.step = match loss {
            Loss::OtherMode(mode) => Step::GiveUp(GiveUp::OtherMode(mode)),
            Loss::Refused { .. } | Loss::Postponed if self.patience == Patience::Try => {
                Step::GiveUp(GiveUp::Contended)
            }
            Loss::NoQuorum | Loss::TooSlow if self.patience == Patience::Try => {
                Step::GiveUp(give_up(&loss))
            }
            Loss::NoQuorum | Loss::TooSlow => {
                self.failed_rounds += 1;
                if self.policy.failed_rounds <= self.failed_rounds {
                    Step::GiveUp(give_up(&loss))
                } else {
                    pause(&mut self.backoff)
                }
            }
            Loss::Postponed => {
                self.failed_rounds = 0;
                pause(&mut self.backoff)
            }
            Loss::Refused { split: true, .. } => {
                self.failed_rounds = 0;
                self.split_rounds = self.split_rounds.saturating_add(1);
                pause(&mut self.backoff)
            }
            Loss::Refused {
                free_after,
                refused,
                ..
            } => {
                self.failed_rounds = 0;
                self.split_rounds = 0;
                self.backoff.reset();
                self.refused = refused;
                self.after_refusal(now, free_after)
            }
        };
    }

    fn after_refusal(&mut self, now: Time, free_after: Option<Duration>) -> Step {
        let is_woken = |member| self.woken.contains(member);
        if !self.is_listening {
            self.is_listening = true;
            Step::Listen(now + self.member_timeout)
        } else if self.refused.iter().any(is_woken) {
            self.ask()
        } else {
            // A claim exists until its TTL has passed, so one millisecond more finds it gone.
            let free = free_after.map_or(Duration::MAX, |d| d + Duration::from_millis(1));
            Step::Sleep(now + free.min(self.policy.poll_cap))
        }
    }

    fn ask(&mut self) -> Step {
        self.woken.clear();
        let order = if 1 < self.groups {
            if 2 <= self.lost_rounds {
                Order::Canonical
            } else {
                Order::Parallel
            }
        } else if 2 <= self.split_rounds && self.last_order != Order::FirstMember {
            // Every other time: a first member that is held for long must not keep us from a free majority.
            Order::FirstMember
        } else {
            Order::Parallel
        };
        self.last_order = order;
        Step::Ask(order)
    }

    /// Every member's subscription is live.
    pub fn handle_live(&mut self) {
        if matches!(self.step, Step::Listen(_)) {
            self.step = self.ask();
        }
    }

    /// A member published that the name is free, or its subscription had a gap.
    ///
    /// Only what a member publishes that refused us can be the end of a claim in the way. What the others publish is
    /// mostly our own giving back of what we got there: it wakes nobody here.
    pub fn handle_wake(&mut self, member: MemberId) {
        match self.step {
            Step::Sleep(_) if self.refused.contains(&member) => self.step = self.ask(),
            // Which members refuse this round is not known before it has ended.
            Step::Ask(_) if self.is_listening && !self.woken.contains(&member) => {
                self.woken.push(member);
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
            self.step = self.ask();
        }
    }
}

fn give_up(loss: &Loss) -> GiveUp {
    match loss {
        Loss::TooSlow => GiveUp::TooSlow,
        Loss::NoQuorum => GiveUp::NoQuorum,
        Loss::Refused { .. } | Loss::Postponed => GiveUp::Contended,
        Loss::OtherMode(mode) => GiveUp::OtherMode(*mode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quorum::{Members, Threshold};

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn member(index: usize) -> Vec<MemberId> {
        let members = Members::new([Threshold::all(2)]);
        members.all().skip(index).take(1).collect()
    }

    fn wake(a: &mut Acquisition, index: usize) {
        for member in member(index) {
            a.handle_wake(member);
        }
    }

    fn waiting(groups: usize) -> Acquisition {
        Acquisition::new(
            RetryPolicy::default(),
            Patience::Wait,
            Duration::from_millis(500),
            groups,
        )
    }

    fn refused(free_after: Option<u64>) -> Loss {
        Loss::Refused {
            free_after: free_after.map(Duration::from_millis),
            split: false,
            refused: member(0),
        }
    }

    fn split() -> Loss {
        Loss::Refused {
            free_after: None,
            split: true,
            refused: member(0),
        }
    }

    #[test]
    fn a_waiter_subscribes_and_tries_again_before_it_sleeps() {
        let mut a = waiting(1);
        assert_eq!(*a.step(), Step::Ask(Order::Parallel));
        a.handle_loss(ms(0), ms(0), refused(Some(900)), 1);
        assert_eq!(*a.step(), Step::Listen(ms(500)));
        a.handle_live();
        assert_eq!(*a.step(), Step::Ask(Order::Parallel));
        a.handle_loss(ms(10), ms(9), refused(Some(900)), 1);
        assert_eq!(*a.step(), Step::Sleep(ms(911)));
        wake(&mut a, 0);
        assert_eq!(*a.step(), Step::Ask(Order::Parallel));
    }

    #[test]
    fn a_subscription_that_does_not_come_is_not_waited_for() {
        let mut a = waiting(1);
        a.handle_loss(ms(0), ms(0), refused(None), 1);
        a.handle_timeout(ms(499));
        assert_eq!(*a.step(), Step::Listen(ms(500)));
        a.handle_timeout(ms(500));
        assert_eq!(*a.step(), Step::Ask(Order::Parallel));
    }

    #[test]
    fn a_wake_up_during_a_round_is_not_forgotten() {
        let mut a = waiting(1);
        a.handle_loss(ms(0), ms(0), refused(None), 1);
        a.handle_live();
        wake(&mut a, 0);
        a.handle_loss(ms(1), ms(0), refused(None), 1);
        assert_eq!(*a.step(), Step::Ask(Order::Parallel));
        a.handle_loss(ms(1), ms(0), refused(None), 1);
        assert_eq!(*a.step(), Step::Sleep(ms(5_001)));
    }

    #[test]
    fn a_wake_up_never_cuts_a_back_off() {
        let mut a = waiting(1);
        a.handle_loss(ms(0), ms(0), split(), u64::MAX);
        assert_eq!(*a.step(), Step::BackOff(ms(10)));
        wake(&mut a, 0);
        assert_eq!(*a.step(), Step::BackOff(ms(10)));
        a.handle_timeout(ms(10));
        assert_eq!(*a.step(), Step::Ask(Order::Parallel));
    }

    #[test]
    fn votes_that_keep_splitting_make_every_other_round_ask_the_first_member_first() {
        let mut a = waiting(1);
        let mut orders = Vec::new();
        for _ in 0..6 {
            let Step::Ask(order) = *a.step() else {
                panic!("{:?}", a.step())
            };
            orders.push(order);
            a.handle_loss(ms(0), ms(0), split(), 0);
            a.handle_timeout(Time::NEVER);
        }
        use Order::{FirstMember as F, Parallel as P};
        assert_eq!(orders[..2], [P, P]);
        assert!(
            orders[2..].contains(&F) && orders[2..].contains(&P),
            "{orders:?}"
        );
    }

    #[test]
    fn several_locks_are_asked_one_by_one_after_two_lost_rounds() {
        let mut a = waiting(2);
        let mut orders = Vec::new();
        for _ in 0..4 {
            let Step::Ask(order) = *a.step() else {
                panic!("{:?}", a.step())
            };
            orders.push(order);
            a.handle_loss(ms(0), ms(0), refused(None), 0);
            a.handle_timeout(Time::NEVER);
        }
        use Order::{Canonical as C, Parallel as P};
        assert_eq!(orders, [P, P, C, C]);
    }

    #[test]
    fn giving_back_one_lock_of_several_does_not_wake_ourselves() {
        let mut a = waiting(2);
        let loss = Loss::Refused {
            free_after: None,
            split: false,
            refused: member(1),
        };
        a.handle_loss(ms(0), ms(0), loss.clone(), 0);
        a.handle_live();
        a.handle_loss(ms(0), ms(0), loss, 0);
        wake(&mut a, 0);
        assert!(matches!(a.step(), Step::Sleep(_)));
        wake(&mut a, 1);
        assert!(matches!(a.step(), Step::Ask(_)));
    }

    #[test]
    fn rounds_that_fail_in_a_row_end_the_acquisition_and_a_refusal_starts_the_count_again() {
        let mut a = waiting(1);
        let fail = |a: &mut Acquisition| {
            a.handle_loss(ms(0), ms(0), Loss::NoQuorum, 0);
            a.handle_timeout(Time::NEVER);
        };
        for _ in 0..4 {
            fail(&mut a);
        }
        assert!(matches!(a.step(), Step::Ask(_)));
        a.handle_loss(ms(0), ms(0), refused(None), 0);
        a.handle_live();
        for _ in 0..4 {
            fail(&mut a);
        }
        assert!(matches!(a.step(), Step::Ask(_)));
        fail(&mut a);
        assert_eq!(*a.step(), Step::GiveUp(GiveUp::NoQuorum));
    }

    #[test]
    fn a_try_is_one_round() {
        for (loss, end) in [
            (refused(None), GiveUp::Contended),
            (split(), GiveUp::Contended),
            (Loss::NoQuorum, GiveUp::NoQuorum),
            (Loss::TooSlow, GiveUp::TooSlow),
            (Loss::OtherMode(Mode::Read), GiveUp::OtherMode(Mode::Read)),
        ] {
            let mut a = Acquisition::new(
                RetryPolicy::default(),
                Patience::Try,
                Duration::from_millis(500),
                1,
            );
            a.handle_loss(ms(0), ms(0), loss, 0);
            assert_eq!(*a.step(), Step::GiveUp(end));
        }
    }
}
