//! The answers of the members of a round, and what they amount to.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use crate::failure::Execution;
use crate::fencing::{Token, Tokens};
use crate::lease::largest;
use crate::message::{AcquireReply, Mode, Ttl};
use crate::owner::OwnerId;
use crate::quorum::{Group, MemberId, Members, Tally, Verdict, Vote};
use crate::time::Time;

/// One member's answer to the request of a round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Answer {
    /// The claim is recorded, and the node handed out this token.
    Granted(Token),
    /// The claim is recorded, but the node's vote does not count yet. The duration, if known, is the time until it
    /// will. It is a duration and not an instant because each client of a lock has its own clock.
    Quarantined(Option<Duration>),
    /// Another owner holds the name; its claim expires after this TTL.
    Refused(Ttl),
    /// The owner has a place in the queue. Others are in front of it, at most for this time.
    Queued(Ttl),
    /// The name is locked in this other mode.
    OtherMode(Mode),
    /// No reply came; the value states whether the request may have been executed.
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

/// Why a round was lost.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Loss {
    /// Others hold so many members that no threshold is left.
    Refused {
        /// Time until enough of their claims have expired for a threshold to be free; `None` if it cannot be foreseen.
        free_after: Option<Duration>,
        /// Whether some members of a lost group granted, so that possibly no owner has won it.
        split: bool,
        /// Members that refused. Only their messages can mean that a claim in the way has ended.
        refused: Vec<MemberId>,
    },
    /// The first member was asked alone, and refused.
    Postponed,
    /// No claim is in the way, but too many of the members that granted are quarantined.
    Quarantined {
        /// When enough of them will count, if that is known.
        until: Option<Time>,
    },
    /// Too many members did not answer, or answered with an error.
    NoQuorum,
    /// Too many members refuse for a reason that waiting does not remove (credentials, permissions, the type of the
    /// key), so no threshold is left.
    Denied,
    /// A threshold granted, but the terms had ended by then.
    TooSlow,
    /// A member has the name locked in this other mode.
    OtherMode(Mode),
}

/// The requests of one round and their answers, by member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Answers {
    tally: Tally,
    asked: Vec<MemberAnswer>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct MemberAnswer {
    sent: Option<Time>,
    answer: Option<Answer>,
    /// When the member's vote begins to count, if it is quarantined and this is known.
    counts_from: Option<Time>,
    /// Whether it failed for a reason that waiting does not remove.
    is_denied: bool,
    /// Owner of the claim in the way, if the refusal named it.
    in_the_way: Option<OwnerId>,
}

impl Answers {
    /// Returns the answers of a round that has asked no member yet.
    pub(super) fn new(members: Arc<Members>) -> Self {
        Answers {
            asked: vec![MemberAnswer::default(); members.len()],
            tally: Tally::new(members),
        }
    }

    /// Records that the member is asked now.
    pub(super) fn ask(&mut self, now: Time, member: MemberId) {
        self.tally.record(member, Vote::Pending);
        if let Some(asked) = member.get_mut(&mut self.asked) {
            asked.sent = Some(now);
        }
    }

    /// Records the answer of a member. Returns when it was asked; `None` if it was not.
    pub(super) fn record(&mut self, now: Time, member: MemberId, answer: Answer) -> Option<Time> {
        let asked = member.get_mut(&mut self.asked)?;
        let sent = asked.sent?;
        asked.answer = Some(answer);
        if let Answer::Quarantined(left) = answer {
            asked.counts_from = left.map(|left| now + left);
        }
        let vote = match answer {
            Answer::Granted(_) => Vote::Granted,
            Answer::Refused(_) | Answer::Queued(_) | Answer::OtherMode(_) => Vote::Refused,
            Answer::Quarantined(_) | Answer::Failed(_) => Vote::Failed,
        };
        self.tally.record(member, vote);
        Some(sent)
    }

    /// Records that the member failed for a reason that waiting does not remove.
    pub(super) fn deny(&mut self, member: MemberId) {
        if let Some(asked) = member.get_mut(&mut self.asked) {
            asked.is_denied = true;
        }
    }

    /// Records the owner of the claim for which the member refused.
    pub(super) fn refuse_for(&mut self, member: MemberId, owner: OwnerId) {
        if let Some(asked) = member.get_mut(&mut self.asked) {
            asked.in_the_way = Some(owner);
        }
    }

    pub(super) fn members(&self) -> &Members {
        self.tally.members()
    }

