//! One server for all requests: that of a plain address, or the primary of a Sentinel group.

use std::future::ready;
use std::sync::Arc;

use quorlock_core::message::Channel;
use quorlock_core::name::Name;
use quorlock_core::slot::{ServerNumber, Slot, UnfitName};
use quorlock_core::transport::{Listener, Subscription, Witness};
use redis::ServerError;

use super::{Detour, Gathering, Refused, Rerouting, Route, Routes, Routing};
use crate::server::{Manner, Server};
use crate::source::GroupMark;
use crate::subscription::registry::Topic;
use crate::target::Target;

/// The routes of a transport with one server.
#[derive(Debug)]
pub(crate) struct Direct(Arc<Server>);

impl Direct {
    pub(crate) fn to(target: Target) -> Self {
        Direct(Arc::new(Server::new(target)))
    }

    fn route(&self) -> Route {
        Route {
            server: Arc::clone(&self.0),
            manner: Manner::Together,
        }
    }
}

impl Routes for Direct {
    fn slot(&self, _: &Name) -> Result<Slot, UnfitName> {
        Ok(Slot::WHOLE)
    }

    fn server(&self, _: Slot) -> ServerNumber {
        ServerNumber::WHOLE
    }

    fn known(&self, _: Slot) -> Option<Route> {
        Some(self.route())
    }

    fn find(&self, _: Slot) -> Routing<'_> {
        Box::pin(ready(Ok(self.route())))
    }

    fn elsewhere(&self, _: Refused<'_>, _: &ServerError) -> Option<Detour> {
        None
    }

    fn instead<'a>(&'a self, _: &'a Arc<Server>, _: Slot) -> Rerouting<'a> {
        Box::pin(ready(None))
    }

    fn doubt(&self, _: &Arc<Server>) {}

    fn all(&self) -> Gathering<'_> {
        Box::pin(ready(Ok(vec![Arc::clone(&self.0)])))
    }

    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        let topic = Topic::of(channel);
        Subscription::new(self.0.wakes.subscribe(topic, listener))
    }

    fn attend(&self, witness: Arc<dyn Witness>) -> Subscription {
        Subscription::new(self.0.connection.attend(witness))
    }

    fn is_divided(&self) -> bool {
        false
    }

    fn group(&self) -> Option<GroupMark> {
        self.0.target.source().group()
    }
}
