//! The watch of a hold's claims, by which a loss is noticed at once and not only by the next renewal.

use std::fmt;
use std::time::Duration;

use quorlock_core::quorum::MemberId;
use quorlock_core::time::Time;
use quorlock_core::transport::Subscription;

use super::Hold;

/// How long after it was won a hold is watched. Most holds are shorter, and cost nothing more.
const LATER: Duration = Duration::from_millis(20);

/// How long after a question without an answer it is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// The watch of the claims of one hold.
pub(crate) struct ClaimWatch {
    /// When the claims must be watched that are not watched yet.
    due: Time,
    watched: Vec<(MemberId, Subscription)>,
    is_over: bool,
}

impl ClaimWatch {
    /// Creates the watch of a hold that was won now.
    pub(crate) fn begin(now: Time) -> Self {
        ClaimWatch {
            due: now + LATER,
            watched: Vec::new(),
            is_over: false,
        }
    }

    /// Creates the watch of a hold that is not watched.
    pub(crate) fn none() -> Self {
        ClaimWatch {
            due: Time::NEVER,
            watched: Vec::new(),
            is_over: true,
        }
    }

    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Records that a member has joined the hold, whose claim must be watched, too.
    pub(super) fn joined(&mut self, now: Time) {
        if !self.is_over && self.due == Time::NEVER {
            self.due = now;
        }
    }

    /// Ends the watch. The caller drops the subscriptions.
    pub(super) fn end(&mut self) -> Vec<(MemberId, Subscription)> {
        self.due = Time::NEVER;
        self.is_over = true;
        std::mem::take(&mut self.watched)
    }

    fn watches(&self, member: MemberId) -> bool {
        self.watched.iter().any(|(watched, _)| *watched == member)
    }
}

impl Hold {
    /// Returns the members whose claims must be watched from now on, if the watch has begun.
    pub(crate) fn unwatched(&self, now: Time) -> Vec<MemberId> {
        let mut state = self.state.lock();
        if now < state.watch.due {
            return Vec::new();
        }
        state.watch.due = Time::NEVER;
        let members = self.layout.members.all();
        let counting = members.filter(|member| state.renewal.counts(*member));
        counting
            .filter(|member| !state.watch.watches(*member))
            .collect()
    }

    /// Keeps the subscription to the loss of a member's claim while the hold lasts.
    pub(crate) fn watched(&self, member: MemberId, subscription: Subscription) {
        let mut state = self.state.lock();
        let ended = match state.watch.is_over {
            true => Some(subscription),
            false => {
                state.watch.watched.push((member, subscription));
                None
            }
        };
        // Without the mutex, because the drop may drop a listener of this hold.
        drop(state);
        drop(ended);
    }

    /// Watches a member's claim anew after a while, because a question about it had no answer.
    pub(crate) fn watch_again(&self, member: MemberId, now: Time) {
        self.unwatch(member);
        let mut state = self.state.lock();
        if !state.watch.is_over {
            state.watch.due = state.watch.due.min(now + AGAIN);
        }
    }

    /// Ends the watch of a member's claim.
    pub(crate) fn unwatch(&self, member: MemberId) {
        let mut state = self.state.lock();
        let watched = &mut state.watch.watched;
        let place = watched.iter().position(|(watched, _)| *watched == member);
        let ended = place.map(|place| watched.swap_remove(place));
        drop(state);
        drop(ended);
    }
}

impl fmt::Debug for ClaimWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimWatch").finish_non_exhaustive()
    }
}
