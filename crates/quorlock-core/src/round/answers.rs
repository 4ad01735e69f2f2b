//! What the members of a round have answered, and what that amounts to.

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
    /// The claim is recorded; the node handed out this token.
    Granted(Token),
    /// The claim is recorded, but the node's votes do not count for so much longer, if that is known. A span, as
    /// each client of a lock has a clock of its own.
    Quarantined(Option<Duration>),
    /// Another owner holds the name; its claim expires after this time.
    Refused(Ttl),
    /// Others are in front, for this time, and the owner has a place in the queue.
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

/// Why a round was lost.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Loss {
    /// Others hold so many members that no threshold is left.
    Refused {
        /// When so many of their claims will have expired that a threshold would be free; `None`: not foreseeable.
        free_after: Option<Duration>,
        /// Whether members of a group that was lost granted, so that no owner may have won it.
        split: bool,
        /// The members that refused: only what they publish can be the end of a claim in the way.
        refused: Vec<MemberId>,
    },
    /// The first member, asked alone, refused.
    Postponed,
    /// No claim is in the way, but too many of the members that granted are quarantined.
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

/// What the members of one round were asked and have answered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Answers {
    tally: Tally,
    asked: Vec<MemberAnswer>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct MemberAnswer {
    sent: Option<Time>,
    answer: Option<Answer>,
    /// Before that its vote does not count, if it is known.
    counts_from: Option<Time>,
    /// It failed in a way that waiting does not cure.
    is_denied: bool,
    /// Whose claim it refused for, if it said so.
    in_the_way: Option<OwnerId>,
}

impl Answers {
    /// No member was asked.
    pub(super) fn new(members: Arc<Members>) -> Self {
        Answers {
            asked: vec![MemberAnswer::default(); members.len()],
            tally: Tally::new(members),
        }
    }

    /// The member is asked now.
    pub(super) fn ask(&mut self, now: Time, member: MemberId) {
        self.tally.record(member, Vote::Pending);
        if let Some(asked) = member.get_mut(&mut self.asked) {
            asked.sent = Some(now);
        }
    }

    /// Records the answer of a member. Returns when it was asked, if it was.
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

    /// The member fails in a way that waiting does not cure.
    pub(super) fn deny(&mut self, member: MemberId) {
        if let Some(asked) = member.get_mut(&mut self.asked) {
            asked.is_denied = true;
        }
    }

    /// The member refused for the sake of this owner's claim.
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

    /// When the member's request was sent.
    pub(super) fn sent(&self, member: MemberId) -> Option<Time> {
        member.get(&self.asked).and_then(|asked| asked.sent)
    }

