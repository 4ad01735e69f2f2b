//! Keeping a lock: what a hold is worth at each moment, and when to ask for more.

use std::fmt;
use std::time::Duration;

use crate::lease::{Lease, Terms};
use crate::message::RenewReply;
use crate::quorum::{Group, MemberId};
use crate::time::Time;

/// How a hold ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Lost {
    /// Its lease ran out: it was not renewed, or not for longer than the longest hold.
    Expired,
    /// Nodes said that it is no longer ours: expired there, force-released or flushed, perhaps somebody else's.
    Taken,
    /// Its lease ran out while too many nodes did not answer its renewals.
    Unreachable,
    /// The client that held it was closed.
    Closed,
    /// It was released, on purpose.
    Released,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lost::Expired => {
                "the lock is lost: its lease ran out. With .lease(..) nothing renews it: extend it, or ask for a longer one. With the watchdog, max_hold was reached, or this process stood still for longer than the lease (blocked, stopped or suspended)"
            },
            Lost::Taken => "the lock is lost: nodes say it is no longer ours (expired there, flushed or force-released)",
            Lost::Unreachable => "the lock is lost: its lease ran out while too many nodes did not answer",
            Lost::Closed => "the lock is lost: the client that held it was closed",
            Lost::Released => "the lock was released",
        })
    }
}

impl std::error::Error for Lost {}

/// What a hold is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// Held, as far as the lease says.
    Held,
    /// Release has begun.
    Releasing,
    /// No longer held, and not on purpose.
    Lost(Lost),
}

/// How the watchdog renews.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Watchdog {
    /// From one renewal of a member to the next: a third of the lease.
    pub period: Duration,
    /// From a renewal that failed to the next try.
    pub retry: Duration,
}

impl Watchdog {
    /// Every third of the lease, tried again after a fifteenth.
    #[must_use]
    pub fn for_lease(lease: Lease) -> Self {
        Watchdog {
            period: lease.length() / 3,
            retry: lease.length() / 15,
        }
    }
}

/// Whether an answer was taken into account.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Heeded {
    /// It was.
    Yes,
    /// It came too late, or from a member that did not count.
    No,
}

/// What to send to a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ask {
    /// A renewal: the member counts.
    Renew,
    /// A fresh acquire that carries the hold's token: the member does not count (any more), and may join.
    Reacquire,
}

/// A hold, from winning it until it is released or lost.
///
/// A renewal counts only if the node says **already yours**, and only while the hold is valid: counting a fresh grant
/// would revive a lapsed hold behind the back of whoever held the name in between. Only a member that does *not*
/// count may join by a fresh grant, and only while the rest holds the lock without it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Renewal {
    lease: Lease,
    terms: Terms,
    watchdog: Option<Watchdog>,
    until: Time,
    members: Vec<Kept>,
    status: Status,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Kept {
    due: Time,
    is_asked: bool,
    left: Option<Time>,
    is_silent: bool,
}

impl Renewal {
    /// A hold with the terms of the round that won it. Without a watchdog it ends with its lease; with or without,
    /// it ends at `until`.
    #[must_use]
    pub fn new(
        now: Time,
        terms: Terms,
        lease: Lease,
        watchdog: Option<Watchdog>,
        until: Time,
    ) -> Self {
        let due = watchdog.map_or(Time::NEVER, |watchdog| now + watchdog.period);
        let kept = Kept {
            due,
            is_asked: false,
            left: None,
            is_silent: false,
        };
        let members = vec![kept; terms.members().len()];
        Renewal {
            lease,
            terms,
            watchdog,
            until,
            members,
            status: Status::Held,
        }
    }

    /// Until when the holder may rely on the lock, if nothing else happens.
    #[must_use]
    pub fn valid_until(&self) -> Time {
        self.terms.valid_until().min(self.until)
    }

    /// What the hold is now. Losing it by the clock happens here.
    pub fn status(&mut self, now: Time) -> Status {
        if self.status == Status::Held && self.valid_until() <= now {
            self.status = Status::Lost(if self.is_unreachable() {
                Lost::Unreachable
            } else {
                Lost::Expired
            });
        }
        self.status
    }

    /// Whether so many members left their last renewal unanswered that a group has no quorum of others.
    fn is_unreachable(&self) -> bool {
        self.terms.members().groups().any(|group: Group| {
            let members = group.slice(&self.members).iter();
            let silent = members.filter(|m| m.is_silent || m.is_asked).count();
            group.threshold().spare() < silent
        })
    }

