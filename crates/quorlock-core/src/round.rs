//! One attempt at all members.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;
use std::time::Duration;

use crate::failure::Execution;
use crate::fencing::{Token, Tokens};
use crate::lease::{Lease, Terms, largest};
use crate::message::{AcquireReply, Mode, Ttl};
use crate::quorum::{Group, MemberId, Members, Tally, Verdict, Vote};
use crate::time::Time;

/// In which order a round asks its members.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    /// All at once.
    Parallel,
    /// The first in canonical order, then the rest: of several competitors whose votes keep splitting, one passes.
    FirstMember,
    /// Group after group, `first` before the rest in canonical order: of several competitors for overlapping sets of
    /// locks, one passes.
    Canonical {
        /// The place of the group that is asked first, among all groups.
        first: usize,
    },
}

/// One member's answer to the request of a round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Answer {
    /// The claim is recorded; the node handed out this token.
    Granted(Token),
    /// The claim is recorded, but the node's votes do not count for so much longer, if that is known. A span, as
    /// each client of a lock has a clock of its own.
    Quarantined(Option<Duration>),
    /// Somebody else's claim stands, for so long.
    Refused(Ttl),
    /// Others are in front, for so long, and the owner has a place in the queue.
    Queued(Ttl),
    /// A lock of another mode stands under the name.
    OtherMode(Mode),
    /// No reply, and whether the request may have been executed.
    Failed(Execution),
}

impl From<AcquireReply> for Answer {
    fn from(reply: AcquireReply) -> Self {
        match reply {
            AcquireReply::Granted { token, .. } => Answer::Granted(token),
            AcquireReply::Refused { ttl, .. } => Answer::Refused(ttl),
            AcquireReply::Queued { ttl } => Answer::Queued(ttl),
            AcquireReply::OtherMode(mode) => Answer::OtherMode(mode),
        }
    }
}

/// One attempt: ask the members, count the grants, hold them against the time that it took.
///
/// The round ends as soon as it is won, or cannot be won and it is known why: others are in the way, or too few members
/// answer. What was asked and is still unanswered then belongs to the
/// holder (a late grant counts) or must be released: silence is not refusal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Round {
    lease: Lease,
    member_timeout: Duration,
    order: Order,
    stage: usize,
    stage_deadline: Time,
    timed_out: bool,
    tally: Tally,
    terms: Terms,
    asked: Vec<Asked>,
    /// How many were asked: members are asked in canonical order, those of the group that goes first before the rest.
    asked_so_far: usize,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Asked {
    sent: Option<Time>,
    answer: Option<Answer>,
    /// Before that its vote does not count, if it is known.
    counts_from: Option<Time>,
    /// It failed in a way that waiting does not cure.
    is_denied: bool,
}

/// What a round has come to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// Not decided yet.
    Pending,
    /// A threshold of every group granted, and there is time left.
    Won,
    /// It was not, or no longer can be, won.
    Lost(Loss),
}

/// Why a round was lost.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Loss {
    /// Others hold so many members that no threshold is left.
    Refused {
        /// When so many of their claims will have expired that a threshold would be free; `None`: not foreseeable.
        free_after: Option<Duration>,
        /// Whether members of a group that was lost granted, so that nobody may have won it.
        split: bool,
        /// The members that refused: only what they publish can be the end of a claim in the way.
        refused: Vec<MemberId>,
    },
    /// The first member, asked alone, refused.
    Postponed,
    /// Nobody is in the way, but too many of the members that granted are quarantined.
    Quarantined {
        /// When enough of them will count, if that is known.
        until: Option<Time>,
    },
    /// Too many members did not answer, or with an error.
    NoQuorum,
    /// So many members refuse in a way that waiting does not cure (a login, a right, the type of the key) that no
    /// threshold is left.
    Denied,
    /// A threshold granted, but the lease had run out by then.
    TooSlow,
    /// A member has a lock of another mode under the name.
    OtherMode(Mode),
}

impl Round {
    /// A round that begins now: the first requests are to be sent after this.
    ///
    /// Each member is given `member_timeout` to answer.
    #[must_use]
    pub fn new(
        now: Time,
        members: Arc<Members>,
        lease: Lease,
        member_timeout: Duration,
        order: Order,
    ) -> Self {
        let len = members.len();
        Round {
            lease,
            member_timeout,
            order,
            stage: 0,
            stage_deadline: now + member_timeout,
            timed_out: false,
            tally: Tally::new(members.clone()),
            terms: Terms::new(members),
            asked: vec![Asked::default(); len],
            asked_so_far: 0,
        }
    }

