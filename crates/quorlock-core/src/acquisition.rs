//! Runs rounds until a lock is won or the acquisition gives up.

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

/// Decides when the rounds of one acquisition run, and what happens between them.
///
/// The sequence is: try; if refused, subscribe; **try again** (the holder may have released in between); then sleep
/// until enough members have published that the name is free, or until enough of the claims in the way have expired.
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
    /// Whether the last round asked only the first member, and that member refused.
    is_postponed: bool,
    last_order: Order,
    last_because: Because,
    /// When the first failed round since a quorum last answered began. A refused round shows that a quorum answers,
    /// because a round does not end as refused before that is known.
    failing_since: Option<Time>,
    /// Why the last round was lost; `None` before the first loss.
    last_loss: Option<GiveUp>,
    is_listening: bool,
    /// Members whose subscriptions have ended and must be made again.
    deaf: Vec<MemberId>,
    /// The group of the fair lock in whose queue the acquisition waits, if one of its locks is fair.
    queue: Option<usize>,
    /// How many times the acquisition gave up a place in a queue because another group had granted.
    lost_places: u32,
    wake_ups: WakeUps,
    returns: Returns,
    silence: Silence,
    /// How long the last round took, at most the member timeout.
    last_round: Duration,
    /// Whether the members that refused named several owners, and none of these owners holds the lock.
    has_rivals: bool,
    passing: Passing,
    /// How many more releases the acquisition leaves to clients that have waited longer.
    deference: u32,
}

/// Whether this client waits so that the clients that its own release has woken can pass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Passing {
    /// The client did not just release the lock: its first round begins at once.
    No,
    /// The first round begins at this time; the acquisition subscribes in the meantime.
    Until(Time),
    /// The subscriptions are live: the pause is now an ordinary wait, or is over.
    Over,
}

impl Acquisition {
    /// Returns an acquisition whose first step is a round.
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

    /// Reuses the live subscriptions of an earlier acquisition. They have been live since before the first round, so no
    /// message from now on is missed.
    pub fn handle_listening(&mut self) {
        self.is_listening = true;
    }

    /// Prepares for contention: this client has had the lock, and this many other clients want it.
    ///
    /// The next `others` releases are left to the other clients, so that each of them can acquire the lock first. When
    /// this client's turn comes it usually asks alone, so its rounds stay parallel, unless it is to expect a
    /// [collision](Acquisition::expect_collision).
    ///
    /// A server notifies its subscribers in a fixed order. Without this rule the first two of ten clients would
    /// alternate as holders, and the other eight would starve.
    pub fn expect_crowd(&mut self, others: u32) {
        self.deference = others;
    }

    /// Begins in first-member order, because several other clients want the lock, and either a member does not answer or
    /// round trips are short.
    ///
    /// Suppose 3 is cut off from all clients, A gets 1, and B gets 2. Both would wait for 3 until it times out, and the
    /// lock would be idle during that time. If both ask 1 before the others, only one of them waits, and it has won.
    pub fn expect_collision(&mut self) {
        if 1 < self.members.len() {
            self.contention.handle_outrun();
        }
    }

    /// Begins in canonical order, because the last try of this client for these groups collided with others.
    ///
    /// Suppose A has been granted 1 in canonical order, and asks 2. If B asks 1 and 2 at once whenever it tries, it often has 2
    /// for a moment, and neither gets both.
    pub fn expect_collision_of_tries(&mut self) {
        if 1 < self.members.groups().count() {
            self.step = self.ask_in(Order::Canonical { first: 0 }, Because::Due);
        }
    }