    /// The lease that requests state. For one owner it never shrinks: a request that is overtaken by a later, shorter
    /// one must not cut it off.
    #[must_use]
    pub fn lease(&self) -> Lease {
        self.lease
    }

    /// Raises the lease that requests state from now on; a shorter one changes nothing.
    pub fn raise_lease(&mut self, lease: Lease) -> Lease {
        self.lease = self.lease.max(lease);
        self.lease
    }

    /// Whether the member counts.
    #[must_use]
    pub fn counts(&self, member: MemberId) -> bool {
        self.terms.counts(member)
    }

    /// The next member whose renewal is due by now and not under way, and what to send to it.
    pub fn next_ask(&mut self, now: Time) -> Option<(MemberId, Ask)> {
        let member = self.take_due(now, 1).pop()?;
        let ask = if self.counts(member) {
            Ask::Renew
        } else {
            Ask::Reacquire
        };
        Some((member, ask))
    }

    /// The first members, so many at most, whose renewals are due by now and not under way; from now on they are.
    pub fn take_due(&mut self, now: Time, most: usize) -> Vec<MemberId> {
        let Some(watchdog) = self.watchdog else {
            return Vec::new();
        };
        if self.status(now) != Status::Held || self.is_capped() {
            return Vec::new();
        }
        let members = self.terms.members().all().zip(&mut self.members);
        let due = members.filter(|(_, kept)| !kept.is_asked && kept.due <= now);
        let taken = due.take(most).map(|(member, kept)| {
            kept.is_asked = true;
            kept.due = now + watchdog.period;
            member
        });
        taken.collect()
    }

    /// Whether the lease reaches to the end of the longest hold, so that renewing it would buy nothing.
    fn is_capped(&self) -> bool {
        self.until <= self.terms.valid_until()
    }

    /// A request of [`Renewal::next_ask`] has come to its end; its answer follows by one of the other verbs.
    pub fn handle_end(&mut self, member: MemberId) {
        if let Some(kept) = member.get_mut(&mut self.members) {
            kept.is_asked = false;
        }
    }

    /// A member answered a renewal or re-entry that was sent at `sent` and stated `lease`. Returns whether that
    /// changed anything.
    pub fn handle_renewed(
        &mut self,
        now: Time,
        member: MemberId,
        sent: Time,
        lease: Lease,
        reply: RenewReply,
    ) -> Heeded {
        if self.status(now) != Status::Held || !self.counts(member) || self.is_old(member, sent) {
            return Heeded::No;
        }
        match reply {
            RenewReply::AlreadyYours { .. } => {
                self.terms.confirm(member, lease.term(sent));
                self.hear(member);
            }
            RenewReply::NotYours => self.leave(now, member),
        }
        Heeded::Yes
    }

    /// Whether a request was sent before the member left: its answer tells nothing of what stands there now.
    fn is_old(&self, member: MemberId, sent: Time) -> bool {
        let left = member.get(&self.members).and_then(|kept| kept.left);
        left.is_some_and(|left| sent <= left)
    }

    fn hear(&mut self, member: MemberId) {
        if let Some(kept) = member.get_mut(&mut self.members) {
            kept.is_silent = false;
        }
    }

    fn leave(&mut self, now: Time, member: MemberId) {
        self.terms.leave(member);
        let retry = self.watchdog.map(|watchdog| now + watchdog.retry);
        if let Some(kept) = member.get_mut(&mut self.members) {
            kept.left = Some(now);
            kept.is_silent = false;
            kept.due = retry.unwrap_or(Time::NEVER);
        }
        if !self.terms.has_quorum() {
            self.status = Status::Lost(Lost::Taken);
        }
    }

    /// A member granted an acquire that was sent at `sent`: a late answer of the round that won, or a re-acquire.
    ///
    /// Returns whether the claim belongs to the hold; if not, it is to be released.
    pub fn handle_granted(
        &mut self,
        now: Time,
        member: MemberId,
        sent: Time,
        lease: Lease,
    ) -> bool {
        if self.status(now) != Status::Held {
            return false;
        }
        if self.is_old(member, sent) {
            // It was asked before it said "not yours", and what it grants now may be gone again.
            return true;
        }
        self.terms.confirm(member, lease.term(sent));
        self.hear(member);
        true
    }

