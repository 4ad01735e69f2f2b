//! Which server a request goes to, and where else it goes when that one refuses it.

pub(crate) mod direct;
pub(crate) mod shard;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::message::{Channel, Request};
use quorlock_core::name::Name;
use quorlock_core::slot::{Slot, UnfitName};
use quorlock_core::transport::{Listener, Subscription, TransportError, Witness};
use redis::ServerError;

use crate::connect::Endpoint;
use crate::script::Home;
use crate::server::{Manner, Server};
use crate::source::GroupMark;

/// Where a request goes, and how.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) server: Arc<Server>,
    pub(crate) manner: Manner,
}

/// Where a request goes that was refused.
#[derive(Debug)]
pub(crate) struct Detour {
    pub(crate) route: Route,
    /// How long it waits before.
    pub(crate) pause: Option<Duration>,
}

/// A refusal of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused<'a> {
    /// Where the server is that refused it.
    pub(crate) at: &'a Endpoint,
    pub(crate) request: &'a Request,
    /// Where its keys lie.
    pub(crate) slot: Slot,
    /// How often the request was refused before.
    pub(crate) times: u32,
}

/// A look for a route under way.
pub(crate) type Routing<'a> =
    Pin<Box<dyn Future<Output = Result<Route, TransportError>> + Send + 'a>>;

/// A look for another route under way.
pub(crate) type Rerouting<'a> = Pin<Box<dyn Future<Output = Option<Route>> + Send + 'a>>;

/// A look for all servers under way.
pub(crate) type Gathering<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Arc<Server>>, TransportError>> + Send + 'a>>;

/// The servers of a transport. It gets them when it is made.
pub(crate) trait Routes: Send + Sync + fmt::Debug + 'static {
    /// In which slot the keys of a name lie.
    ///
    /// # Errors
    /// For a name whose keys lie in several.
    fn slot(&self, name: &Name) -> Result<Slot, UnfitName>;

    /// The way to the keys of a slot, if it is known.
    fn known(&self, slot: Slot) -> Option<Route>;

    /// Finds the way to the keys of a slot. The caller bounds it in time.
    fn find(&self, slot: Slot) -> Routing<'_>;

    /// Where a request goes that a server has refused by these words, if another try may do better. A server that refuses so has
    /// executed nothing.
    fn elsewhere(&self, refused: Refused<'_>, words: &ServerError) -> Option<Detour>;

    /// Finds another server that has the slot by now, where this one could not be asked. The caller bounds it in time.
    fn instead<'a>(&'a self, of: &'a Arc<Server>, slot: Slot) -> Rerouting<'a>;

    /// A call to this server had no answer.
    fn doubt(&self, server: &Arc<Server>);

    /// All servers that requests go to. The caller bounds it in time.
    fn all(&self) -> Gathering<'_>;

    /// Tells the listener what is published on a channel.
    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription;

    /// Tells the witness when a server can be reached again.
    fn attend(&self, witness: Arc<dyn Witness>) -> Subscription;

    /// Whether keys lie on several servers.
    fn is_divided(&self) -> bool;

    /// Whether servers are nodes of a cluster.
    fn is_of_cluster(&self) -> bool {
        self.is_divided()
    }

    /// What requests find where they go.
    fn home(&self) -> &Home {
        &Home::PLAIN
    }

    /// The request as servers are asked it.
    ///
    /// # Errors
    /// For a name that they cannot keep.
    fn translate(&self, request: Request) -> Result<Request, TransportError> {
        Ok(request)
    }

    /// The group whose primary is the one server, or the cluster, if it is one.
    fn group(&self) -> Option<GroupMark> {
        None
    }
}
