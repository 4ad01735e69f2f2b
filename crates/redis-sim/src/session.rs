//! One connection, seen from the server.

use std::time::Duration;

use crate::reply::{Protocol, Reply};
use crate::request::{Trust, Words};

/// A connection to a server. No two of one server are the same, also after a restart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionId(pub(crate) u64);

/// A connection that waits for replicas (`WAIT`): it is answered when the server is [told](crate::Server::confirm) how many
/// have confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Awaited {
    /// The connection.
    pub session: SessionId,
    /// It waits until so many replicas have what was written so far.
    pub replicas: usize,
    /// It waits no longer than this; without, for ever.
    pub within: Option<Duration>,
}

/// What a server knows about a connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) protocol: Protocol,
    pub(crate) trust: Trust,
    pub(crate) db: usize,
    pub(crate) name: Vec<u8>,
    /// Commands that wait for `EXEC`.
    pub(crate) queued: Option<Queued>,
    /// The output is the last; then the server closes the connection.
    pub(crate) is_closing: bool,
    /// It waits for replicas: what comes on it waits, too.
    pub(crate) is_blocked: bool,
    /// It has said `ASKING` before its next request.
    pub(crate) asks: bool,
    /// It is the caller's own, which is sent to no other node of a cluster.
    pub(crate) is_operator: bool,
    pub(crate) input: Vec<u8>,
    pub(crate) output: Vec<u8>,
}

/// Commands since `MULTI`.
#[derive(Debug, Default)]
pub(crate) struct Queued {
    pub(crate) commands: Vec<Words>,
    /// One of them was refused: none will be executed.
    pub(crate) is_spoilt: bool,
}

impl Session {
    pub(crate) fn new(trust: Trust) -> Self {
        Session {
            protocol: Protocol::default(),
            trust,
            db: 0,
            name: Vec::new(),
            queued: None,
            is_closing: false,
            is_blocked: false,
            asks: false,
            is_operator: false,
            input: Vec::new(),
            output: Vec::new(),
        }
    }

    pub(crate) fn write(&mut self, reply: &Reply) {
        reply.write(self.protocol, &mut self.output);
    }
}
