//! A call: a request to a node, and its reply.

use std::rc::Rc;
use std::task::{Context, Waker};

use quorlock::transport::{Cause, Execution, Reply, Request, TransportError};

use crate::history::Process;
use crate::world::id::{ClientId, Id, NodeId, ProcessId};
use crate::world::record_call::{Found, RecordCall};
use crate::world::slab::Key;
use crate::world::task::remember;
use quorlock_sim_plan::fault::MessageKind;

/// What a call asks of its node. It is in an `Rc` because requests are large, and replicas share them.
#[derive(Clone, Debug)]
pub enum Asked {
    /// A request, which a lock server executes.
    Request(Rc<Request>),
    /// A read or a write of a record, which a store executes.
    Record(Rc<RecordCall>),
}

impl Asked {
    /// Returns the kind of the message.
    pub(crate) fn kind(&self) -> MessageKind {
        match self {
            Asked::Request(request) => MessageKind::of(request),
            Asked::Record(call) => match **call {
                RecordCall::Read(_) => MessageKind::Read,
                RecordCall::Write { .. } | RecordCall::Commit { .. } => MessageKind::Write,
            },
        }
    }
}

/// What a node answers.
#[derive(Debug)]
pub enum Returned {
    /// The reply of a lock server.
    Reply(Reply),
    /// What a store returns.
    Found(Found),
}

/// The result of a call.
pub(crate) type Answer = Result<Returned, TransportError>;

/// A reply in flight.
#[derive(Debug)]
pub struct Replied {
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

/// Returns the error of a failed call, in the words of a server or an operating system.
pub fn failure(execution: Execution, cause: Cause) -> TransportError {
    let detail = match (execution, cause) {
        (Execution::Definite, Cause::Unreachable) => "connection refused or timed out",
        (_, Cause::TimedOut) => "no reply in time",
        (_, Cause::Closed) => "connection reset by peer",
        _ => "the server refused",
    };
    TransportError::new(execution, cause, detail.to_owned())
}

/// A call of a client process to a node.
#[derive(Debug)]
pub struct Call {
    client: ClientId,
    /// How often the client had been restarted before the process that sends the request.
    restarts: u16,
    node: NodeId,
    asked: Asked,
    epoch: u32,
    departs: u64,
    /// The number of copies of the request that have not arrived at the node yet.
    copies: u16,
    is_sent: bool,
    is_dropped: bool,
    is_done: bool,
    tie: Tie,
    waker: Option<Waker>,
    answer: Option<Key<Replied>>,
}

/// The event that ends a call before its request arrives at the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tie {
    /// The end of the call's connection.
    Connection,
    /// Nothing ends the call: its connection was reset, but what is in flight still arrives.
    OutlivesConnection,
    /// Nothing ends the call: its process died after it sent the request, which still arrives.
    SentByTheDead,
    /// The death of its process, which has happened before the request left. The request is never sent.
    Void,
}

impl Call {
    /// Creates a call whose request leaves its process at this time.
    pub fn new(who: ProcessId, node: NodeId, asked: Asked, departs: u64) -> Self {
        Call {
            client: who.client,
            restarts: who.restarts,
            node,
            asked,
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
    pub(crate) fn asked(&self) -> &Asked {
        &self.asked
    }

    /// Returns the number of the connection on which the request was sent.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns when the request left its process.
    pub fn departs(&self) -> u64 {
        self.departs
    }

    /// Returns the process that made the call.
    pub fn process(&self) -> Process {
        Process {
            client: self.client.get(),
            restarts: self.restarts,
        }
    }

    /// Sends the request at a time, on this connection.
    pub fn send(&mut self, departs: u64, epoch: u32) {
        self.is_sent = true;
        self.departs = departs;
        self.epoch = epoch;
    }

    /// Sets how many copies of the request are in flight.
    pub(crate) fn copies_leave(&mut self, copies: u16) {
        self.copies = copies;
    }

    /// Counts a copy of the request that has arrived at the node or was lost.
    pub(crate) fn copy_arrives(&mut self) {
        self.copies = self.copies.saturating_sub(1);
    }

    /// Counts a copy of the request that has arrived but is delayed there, or will arrive again.
    pub(crate) fn copy_is_held_up(&mut self) {
        self.copies += 1;
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.is_sent
    }

    /// Returns whether the request was sent on the connection of this client and node, and has no answer.
    pub(crate) fn is_open_between(&self, client: ClientId, node: NodeId) -> bool {
        self.client == client && self.node == node && !self.is_done
    }

    /// Returns whether the process waits for the answer.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.is_done && !self.is_dropped
    }

    /// Returns whether no process waits for the answer any longer.
    pub(crate) fn is_unheard(&self) -> bool {
        self.is_dropped || self.tie == Tie::SentByTheDead
    }

    /// Returns whether no process waits for the call and no copy of the request is in flight.
    pub fn is_over(&self) -> bool {
        self.is_dropped && self.copies == 0
    }

    pub(crate) fn is_void(&self) -> bool {
        self.tie == Tie::Void
    }

    /// Returns whether the request is executed even if its connection ends.
    pub(crate) fn outlives_connection(&self) -> bool {
        matches!(self.tie, Tie::OutlivesConnection | Tie::SentByTheDead)
    }

    /// Records a reset of the connection after which what is in flight still arrives.
    pub(crate) fn outlive_connection(&mut self) {
        if self.tie == Tie::Connection {
            self.tie = Tie::OutlivesConnection;
        }
    }

    /// Records that the process dies. What was sent still arrives; what would have left after a pause is never sent.
    pub(crate) fn lose_process(&mut self, now: u64) {
        self.tie = if self.departs <= now {
            Tie::SentByTheDead
        } else {
            Tie::Void
        };
    }

    /// Stores the answer, unless there is one already. Returns whether it was the first.
    pub fn answer(&mut self, reply: Key<Replied>) -> bool {
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

    /// Takes the answer. If there is none, the task is woken when it arrives.
    pub fn poll(&mut self, cx: &Context<'_>) -> Option<Key<Replied>> {
        if self.answer.is_some() {
            return self.answer.take();
        }
        remember(&mut self.waker, cx);
        None
    }

    /// Records that the caller no longer wants the answer. Returns the caller's waker and the answer, if there are
    /// any.
    pub(crate) fn abandon(&mut self) -> (Option<Waker>, Option<Key<Replied>>) {
        self.is_dropped = true;
        (self.waker.take(), self.answer.take())
    }
}
