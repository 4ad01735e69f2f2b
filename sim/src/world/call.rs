//! A call: a request on its way to a node, and its reply on the way back.

use std::rc::Rc;
use std::task::{Context, Waker};

use quorlock::transport::{Cause, Execution, Reply, Request, TransportError};

use crate::history::Process;
use crate::world::id::{ClientId, Id, NodeId, ProcessId};
use crate::world::slab::Key;
use crate::world::task::remember;

/// What a call comes to.
pub(crate) type Answer = Result<Reply, TransportError>;

/// A reply on its way back.
#[derive(Debug)]
pub(crate) struct Replied {
    to: Key<Call>,
    answer: Answer,
}

impl Replied {
    pub(crate) fn new(to: Key<Call>, answer: Answer) -> Self {
        Replied { to, answer }
    }

    pub(crate) fn to(&self) -> Key<Call> {
        self.to
    }

    pub(crate) fn into_answer(self) -> Answer {
        self.answer
    }
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
    client: ClientId,
    /// How often the client was started before the process that asks.
    restarts: u16,
    node: NodeId,
    /// Shared with replicas, and not moved through every function on the way: requests are large.
    request: Rc<Request>,
    epoch: u32,
    departs: u64,
    /// How many copies of the request have not come to the node yet.
    copies: u16,
    is_sent: bool,
    is_dropped: bool,
    is_done: bool,
    tie: Tie,
    waker: Option<Waker>,
    answer: Option<Key<Replied>>,
}

/// What ends a call before its request comes to the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tie {
    /// The end of its connection.
    Connection,
    /// Nothing: its connection was reset, but what was under way arrives.
    OutlivesConnection,
    /// Nothing: its process died after it was sent, and that does not take it back.
    SentByTheDead,
    /// Its process died before it left: it was never really sent.
    Void,
}

impl Call {
    /// A call that leaves its process at a time.
    pub(crate) fn new(who: ProcessId, node: NodeId, request: Rc<Request>, departs: u64) -> Self {
        Call {
            client: who.client,
            restarts: who.restarts,
            node,
            request,
            epoch: 0,
            departs,
            copies: 0,
            is_sent: false,
            is_dropped: false,
            is_done: false,
            tie: Tie::Connection,
            waker: None,
            answer: None,
        }
    }

    #[inline]
    pub(crate) fn client(&self) -> ClientId {
        self.client
    }

    #[inline]
    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    #[inline]
    pub(crate) fn request(&self) -> &Rc<Request> {
        &self.request
    }

    /// On which connection it was sent.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// When it left its process.
    pub(crate) fn departs(&self) -> u64 {
        self.departs
    }

    /// Who asks.
    pub(crate) fn process(&self) -> Process {
        Process {
            client: self.client.get(),
            restarts: self.restarts,
        }
    }

    /// It is put on the wire.
    pub(crate) fn send(&mut self, departs: u64, epoch: u32) {
        self.is_sent = true;
        self.departs = departs;
        self.epoch = epoch;
    }

    /// So many copies of the request are under way.
    pub(crate) fn copies_leave(&mut self, copies: u16) {
        self.copies = copies;
    }

    /// A copy of the request has come to the node, or is forgotten there.
    pub(crate) fn copy_arrives(&mut self) {
        self.copies = self.copies.saturating_sub(1);
    }

    /// A copy of the request that has come to the node has to wait there, or comes again.
    pub(crate) fn copy_is_held_up(&mut self) {
        self.copies += 1;
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.is_sent
    }

    /// It was sent on the connection of this client and node, and has no answer.
    pub(crate) fn is_open_between(&self, client: ClientId, node: NodeId) -> bool {
        self.client == client && self.node == node && !self.is_done
    }

    /// Its process waits for the answer.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.is_done && !self.is_dropped
    }

    /// No process wants an answer.
    pub(crate) fn is_unheard(&self) -> bool {
        self.is_dropped || self.tie == Tie::SentByTheDead
    }

    /// No process waits for it, and no copy is under way.
    pub(crate) fn is_over(&self) -> bool {
        self.is_dropped && self.copies == 0
    }

    pub(crate) fn is_void(&self) -> bool {
        self.tie == Tie::Void
    }

    /// Its request is executed whatever has become of the connection.
    pub(crate) fn outlives_connection(&self) -> bool {
        matches!(self.tie, Tie::OutlivesConnection | Tie::SentByTheDead)
    }

    /// Its connection is reset, but what is under way arrives.
    pub(crate) fn outlive_connection(&mut self) {
        if self.tie == Tie::Connection {
            self.tie = Tie::OutlivesConnection;
        }
    }

    /// Its process dies. What it had sent goes on; what was to leave after its pause does not.
    pub(crate) fn lose_process(&mut self, now: u64) {
        self.tie = if self.departs <= now {
            Tie::SentByTheDead
        } else {
            Tie::Void
        };
    }

    /// The first answer counts. Returns whether it was that one.
    pub(crate) fn answer(&mut self, reply: Key<Replied>) -> bool {
        if self.is_done {
            return false;
        }
        self.is_done = true;
        self.answer = Some(reply);
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
        true
    }

    /// The answer, once; until there is one, the task is woken when it comes.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Option<Key<Replied>> {
        if self.answer.is_some() {
            return self.answer.take();
        }
        remember(&mut self.waker, cx);
        None
    }

    /// No process waits for it any more. Returns the waker and the answer that it had.
    pub(crate) fn abandon(&mut self) -> (Option<Waker>, Option<Key<Replied>>) {
        self.is_dropped = true;
        (self.waker.take(), self.answer.take())
    }
}
