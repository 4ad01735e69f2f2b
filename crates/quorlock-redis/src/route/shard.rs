//! One shard of a cluster: the server that currently owns the slot of a tag.

use std::fmt;
use std::sync::Arc;

use quorlock_core::message::{Channel, Request};
use quorlock_core::name::Name;
use quorlock_core::slot::{ServerNumber, Slot, UnfitName};
use quorlock_core::transport::{Listener, Subscription, TransportError, Witness};
use redis::ServerError;

use super::{Detour, Gathering, Refused, Rerouting, Route, Routes, Routing};
use crate::script::Home;
use crate::server::Server;
use crate::source::GroupMark;
use crate::tag::Tag;

/// The part of a cluster that stores the keys with this tag. Shards of one cluster share its connections.
pub(crate) struct Shard {
    cluster: Arc<dyn Routes>,
    tag: Tag,
}

impl Shard {
    pub(crate) fn new(cluster: Arc<dyn Routes>, tag: Tag) -> Self {
        Shard { cluster, tag }
    }
}

impl Routes for Shard {
    fn slot(&self, name: &Name) -> Result<Slot, UnfitName> {
        self.tag.check(name).map(|()| self.tag.slot())
    }

    fn server(&self, _: Slot) -> ServerNumber {
        self.cluster.server(self.tag.slot())
    }

    fn known(&self, _: Slot) -> Option<Route> {
        self.cluster.known(self.tag.slot())
    }

    fn find(&self, _: Slot) -> Routing<'_> {
        self.cluster.find(self.tag.slot())
    }

    fn elsewhere(&self, refused: Refused<'_>, words: &ServerError) -> Option<Detour> {
        let slot = self.tag.slot();
        self.cluster.elsewhere(Refused { slot, ..refused }, words)
    }

    fn instead<'a>(&'a self, of: &'a Arc<Server>, _: Slot) -> Rerouting<'a> {
        self.cluster.instead(of, self.tag.slot())
    }

    fn doubt(&self, server: &Arc<Server>) {
        self.cluster.doubt(server);
    }

    fn all(&self) -> Gathering<'_> {
        Box::pin(async {
            let route = self.cluster.find(self.tag.slot()).await?;
            Ok(vec![route.server])
        })
    }

    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        match self.tag.channel(channel) {
            Some(channel) => self.cluster.subscribe(&channel, listener),
            None => Subscription::new(()),
        }
    }

    fn attend(&self, witness: Arc<dyn Witness>) -> Subscription {
        self.cluster.attend(witness)
    }

    fn is_divided(&self) -> bool {
        false
    }

    fn is_of_cluster(&self) -> bool {
        true
    }

    fn home(&self) -> &Home {
        self.tag.home()
    }

    fn name_prefix(&self) -> String {
        self.tag.prefix()
    }

    fn translate(&self, request: Request) -> Result<Request, TransportError> {
        self.tag.request(request)
    }

    fn group(&self) -> Option<GroupMark> {
        Some(GroupMark {
            name: self.tag.text().to_owned(),
            ..self.cluster.group()?
        })
    }
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{{{}}}", self.cluster, self.tag.text())
    }
}
