//! One attempt to acquire a lock from all members.

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

/// The order in which a round asks its members.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    /// All members at once.
    Parallel,
    /// The first member in canonical order, then the rest. Of several competitors whose votes keep splitting, one
    /// passes. If the first member fails, the second one takes its place, and so on.
    FirstMember,
    /// One group after another: group `first`, then the rest in canonical order. Of several competitors for overlapping
    /// sets of locks, one passes.
    Canonical {
        /// Index of the group that is asked first, among all groups.
        first: usize,
    },
}

/// One attempt: asks the members, counts the grants, and compares them with the time that it took.
///
/// The round ends as soon as it is won, or as soon as it cannot be won and the reason is known: others are in the way,
/// or too few members answer. Requests that are still unanswered then belong to the hold (a late grant counts) or must
/// be released: silence is not refusal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Round {
    lease: Lease,
    member_timeout: Duration,
    order: Order,
    /// How many groups were won, in canonical order; how many members have failed in the place of the first one, in first-member
    /// order.
    stage: usize,
    /// Whether the rest may be asked, in first-member order.
    is_open: bool,
    stage_deadline: Time,
    timed_out: bool,
    answers: Answers,
    terms: Terms,
    /// How many members were asked so far. Members are asked in canonical order, except that the members of the group
    /// that goes first come before the rest.
    asked_so_far: usize,
    /// Members that let an earlier round run out of time.
    mute: Vec<MemberId>,
    /// Members whose call failed late without being sent.
    failed_late: Vec<MemberId>,
}

/// A call has failed late if it took more than one part in so many of the time that a member has to answer.
const LATE: u32 = 8;

/// The state of a round.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// The round is not decided yet.
    Pending,
    /// A threshold of every group granted, and the terms have not ended.
    Won,
    /// The round was not won, or can no longer be won.
    Lost(Loss),
}

