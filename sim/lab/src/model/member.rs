//! Members of a lock.

use std::sync::Arc;

use quorlock::transport::{Claim, Renew, Request, Transport};
use quorlock::{Name, OwnerId, Token};
use quorlock_core::lease::Lease;
use quorlock_core::message::{Mode, Retention};

/// How long nodes keep token counters. This is longer than any run.
pub(super) const RETENTION: Retention = Retention::Millis(1 << 40);

/// A member of a lock: one name on one node.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// The index of the name of this member.
    pub(super) group: usize,
    pub(crate) name: Name,
    pub(crate) node: Arc<dyn Transport>,
}

impl Member {
    /// Names the only name of a lock on a node.
    pub(crate) fn new(name: Name, node: Arc<dyn Transport>) -> Self {
        Member {
            group: 0,
            name,
            node,
        }
    }

    /// Creates a request that renews a claim and its token.
    pub(crate) fn renew(&self, owner: OwnerId, count: u32, lease: Lease, token: Token) -> Request {
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
