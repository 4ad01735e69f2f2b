//! How a hold ends, and what it leaves behind.

use quorlock_core::message::Mode;
use quorlock_core::quorum::MemberId;
use quorlock_core::renewal::{Lost, Status};
use quorlock_core::time::Time;

use super::Hold;

impl Hold {
    /// Whether the last guard was released while the lock was held.
    pub(crate) fn was_released(&self) -> bool {
        self.state.lock().renewal.is_releasing()
    }

    /// Removes one entry. Returns the remaining count and the status. Removing the last entry begins the release.
    pub(crate) fn leave(&self, now: Time) -> (u32, Status) {
        self.change(now, |state| {
            state.count = state.count.saturating_sub(1);
            let status = if state.count == 0 {
                state.renewal.begin_release(now)
            } else {
                state.renewal.status(now)
            };
            (state.count, status)
        })
    }

    /// Stops renewals; the claims end with their lease. Returns whether the end has not been reported; it never
    /// will be.
    pub(crate) fn leak(&self) -> bool {
        let mut state = self.state.lock();
        let is_untold = !std::mem::replace(&mut state.is_told, true);
        state.is_leaked = true;
        state.renewal.stop_renewing();
        let watch = state.watch.end();
        drop(state);
        drop(watch);
        is_untold
    }

    /// Ends the hold because the client was closed. Returns its last status.
    pub(crate) fn close(&self, now: Time) -> Status {
        self.change(now, |state| state.renewal.close(now))
    }

    /// The members that may have a claim, except where only an acquire in flight could have left one.
    ///
    /// A leaked hold has none, because its claims end with their lease. The exception is a leaked write hold that
    /// has expired while its owner still reads beside it: to the node both are one hash, so the reader's renewals
    /// would keep its claim alive.
    pub(crate) fn claimed(&self) -> Vec<MemberId> {
        let state = self.state.lock();
        let has_expired = state.renewal.lost() == Some(Lost::Expired);
        let is_left = |member: MemberId| {
            let is_written = self.layout.place(member).mode == Mode::Write;
            state.is_leaked && !(is_written && has_expired && self.readers().are_there())
        };
        self.layout
            .members
            .all()
            .filter(|m| state.claims.may_stand_on(*m) && !is_left(*m))
            .collect()
    }
}
