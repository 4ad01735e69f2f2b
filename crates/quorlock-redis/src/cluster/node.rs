//! One node of a cluster.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::slot::ServerNumber;
use quorlock_core::transport::TransportError;
use redis::{Cmd, Value};

use super::hints::ClusterHints;
use crate::connect::Endpoint;
use crate::route::Route;
use crate::server::{Manner, Server};
use crate::source::{Finding, Lead, Namer, Source, Ways, Whence, Wrong};
use crate::timer;

/// The longest pause between connection attempts: a node that returns is found within about this time.
const LONGEST_REST: Duration = Duration::from_millis(200);

/// A node, and the connections to it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) number: ServerNumber,
    pub(super) endpoint: Endpoint,
    pub(super) server: Arc<Server>,
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.endpoint == other.endpoint
    }
}

impl Node {
    /// Returns the route to the node. Its requests are not batched: requests for different slots cannot share a call,
    /// and one slot has few names.
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

/// A source that leads to one node, and notifies the cluster if it does not.
#[derive(Debug)]
pub(super) struct NodeSource {
    pub(super) endpoint: Endpoint,
    pub(super) hints: Arc<ClusterHints>,
}

impl NodeSource {
    fn whence(&self) -> Whence {
        Whence {
            endpoint: self.endpoint.clone(),
            named_by: Some(Namer::Cluster),
        }
    }
}

impl Source for NodeSource {
    fn find(&self) -> Finding<'_> {
        Box::pin(ready(Ok(Lead {
            whence: self.whence(),
            // Nodes themselves refuse requests for slots that they do not own.
            recall: None,
        })))
    }

    fn question(&self) -> Option<Cmd> {
        None
    }

    fn judge(&self, _: &Value) -> Result<(), TransportError> {
        Ok(())
    }

    fn was_wrong(&self, _: &Whence, why: Wrong<'_>) -> Option<Duration> {
        match why {
            Wrong::Opening(_) | Wrong::Call => self.hints.distrust(&self.endpoint),
            Wrong::Channel => self.hints.believe(&self.endpoint),
        }
        None
    }

    fn told(&self, error: TransportError) -> TransportError {
        self.whence().told(error)
    }

    fn ways(&self) -> Ways {
        Ways::Both
    }

    fn rest(&self, failures: u32) -> Duration {
        timer::delay(failures).min(LONGEST_REST)
    }
}
