//! The source of a transport's connections: the server each one goes to, and when it is no longer the right one.

pub(crate) mod fixed;
pub(crate) mod refusals;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use quorlock_core::transport::{Cause, TransportError};
use redis::{Cmd, Value};

use crate::connect::Endpoint;
use crate::failure;
use crate::timer;

/// A future that finds an endpoint.
pub(crate) type Finding<'a> =
    Pin<Box<dyn Future<Output = Result<Lead, TransportError>> + Send + 'a>>;

/// A future that asks the sentinels.
pub(crate) type Surveying<'a> = Pin<Box<dyn Future<Output = Vec<SentinelFacts>> + Send + 'a>>;

/// What one sentinel says about its group.
#[doc(hidden)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SentinelFacts {
    /// The sentinel's address.
    pub address: String,
    /// The primary that it names, or why it names none.
    pub primary: Result<String, String>,
    /// How many sentinels must agree that the primary is down, if the sentinel says so.
    pub quorum: Option<u32>,
}

/// Ready with the reason when a connection leads to the wrong server, even if that server still answers.
pub(crate) type Recall = Pin<Box<dyn Future<Output = TransportError> + Send>>;

/// Chooses the server of the next connection.
///
/// A transport is created with a source, and queries it before each connection.
pub(crate) trait Source: Send + Sync + fmt::Debug + 'static {
    /// Finds the endpoint of the next connection. The caller bounds the time.
    fn find(&self) -> Finding<'_>;

    /// The command that is sent on a new connection, before it is used, to find out whether the server is the
    /// right one.
    fn question(&self) -> Option<Cmd>;

    /// Judges the reply to [`Source::question`].
    ///
    /// # Errors
    /// A definite error if this server is the wrong one.
    fn judge(&self, answer: &Value) -> Result<(), TransportError>;

    /// Records that an endpoint was wrong. Returns the pause before another search, if one may find a better endpoint.
    fn was_wrong(&self, whence: &Whence, why: Wrong<'_>) -> Option<Duration>;

    /// Adds to an error which server it was, if that is always the same one and the user has not named it.
    fn told(&self, error: TransportError) -> TransportError {
        error
    }

    /// The group or cluster that the server belongs to, if any.
    fn group(&self) -> Option<GroupMark> {
        None
    }

    /// Asks every known sentinel of the group, for an operator. There are none if this is no such group.
    fn survey(&self) -> Surveying<'_> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// The ways in which a client listens to the server.
    fn ways(&self) -> Ways {
        Ways::Plain
    }

    /// How long calls fail at once after `failures` failed attempts in a row (at least one).
    fn rest(&self, failures: u32) -> Duration {
        timer::delay(failures)
    }
}

/// The ways in which a client listens to a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ways {
    /// By `SUBSCRIBE`.
    Plain,
    /// By `SUBSCRIBE`, and by `SSUBSCRIBE` where the server has it: a node of a cluster.
    Both,
}

/// The result of a search.
pub(crate) struct Lead {
    pub(crate) whence: Whence,
    /// Ready when the endpoint is no longer right; `None` if it always is.
    pub(crate) recall: Option<Recall>,
}

/// An endpoint, and its origin.
#[derive(Clone, Debug)]
pub(crate) struct Whence {
    pub(crate) endpoint: Endpoint,
    /// The sentinel or cluster that named the endpoint; `None` if the user did.
    pub(crate) named_by: Option<Namer>,
}

/// The origin of an endpoint that the user has not given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Namer {
    /// A sentinel, at this address.
    Sentinel(Endpoint),
    /// The nodes of a cluster.
    Cluster,
}

impl Namer {
    /// Returns what to do if clients can never reach the endpoint.
    fn advice(&self) -> &'static str {
        match self {
            Namer::Sentinel(_) => {
                "if clients cannot reach this address at all, correct what the sentinels name: sentinel monitor, or \
                 replica-announce-ip and replica-announce-port on that server"
            }
            Namer::Cluster => {
                "if clients cannot reach this address at all, correct what the node announces: cluster-announce-ip and \
                 cluster-announce-port"
            }
        }
    }
}

impl fmt::Display for Namer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Namer::Sentinel(endpoint) => write!(f, "the sentinel {endpoint}"),
            Namer::Cluster => f.write_str("the cluster"),
        }
    }
}

/// Identifies a Sentinel group or a cluster: its name, and the sentinels or nodes that use this name.
#[derive(Clone, Debug)]
pub(crate) struct GroupMark {
    pub(crate) name: String,
    /// Known sentinels or nodes, both given and learned.
    pub(crate) known: Vec<Endpoint>,
}

impl GroupMark {
    /// Whether both have the same name and at least one sentinel or node in common. Two marks without a common one may
    /// still belong to the same group.
    pub(crate) fn is_same_as(&self, other: &GroupMark) -> bool {
        let mut known = self.known.iter();
        self.name == other.name && known.any(|known| other.known.contains(known))
    }
}

/// How an endpoint turned out to be wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrong<'a> {
    /// No connection to it could be made, or its server is not the right one.
    Opening(&'a TransportError),
    /// Its server refused a call that the right server will accept.
    Call,
    /// The slot of a channel has left its server, which knows the new owner.
    Channel,
}

impl Whence {
    /// Adds the endpoint and its origin to an error, since the user has not given the endpoint.
    pub(crate) fn told(&self, error: TransportError) -> TransportError {
        match &self.named_by {
            None => error,
            Some(by) => {
                let detail = &error.detail;
                let mut detail = format!("{}, which {by} names: {detail}", self.endpoint);
                if matches!(error.cause, Cause::Unreachable | Cause::TimedOut) {
                    detail = format!("{detail} ({})", by.advice());
                }
                failure::of(error.execution, error.cause, detail)
            }
        }
    }
}
