//! A transport with other behaviour, for tests.

use std::fmt;
use std::sync::Arc;

use crate::message::{Channel, Request};
use crate::name::Name;
use crate::slot::{ServerNumber, Slot, UnfitName};
use crate::transport::{Call, Listener, Subscription, Transport, Witness};

type OnCall<T> = dyn Fn(&T, Request) -> Call + Send + Sync;
type OnSubscribe<T> = dyn Fn(&T, &Channel, Arc<dyn Listener>) -> Subscription + Send + Sync;

/// A transport whose calls or subscriptions pass through a function. Everything else reaches the inner transport.
///
/// Use it in tests: to count requests, to lose or delay them, or to answer in place of the node. Clones share their
/// functions.
///
/// ```
/// use quorlock_core::intercept::Intercept;
/// use quorlock_core::message::Request;
/// use quorlock_core::transport::{Cause, Transport, TransportError};
///
/// /// A node that executes releases, and whose answers to them are lost.
/// fn losing(node: impl Transport) -> impl Transport {
///     Intercept::new(node).on_call(|node, request| {
///         let is_release = matches!(request, Request::Release(_));
///         let call = node.call(request);
///         Box::pin(async move {
///             let reply = call.await;
///             match is_release {
///                 true => Err(TransportError::indeterminate(Cause::TimedOut, "lost")),
///                 false => reply,
///             }
///         })
///     })
/// }
/// ```
#[derive(Clone)]
pub struct Intercept<T> {
    inner: T,
    on_call: Arc<OnCall<T>>,
    on_subscribe: Arc<OnSubscribe<T>>,
}

impl<T: Transport> Intercept<T> {
    /// Creates a transport that passes everything on.
    #[must_use]
    pub fn new(inner: T) -> Self {
        Intercept {
            inner,
            on_call: Arc::new(T::call),
            on_subscribe: Arc::new(T::subscribe),
        }
    }

    /// Passes each request to this function instead of [`Transport::call`] of the inner transport. Replaces the
    /// function of an earlier call.
    #[must_use]
    pub fn on_call(mut self, handle: impl Fn(&T, Request) -> Call + Send + Sync + 'static) -> Self {
        self.on_call = Arc::new(handle);
        self
    }

    /// Passes each subscription to this function instead of [`Transport::subscribe`] of the inner transport. Replaces
    /// the function of an earlier call.
    #[must_use]
    pub fn on_subscribe(
        mut self,
        handle: impl Fn(&T, &Channel, Arc<dyn Listener>) -> Subscription + Send + Sync + 'static,
    ) -> Self {
        self.on_subscribe = Arc::new(handle);
        self
    }

    /// Returns the inner transport.
    #[must_use]
    pub fn inner(&self) -> &T {
        &self.inner
    }
}

impl<T: Transport> Transport for Intercept<T> {
    fn call(&self, request: Request) -> Call {
        (self.on_call)(&self.inner, request)
    }

    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        (self.on_subscribe)(&self.inner, channel, listener)
    }

    fn attend(&self, witness: Arc<dyn Witness>) -> Subscription {
        self.inner.attend(witness)
    }

    fn slot(&self, name: &Name) -> Result<Slot, UnfitName> {
        self.inner.slot(name)
    }

    fn server(&self, slot: Slot) -> ServerNumber {
        self.inner.server(slot)
    }

    fn address(&self) -> &str {
        self.inner.address()
    }
}

impl<T: Transport> fmt::Debug for Intercept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