    pub(super) fn verdict(&self) -> Verdict {
        self.tally.verdict()
    }

    pub(super) fn group_verdict(&self, group: &Group) -> Verdict {
        self.tally.group_verdict(group)
    }

    pub(super) fn vote(&self, member: MemberId) -> Vote {
        self.tally.vote(member)
    }

    /// Returns when the member's request was sent.
    pub(super) fn sent(&self, member: MemberId) -> Option<Time> {
        member.get(&self.asked).and_then(|asked| asked.sent)
    }

    /// Returns why the round is lost.
    pub(super) fn loss(&self) -> Loss {
        if let Some((_, mode)) = self.other_mode() {
            return Loss::OtherMode(mode);
        }
        if self.is_denied() {
            return Loss::Denied;
        }
        let mut refused = Vec::with_capacity(self.asked.len());
        let mut split = false;
        // `None` if it cannot be foreseen.
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
            // Suppose A has 3 of 5 and the other two granted: no vote split, A holds the lock. If this were taken for a
            // collision, each of A's waiters would be in a back-off, which ignores wake-ups, when A releases.
            split |= 0 < self.tally.count(&group, Vote::Granted) && !self.is_held(&group);
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

    /// Returns whether one owner is known to have so many members that no other can win the group.
    fn is_held(&self, group: &Group) -> bool {
        let most = self.owners(group).map(|(_, members)| members).max();
        most.is_some_and(|most| group.threshold().needed() <= most)
    }

    /// Returns whether a threshold of members in some group name the same owner.
    pub(super) fn has_holder(&self) -> bool {
        let mut groups = self.tally.members().groups();
        groups.any(|group| self.is_held(&group))
    }

    /// Returns whether members name several owners, none of which is known to hold the lock, so that they collide.
    pub(super) fn has_rivals(&self) -> bool {
        let mut groups = self.tally.members().groups();
        groups.any(|group| {
            let mut named = self.owners(&group).map(|(owner, _)| owner);
            let first = named.next();
            named.any(|owner| Some(owner) != first) && !self.is_held(&group)
        })
    }

    /// Returns whether, of several groups that were asked, this owner may have won one and others are in the way in another.
    pub(super) fn is_divided(&self) -> bool {
        let mut groups = self.tally.members().groups();
        let is_open = |group: Group| {
            let is_asked = group.members().any(|member| self.sent(member).is_some());
            is_asked && self.group_verdict(&group) != Verdict::Lost
        };
        self.are_contended() && groups.any(is_open)
    }

    /// Returns the owner that each refusing member of a group names, and how many members name the same owner.
    fn owners<'a>(&'a self, group: &Group) -> impl Iterator<Item = (OwnerId, usize)> + use<'a> {
        let asked = group.slice(&self.asked);
        let named = asked.iter().filter_map(|asked| asked.in_the_way);
        named.map(move |owner| {
            let same = asked.iter().filter(|a| a.in_the_way == Some(owner));
            (owner, same.count())
        })
    }

    /// Returns whether members that have not answered decide the reason of the loss: others are in the way, or too few
    /// members answer.
    pub(super) fn is_undecided(&self) -> bool {
        let mut groups = self.tally.members().groups();
        groups.any(|group| self.may_be_contended(&group))
            && self.other_mode().is_none()
            && !self.is_denied()
            && !self.are_contended()
    }

    /// Returns whether others are in the way in some group, whatever the remaining members answer.
    pub(super) fn are_contended(&self) -> bool {
        let mut groups = self.tally.members().groups();
        groups.any(|group| self.is_contended(&group))
    }

    /// Returns whether some group has no threshold left without the members that fail for a reason that waiting does
    /// not remove. A user without permissions on one of five nodes does not end a wait that the other four can end by a
    /// win.
    fn is_denied(&self) -> bool {
        self.tally.members().groups().any(|group| {
            let denied = group.slice(&self.asked).iter().filter(|a| a.is_denied);
            group.threshold().spare() < denied.count()
        })
    }

    /// Returns why a round was lost in which no claim was in the way.
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

    /// Returns whether others are in the way: either they hold so much that no threshold is left, or enough members
    /// answered and they disagree.
    fn is_contended(&self, group: &Group) -> bool {
        let refused = self.tally.count(group, Vote::Refused);
        let granted = self.tally.count(group, Vote::Granted);
        let needed = group.threshold().needed();
        group.threshold().spare() < refused
            || (0 < refused && granted < needed && needed <= granted + refused)
    }

    /// Returns whether a member refused, and enough members will have answered once all pending ones do.
    fn may_be_contended(&self, group: &Group) -> bool {
        let refused = self.tally.count(group, Vote::Refused);
        let answered = refused + self.tally.count(group, Vote::Granted);
        let pending = self.tally.count(group, Vote::Pending);
        0 < refused && group.threshold().needed() <= answered + pending
    }

    /// Returns the threshold-th smallest remaining TTL of the claims in the way. A member that granted counts as free.
    /// A member that did not answer is assumed to be no worse than those that did.
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

    /// Returns whether the member may have recorded the claim, so that giving up means releasing it there.
    pub(super) fn may_hold(&self, member: MemberId) -> bool {
        let Some(MemberAnswer {
            sent: Some(_),
            answer,
            ..
        }) = member.get(&self.asked)
        else {
            return false;
        };
        // Orphans: A's acquire to node 3 gets no answer, and A gives up. The node may have executed the acquire, or may
        // execute it later. If A took this silence for a refusal, it would send no release, and the claim would keep B
        // out until its TTL ends. Only an answer that rules out a claim excludes the member.
        !matches!(
            answer,
            Some(Answer::Refused(_) | Answer::OtherMode(_) | Answer::Failed(Execution::Definite))
        )
    }

    /// Returns whether the owner has only places in queues, and certainly nothing else. Then there is nothing to give
    /// back, and the owner can continue to wait.
    pub(super) fn is_waiting(&self) -> bool {
        let mut members = self.tally.members().all();
        members.all(|member| {
            let asked = member.get(&self.asked);
            let is_queued = asked.is_some_and(|a| matches!(a.answer, Some(Answer::Queued(_))));
            is_queued || !self.may_hold(member)
        })
    }

    /// Returns the first member that gave the owner a place in its queue.
    pub(super) fn queued(&self) -> Option<MemberId> {
        let mut members = self.tally.members().all();
        members.find(|member| {
            let asked = member.get(&self.asked);
            asked.is_some_and(|asked| matches!(asked.answer, Some(Answer::Queued(_))))
        })
    }

    /// Returns the first member whose name is locked in another mode, and that mode.
    pub(super) fn other_mode(&self) -> Option<(MemberId, Mode)> {
        let mut members = self.tally.members().all();
        members.find_map(|member| match member.get(&self.asked)?.answer {
            Some(Answer::OtherMode(mode)) => Some((member, mode)),
            _ => None,
        })
    }

    /// Returns whether a member answered that others are in the way.
    pub(super) fn has_refused(&self) -> bool {
        let mut answers = self.asked.iter().map(|asked| asked.answer);
        answers.any(|answer| matches!(answer, Some(Answer::Refused(_) | Answer::Queued(_))))
    }

    /// Returns whether the member granted, but its vote does not count.
    pub(super) fn is_quarantined(&self, member: MemberId) -> bool {
        let answer = member.get(&self.asked).and_then(|asked| asked.answer);
        matches!(answer, Some(Answer::Quarantined(_)))
    }

    /// Returns whether the member granted.
    pub(super) fn has_granted(&self, member: MemberId) -> bool {
        self.tally.vote(member) == Vote::Granted
    }

    /// Returns whether the member was asked and has not answered.
    pub(super) fn is_unanswered(&self, member: MemberId) -> bool {
        let asked = member.get(&self.asked);
        asked.is_some_and(|asked| asked.sent.is_some() && asked.answer.is_none())
    }

    /// Returns whether the member's reply was lost, so that it may have executed the request.
    pub(super) fn has_lost_reply(&self, member: MemberId) -> bool {
        let answer = member.get(&self.asked).and_then(|asked| asked.answer);
        answer == Some(Answer::Failed(Execution::Indeterminate))
    }

    /// Returns whether no member failed or is quarantined.
    pub(super) fn are_healthy(&self) -> bool {
        let is_wrong = |asked: &MemberAnswer| {
            let answer = asked.answer;
            matches!(answer, Some(Answer::Failed(_) | Answer::Quarantined(_)))
        };
        !self.asked.iter().any(is_wrong)
    }

    /// Compares the tokens that the members handed out so far; only meaningful for a round that was won.
    pub(super) fn tokens(&self) -> Tokens {
        Tokens::of(self.tally.members(), |member| {
            match member.get(&self.asked)?.answer? {
                Answer::Granted(token) => Some(token),
                _ => None,
            }
        })
    }
}