impl Round {
    /// Returns a round that begins now. The first requests are sent after this call.
    ///
    /// Each member has `member_timeout` to answer.
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
            is_open: false,
            stage_deadline: now + member_timeout,
            timed_out: false,
            answers: Answers::new(members.clone()),
            terms: Terms::new(members),
            asked_so_far: 0,
            mute: Vec::new(),
            failed_late: Vec::new(),
        }
    }

    /// Sets the members that let an earlier round run out of time. They are asked, but the round does not wait for them
    /// once the others have answered and disagree.
    #[must_use]
    pub fn without_waiting_for(mut self, mute: &[MemberId]) -> Self {
        self.mute = mute.to_vec();
        self
    }

    /// Returns the next member to send the request to, now. Its term counts from this reading of the clock.
    pub fn next_ask(&mut self, now: Time) -> Option<MemberId> {
        let member = self.to_ask()?;
        self.asked_so_far += 1;
        self.answers.ask(now, member);
        Some(member)
    }

    /// Returns the member to ask now, if its stage has begun.
    fn to_ask(&self) -> Option<MemberId> {
        let members = self.answers.members();
        let member = members.at(self.next_place())?;
        let is_in_stage = match self.order {
            Order::Parallel => true,
            Order::FirstMember => self.is_open || member.index() == self.stage,
            Order::Canonical { first } => stage_of(members.group_of(member), first) <= self.stage,
        };
        (is_in_stage && !self.timed_out).then_some(member)
    }

    /// Returns the index of the member that is asked next, among all members.
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

    /// Returns when the member's request was sent; `None` if it was not asked.
    #[must_use]
    pub fn sent(&self, member: MemberId) -> Option<Time> {
        self.answers.sent(member)
    }

    /// Records the answer of a member.
    pub fn handle_answer(&mut self, now: Time, member: MemberId, answer: Answer) {
        let Some(sent) = self.answers.record(now, member, answer) else {
            return;
        };
        if let Answer::Granted(_) = answer {
            self.terms.confirm(member, self.lease.term(sent));
        }
        // A member is cut off, and its transport tries to connect again: the call waits until the attempt fails. It is as
        // silent as a member whose connection is left. A refused connection fails at once.
        let is_late = self.member_timeout < LATE * now.since(sent);
        if answer == Answer::Failed(Execution::Definite) && is_late {
            self.failed_late.push(member);
        }
        self.advance(now);
    }

    /// Withdraws the vote of a member that has granted, because it had shown a shorter watch than is needed
    /// ([`LongestLease::rises`](crate::longest_lease::LongestLease::rises)). Its claim is left to a release.
    pub fn withdraw_vote(&mut self, now: Time, member: MemberId) {
        if self.has_granted(member) {
            self.terms.leave(member);
            self.handle_answer(now, member, Answer::Quarantined(None));
        }
    }

    /// Records the owner that a refusing member names as the owner of the claim in the way. Call this before
    /// [`Round::handle_answer`].
    pub fn handle_owner(&mut self, member: MemberId, owner: OwnerId) {
        self.answers.refuse_for(member, owner);
    }

    /// Records that the member failed for a reason that waiting does not remove.
    pub fn handle_denied(&mut self, now: Time, member: MemberId, execution: Execution) {
        self.answers.deny(member);
        self.handle_answer(now, member, Answer::Failed(execution));
    }

    /// Begins the next stage if this one is decided.
    fn advance(&mut self, now: Time) {
        let members = self.answers.members();
        let passed = match self.order {
            Order::Parallel => false,
            Order::FirstMember => match self.first_vote() {
                Some(Vote::Granted) => {
                    self.open(now);
                    false
                }
                // 1 is down, and A, B and C ask 2 before 3. If they asked both at once, votes would be split for as long
                // as 1 is down.
                vote => vote == Some(Vote::Failed),
            },
            Order::Canonical { first } => members
                .group(group_in(self.stage, first))
                .is_some_and(|group| self.answers.group_verdict(&group) == Verdict::Won),
        };
        if passed {
            self.stage += 1;
            self.stage_deadline = now + self.member_timeout;
        }
    }

    /// The vote of the member that is asked before the rest; `None` if the rest may be asked.
    fn first_vote(&self) -> Option<Vote> {
        let first = self.answers.members().at(self.stage)?;
        (!self.is_open).then(|| self.answers.vote(first))
    }

    /// Lets the rest be asked, in first-member order.
    fn open(&mut self, now: Time) {
        if !std::mem::replace(&mut self.is_open, true) {
            self.stage_deadline = now + self.member_timeout;
        }
    }

    /// Returns when to call [`Round::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        self.stage_deadline
    }

    /// Ends the current stage if its time has passed: members that have not answered by now are not waited for.
    pub fn handle_timeout(&mut self, now: Time) {
        if now < self.stage_deadline {
            return;
        }
        if self.order == Order::FirstMember && !self.is_open {
            self.open(now);
        } else {
            self.timed_out = true;
        }
    }

    /// Returns the state of the round at `now`.
    #[must_use]
    pub fn outcome(&self, now: Time) -> Outcome {
        match self.answers.verdict() {
            // Validity: a grant counts only while the terms last, by a clock that is read after the answers. Suppose A
            // is granted 1, 2 and 3, and its process is suspended before it checks. When it resumes, its claims have
            // expired and B has the nodes: without this check both would hold the lock.
            Verdict::Won if now < self.terms.valid_until() => Outcome::Won,
            Verdict::Won => Outcome::Lost(Loss::TooSlow),
            // 1 is down, and the competitor that has 2 asks 3, which this round has not asked.
            Verdict::Lost if 0 < self.stage && self.is_postponed() => {
                Outcome::Lost(Loss::Postponed)
            }
            // Suppose 1 refuses, 2 is down and 3 has not answered: the round cannot be won, and only 3 can show why. If
            // 3 answers, another owner holds the lock and can be waited for. If 3 hangs, no quorum answers, and a
            // waiter that took node 1 for a quorum would wait for ever.
            Verdict::Lost if !self.timed_out && self.answers.is_undecided() => Outcome::Pending,
            Verdict::Lost => Outcome::Lost(self.answers.loss()),
            Verdict::Pending if self.is_postponed() => Outcome::Lost(Loss::Postponed),
            Verdict::Pending if self.timed_out || self.is_up_to_the_mute() => {
                Outcome::Lost(self.answers.loss())
            }
            Verdict::Pending => Outcome::Pending,
        }
    }

    /// Returns whether others are in the way and all members that have not answered are mute.
    ///
    /// Suppose 2 is cut off, A is granted 0 and refused by 1, and B is granted 1 and refused by 0. If both wait for 2
    /// before they give back their grants, C and D find the grants of A and B and wait for 2 in turn. Then none of the
    /// four may win for seconds.
    fn is_up_to_the_mute(&self) -> bool {
        let is_mute = |member| self.is_unanswered(member) && self.mute.contains(&member);
        let mut members = self.answers.members().all();
        !self.mute.is_empty()
            && self.answers.are_contended()
            && members.all(|m| self.answers.vote(m) != Vote::Pending || is_mute(m))
    }

    /// Returns whether the round no longer waits for the members that have not answered.
    fn has_stopped_waiting(&self) -> bool {
        self.timed_out || (self.answers.verdict() == Verdict::Pending && self.is_up_to_the_mute())
    }

    /// Returns whether the member had all its time, from the round or from its connection, and did not answer.
    #[must_use]
    pub fn is_mute(&self, member: MemberId) -> bool {
        self.timed_out && self.is_unanswered(member)
            || self.answers.has_lost_reply(member)
            || self.failed_late.contains(&member)
    }

    fn is_postponed(&self) -> bool {
        self.order == Order::FirstMember && self.first_vote() == Some(Vote::Refused)
    }

    /// Returns whether there is a member to ask now.
    #[must_use]
    pub fn has_more_to_ask(&self) -> bool {
        self.to_ask().is_some()
    }

    /// Returns whether no member failed, is silent or is quarantined.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        !self.has_stopped_waiting() && self.answers.are_healthy()
    }

    /// Returns whether the member did not answer in its time.
    #[must_use]
    pub fn is_silent(&self, member: MemberId) -> bool {
        self.has_stopped_waiting() && self.answers.vote(member) == Vote::Pending
    }

    /// Returns whether the member may have recorded the claim, so that giving up means releasing it there.
    #[must_use]
    pub fn may_hold(&self, member: MemberId) -> bool {
        self.answers.may_hold(member)
    }

    /// Returns whether the owner has only places in queues, and certainly nothing else. Then there is nothing to give
    /// back, and the owner can continue to wait.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.answers.is_waiting()
    }

    /// Returns the first member that gave the owner a place in its queue.
    #[must_use]
    pub fn queued(&self) -> Option<MemberId> {
        self.answers.queued()
    }

    /// Returns the first member whose name is locked in another mode, and that mode.
    #[must_use]
    pub fn other_mode(&self) -> Option<(MemberId, Mode)> {
        self.answers.other_mode()
    }

    /// Returns whether the member was asked and has not answered.
    #[must_use]
    pub fn is_unanswered(&self, member: MemberId) -> bool {
        self.answers.is_unanswered(member)
    }

    /// Returns whether a member answered that others are in the way.
    #[must_use]
    pub fn has_refused(&self) -> bool {
        self.answers.has_refused()
    }

    /// Returns whether the refusing members name several owners, none of which is known to hold the lock. These owners
    /// collide, and each will give back its grants.
    #[must_use]
    pub fn has_rivals(&self) -> bool {
        self.answers.has_rivals()
    }

    /// Returns whether, of several groups that were asked, this owner may have won one and others are in the way in another.
    /// Suppose A has 1 and B has 2, and both want both: neither gets them.
    #[must_use]
    pub fn is_divided(&self) -> bool {
        self.answers.is_divided()
    }

    /// Returns whether a threshold of members name the same owner, which holds the lock.
    #[must_use]
    pub fn has_holder(&self) -> bool {
        self.answers.has_holder()
    }

    /// Returns whether the member granted, but its vote does not count.
    #[must_use]
    pub fn is_quarantined(&self, member: MemberId) -> bool {
        self.answers.is_quarantined(member)
    }

    /// Returns whether the member granted.
    #[must_use]
    pub fn has_granted(&self, member: MemberId) -> bool {
        self.answers.has_granted(member)
    }

    /// Compares the tokens that the members handed out so far; only meaningful for a round that was won.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.answers.tokens()
    }

    /// Returns the terms of the members that have granted so far.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns the terms of the members that have granted.
    #[must_use]
    pub fn into_terms(self) -> Terms {
        self.terms
    }
}

/// Returns the stage in which a group is asked when `first` goes before the rest.
fn stage_of(group: usize, first: usize) -> usize {
    match group.cmp(&first) {
        Ordering::Less => group + 1,
        Ordering::Equal => 0,
        Ordering::Greater => group,
    }
}

/// Returns the group that is asked in this stage: the inverse of [`stage_of`].
fn group_in(stage: usize, first: usize) -> usize {
    match stage {
        0 => first,
        _ if stage <= first => stage - 1,
        _ => stage,
    }
}

#[cfg(test)]
mod tests;
