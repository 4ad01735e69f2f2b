//! One attempt at all members.

mod answers;

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use self::answers::Answers;
pub use self::answers::{Answer, Loss};
use crate::failure::Execution;
use crate::fencing::Tokens;
use crate::lease::{Lease, Terms};
use crate::message::Mode;
use crate::owner::OwnerId;
use crate::quorum::{MemberId, Members, Verdict, Vote};
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
    answers: Answers,
    terms: Terms,
    /// How many were asked: members are asked in canonical order, those of the group that goes first before the rest.
    asked_so_far: usize,
    /// Members that let an earlier round run out of time.
    mute: Vec<MemberId>,
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

impl Round {
    /// A round that begins now: the first requests go out after this.
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
        Round {
            lease,
            member_timeout,
            order,
            stage: 0,
            stage_deadline: now + member_timeout,
            timed_out: false,
            answers: Answers::new(members.clone()),
            terms: Terms::new(members),
            asked_so_far: 0,
            mute: Vec::new(),
        }
    }

    /// These members let an earlier round run out of time: where the others have answered, and disagree, they are asked and not
    /// waited for.
    #[must_use]
    pub fn without_waiting_for(mut self, mute: &[MemberId]) -> Self {
        self.mute = mute.to_vec();
        self
    }

    /// The next member to send the request to, now; its term counts from this reading of the clock.
    pub fn next_ask(&mut self, now: Time) -> Option<MemberId> {
        let member = self.to_ask()?;
        self.asked_so_far += 1;
        self.answers.ask(now, member);
        Some(member)
    }

    /// The member to ask now.
    fn to_ask(&self) -> Option<MemberId> {
        let members = self.answers.members();
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
        let mut groups = self.answers.members().groups().skip(first);
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
        self.answers.sent(member)
    }

    /// Takes a member's answer into account.
    pub fn handle_answer(&mut self, now: Time, member: MemberId, answer: Answer) {
        let Some(sent) = self.answers.record(now, member, answer) else {
            return;
        };
        if let Answer::Granted(_) = answer {
            self.terms.confirm(member, self.lease.term(sent));
        }
        self.advance(now);
    }

    /// A member that refuses names the owner of the claim in the way. To be called before its answer is.
    pub fn handle_owner(&mut self, member: MemberId, owner: OwnerId) {
        self.answers.refuse_for(member, owner);
    }

    /// The member fails in a way that waiting does not cure.
    pub fn handle_denied(&mut self, now: Time, member: MemberId, execution: Execution) {
        self.answers.deny(member);
        self.handle_answer(now, member, Answer::Failed(execution));
    }

    /// Begins the next stage when this one is decided.
    fn advance(&mut self, now: Time) {
        let members = self.answers.members();
        let passed = match self.order {
            Order::Parallel => false,
            Order::FirstMember => {
                let first = members.all().next().map(|m| self.answers.vote(m));
                self.stage == 0 && matches!(first, Some(Vote::Granted | Vote::Failed))
            }
            Order::Canonical { first } => members
                .group(group_in(self.stage, first))
                .is_some_and(|group| self.answers.group_verdict(&group) == Verdict::Won),
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
        match self.answers.verdict() {
            // A was granted 1, 2 and 3, and its process stood still before it looked: when it goes on, its claims have expired, and B
            // has them. So a grant counts only while the terms last, by a clock that is read after the answers.
            Verdict::Won if now < self.terms.valid_until() => Outcome::Won,
            Verdict::Won => Outcome::Lost(Loss::TooSlow),
            // 1 refuses, 2 is down, 3 has not answered: the round cannot be won, and what it says is up to 3. If 3 answers,
            // the lock is another's and is waited for; if it hangs, a wait that took 1 for a quorum would have no end.
            Verdict::Lost if !self.timed_out && self.answers.is_undecided() => Outcome::Pending,
            Verdict::Lost => Outcome::Lost(self.answers.loss()),
            Verdict::Pending if self.is_postponed() => Outcome::Lost(Loss::Postponed),
            Verdict::Pending if self.timed_out || self.is_up_to_the_mute() => {
                Outcome::Lost(self.answers.loss())
            }
            Verdict::Pending => Outcome::Pending,
        }
    }

    /// Whether others are in the way, and all that have not answered are mute.
    ///
    /// 2 is cut off. A is granted 0 and refused by 1, B the other way round. If both wait for 2 before they give back, C and D find
    /// what A and B have meanwhile, and wait for it in turn: of four, none may win for seconds.
    fn is_up_to_the_mute(&self) -> bool {
        let is_mute = |member| self.is_unanswered(member) && self.mute.contains(&member);
        let mut members = self.answers.members().all();
        !self.mute.is_empty()
            && self.answers.are_contended()
            && members.all(|m| self.answers.vote(m) != Vote::Pending || is_mute(m))
    }

    /// Whether members that have not answered are not waited for any more.
    fn has_stopped_waiting(&self) -> bool {
        self.timed_out || (self.answers.verdict() == Verdict::Pending && self.is_up_to_the_mute())
    }

    /// Whether the member was given all its time, by the round or by its connection, and has said nothing.
    #[must_use]
    pub fn is_mute(&self, member: MemberId) -> bool {
        self.timed_out && self.is_unanswered(member) || self.answers.has_lost_reply(member)
    }

    fn is_postponed(&self) -> bool {
        let first = self.answers.members().all().next();
        self.order == Order::FirstMember
            && self.stage == 0
            && first.is_some_and(|m| self.answers.vote(m) == Vote::Refused)
    }

    /// Whether it is time to ask a member.
    #[must_use]
    pub fn has_more_to_ask(&self) -> bool {
        self.to_ask().is_some()
    }

    /// Whether nothing is wrong with any member: none failed, is silent or is quarantined.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        !self.has_stopped_waiting() && self.answers.are_healthy()
    }

    /// Whether the member did not answer in the time that it was given.
    #[must_use]
    pub fn is_silent(&self, member: MemberId) -> bool {
        self.has_stopped_waiting() && self.answers.vote(member) == Vote::Pending
    }

    /// Whether the member may have recorded the claim, so that giving up means releasing it there.
    #[must_use]
    pub fn may_hold(&self, member: MemberId) -> bool {
        self.answers.may_hold(member)
    }

    /// Whether nothing is known to stand but places in queues, and nothing else may: then there is nothing to give
    /// back, and the owner can go on waiting.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.answers.is_waiting()
    }

    /// The first member that gave the owner a place in its queue.
    #[must_use]
    pub fn queued(&self) -> Option<MemberId> {
        self.answers.queued()
    }

    /// The first member with a lock of another mode under the name, and which.
    #[must_use]
    pub fn other_mode(&self) -> Option<(MemberId, Mode)> {
        self.answers.other_mode()
    }

    /// Whether the member was asked and has not answered.
    #[must_use]
    pub fn is_unanswered(&self, member: MemberId) -> bool {
        self.answers.is_unanswered(member)
    }

    /// Whether a member says that others are in the way.
    #[must_use]
    pub fn has_refused(&self) -> bool {
        self.answers.has_refused()
    }

    /// Whether members that refuse name several owners, and no owner is known to hold the lock: they collide just now, and
    /// each gives back what it has.
    #[must_use]
    pub fn has_rivals(&self) -> bool {
        self.answers.has_rivals()
    }

    /// Whether the member granted, but its vote does not count.
    #[must_use]
    pub fn is_quarantined(&self, member: MemberId) -> bool {
        self.answers.is_quarantined(member)
    }

    /// Whether the member granted.
    #[must_use]
    pub fn has_granted(&self, member: MemberId) -> bool {
        self.answers.has_granted(member)
    }

    /// What the tokens handed out so far amount to; only for a round that was won.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.answers.tokens()
    }

    /// The terms so far.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
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
