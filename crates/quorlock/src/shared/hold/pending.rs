//! Requests to members of a hold that have not been answered.

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

/// A request to a member of a hold, as needed to handle its answer.
pub(crate) struct Asked {
    pub(crate) hold: Arc<Hold>,
    pub(crate) member: MemberId,
    pub(crate) asking: Purpose,
    /// The lease that the request stated. The hold's lease may be longer by now.
    pub(crate) lease: Lease,
    pub(crate) sent: Time,
}

/// How long after an acquire was sent the keeper reads its answer, unless the hold is released earlier.
const PATIENCE: Duration = Duration::from_secs(1);

/// An acquire of the won round that was not answered before the round ended.
///
/// Its answer is read at the release of the hold, or after [`PATIENCE`]. Until then no task is woken for it, which
/// saves a wake-up per member and hold.
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

    /// When the keeper reads the answer, unless the hold is released earlier.
    pub(super) fn poll_timeout(&self) -> Time {
        self.sent + PATIENCE
    }

    /// Ready with the answer, if it has arrived.
    pub(crate) fn poll(&mut self, clock: &dyn Runtime) -> Poll<Received> {
        poll_once(&mut self.call, clock)
    }

    /// The request, and the time at which the node's trust state saw it leave.
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
