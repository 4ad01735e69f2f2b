//! One name on one server.

use std::rc::Rc;
use std::time::Duration;

use quorlock::runtime::WallMillis;
use quorlock::transport::{
    AcquireReply, Release, ReleaseReply, RenewReply, Reply, Request, Transport,
};
use quorlock::{Name, OwnerId, Token};
use quorlock_core::fencing::Fence;
use quorlock_core::lease::Lease;
use quorlock_core::message::{Mode, Ttl};

use super::LockClient;
use crate::model::Member;

/// One name on one server, which keeps a claim of at most one owner for it: like `SET NX PX` with a counter of tokens, and scripts that
/// compare the owner before they renew or delete.
#[derive(Clone, Debug)]
pub struct ServerName {
    client: Rc<LockClient>,
    member: Member,
}

/// The answer of a server to a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claimed {
    /// The owner has the claim, with this token: the counter of the server for the name.
    Granted(u64),
    /// Another owner has a claim, for this long by the clock of the server.
    Refused(Duration),
    /// No answer arrived: the server may have recorded the claim.
    Silent,
}

impl ServerName {
    /// Names a name on a server, counted from 0.
    ///
    /// # Panics
    /// Panics if there is no such server.
    #[must_use]
    pub fn new(client: &Rc<LockClient>, server: u16, name: &Name) -> Self {
        ServerName {
            client: Rc::clone(client),
            member: Member::new(name.clone(), client.node(server)),
        }
    }

    /// Claims the name for a lease, which must be from 1 ms to a year.
    ///
    /// # Panics
    /// Panics if the lease is not.
    pub async fn claim(&self, owner: OwnerId, lease: Duration) -> Claimed {
        let fence = Fence::Mint {
            floor: WallMillis(0),
            slack_millis: u64::MAX,
        };
        let request = self
            .client
            .acquire(&self.member, owner, 1, length(lease), fence);
        match self.member.node.call(request).await {
            Ok(Reply::Acquire(AcquireReply::Granted { token, .. })) => Claimed::Granted(token.0),
            Ok(Reply::Acquire(AcquireReply::Refused { ttl, .. })) => Claimed::Refused(match ttl {
                Ttl::Millis(millis) => Duration::from_millis(millis),
                _ => Duration::MAX,
            }),
            _ => Claimed::Silent,
        }
    }

    /// Sets the TTL of a claim again. Returns whether the owner had the claim; `None` if no answer arrived.
    ///
    /// # Panics
    /// Panics like [`ServerName::claim`].
    pub async fn renew(&self, owner: OwnerId, lease: Duration, token: u64) -> Option<bool> {
        let request = self.member.renew(owner, 1, length(lease), Token(token));
        match self.member.node.call(request).await {
            Ok(Reply::Renew(replies)) => {
                Some(matches!(*replies, [RenewReply::AlreadyYours { .. }]))
            }
            _ => None,
        }
    }

    /// Deletes the claim of an owner. Returns whether the owner had it; `None` if no answer arrived.
    pub async fn release(&self, owner: OwnerId) -> Option<bool> {
        let request = Request::Release(Release {
            name: self.member.name.clone(),
            mode: Mode::Plain,
            owner,
            count: 0,
        });
        match self.member.node.call(request).await {
            Ok(Reply::Release(reply)) => Some(reply != ReleaseReply::NotYours),
            _ => None,
        }
    }
}

fn length(lease: Duration) -> Lease {
    Lease::new(lease).expect("a lease of 1 ms to a year")
}