    /// Delays the first round until `until`, because other clients were notified that this client has released the
    /// lock.
    ///
    /// Without the pause A would acquire the lock again before B has received the message about its release, and B
    /// would wait for as long as A repeats this.
    pub fn let_pass(&mut self, until: Time) {
        if self.is_listening {
            self.passing = Passing::Over;
            // If another client acquires and releases the lock during the pause, its release ends the pause: first A
            // lets B pass, then B lets A pass.
            self.wake_ups.wait_for(self.members.all().collect());
            self.step = Step::Sleep(until);
        } else {
            // By then another client most probably holds the lock, and this acquisition waits for its release.
            self.passing = Passing::Until(until);
            self.is_listening = true;
            self.step = self.listen(until);
        }
    }

    /// Returns whether another client took the lock while this one let others pass; `None` if it did not let others
    /// pass. The loss of the first round after the pause shows this.
    #[must_use]
    pub fn was_passed(&self) -> Option<bool> {
        (self.passing != Passing::No).then_some(0 < self.lost_rounds)
    }

    /// Handles the win of the round that began at `began`.
    pub fn handle_win(&mut self, now: Time, began: Time) {
        self.last_round = now.since(began).min(self.member_timeout);
    }

    /// Returns the acquisition of the next caller of the same client. It takes over the subscriptions of this one,
    /// whose caller now holds the lock for `lease` or has given up.
    ///
    /// While the previous caller holds the lock, no round can win. The new acquisition therefore sends nothing until
    /// the release is published; otherwise each of 50 waiters in one process would send one useless request to every
    /// member. After a quarter of the lease it asks anyway, because the message may be lost. Also, the claim of a
    /// holder that dies can only be replaced by a client that has observed it.
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

    /// Marks the lock of this group as a fair one. Of several locks it is asked first, and alone.
    ///
    /// If other owners are in front in its queue, nothing else has been requested so far, and the acquisition keeps
    /// its place. If all locks were requested together, another lock might be granted. It would have to be released,
    /// or it would be blocked for as long as the queue takes. A release covers all locks of an owner, so the place in
    /// the queue would be lost too. The other lock may also be the one that the first owner in that queue requests
    /// next.
    pub fn queue_at(&mut self, group: usize) {
        self.queue = Some(group);
        if 1 < self.members.groups().count() {
            self.step = self.ask(Because::Due);
        }
    }

    /// Records that the lost round found claims of several owners, none of which holds the lock. Call this before
    /// [`Acquisition::handle_loss`].
    pub fn handle_rivals(&mut self) {
        self.has_rivals = true;
    }

    /// Updates the set of silent members from this lost round. Call this before [`Acquisition::handle_loss`].
    pub fn handle_silence(&mut self, round: &Round) {
        self.silence.handle_loss(self.members.all(), round);
    }

    /// Returns the members that the next round need not wait for: see [`Round::without_waiting_for`].
    #[must_use]
    pub fn mute(&self) -> &[MemberId] {
        self.silence.mute()
    }

    /// Records that the lost round got a place in the queue of this group and has to give it up, because another group
    /// granted. The next round begins at this group. Call this before [`Acquisition::handle_loss`].
    pub fn handle_lost_place(&mut self, group: usize) {
        self.queue = Some(group);
        self.lost_places = self.lost_places.saturating_add(1);
    }

    /// Records that the subscriptions to these members have ended: the owner has changed, and with it the channels that
    /// it listens to.
    pub fn handle_deaf(&mut self, members: impl IntoIterator<Item = MemberId>) {
        self.deaf = members.into_iter().collect();
    }

    /// Returns what to do now.
    #[must_use]
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// Returns when the first failed round since a quorum last answered began; `None` while quorums answer.
    #[must_use]
    pub fn failing_since(&self) -> Option<Time> {
        self.failing_since
    }

    /// Returns why the last round was lost; `None` before the first loss.
    #[must_use]
    pub fn last_loss(&self) -> Option<GiveUp> {
        self.last_loss
    }

    /// Returns when a caller with this limit stops waiting, given what has happened so far.
    ///
    /// The limit is a time and not a number of failed rounds: where connections are refused, five rounds fail within a
    /// tenth of a second, while a server takes several seconds to restart.
    #[must_use]
    pub fn gives_up_at(&self, limit: Limit) -> Time {
        self.policy.gives_up_at(limit, self.failing_since)
    }