    /// The next member to send the request to, now; its term counts from this reading of the clock.
    pub fn next_ask(&mut self, now: Time) -> Option<MemberId> {
        let member = self.to_ask()?;
        self.asked_so_far += 1;
        self.tally.record(member, Vote::Pending);
        if let Some(asked) = member.get_mut(&mut self.asked) {
            asked.sent = Some(now);
        }
        Some(member)
    }

    /// The member that is to be asked now.
    fn to_ask(&self) -> Option<MemberId> {
        let members = self.tally.members();
        let member = members.at(self.next_place())?;
        let is_in_stage = match self.order {
            Order::Parallel => true,
            Order::FirstMember => 0 < self.stage || member.index() == 0,
            Order::Canonical { first } => stage_of(members.group_of(member), first) <= self.stage,
        };
        (is_in_stage && !self.timed_out).then_some(member)
    }

    /// Where the member stands that is asked next.
    fn next_place(&self) -> usize {
        let asked = self.asked_so_far;
        let Order::Canonical { first } = self.order else {
            return asked;
        };
        let mut groups = self.tally.members().groups().skip(first);
        let (before, len) = match groups.next().filter(|_| first != 0) {
            Some(group) => (group.start(), group.threshold().of()),
            None => return asked,
        };
        if asked < len {
            before + asked
        } else if asked < len + before {
            asked - len
        } else {
            asked
        }
    }

    /// When the member's request was sent.
    #[must_use]
    pub fn sent(&self, member: MemberId) -> Option<Time> {
        member.get(&self.asked).and_then(|asked| asked.sent)
    }

    /// Takes a member's answer into account.
    pub fn handle_answer(&mut self, now: Time, member: MemberId, answer: Answer) {
        let Some(Asked {
            sent: Some(sent),
            answer: place,
            counts_from,
            ..
        }) = member.get_mut(&mut self.asked)
        else {
            return;
        };
        *place = Some(answer);
        if let Answer::Quarantined(left) = answer {
            *counts_from = left.map(|left| now + left);
        }
        match answer {
            Answer::Granted(_) => {
                self.terms.confirm(member, self.lease.term(*sent));
                self.tally.record(member, Vote::Granted);
            }
            Answer::Refused(_) | Answer::Queued(_) | Answer::OtherMode(_) => {
                self.tally.record(member, Vote::Refused);
            }
            Answer::Quarantined(_) | Answer::Failed(_) => {
                self.tally.record(member, Vote::Failed);
            }
        }
        self.advance(now);
    }

    /// The member fails in a way that waiting does not cure.
    pub fn handle_denied(&mut self, now: Time, member: MemberId, execution: Execution) {
        if let Some(asked) = member.get_mut(&mut self.asked) {
            asked.is_denied = true;
        }
        self.handle_answer(now, member, Answer::Failed(execution));
    }

    /// Begins the next stage when this one is decided.
    fn advance(&mut self, now: Time) {
        let members = self.tally.members();
        let passed = match self.order {
            Order::Parallel => false,
            Order::FirstMember => {
                let first = members.all().next().map(|m| self.tally.vote(m));
                self.stage == 0 && matches!(first, Some(Vote::Granted | Vote::Failed))
            }
            Order::Canonical { first } => members
                .group(group_in(self.stage, first))
                .is_some_and(|group| self.tally.group_verdict(&group) == Verdict::Won),
        };
        if passed {
            self.stage += 1;
            self.stage_deadline = now + self.member_timeout;
        }
    }

