//! The server that a request goes to, and the next one if that server refuses it.

pub(crate) mod direct;
pub(crate) mod shard;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::message::{Channel, Request};
use quorlock_core::name::Name;
use quorlock_core::slot::{ServerNumber, Slot, UnfitName};
use quorlock_core::transport::{Listener, Subscription, TransportError, Witness};
use redis::ServerError;

use crate::connect::Endpoint;
use crate::script::Home;
use crate::server::{Manner, Server};
use crate::source::GroupMark;

/// The server of a request, and how the request is sent there.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) server: Arc<Server>,
    pub(crate) manner: Manner,
}

/// The next route of a request that was refused.
#[derive(Debug)]
pub(crate) struct Detour {
    pub(crate) route: Route,
    /// How long to wait before the next attempt.
    pub(crate) pause: Option<Duration>,
}

/// A request that a server has refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused<'a> {
    /// Address of the server that refused the request.
    pub(crate) at: &'a Endpoint,
    pub(crate) request: &'a Request,
    /// Slot of the request's keys.
    pub(crate) slot: Slot,
    /// How often the request was refused before.
    pub(crate) times: u32,
}

/// A future that finds a route.
pub(crate) type Routing<'a> =
    Pin<Box<dyn Future<Output = Result<Route, TransportError>> + Send + 'a>>;

/// A future that finds another route.
pub(crate) type Rerouting<'a> = Pin<Box<dyn Future<Output = Option<Route>> + Send + 'a>>;

/// A future that finds all servers.
pub(crate) type Gathering<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Arc<Server>>, TransportError>> + Send + 'a>>;

/// The servers of a transport, chosen when the transport is made.
pub(crate) trait Routes: Send + Sync + fmt::Debug + 'static {
    /// Returns the slot of the keys of a name.
    ///
    /// # Errors
    /// [`UnfitName`] if the keys of the name are in several slots.
    fn slot(&self, name: &Name) -> Result<Slot, UnfitName>;

    /// Returns the server that owns a slot, as far as it is known.
    fn server(&self, slot: Slot) -> ServerNumber;

    /// Returns the route to a slot, if it is known.
    fn known(&self, slot: Slot) -> Option<Route>;

    /// Finds the route to a slot. The caller bounds the time.
    fn find(&self, slot: Slot) -> Routing<'_>;

    /// Returns where to send a request that a server has refused with this error, if another attempt may
    /// succeed. A server that refuses in this way has executed nothing.
    fn elsewhere(&self, refused: Refused<'_>, words: &ServerError) -> Option<Detour>;

    /// Finds another server that owns the slot now, after this one could not be reached. The caller bounds the time.
    fn instead<'a>(&'a self, of: &'a Arc<Server>, slot: Slot) -> Rerouting<'a>;

    /// Records that a call to this server had no answer.
    fn doubt(&self, server: &Arc<Server>);

    /// Returns all servers that requests go to. The caller bounds the time.
    fn all(&self) -> Gathering<'_>;

    /// Notifies the listener of messages on a channel.
    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription;

    /// Notifies the witness when a server can be reached again.
    fn attend(&self, witness: Arc<dyn Witness>) -> Subscription;

    /// Whether the keys are spread over several servers.
    fn is_divided(&self) -> bool;

    /// Whether the servers are nodes of a cluster.
    fn is_of_cluster(&self) -> bool {
        self.is_divided()
    }

    /// Returns the marker key and the way of publishing that requests use on these servers.
    fn home(&self) -> &Home {
        &Home::PLAIN
    }

    /// Text before each name in the key of its claim, other than the user's own prefix: a shard's tag.
    fn name_prefix(&self) -> String {
        String::new()
    }

    /// Returns the request in the form that these servers expect, for example with the keys of a shard's tag.
    ///
    /// # Errors
    /// A definite error for a name that these servers cannot have.
    fn translate(&self, request: Request) -> Result<Request, TransportError> {
        Ok(request)
    }

    /// The Sentinel group or the cluster that the servers belong to, if any.
    fn group(&self) -> Option<GroupMark> {
        None
    }
}
