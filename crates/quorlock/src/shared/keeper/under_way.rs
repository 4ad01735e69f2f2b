//! What the keeper has asked of nodes.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use quorlock_core::message::Reply;
use quorlock_core::transport::{Call, TransportError};

use crate::shared::hold::Asked;
use crate::shared::layout::Node;
use crate::shared::trust::Sent;

/// A call under way, and what it is for.
pub(super) struct Pending {
    of: Option<Of>,
    call: Call,
}

impl Pending {
    pub(super) fn new(of: Of, call: Call) -> Self {
        Pending { of: Some(of), call }
    }
}

impl Future for Pending {
    type Output = (Of, Result<Reply, TransportError>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.call.as_mut().poll(cx).map(|result| {
            let of = self.of.take();
            (of.expect("BUG: a call that ends twice"), result)
        })
    }
}

/// What a call is for.
pub(super) enum Of {
    /// A renewal of these claims.
    Renewal(Vec<Asked>),
    /// A re-acquire that the watchdog sent.
    Reacquire(Asked, Sent),
    /// An acquire of the round that won.
    Late(Asked, Sent),
    /// The acquire of an orphan.
    OrphanAcquire(u64),
    /// The release of an orphan, from this node.
    OrphanRelease(u64, Node),
    /// A release that leaves some of the count.
    Lowering(Asked),
    /// The end of a node's watch.
    Confirmation(Node, Sent),
}