    /// A request to a member of this hold brought no reply: it neither extends nor ends anything.
    pub fn handle_failed(&mut self, now: Time, member: MemberId) {
        let retry = self.watchdog.map(|watchdog| now + watchdog.retry);
        if let Some(kept) = member.get_mut(&mut self.members) {
            kept.is_silent = true;
            if let Some(retry) = retry {
                kept.due = kept.due.min(retry);
            }
        }
    }

    /// Release begins: nothing is renewed or re-acquired any more. Returns what the hold was worth.
    pub fn begin_release(&mut self, now: Time) -> Status {
        let status = self.status(now);
        if status == Status::Held {
            self.status = Status::Releasing;
        }
        status
    }

    /// Renews nothing from now on: the hold ends with its lease.
    pub fn stop_renewing(&mut self) {
        self.watchdog = None;
    }

    /// How it was lost, if that is known. The clock is not looked at.
    #[must_use]
    pub fn lost(&self) -> Option<Lost> {
        match self.status {
            Status::Lost(lost) => Some(lost),
            Status::Held | Status::Releasing => None,
        }
    }

    /// Whether it is known to be lost. The clock is not looked at.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.status != Status::Held
    }

    /// The client is being closed. Returns what the hold was worth.
    pub fn close(&mut self, now: Time) -> Status {
        let status = self.status(now);
        if status == Status::Held {
            self.status = Status::Lost(Lost::Closed);
        }
        status
    }

    /// When to look at [`Renewal::status`] and [`Renewal::next_ask`] again.
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        match self.status {
            Status::Held => {}
            Status::Releasing => return Time::NEVER,
            // Its claims are to be given back at once.
            Status::Lost(_) => return Time::ZERO,
        }
        let end = self.valid_until();
        if self.watchdog.is_none() || self.is_capped() {
            return end;
        }
        let due = self.members.iter().filter(|kept| !kept.is_asked);
        due.map(|kept| kept.due)
            .min()
            .map_or(end, |due| due.min(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fencing::Token;
    use crate::quorum::{Members, Threshold};
    use std::sync::Arc;

    const YOURS: RenewReply = RenewReply::AlreadyYours { token: Token(1) };

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn lease() -> Lease {
        Lease::new(Duration::from_secs(30)).unwrap()
    }

    /// A lock on `n` nodes, of which the first `granted` granted at 0 s, for 30 s: valid until 29.698 s.
    fn hold(n: usize, granted: usize, until: Time) -> (Renewal, Vec<MemberId>) {
        let members = Arc::new(Members::new([Threshold::majority(n)]));
        let ids: Vec<_> = members.all().collect();
        let mut terms = Terms::new(members);
        for id in ids.iter().take(granted) {
            terms.confirm(*id, lease().term(ms(0)));
        }
        let watchdog = Some(Watchdog::for_lease(lease()));
        (Renewal::new(ms(0), terms, lease(), watchdog, until), ids)
    }

    fn asks(hold: &mut Renewal, now: Time) -> Vec<(usize, Ask)> {
        std::iter::from_fn(|| hold.next_ask(now))
            .map(|(member, ask)| (member.index(), ask))
            .collect()
    }

    #[test]
    fn every_member_is_renewed_each_third_of_the_lease_and_missing_ones_are_re_acquired() {
        let (mut hold, ids) = hold(3, 2, Time::NEVER);
        assert_eq!(asks(&mut hold, ms(9_999)), []);
        assert_eq!(
            asks(&mut hold, ms(10_000)),
            [(0, Ask::Renew), (1, Ask::Renew), (2, Ask::Reacquire)]
        );
        for id in &ids[..2] {
            hold.handle_end(*id);
            hold.handle_renewed(ms(10_001), *id, ms(10_000), lease(), YOURS);
        }
        assert_eq!(hold.valid_until(), ms(39_698));
        assert!(hold.handle_granted(ms(10_002), ids[2], ms(10_000), lease()));
        assert!(hold.counts(ids[2]));
    }

    #[test]
    fn one_silent_node_delays_nobody_and_is_asked_again_inside_the_lease() {
        let (mut hold, ids) = hold(3, 3, Time::NEVER);
        asks(&mut hold, ms(10_000));
        for id in &ids[1..] {
            hold.handle_end(*id);
            hold.handle_renewed(ms(10_001), *id, ms(10_000), lease(), YOURS);
        }
        assert_eq!(hold.valid_until(), ms(39_698));
        hold.handle_end(ids[0]);
        hold.handle_failed(ms(12_000), ids[0]);
        assert_eq!(hold.poll_timeout(), ms(14_000));
        assert_eq!(asks(&mut hold, ms(14_000)), [(0, Ask::Renew)]);
    }

    #[test]
    fn a_failed_renewal_neither_extends_nor_ends() {
        let (mut hold, ids) = hold(1, 1, Time::NEVER);
        asks(&mut hold, ms(10_000));
        hold.handle_end(ids[0]);
        hold.handle_failed(ms(10_500), ids[0]);
        assert_eq!(hold.status(ms(29_697)), Status::Held);
        assert_eq!(hold.status(ms(29_698)), Status::Lost(Lost::Unreachable));
    }

    #[test]
    fn a_renewal_that_is_never_answered_makes_it_unreachable() {
        let (mut hold, _) = hold(1, 1, Time::NEVER);
        asks(&mut hold, ms(10_000));
        assert_eq!(hold.status(ms(29_698)), Status::Lost(Lost::Unreachable));
    }

    #[test]
    fn a_hold_that_nobody_renews_expires() {
        let (mut hold, _) = hold(3, 3, Time::NEVER);
        assert_eq!(hold.status(ms(29_698)), Status::Lost(Lost::Expired));
        assert_eq!(hold.next_ask(ms(29_699)), None);
        assert_eq!(hold.poll_timeout(), Time::ZERO, "its claims are given back");
    }

    #[test]
    fn not_yours_from_one_of_a_bare_quorum_loses_it_at_once() {
        let (mut hold, ids) = hold(5, 3, Time::NEVER);
        hold.handle_renewed(ms(10), ids[0], ms(9), lease(), RenewReply::NotYours);
        assert_eq!(hold.status(ms(10)), Status::Lost(Lost::Taken));
    }

    #[test]
    fn a_member_that_left_comes_back_only_by_a_request_sent_after_that() {
        let (mut hold, ids) = hold(3, 3, Time::NEVER);
        hold.handle_renewed(ms(100), ids[0], ms(90), lease(), RenewReply::NotYours);
        assert!(!hold.counts(ids[0]));
        hold.handle_renewed(ms(110), ids[0], ms(105), lease(), YOURS);
        assert!(!hold.counts(ids[0]), "a renewal does not bring it back");
        hold.handle_granted(ms(120), ids[0], ms(95), lease());
        assert!(!hold.counts(ids[0]), "nor does a request from before");
        hold.handle_granted(ms(130), ids[0], ms(101), lease());
        assert!(hold.counts(ids[0]));
    }

    #[test]
    fn an_answer_after_the_end_revives_nothing() {
        let (mut hold, ids) = hold(1, 1, Time::NEVER);
        hold.handle_renewed(ms(29_698), ids[0], ms(29_000), lease(), YOURS);
        assert_eq!(hold.status(ms(29_698)), Status::Lost(Lost::Expired));
        assert!(!hold.handle_granted(ms(29_699), ids[0], ms(29_000), lease()));
    }

    #[test]
    fn nothing_is_asked_after_release_began() {
        let (mut hold, _) = hold(3, 2, Time::NEVER);
        assert_eq!(hold.begin_release(ms(10)), Status::Held);
        assert_eq!(asks(&mut hold, ms(10_000)), []);
        assert_eq!(hold.status(ms(99_999)), Status::Releasing);
    }

    #[test]
    fn the_longest_hold_ends_a_hold_whatever_the_nodes_say() {
        let (mut hold, ids) = hold(1, 1, ms(35_000));
        assert_eq!(asks(&mut hold, ms(10_000)), [(0, Ask::Renew)]);
        hold.handle_end(ids[0]);
        hold.handle_renewed(ms(10_001), ids[0], ms(10_000), lease(), YOURS);
        assert_eq!(hold.valid_until(), ms(35_000));
        assert_eq!(
            asks(&mut hold, ms(20_000)),
            [],
            "renewing would buy nothing"
        );
        assert_eq!(hold.poll_timeout(), ms(35_000));
        assert_eq!(hold.status(ms(35_000)), Status::Lost(Lost::Expired));
    }

    #[test]
    fn a_stated_lease_never_shrinks() {
        let (mut hold, _) = hold(1, 1, Time::NEVER);
        let shorter = Lease::new(Duration::from_secs(1)).unwrap();
        assert_eq!(hold.raise_lease(shorter), lease());
        let longer = Lease::new(Duration::from_secs(40)).unwrap();
        assert_eq!(hold.raise_lease(longer), longer);
    }
}
