//! A call: a request on its way to a node, and its reply on the way back.

use std::rc::Rc;
use std::task::Waker;

use quorlock::transport::{Cause, Execution, Reply, Request, TransportError};

use crate::history::Process;
use crate::world::slab::Key;

/// What a call comes to.
pub(crate) type Answer = Result<Reply, TransportError>;

/// A reply on its way back.
#[derive(Debug)]
pub(crate) struct Replied {
    pub(crate) to: Key<Call>,
    pub(crate) answer: Answer,
}

/// How a call fails, in words that a server or an operating system would use.
pub(crate) fn failure(execution: Execution, cause: Cause) -> TransportError {
    let detail = match (execution, cause) {
        (Execution::Definite, Cause::Unreachable) => "connection refused or timed out",
        (_, Cause::TimedOut) => "no reply in time",
        (_, Cause::Closed) => "connection reset by peer",
        _ => "the server refused",
    };
    TransportError::new(execution, cause, detail.to_owned())
}

/// One call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) client: u16,
    /// How often the client was started before the process that asks.
    pub(crate) restarts: u16,
    pub(crate) node: u16,
    /// Shared with replicas, and not moved through every function on the way: requests are large.
    pub(crate) request: Rc<Request>,
    /// On which connection it was sent.
    pub(crate) epoch: u32,
    /// When it left its process.
    pub(crate) departs: u64,
    /// How many copies of the request have not come to the node yet.
    pub(crate) copies: u16,
    pub(crate) is_sent: bool,
    pub(crate) is_dropped: bool,
    pub(crate) is_done: bool,
    /// Its process died after it was sent: that does not take it back.
    pub(crate) is_sent_by_the_dead: bool,
    /// Its connection was reset, but what was under way arrives.
    pub(crate) outlives_its_connection: bool,
    /// It was never really sent.
    pub(crate) is_void: bool,
    pub(crate) waker: Option<Waker>,
    pub(crate) answer: Option<Key<Replied>>,
}

impl Call {
    /// Who asks.
    pub(crate) fn process(&self) -> Process {
        Process {
            client: self.client,
            restarts: self.restarts,
        }
    }
}