    /// When to call [`Round::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        self.stage_deadline
    }

    /// Time passed: members that have not answered by now are not waited for.
    pub fn handle_timeout(&mut self, now: Time) {
        if now < self.stage_deadline {
            return;
        }
        if self.order == Order::FirstMember && self.stage == 0 {
            self.stage = 1;
            self.stage_deadline = now + self.member_timeout;
        } else {
            self.timed_out = true;
        }
    }

    /// What the round has come to by now.
    #[must_use]
    pub fn outcome(&self, now: Time) -> Outcome {
        match self.tally.verdict() {
            Verdict::Won if now < self.terms.valid_until() => Outcome::Won,
            Verdict::Won => Outcome::Lost(Loss::TooSlow),
            // 1 refuses, 2 is down, 3 has not answered: the round cannot be won, and what it says is up to 3. If 3 answers,
            // the lock is another's and is waited for; if it hangs, a wait that took 1 for a quorum would have no end.
            Verdict::Lost if self.is_undecided() => Outcome::Pending,
            Verdict::Lost => Outcome::Lost(self.loss()),
            Verdict::Pending if self.is_postponed() => Outcome::Lost(Loss::Postponed),
            Verdict::Pending if self.timed_out => Outcome::Lost(self.loss()),
            Verdict::Pending => Outcome::Pending,
        }
    }

    fn is_postponed(&self) -> bool {
        let first = self.tally.members().all().next();
        self.order == Order::FirstMember
            && self.stage == 0
            && first.is_some_and(|m| self.tally.vote(m) == Vote::Refused)
    }

    fn loss(&self) -> Loss {
        if let Some((_, mode)) = self.other_mode() {
            return Loss::OtherMode(mode);
        }
        if self.is_denied() {
            return Loss::Denied;
        }
        let mut refused = Vec::with_capacity(self.asked.len());
        let mut split = false;
        // `None`: not foreseeable.
        let mut free_after = Some(Duration::ZERO);
        let mut is_contended = false;
        for group in self.tally.members().groups() {
            if !self.is_contended(&group) {
                continue;
            }
            is_contended = true;
            free_after = free_after
                .zip(self.free_after(&group))
                .map(|(a, b)| a.max(b));
            split |= 0 < self.tally.count(&group, Vote::Granted);
            let members = group.members();
            refused.extend(members.filter(|m| self.tally.vote(*m) == Vote::Refused));
        }
        if !is_contended {
            return self.quarantined();
        }
        Loss::Refused {
            free_after,
            split,
            refused,
        }
    }

    /// Whether members that may still answer decide if others are in the way or too few answer.
    fn is_undecided(&self) -> bool {
        let mut groups = self.tally.members().groups();
        let is_open = !self.timed_out && groups.any(|group| self.may_be_contended(&group));
        let mut groups = self.tally.members().groups();
        is_open
            && self.other_mode().is_none()
            && !self.is_denied()
            && !groups.any(|group| self.is_contended(&group))
    }

    /// Whether some group has no threshold without the members that waiting does not cure. One user without rights on one
    /// of five nodes is no reason to end a wait that the other four can end well.
    fn is_denied(&self) -> bool {
        self.tally.members().groups().any(|group| {
            let denied = group.slice(&self.asked).iter().filter(|a| a.is_denied);
            group.threshold().spare() < denied.count()
        })
    }

    /// Why a round was lost in which nobody was in the way.
    fn quarantined(&self) -> Loss {
        let mut until = Some(Time::ZERO);
        for group in self.tally.members().groups() {
            let times = group.slice(&self.asked).iter();
            let times = times.filter_map(|asked| match asked.answer {
                Some(Answer::Granted(_)) => Some(Reverse(Time::ZERO)),
                Some(Answer::Quarantined(_)) => {
                    Some(Reverse(asked.counts_from.unwrap_or(Time::NEVER)))
                }
                _ => None,
            });
            match largest(times, group.threshold().needed()) {
                None => return Loss::NoQuorum,
                Some(Reverse(Time::NEVER)) => until = None,
                Some(Reverse(time)) => until = until.map(|until| until.max(time)),
            }
        }
        Loss::Quarantined { until }
    }

    /// Whether others are in the way: they hold so much that no threshold is left, or enough members answered and they
    /// disagree.
    fn is_contended(&self, group: &Group) -> bool {
        let refused = self.tally.count(group, Vote::Refused);
        let granted = self.tally.count(group, Vote::Granted);
        let needed = group.threshold().needed();
        group.threshold().spare() < refused
            || (0 < refused && granted < needed && needed <= granted + refused)
    }

    /// Whether a member refused, and enough members have answered if those answer that have not.
    fn may_be_contended(&self, group: &Group) -> bool {
        let refused = self.tally.count(group, Vote::Refused);
        let answered = refused + self.tally.count(group, Vote::Granted);
        let pending = self.tally.count(group, Vote::Pending);
        0 < refused && group.threshold().needed() <= answered + pending
    }

    /// The threshold-th smallest of what is left of the claims in the way; a member that granted is free, and of one
    /// that did not say, nothing worse is assumed than of those that did.
    fn free_after(&self, group: &Group) -> Option<Duration> {
        let left = group.slice(&self.asked).iter();
        let left = left.filter_map(|asked| match asked.answer {
            Some(Answer::Granted(_)) => Some(Reverse(0)),
            Some(Answer::Refused(ttl) | Answer::Queued(ttl)) => Some(Reverse(match ttl {
                Ttl::Millis(millis) => millis,
                Ttl::Unbounded => u64::MAX,
            })),
            _ => None,
        });
        let nth = group.threshold().needed().min(left.clone().count());
        let Reverse(millis) = largest(left, nth).filter(|left| left.0 != u64::MAX)?;
        Some(Duration::from_millis(millis))
    }

    /// Whether the member may have recorded the claim, so that giving up means releasing it there.
    #[must_use]
    pub fn may_hold(&self, member: MemberId) -> bool {
        let Some(Asked {
            sent: Some(_),
            answer,
            ..
        }) = member.get(&self.asked)
        else {
            return false;
        };
        !matches!(
            answer,
            Some(Answer::Refused(_) | Answer::OtherMode(_) | Answer::Failed(Execution::Definite))
        )
    }

    /// Whether nothing is known to stand but places in queues, and nothing else may: then there is nothing to give
    /// back, and the owner can go on waiting.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        let mut members = self.tally.members().all();
        members.all(|member| {
            let asked = member.get(&self.asked);
            let is_queued = asked.is_some_and(|a| matches!(a.answer, Some(Answer::Queued(_))));
            is_queued || !self.may_hold(member)
        })
    }

    /// The first member that gave the owner a place in its queue.
    #[must_use]
    pub fn queued(&self) -> Option<MemberId> {
        let mut members = self.tally.members().all();
        members.find(|member| {
            let asked = member.get(&self.asked);
            asked.is_some_and(|asked| matches!(asked.answer, Some(Answer::Queued(_))))
        })
    }

    /// The first member with a lock of another mode under the name, and which.
    #[must_use]
    pub fn other_mode(&self) -> Option<(MemberId, Mode)> {
        let mut members = self.tally.members().all();
        members.find_map(|member| match member.get(&self.asked)?.answer {
            Some(Answer::OtherMode(mode)) => Some((member, mode)),
            _ => None,
        })
    }

    /// Whether a member is to be asked now.
    #[must_use]
    pub fn has_more_to_ask(&self) -> bool {
        self.to_ask().is_some()
    }

    /// Whether nothing is wrong with any member: none failed, is silent or is quarantined.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        let is_wrong = |asked: &Asked| {
            let answer = asked.answer;
            matches!(answer, Some(Answer::Failed(_) | Answer::Quarantined(_)))
        };
        !self.timed_out && !self.asked.iter().any(is_wrong)
    }

    /// Whether the member did not answer in the time that it was given.
    #[must_use]
    pub fn is_silent(&self, member: MemberId) -> bool {
        self.timed_out && self.tally.vote(member) == Vote::Pending
    }

    /// Whether the member was asked and has not answered.
    #[must_use]
    pub fn is_unanswered(&self, member: MemberId) -> bool {
        let asked = member.get(&self.asked);
        asked.is_some_and(|asked| asked.sent.is_some() && asked.answer.is_none())
    }

    /// Whether a member says that others are in the way.
    #[must_use]
    pub fn has_refused(&self) -> bool {
        let mut answers = self.asked.iter().map(|asked| asked.answer);
        answers.any(|answer| matches!(answer, Some(Answer::Refused(_) | Answer::Queued(_))))
    }

    /// Whether the member granted, but its vote does not count.
    #[must_use]
    pub fn is_quarantined(&self, member: MemberId) -> bool {
        let answer = member.get(&self.asked).and_then(|asked| asked.answer);
        matches!(answer, Some(Answer::Quarantined(_)))
    }

    /// Whether the member granted.
    #[must_use]
    pub fn has_granted(&self, member: MemberId) -> bool {
        self.tally.vote(member) == Vote::Granted
    }

    /// The terms so far.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// What the tokens handed out so far amount to; only for a round that was won.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        Tokens::of(self.tally.members(), |member| {
            match member.get(&self.asked)?.answer? {
                Answer::Granted(token) => Some(token),
                _ => None,
            }
        })
    }
}

/// In which stage a group is asked where `first` goes before the rest.
fn stage_of(group: usize, first: usize) -> usize {
    match group.cmp(&first) {
        Ordering::Less => group + 1,
        Ordering::Equal => 0,
        Ordering::Greater => group,
    }
}

/// The group that is asked in this stage: the other way round.
fn group_in(stage: usize, first: usize) -> usize {
    match stage {
        0 => first,
        _ if stage <= first => stage - 1,
        _ => stage,
    }
}

#[cfg(test)]
mod tests;
