//! The keeper's requests in flight.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use quorlock_core::message::Reply;
use quorlock_core::transport::{Call, TransportError};

use super::windows::Executor;
use crate::shared::hold::Asked;
use crate::shared::layout::Node;
use crate::shared::trust::Sent;

/// A call in flight with its purpose.
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

/// The purpose of a call, and the window in which it is counted.
pub(super) enum Of {
    /// A renewal of these claims.
    Renewal(Executor, Vec<Asked>),
    /// A re-acquire by the watchdog.
    Reacquire(Executor, Asked, Sent),
    /// A late acquire of a won round.
    Late(Asked, Sent),
    /// The acquire of an orphan.
    OrphanAcquire(u64),
    /// The release of an orphan.
    OrphanRelease(Executor, u64),
    /// A release that lowers the count without freeing the name.
    Lowering(Executor, Asked),
    /// A probe of a watched node.
    Probe(Node, Sent),
}
