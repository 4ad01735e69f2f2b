//! Members of a lock.

use std::sync::Arc;

use quorlock::transport::{Claim, Renew, Request, Transport};
use quorlock::{Name, OwnerId, Token};
use quorlock_core::lease::Lease;
use quorlock_core::message::{Mode, Retention};

/// How long nodes keep token counters. This is longer than any run.
pub(super) const RETENTION: Retention = Retention::Millis(1 << 40);

/// A member of a lock: one name on one node.
#[derive(Debug)]
pub(super) struct Member {
    /// The index of the name of this member.
    pub(super) group: usize,
    pub(super) name: Name,
    pub(super) node: Arc<dyn Transport>,
}

impl Member {
    /// Creates a request that renews a claim and its token.
    pub(super) fn renew(&self, owner: OwnerId, count: u32, lease: Lease, token: Token) -> Request {
        Request::Renew(Renew {
            mode: Mode::Plain,
            claims: vec![Claim {
                name: self.name.clone(),
                owner,
                count,
                lease,
                token,
                keep: None,
            }],
            retention: RETENTION,
        })
    }
}
