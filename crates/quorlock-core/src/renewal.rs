//! Keeps a lock: the state of a hold at each moment, and when to renew it.

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
    /// The lease ran out: the hold was not renewed, or it reached the longest hold.
    Expired,
    /// Nodes answered that the claim is not ours: it expired there, was force-released or flushed, or belongs to
    /// another owner.
    Taken,
    /// The lease ran out while too many nodes did not answer renewals.
    Unreachable,
    /// The client that held it was closed.
    Closed,
    /// The lock was released on purpose.
    Released,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lost::Expired => {
                "the lock is lost: its lease ran out. With .lease(..) nothing renews it: extend it, or set a longer one. With the watchdog, max_hold was reached, or this process stood still for longer than the lease (blocked, stopped or suspended)"
            },
            Lost::Taken => "the lock is lost: nodes say it is no longer ours (expired there, flushed or force-released)",
            Lost::Unreachable => "the lock is lost: its lease ran out while too many nodes did not answer",
            Lost::Closed => "the lock is lost: the client that held it was closed",
            Lost::Released => "the lock was released",
        })
    }
}

impl std::error::Error for Lost {}

/// The state of a hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// The lock is held until its lease ends.
    Held,
    /// The release has begun.
    Releasing,
    /// The lock is no longer held, for this reason.
    Lost(Lost),
}

/// How the watchdog renews.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Watchdog {
    /// Time from one renewal of a member to the next: a third of the lease.
    pub period: Duration,
    /// Time from a failed renewal to the next attempt: a fifteenth of the lease.
    pub retry: Duration,
}

impl Watchdog {
    /// Returns a watchdog that renews every third of the lease, and tries again after a fifteenth.
    #[must_use]
    pub fn for_lease(lease: Lease) -> Self {
        // After a lost renewal two thirds of the lease are left, enough for several attempts that are a fifteenth
        // apart.
        Watchdog {
            period: lease.length() / 3,
            retry: lease.length() / 15,
        }
    }
}

/// Whether an answer was taken into account.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Heeded {
    /// The answer was taken into account.
    Yes,
    /// The answer came too late, or from a member that did not count.
    No,
}

/// What to send to a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ask {
    /// A renewal, because the member counts.
    Renew,
    /// A fresh acquire that carries the hold's token, because the member does not count (any more) and may join.
    Reacquire,
}