    /// Why the round is lost.
    pub(super) fn loss(&self) -> Loss {
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
            // A has 3 of 5 and the other two granted: nothing split, A holds the lock. Taken for a collision, each of A's
            // waiters would sleep through its release.
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

    /// Whether one owner is known to have so many members that no other can win the group.
    fn is_held(&self, group: &Group) -> bool {
        let most = self.owners(group).map(|(_, members)| members).max();
        most.is_some_and(|most| group.threshold().spare() < most)
    }

    /// Whether members name several owners, and none of them is known to hold the lock: they collide just now.
    pub(super) fn has_rivals(&self) -> bool {
        let mut groups = self.tally.members().groups();
        groups.any(|group| {
            let mut named = self.owners(&group).map(|(owner, _)| owner);
            let first = named.next();
            named.any(|owner| Some(owner) != first) && !self.is_held(&group)
        })
    }

    /// The owner that each refusing member of a group names, and how many members name the same owner.
    fn owners<'a>(&'a self, group: &Group) -> impl Iterator<Item = (OwnerId, usize)> + use<'a> {
        let asked = group.slice(&self.asked);
        let named = asked.iter().filter_map(|asked| asked.in_the_way);
        named.map(move |owner| {
            let same = asked.iter().filter(|a| a.in_the_way == Some(owner));
            (owner, same.count())
        })
    }

    /// Whether members that may still answer decide if others are in the way or too few answer.
    pub(super) fn is_undecided(&self) -> bool {
        let mut groups = self.tally.members().groups();
        groups.any(|group| self.may_be_contended(&group))
            && self.other_mode().is_none()
            && !self.is_denied()
            && !self.are_contended()
    }

    /// Whether others are in the way in some group, whatever those say that have not answered.
    pub(super) fn are_contended(&self) -> bool {
        let mut groups = self.tally.members().groups();
        groups.any(|group| self.is_contended(&group))
    }

    /// Whether some group has no threshold without the members that waiting does not cure. One user without rights on one
    /// of five nodes is no reason to end a wait that the other four can end well.
    fn is_denied(&self) -> bool {
        self.tally.members().groups().any(|group| {
            let denied = group.slice(&self.asked).iter().filter(|a| a.is_denied);
            group.threshold().spare() < denied.count()
        })
    }

    /// Why a round was lost in which no claim was in the way.
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
    pub(super) fn may_hold(&self, member: MemberId) -> bool {
        let Some(MemberAnswer {
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
    pub(super) fn is_waiting(&self) -> bool {
        let mut members = self.tally.members().all();
        members.all(|member| {
            let asked = member.get(&self.asked);
            let is_queued = asked.is_some_and(|a| matches!(a.answer, Some(Answer::Queued(_))));
            is_queued || !self.may_hold(member)
        })
    }

    /// The first member that gave the owner a place in its queue.
    pub(super) fn queued(&self) -> Option<MemberId> {
        let mut members = self.tally.members().all();
        members.find(|member| {
            let asked = member.get(&self.asked);
            asked.is_some_and(|asked| matches!(asked.answer, Some(Answer::Queued(_))))
        })
    }

    /// The first member with a lock of another mode under the name, and which.
    pub(super) fn other_mode(&self) -> Option<(MemberId, Mode)> {
        let mut members = self.tally.members().all();
        members.find_map(|member| match member.get(&self.asked)?.answer {
            Some(Answer::OtherMode(mode)) => Some((member, mode)),
            _ => None,
        })
    }

    /// Whether a member says that others are in the way.
    pub(super) fn has_refused(&self) -> bool {
        let mut answers = self.asked.iter().map(|asked| asked.answer);
        answers.any(|answer| matches!(answer, Some(Answer::Refused(_) | Answer::Queued(_))))
    }

    /// Whether the member granted, but its vote does not count.
    pub(super) fn is_quarantined(&self, member: MemberId) -> bool {
        let answer = member.get(&self.asked).and_then(|asked| asked.answer);
        matches!(answer, Some(Answer::Quarantined(_)))
    }

    /// Whether the member granted.
    pub(super) fn has_granted(&self, member: MemberId) -> bool {
        self.tally.vote(member) == Vote::Granted
    }

    /// Whether the member was asked and has not answered.
    pub(super) fn is_unanswered(&self, member: MemberId) -> bool {
        let asked = member.get(&self.asked);
        asked.is_some_and(|asked| asked.sent.is_some() && asked.answer.is_none())
    }

    /// Whether the member may have executed the request, and no reply came.
    pub(super) fn has_lost_reply(&self, member: MemberId) -> bool {
        let answer = member.get(&self.asked).and_then(|asked| asked.answer);
        answer == Some(Answer::Failed(Execution::Indeterminate))
    }

    /// Whether no member failed or is quarantined.
    pub(super) fn are_healthy(&self) -> bool {
        let is_wrong = |asked: &MemberAnswer| {
            let answer = asked.answer;
            matches!(answer, Some(Answer::Failed(_) | Answer::Quarantined(_)))
        };
        !self.asked.iter().any(is_wrong)
    }

    /// What the tokens handed out so far amount to; only for a round that was won.
    pub(super) fn tokens(&self) -> Tokens {
        Tokens::of(self.tally.members(), |member| {
            match member.get(&self.asked)?.answer? {
                Answer::Granted(token) => Some(token),
                _ => None,
            }
        })
    }
}
