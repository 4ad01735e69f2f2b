//! What members of a hold were asked for and have not answered.

use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use quorlock_core::lease::Lease;
use quorlock_core::quorum::MemberId;
use quorlock_core::time::Time;
use quorlock_core::transport::Call;

use super::Hold;
use crate::runtime::Runtime;
use crate::shared::calls::{Received, poll_once};
use crate::shared::trust::{Purpose, Sent};

/// What a member of a hold was asked for.
pub(crate) struct Asked {
    pub(crate) hold: Arc<Hold>,
    pub(crate) member: MemberId,
    pub(crate) asking: Purpose,
    /// What the request stated; the hold may state more by now.
    pub(crate) lease: Lease,
    pub(crate) sent: Time,
}

/// How long after an acquire was sent its answer is looked for, if the hold lasts as long.
const PATIENCE: Duration = Duration::from_secs(1);

/// An acquire of the round that won, without its answer. It is looked at when the hold is released, or after a while:
/// until then no task needs to know.
pub(crate) struct PendingAcquire {
    pub(crate) member: MemberId,
    sent: Time,
    shows: Sent,
    lease: Lease,
    pub(crate) call: Call,
}

impl PendingAcquire {
    pub(crate) fn new(member: MemberId, sent: Time, shows: Sent, lease: Lease, call: Call) -> Self {
        PendingAcquire {
            member,
            sent,
            shows,
            lease,
            call,
        }
    }

    /// When its answer is looked for, if the hold lasts as long.
    pub(super) fn poll_timeout(&self) -> Time {
        self.sent + PATIENCE
    }

    /// The answer, if it has come.
    pub(crate) fn poll(&mut self, clock: &dyn Runtime) -> Poll<Received> {
        poll_once(&mut self.call, clock)
    }

    /// What was asked for, and when on the clock by which the node is judged.
    pub(crate) fn asked(&self, hold: &Arc<Hold>) -> (Asked, Sent) {
        let asked = Asked {
            hold: hold.clone(),
            member: self.member,
            asking: Purpose::NewHold,
            lease: self.lease,
            sent: self.sent,
        };
        (asked, self.shows)
    }
}

impl fmt::Debug for PendingAcquire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingAcquire")
            .field("member", &self.member)
            .finish_non_exhaustive()
    }
}
