//! One node of a cluster.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::transport::TransportError;
use redis::{Cmd, Value};

use super::hints::ClusterHints;
use crate::connect::Endpoint;
use crate::route::Route;
use crate::server::{Manner, Server};
use crate::source::{Finding, Lead, Namer, Source, Ways, Whence, Wrong};
use crate::timer;

/// The longest rest between attempts to connect: a node that is back is found about this time after that.
const LONGEST_REST: Duration = Duration::from_millis(200);

/// A node, and the connections to it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) endpoint: Endpoint,
    pub(super) server: Arc<Server>,
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.endpoint == other.endpoint
    }
}

impl Node {
    /// The way to it. Requests about different slots cannot go together, and those about one are about few names.
    pub(super) fn route(&self) -> Route {
        self.route_in(Manner::Alone)
    }

    pub(super) fn route_in(&self, manner: Manner) -> Route {
        Route {
            server: Arc::clone(&self.server),
            manner,
        }
    }
}

/// The source that leads to one node, and tells the cluster when it does not lead there.
#[derive(Debug)]
pub(super) struct NodeSource {
    pub(super) endpoint: Endpoint,
    pub(super) hints: Arc<ClusterHints>,
}

impl Source for NodeSource {
    fn find(&self) -> Finding<'_> {
        Box::pin(ready(Ok(Lead {
            whence: Whence {
                endpoint: self.endpoint.clone(),
                named_by: Some(Namer::Cluster),
            },
            // Nodes say themselves which slots they do not own.
            recall: None,
        })))
    }

    fn question(&self) -> Option<Cmd> {
        None
    }

    fn judge(&self, _: &Value) -> Result<(), TransportError> {
        Ok(())
    }

    fn was_wrong(&self, _: &Whence, _: Wrong<'_>) -> Option<Duration> {
        self.hints.distrust(&self.endpoint);
        None
    }

    fn ways(&self) -> Ways {
        Ways::Both
    }

    fn rest(&self, failures: u32) -> Duration {
        timer::delay(failures).min(LONGEST_REST)
    }
}
