//! How a request reaches a node: the interface between the algorithm and the network.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use crate::failure::{Cause, Execution, TransportError};
use crate::message::{Channel, Reply, Request, Wake};
use crate::name::Name;
use crate::slot::{ServerNumber, Slot, UnfitName};

/// A request under way.
///
/// The request may be sent when the call is made or when it is first polled. Dropping the call does not cancel the
/// request: the node may have executed it, or may do so later.
pub type Call = Pin<Box<dyn Future<Output = Result<Reply, TransportError>> + Send>>;

/// Carries requests to one node.
///
/// A call is sent at most once and never resent by the transport: whether to try again is the algorithm's decision. It
/// ends within a time that the implementation bounds. A call that hangs does not delay the answers to later calls.
pub trait Transport: Send + Sync + fmt::Debug + 'static {
    /// Sends one request to the node and returns its reply.
    fn call(&self, request: Request) -> Call;

    /// Passes the messages that the node publishes on `channel` to `listener`, until the subscription is dropped.
    ///
    /// Returns at once. [`Listener::live`] is called when messages begin to flow, and again after every gap.
    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription;

    /// Notifies `witness` when the node can be reached again after it could not, until the subscription is dropped.
    ///
    /// Returns at once. If the node can be reached now, [`Witness::reachable`] is called at once too, so that a
    /// return shortly before this call is not missed. While there is a witness, the transport tries to reach the
    /// node without further calls.
    ///
    /// A transport that never notifies is correct: waiters ask again when their pauses are over.
    fn attend(&self, witness: Arc<dyn Witness>) -> Subscription;

    /// Returns the slot of the node in which the keys of a name are stored. A request about names in different slots
    /// may be executed in one of them and fail in another; the locks make no such request. A node that is not divided
    /// returns [`Slot::WHOLE`].
    ///
    /// # Errors
    /// [`UnfitName`] for a name that this node cannot store: because its data about other names is stored under a key
    /// that is this name, for example.
    fn slot(&self, name: &Name) -> Result<Slot, UnfitName>;

    /// Returns the server that would execute a request about names in this slot now, as far as it is known. Another
    /// server may execute the request after all, if the slot moves.
    ///
    /// The locks bound what they send to each server at once, so that a silent one delays no requests to the others.
    /// A node that is one server returns [`ServerNumber::WHOLE`].
    fn server(&self, slot: Slot) -> ServerNumber;

    /// Returns the address of the server, without secrets. It is used for the canonical order, errors and logs.
    fn address(&self) -> &str;
}

/// A shared transport.
impl<T: Transport + ?Sized> Transport for Arc<T> {
    fn call(&self, request: Request) -> Call {
        T::call(self, request)
    }

    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        T::subscribe(self, channel, listener)
    }

    fn attend(&self, witness: Arc<dyn Witness>) -> Subscription {
        T::attend(self, witness)
    }

    fn slot(&self, name: &Name) -> Result<Slot, UnfitName> {
        T::slot(self, name)
    }

    fn server(&self, slot: Slot) -> ServerNumber {
        T::server(self, slot)
    }

    fn address(&self) -> &str {
        T::address(self)
    }
}

/// Receives the messages that a node publishes on one channel. Its methods must not block.
pub trait Listener: Send + Sync + 'static {
    /// Called when messages begin to flow. Earlier messages may have been missed, so the listener must check again.
    fn live(&self);

    /// Called with each message that the node publishes.
    fn wake(&self, message: Wake);
}

/// Waits for a node that cannot be reached. Its method must not block.
pub trait Witness: Send + Sync + 'static {
    /// Called when the node can be reached: a call is likely to be answered.
    fn reachable(&self);
}

/// Keeps a [`Listener`] subscribed or a [`Witness`] waiting. Dropping it ends the subscription.
#[must_use = "dropping a subscription ends it"]
pub struct Subscription(#[expect(dead_code, reason = "held for its drop")] Box<dyn Send + Sync>);

impl Subscription {
    /// Returns a subscription that ends when the given value is dropped.
    pub fn new(ended_by_drop: impl Send + Sync + 'static) -> Self {
        Subscription(Box::new(ended_by_drop))
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscription")
    }
}
