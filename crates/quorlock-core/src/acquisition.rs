//! Rounds until a lock is won or given up.

use std::sync::Arc;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::message::Mode;
use crate::quorum::{MemberId, Members};
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
/// Try; if refused, subscribe; **try again** (the holder may have released in between); then sleep until enough members
/// have published that the name is free, or until enough claims in the way have expired.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Acquisition {
    policy: RetryPolicy,
    patience: Patience,
    member_timeout: Duration,
    members: Arc<Members>,
    step: Step,
    backoff: Backoff,
    lost_rounds: u32,
    /// In a row.
    split_rounds: u32,
    /// Somebody else was quicker when it became free, or votes have kept splitting: others want it, too.
    is_crowded: bool,
    /// The last round asked the first member alone, which refused.
    is_postponed: bool,
    last_order: Order,
    last_because: Because,
    failed_rounds: u32,
    is_listening: bool,
    /// In the last round.
    refused: Vec<MemberId>,
    /// Since the last round was begun.
    woken: Vec<MemberId>,
    /// How long the last round took.
    last_round: Duration,
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
            backoff: Backoff::new(policy.backoff, policy.backoff_cap),
            lost_rounds: 0,
            split_rounds: 0,
            is_crowded: false,
            is_postponed: false,
            last_order: Order::Parallel,
            last_because: Because::Due,
            failed_rounds: 0,
            is_listening: false,
            refused: Vec::new(),
            woken: Vec::new(),
            last_round: Duration::ZERO,
        }
    }

    /// Begins anew for another caller, with the subscriptions of the one before.
    #[must_use]
    pub fn begin_again(&self) -> Self {
        Acquisition {
            is_listening: self.is_listening,
            ..Acquisition::new(
                self.policy,
                self.patience,
                self.member_timeout,
                self.members.clone(),
            )
        }
    }

    /// The subscriptions that there were are gone: the owner has changed, and with it where it listens.
    pub fn handle_deaf(&mut self) {
        self.is_listening = false;
    }

    /// What to do now.
    #[must_use]
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// A round that began at `began` was lost. `random` is any 64 random bits.
    pub fn handle_loss(&mut self, now: Time, began: Time, loss: Loss, random: u64) {
        self.lost_rounds = self.lost_rounds.saturating_add(1);
        self.last_round = now.since(began).min(self.member_timeout);
        self.is_postponed = loss == Loss::Postponed;
        // One member cannot be asked before the rest.
        self.is_crowded |= 1 < self.members.len()
            && self.last_because == Because::Woken
            && matches!(loss, Loss::Refused { .. });
        if self.last_order == Order::FirstMember && self.member_timeout <= now.since(began) {
            // The first member is silent: asking it first only costs time.
            self.is_crowded = false;
        }
        let pause =
            |backoff: &mut Backoff| Step::BackOff(now + backoff.next(random, now.since(began) * 2));
        self.step = match loss {
            Loss::OtherMode(mode) => Step::GiveUp(GiveUp::OtherMode(mode)),
            Loss::Refused { .. } | Loss::Postponed if self.patience == Patience::Try => {
                Step::GiveUp(GiveUp::Contended)
            }
            Loss::NoQuorum | Loss::TooSlow | Loss::Quarantined { .. }
                if self.patience == Patience::Try =>
            {
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
            Loss::Quarantined { until } => {
                self.failed_rounds = 0;
                self.refused.clear();
                match until.filter(|until| now < *until) {
                    Some(until) => Step::Sleep(until.min(now + self.policy.poll_cap)),
                    None => pause(&mut self.backoff),
                }
            }
            Loss::Postponed => {
                self.failed_rounds = 0;
                // Whoever has the first member asks the rest, or has it all.
                self.refused = self.members.all().collect();
                let pause = self.backoff.next(random, now.since(began) * 2);
                self.sleep(now, now + pause)
            }
            Loss::Refused {
                free_after,
                split,
                refused,
            } => {
                self.failed_rounds = 0;
                self.refused = refused;
                if !self.is_listening {
                    self.is_listening = true;
                    Step::Listen(now + self.member_timeout)
                } else if split && !self.may_be_held() {
                    self.split_rounds = self.split_rounds.saturating_add(1);
                    self.is_crowded |= 2 <= self.split_rounds;
                    pause(&mut self.backoff)
                } else {
                    if split {
                        self.split_rounds = 1;
                    } else {
                        self.split_rounds = 0;
                        self.backoff.reset();
                    }
                    self.after_refusal(now, free_after)
                }
            }
        };
    }

    /// Whether a vote that split need not be a collision: one holder may have every member that refused, with fewer
    /// members than all. That is believed once; a second split in a row is a collision.
    fn may_be_held(&self) -> bool {
        self.split_rounds == 0
            && self.members.groups().all(|group| {
                let refused = group.members().filter(|m| self.refused.contains(m)).count();
                refused == 0 || group.threshold().spare() < refused
            })
    }

    fn after_refusal(&mut self, now: Time, free_after: Option<Duration>) -> Step {
        // A claim exists until its TTL has passed, so one millisecond more finds it gone.
        let free = free_after.map_or(Duration::MAX, |d| d + Duration::from_millis(1));
        self.sleep(now, now + free.min(self.policy.poll_cap))
    }

    /// Sleeps until `at`, as far as what was published lets it.
    ///
    /// One member's message may overtake the release on its way to the others: whoever asks at once is refused there,
    /// and splits the vote. So enough of them are waited for, but for no longer than a round takes: a message may be
    /// lost. In a crowd a single message is mostly a competitor's giving back: that ends no pause.
    fn sleep(&mut self, now: Time, at: Time) -> Step {
        let mut refused = self.refused.iter();
        if !refused.any(|member| self.woken.contains(member)) {
            Step::Sleep(at)
        } else if self.may_be_won() {
            self.ask(Because::Woken)
        } else if self.is_postponed {
            Step::Sleep(at)
        } else {
            Step::Sleep(at.min(now + self.last_round))
        }
    }

    /// Whether in every group that refused, as many members as are needed have published that the name is free.
    fn may_be_won(&self) -> bool {
        self.members.groups().all(|group| {
            let has_refused = group.members().any(|member| self.refused.contains(&member));
            let woken = group.members().filter(|member| self.woken.contains(member));
            !has_refused || group.threshold().needed() <= woken.count()
        })
    }

    fn ask(&mut self, because: Because) -> Step {
        self.woken.clear();
        self.last_because = because;
        let order = if 1 < self.members.groups().count() {
            if 2 <= self.lost_rounds {
                Order::Canonical
            } else {
                Order::Parallel
            }
        } else if self.is_crowded && (because == Because::Woken || !self.is_postponed) {
            // All of a crowd ask the first member, and one of them gets it. But if it refused, and nobody wakes us, it may
            // be held for long: that must not keep us from a free majority.
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
            self.step = self.ask(Because::Due);
        }
    }

    /// A member published that the name is free, or its subscription had a gap.
    ///
    /// Only what a member publishes that refused us can be the end of a claim in the way. What the others publish is
    /// mostly our own giving back of what we got there: by itself it wakes nobody here.
    pub fn handle_wake(&mut self, now: Time, member: MemberId) {
        // Which members refuse a round is not known before it has ended.
        if !self.is_listening || self.woken.contains(&member) {
            return;
        }
        match self.step {
            Step::Ask(_) => self.woken.push(member),
            Step::Sleep(at) => {
                self.woken.push(member);
                self.step = self.sleep(now, at);
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

fn give_up(loss: &Loss) -> GiveUp {
    match loss {
        Loss::TooSlow => GiveUp::TooSlow,
        Loss::NoQuorum | Loss::Quarantined { .. } => GiveUp::NoQuorum,
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
        wake_at(a, 0, index);
    }

    fn wake_at(a: &mut Acquisition, now: u64, index: usize) {
        let member = a.members.all().nth(index).unwrap();
        a.handle_wake(ms(now), member);
    }

    fn waiting(groups: usize) -> Acquisition {
        waiting_for(vec![Threshold::all(1); groups])
    }

    fn waiting_for(groups: Vec<Threshold>) -> Acquisition {
        Acquisition::new(
            RetryPolicy::default(),
            Patience::Wait,
            Duration::from_millis(500),
            Arc::new(Members::new(groups)),
        )
    }

    /// Three of five members refused, in a round of 8 ms that ended at 108 ms.
    fn sleeping_at_108() -> Acquisition {
        let mut a = five();
        let loss = Loss::Refused {
            free_after: Some(Duration::from_millis(900)),
            split: false,
            refused: a.members.all().take(3).collect(),
        };
        a.handle_loss(ms(0), ms(0), loss.clone(), 1);
        a.handle_live();
        a.handle_loss(ms(108), ms(100), loss, 1);
        assert_eq!(*a.step(), Step::Sleep(ms(1_009)));
        a
    }

    #[test]
    fn a_waiter_for_a_majority_asks_when_a_majority_says_that_it_is_free() {
        let mut a = sleeping_at_108();
        wake_at(&mut a, 200, 0);
        assert_eq!(*a.step(), Step::Sleep(ms(208)));
        wake_at(&mut a, 201, 0);
        wake_at(&mut a, 202, 4);
        assert_eq!(*a.step(), Step::Sleep(ms(208)));
        wake_at(&mut a, 203, 1);
        assert_eq!(*a.step(), Step::Ask(Order::Parallel));
    }

    #[test]
    fn messages_that_do_not_come_are_waited_for_as_long_as_a_round_takes() {
        let mut a = sleeping_at_108();
        wake_at(&mut a, 200, 3);
        assert_eq!(*a.step(), Step::Sleep(ms(1_009)), "it had not refused");
        wake_at(&mut a, 300, 1);
        a.handle_timeout(ms(307));
        assert_eq!(*a.step(), Step::Sleep(ms(308)));
        a.handle_timeout(ms(308));
        assert_eq!(*a.step(), Step::Ask(Order::Parallel));
    }

    fn refused(free_after: Option<u64>) -> Loss {
        Loss::Refused {
            free_after: free_after.map(Duration::from_millis),
            split: false,
            refused: member(0),
        }
    }

    /// Of five members two granted, one refused and two were silent.
    fn split() -> Loss {
        Loss::Refused {
            free_after: None,
            split: true,
            refused: member(0),
        }
    }

    fn five() -> Acquisition {
        waiting_for(vec![Threshold::majority(5)])
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
    fn a_first_split_vote_is_tried_again_as_soon_as_the_subscriptions_are_live() {
        let mut a = five();
        a.handle_loss(ms(0), ms(0), split(), u64::MAX);
        assert_eq!(*a.step(), Step::Listen(ms(500)));
        a.handle_live();
        assert_eq!(*a.step(), Step::Ask(Order::Parallel));
    }

    /// The holder has three of five members, the other two grant and are given back.
    #[test]
    fn a_holder_of_a_bare_majority_is_waited_for_but_a_second_split_is_a_collision() {
        let mut a = five();
        let loss = Loss::Refused {
            free_after: Some(Duration::from_millis(900)),
            split: true,
            refused: a.members.all().take(3).collect(),
        };
        a.handle_loss(ms(0), ms(0), loss.clone(), u64::MAX);
        a.handle_live();
        a.handle_loss(ms(8), ms(0), loss.clone(), u64::MAX);
        assert_eq!(*a.step(), Step::Sleep(ms(909)));
        for index in [3, 4] {
            wake_at(&mut a, 9, index);
            assert_eq!(*a.step(), Step::Sleep(ms(909)), "our own giving back");
        }
        wake_at(&mut a, 100, 0);
        assert_eq!(*a.step(), Step::Ask(Order::Parallel));
        a.handle_loss(ms(108), ms(100), loss, u64::MAX);
        assert!(matches!(a.step(), Step::BackOff(_)), "{:?}", a.step());
    }

    #[test]
    fn a_quarantine_is_waited_out_and_no_wake_up_ends_that() {
        let mut a = waiting(1);
        let until = |millis| Loss::Quarantined {
            until: Some(ms(millis)),
        };
        a.handle_loss(ms(10), ms(9), until(3_000), 1);
        wake(&mut a, 0);
        assert_eq!(*a.step(), Step::Sleep(ms(3_000)));
        a.handle_timeout(ms(3_000));
        assert_eq!(*a.step(), Step::Ask(Order::Parallel));
        a.handle_loss(ms(3_001), ms(3_000), until(60_000), 1);
        assert_eq!(*a.step(), Step::Sleep(ms(8_001)), "it looks every 5 s");
        for _ in 0..9 {
            a.handle_timeout(ms(9_000));
            a.handle_loss(ms(9_001), ms(9_000), until(9_000), 1 << 60);
            assert!(
                matches!(*a.step(), Step::BackOff(_)),
                "soon, and not given up"
            );
            a.handle_timeout(Time::NEVER);
        }
    }

    #[test]
    fn whoever_only_tries_does_not_wait_for_a_quarantine() {
        let policy = RetryPolicy::default();
        let members = Arc::new(Members::new([Threshold::all(1)]));
        let mut a = Acquisition::new(policy, Patience::Try, Duration::from_millis(500), members);
        a.handle_loss(ms(10), ms(9), Loss::Quarantined { until: None }, 1);
        assert_eq!(*a.step(), Step::GiveUp(GiveUp::NoQuorum));
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
        let mut a = five();
        a.handle_loss(ms(0), ms(0), split(), u64::MAX);
        a.handle_live();
        a.handle_loss(ms(0), ms(0), split(), u64::MAX);
        assert_eq!(*a.step(), Step::BackOff(ms(10)));
        wake(&mut a, 0);
        assert_eq!(*a.step(), Step::BackOff(ms(10)));
        a.handle_timeout(ms(10));
        assert_eq!(*a.step(), Step::Ask(Order::Parallel));
    }

    #[test]
    fn votes_that_keep_splitting_make_rounds_ask_the_first_member_first() {
        let mut a = five();
        let mut orders = Vec::new();
        for number in 0..7 {
            let Step::Ask(order) = *a.step() else {
                panic!("{:?}", a.step())
            };
            orders.push(order);
            let loss = match number {
                4 => Loss::Postponed,
                _ => split(),
            };
            a.handle_loss(ms(0), ms(0), loss, 0);
            a.handle_timeout(Time::NEVER);
        }
        use Order::{FirstMember as F, Parallel as P};
        assert_eq!(orders, [P, P, P, F, F, P, F]);
    }

    #[test]
    fn whoever_is_woken_and_too_late_asks_the_first_member_first_from_then_on() {
        let mut a = sleeping_at_108();
        for (now, order) in [(200, Order::Parallel), (300, Order::FirstMember)] {
            for index in [0, 1, 2] {
                wake_at(&mut a, now, index);
            }
            assert_eq!(*a.step(), Step::Ask(order));
            let loss = Loss::Refused {
                free_after: None,
                split: false,
                refused: a.members.all().collect(),
            };
            a.handle_loss(ms(now + 1), ms(now), loss, 1);
        }
    }

    /// Votes have split three times, and now somebody has it all.
    fn crowded() -> Acquisition {
        let mut a = five();
        for _ in 0..3 {
            a.handle_loss(ms(0), ms(0), split(), 0);
            a.handle_timeout(Time::NEVER);
        }
        let all = Loss::Refused {
            free_after: Some(Duration::from_millis(900)),
            split: false,
            refused: a.members.all().collect(),
        };
        a.handle_loss(ms(108), ms(100), all, 0);
        assert_eq!(*a.step(), Step::Sleep(ms(1_009)));
        a
    }

    fn wake_three(a: &mut Acquisition, now: u64) {
        for index in [4, 2, 0] {
            assert!(matches!(a.step(), Step::Sleep(_)), "{:?}", a.step());
            wake_at(a, now, index);
        }
    }

    #[test]
    fn a_crowd_that_is_woken_asks_the_first_member_each_time() {
        let mut a = crowded();
        for now in [200, 300, 400] {
            wake_three(&mut a, now);
            assert_eq!(*a.step(), Step::Ask(Order::FirstMember));
            a.handle_loss(ms(now), ms(now), Loss::Postponed, u64::MAX);
        }
        a.handle_timeout(Time::NEVER);
        assert_eq!(
            *a.step(),
            Step::Ask(Order::Parallel),
            "nobody woke it, and the first member may be held for long"
        );
    }

    #[test]
    fn a_crowd_is_not_woken_by_what_a_competitor_gives_back() {
        let mut a = crowded();
        wake_three(&mut a, 200);
        a.handle_loss(ms(200), ms(199), Loss::Postponed, u64::MAX);
        let pause = Step::Sleep(ms(210));
        assert_eq!(*a.step(), pause);
        wake_at(&mut a, 201, 0);
        wake_at(&mut a, 201, 1);
        assert_eq!(*a.step(), pause);
        wake_at(&mut a, 201, 2);
        assert_eq!(*a.step(), Step::Ask(Order::FirstMember));
    }

    #[test]
    fn a_silent_first_member_is_not_asked_first_again() {
        let mut a = crowded();
        wake_three(&mut a, 200);
        a.handle_loss(ms(700), ms(200), split(), 0);
        a.handle_timeout(Time::NEVER);
        assert_eq!(*a.step(), Step::Ask(Order::Parallel));
        let none = Loss::Refused {
            free_after: None,
            split: false,
            refused: a.members.all().collect(),
        };
        a.handle_loss(ms(701), ms(700), none, 0);
        wake_three(&mut a, 702);
        assert_eq!(*a.step(), Step::Ask(Order::Parallel));
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
                Arc::new(Members::new([Threshold::all(1)])),
            );
            a.handle_loss(ms(0), ms(0), loss, 0);
            assert_eq!(*a.step(), Step::GiveUp(end));
        }
    }
}
