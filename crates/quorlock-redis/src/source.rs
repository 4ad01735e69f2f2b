//! Where the connections of a transport lead, and for how long each is right there.

pub(crate) mod fixed;
pub(crate) mod refusals;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use quorlock_core::transport::TransportError;
use redis::{Cmd, Value};

use crate::connect::Endpoint;
use crate::timer;

/// A search for an endpoint under way.
pub(crate) type Finding<'a> =
    Pin<Box<dyn Future<Output = Result<Lead, TransportError>> + Send + 'a>>;

/// Ready when a connection leads to the wrong server by now, however well that answers. It says why.
pub(crate) type Recall = Pin<Box<dyn Future<Output = TransportError> + Send>>;

/// Which server the next connection goes to.
///
/// A transport gets one when it is made, and asks it before each connection.
pub(crate) trait Source: Send + Sync + fmt::Debug + 'static {
    /// Finds the endpoint of the next connection. The caller bounds it in time.
    fn find(&self) -> Finding<'_>;

    /// What a server is asked on a new connection before that is used: whether it is the right one.
    fn question(&self) -> Option<Cmd>;

    /// Judges the answer to the question.
    ///
    /// # Errors
    /// A definite one, when this server is the wrong one.
    fn judge(&self, answer: &Value) -> Result<(), TransportError>;

    /// Takes it to heart that an endpoint was wrong. Says after which pause another search may do better, if one may.
    fn was_wrong(&self, whence: &Whence, why: Wrong<'_>) -> Option<Duration>;

    /// The group whose primary this is, if it is one.
    fn group(&self) -> Option<GroupMark> {
        None
    }

    /// In which ways the server is listened to.
    fn ways(&self) -> Ways {
        Ways::Plain
    }

    /// How long calls fail at once after so many failed attempts in a row (at least one).
    fn rest(&self, failures: u32) -> Duration {
        timer::delay(failures)
    }
}

/// In which ways a server is listened to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ways {
    /// By `SUBSCRIBE`.
    Plain,
    /// By `SUBSCRIBE` and, where the server knows it, by `SSUBSCRIBE`: a node of a cluster.
    Both,
}

/// What a search has found.
pub(crate) struct Lead {
    pub(crate) whence: Whence,
    /// `None` where an endpoint is right for ever.
    pub(crate) recall: Option<Recall>,
}

/// An endpoint, and who named it.
#[derive(Clone, Debug)]
pub(crate) struct Whence {
    pub(crate) endpoint: Endpoint,
    /// `None` where the user did.
    pub(crate) named_by: Option<Namer>,
}

/// What names an endpoint that the user has not given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Namer {
    /// This sentinel.
    Sentinel(Endpoint),
    /// The nodes of a cluster.
    Cluster,
}

impl fmt::Display for Namer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Namer::Sentinel(endpoint) => write!(f, "the sentinel {endpoint}"),
            Namer::Cluster => f.write_str("the cluster"),
        }
    }
}

/// What tells one Sentinel group, or one cluster, from another: its name, and who gives it that name.
#[derive(Clone, Debug)]
pub(crate) struct GroupMark {
    pub(crate) name: String,
    /// Sentinels, or nodes, that are known so far, given and learned.
    pub(crate) known: Vec<Endpoint>,
}

impl GroupMark {
    /// Whether a sentinel of both calls them the same. Two groups that have no known sentinel in common may be one all the
    /// same.
    pub(crate) fn is_same_as(&self, other: &GroupMark) -> bool {
        let mut known = self.known.iter();
        self.name == other.name && known.any(|known| other.known.contains(known))
    }
}

/// How an endpoint turned out to be wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrong<'a> {
    /// No connection to it could be made, or another server than the one that is looked for answered.
    Opening(&'a TransportError),
    /// Its server refused a call, which another server will not refuse.
    Call,
}

impl Whence {
    /// The error with the endpoint in it, which the user has not given.
    pub(crate) fn told(&self, error: TransportError) -> TransportError {
        match &self.named_by {
            None => error,
            Some(by) => {
                let detail = &error.detail;
                let detail = format!("{}, which {by} names: {detail}", self.endpoint);
                TransportError::new(error.execution, error.cause, detail)
            }
        }
    }
}