/// A hold, from the moment it is won until it is released or lost.
///
/// A renewal counts only if the node answers **already yours**, and only while the hold is valid. If a fresh grant
/// counted, it would revive a lapsed hold although another owner may have held the name in between. Only a member that
/// does *not* count may join by a fresh grant, and only while the other members hold the lock without it.
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
    /// Returns a hold with the terms of the round that won it. Without a watchdog it ends with its lease. In either
    /// case it ends at `until`.
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

    /// Returns until when the holder may rely on the lock if nothing else happens.
    #[must_use]
    pub fn valid_until(&self) -> Time {
        self.terms.valid_until().min(self.until)
    }

    /// Returns the state of the hold at `now`. This is where a hold becomes lost because its time is over.
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

    /// Returns whether so many members left their last renewal unanswered that a group has no quorum without them.
    fn is_unreachable(&self) -> bool {
        self.terms.members().groups().any(|group: Group| {
            let members = group.slice(&self.members).iter();
            let silent = members.filter(|m| m.is_silent || m.is_asked).count();
            group.threshold().spare() < silent
        })
    }

    /// Returns the lease that requests state. For one owner it never shrinks: requests can overtake each other, and a
    /// shorter lease must not cut off a longer one.
    #[must_use]
    pub fn lease(&self) -> Lease {
        self.lease
    }

    /// Raises the lease that requests state from now on; a shorter one changes nothing. Returns the lease in effect.
    pub fn raise_lease(&mut self, lease: Lease) -> Lease {
        self.lease = self.lease.max(lease);
        self.lease
    }

    /// Returns whether the member counts.
    #[must_use]
    pub fn counts(&self, member: MemberId) -> bool {
        self.terms.counts(member)
    }

    /// Returns the next member whose renewal is due and not under way, and what to send to it.
    pub fn next_ask(&mut self, now: Time) -> Option<(MemberId, Ask)> {
        let member = self.take_due(now, 1).pop()?;
        let ask = if self.counts(member) {
            Ask::Renew
        } else {
            Ask::Reacquire
        };
        Some((member, ask))
    }

    /// Returns up to `most` members whose renewals are due and not under way. From now on they count as under way.
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

    /// Returns whether the lease reaches the end of the longest hold, so that a renewal would have no effect.
    fn is_capped(&self) -> bool {
        self.until <= self.terms.valid_until()
    }

    /// Returns whether a request of [`Renewal::next_ask`] is under way.
    #[must_use]
    pub fn is_asking(&self) -> bool {
        self.members.iter().any(|kept| kept.is_asked)
    }

    /// Handles the end of a request of [`Renewal::next_ask`]. Its answer is passed to one of the other methods.
    pub fn handle_end(&mut self, member: MemberId) {
        if let Some(kept) = member.get_mut(&mut self.members) {
            kept.is_asked = false;
        }
    }

    /// Handles the reply of a member to a renewal or re-entry that was sent at `sent` and stated `lease`. Returns
    /// whether it was taken into account.
    pub fn handle_renewed(
        &mut self,
        now: Time,
        member: MemberId,
        sent: Time,
        lease: Lease,
        reply: RenewReply,
    ) -> Heeded {
        // A's hold lapsed, and B has held the name since. A late "already yours" that was sent before must not revive
        // it.
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

    /// Returns whether a request was sent before the member left. Its answer does not show the member's present state.
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

    /// Handles a grant of an acquire that was sent at `sent`: a late answer of the round that won, or a re-acquire.
    ///
    /// Returns whether the claim belongs to the hold; if not, the caller releases it.
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
            // The request was sent before the member answered "not yours", so the claim that it created may be gone
            // again.
            return true;
        }
        self.terms.confirm(member, lease.term(sent));
        self.hear(member);
        true
    }

    /// Handles a request to a member that brought no reply. It neither extends nor ends anything.
    pub fn handle_failed(&mut self, now: Time, member: MemberId) {
        let retry = self.watchdog.map(|watchdog| now + watchdog.retry);
        if let Some(kept) = member.get_mut(&mut self.members) {
            kept.is_silent = true;
            if let Some(retry) = retry {
                kept.due = kept.due.min(retry);
            }
        }
    }

    /// Begins the release: from now on nothing is renewed or re-acquired. Returns the state of the hold before.
    pub fn begin_release(&mut self, now: Time) -> Status {
        let status = self.status(now);
        if status == Status::Held {
            self.status = Status::Releasing;
        }
        status
    }

    /// Returns whether a watchdog renews the hold.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.watchdog.is_some()
    }

    /// Stops all renewals: the hold ends with its lease.
    pub fn stop_renewing(&mut self) {
        self.watchdog = None;
    }

    /// Returns how the hold was lost, if it is known to be. Does not compare the lease with the clock.
    #[must_use]
    pub fn lost(&self) -> Option<Lost> {
        match self.status {
            Status::Lost(lost) => Some(lost),
            Status::Held | Status::Releasing => None,
        }
    }

    /// Returns whether the release began while the lock was held.
    #[must_use]
    pub fn is_releasing(&self) -> bool {
        self.status == Status::Releasing
    }

    /// Returns whether the hold is known to be over. Does not compare the lease with the clock.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.status != Status::Held
    }

    /// Ends the hold because the client is closed. Returns the state of the hold before.
    pub fn close(&mut self, now: Time) -> Status {
        let status = self.status(now);
        if status == Status::Held {
            self.status = Status::Lost(Lost::Closed);
        }
        status
    }

    /// Returns when to check [`Renewal::status`] and [`Renewal::next_ask`] again.
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        match self.status {
            Status::Held => {}
            Status::Releasing => return Time::NEVER,
            // Its claims are released at once.
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
mod tests;