    fn listen(&mut self, until: Time) -> Step {
        self.deaf.clear();
        Step::Listen(until)
    }

    /// Sleeps until `at`, or for less time if members have published that the name is free.
    ///
    /// Once one member has published, the acquisition waits for the others no longer than a round takes, because a
    /// message may be lost. In first-member order a single message is mostly caused by a competitor that gives back
    /// its grants. Afterwards the lock is free, or a holder has the other members. The acquisition asks again after a
    /// few round trips, and less and less often if the lock is held.
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

    /// Leaves this release to the clients that have waited longer, and asks after they have had time to acquire.
    fn defer(&mut self, now: Time, at: Time) -> Step {
        self.deference -= 1;
        self.wake_ups.begin_round();
        self.is_postponed = false;
        if self.lost_rounds == 0 {
            // The pause of `let_pass` is still running and serves the same purpose.
            return Step::Sleep(at);
        }
        Step::Sleep(pauses::for_others(now, self.last_round))
    }

    fn ask(&mut self, because: Because) -> Step {
        let order = self.next_order(because);
        self.ask_in(order, because)
    }

    fn ask_in(&mut self, order: Order, because: Because) -> Step {
        self.wake_ups.begin_round();
        self.returns.begin_round();
        self.last_because = because;
        self.last_order = order;
        Step::Ask(order)
    }

    fn next_order(&self, because: Because) -> Order {
        let mut members = self.members.all();
        let is_first_free = members.next().is_some_and(|m| self.wake_ups.has_woken(m));
        if 1 < self.members.groups().count() {
            match self.queue {
                Some(first) => Order::Canonical { first },
                // A try has a second round only after a collision.
                None if 2 <= self.lost_rounds
                    || self.lost_rounds == 1 && self.patience == Patience::Try =>
                {
                    Order::Canonical { first: 0 }
                }
                _ => Order::Parallel,
            }
        } else if self.contention.is_contended()
            && (because == Because::Woken || !self.is_postponed || is_first_free)
        {
            // First-member order: A has 1 and 2, B has 3 and 4, and 5 is down. Both give back, ask again and collide
            // again. If every competitor asks the first member before the rest, exactly one of them passes. But if that
            // member refused and has not published since, an owner without a majority may hold it for long. That must
            // not keep the competitors from a majority that is free.
            Order::FirstMember
        } else {
            Order::Parallel
        }
    }

    /// Records that the subscriptions to all members are live.
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

    /// Handles a message from a member that the name is free, or a gap in its subscription.
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

    /// Records that a member that could not be reached can be reached again. `random` is any 64 random bits.
    pub fn handle_return(&mut self, now: Time, random: u64) {
        match self.step {
            // Node 1 becomes reachable while the round still waits for node 2. The round fails because it saw both
            // as down, but its result is out of date: the return shortens the pause after it.
            Step::Ask(_) => self.returns.handle_return(),
            Step::BackOff(at) if self.failing_since.is_some() => {
                self.returns.handle_return();
                self.step = Step::BackOff(at.min(self.returns.end_of_pause(now, random)));
            }
            _ => {}
        }
    }

    /// Returns when to call [`Acquisition::handle_timeout`]; [`Time::NEVER`] during a round.
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        match self.step {
            Step::Listen(at) | Step::Sleep(at) | Step::BackOff(at) => at,
            Step::Ask(_) | Step::GiveUp(_) => Time::NEVER,
        }
    }

    /// Begins the next round if the current wait ends at or before `now`.
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
    /// Enough members have published that the name is free; other waiters have received the same messages.
    Woken,
    /// The wait has ended, or nothing had to be waited for.
    Due,
}

#[cfg(test)]
mod tests;
