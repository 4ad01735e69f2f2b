//! One name on one node.

use quorlock::transport::{Claim, Mode, Renew, Request, Retention};
use quorlock::{Name, OwnerId, Token};
use quorlock_core::lease::Lease;

use crate::seam::transport::SimTransport;

/// How long counters are kept: for longer than any run.
pub(super) const RETENTION: Retention = Retention::Millis(1 << 40);

/// One name on one node: a part of a lock.
#[derive(Debug)]
pub(super) struct Member {
    /// Which of the names.
    pub(super) group: usize,
    pub(super) name: Name,
    pub(super) node: SimTransport,
}

impl Member {
    /// The request that keeps a claim, and its token.
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
