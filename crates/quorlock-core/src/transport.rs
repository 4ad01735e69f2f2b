//! How a request reaches a node: the seam between the algorithm and the world.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use crate::failure::{Cause, Execution, TransportError};
use crate::message::{Channel, Reply, Request, Wake};
use crate::name::Name;
use crate::slot::{Slot, UnfitName};

/// A request under way.
///
/// It may be sent when it is made or when it is first polled. Dropping it does not take it back: the node may have
/// executed it or do so later.
pub type Call = Pin<Box<dyn Future<Output = Result<Reply, TransportError>> + Send>>;

/// The way to one node.
///
/// A call is sent at most once, never again by itself: whether to ask again is the algorithm's decision. It ends
/// within a time that the implementation bounds. Calls made later are not answered later for the sake of one that
/// hangs.
pub trait Transport: Send + Sync + fmt::Debug + 'static {
    /// Carries one request to the node and brings back its reply.
    fn call(&self, request: Request) -> Call;

    /// Tells `listener` what the node publishes on `channel`, until the subscription is dropped.
    ///
    /// Returns at once. [`Listener::live`] is called when messages flow, and again after every gap.
    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription;

    /// Tells `witness` when the node can be reached again after it could not, until the subscription is dropped.
    ///
    /// Returns at once. [`Witness::reachable`] is called at once too, when the node can be reached now: a node that came back
    /// a moment before is not missed. While there is a witness, the transport tries to reach the node by itself.
    ///
    /// By default nothing is told, and waiters ask again when their pauses are over.
    fn attend(&self, witness: Arc<dyn Witness>) -> Subscription {
        drop(witness);
        Subscription::new(())
    }

    /// Which part of the node the keys of a name lie in. A request about names in different parts may be executed in one of them and
    /// fail in another; the locks make none.
    ///
    /// By default a node is not divided.
    ///
    /// # Errors
    /// [`UnfitName`] for a name that this node cannot keep.
    fn slot(&self, name: &Name) -> Result<Slot, UnfitName> {
        let _ = name;
        Ok(Slot::WHOLE)
    }

    /// Which server this is, without secrets: for the canonical order, errors and logs.
    fn address(&self) -> &str;
}

/// Hears what a node publishes on one channel. Neither method may block.
pub trait Listener: Send + Sync + 'static {
    /// Messages flow from now on. What was published before may have been missed: look again.
    fn live(&self);

    /// The node published this.
    fn wake(&self, message: Wake);
}

/// Waits for a node that cannot be reached. Its method may not block.
pub trait Witness: Send + Sync + 'static {
    /// The node can be reached: a call has a chance of an answer.
    fn reachable(&self);
}

/// Keeps a [`Listener`] listening or a [`Witness`] waiting; dropping it ends that.
#[must_use = "dropping a subscription ends it"]
pub struct Subscription(#[expect(dead_code, reason = "held for its drop")] Box<dyn Send + Sync>);

impl Subscription {
    /// Wraps whatever ends the subscription when it is dropped.
    pub fn new(ended_by_drop: impl Send + Sync + 'static) -> Self {
        Subscription(Box::new(ended_by_drop))
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscription")
    }
}
