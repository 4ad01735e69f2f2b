//! One connection, as the server sees it.

use std::time::Duration;

use crate::reply::{Protocol, Reply};
use crate::request::{Trust, Words};

/// The id of a connection to a server. It is unique for one server, even across restarts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionId(pub u64);

/// A connection that waits for replicas (`WAIT`). It is answered when the caller [reports](crate::Server::confirm) how
/// many have confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Awaited {
    /// The waiting connection.
    pub session: SessionId,
    /// Number of replicas that must have all writes so far.
    pub replicas: usize,
    /// The longest wait; `None` means for ever.
    pub within: Option<Duration>,
}

/// The state of a connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) protocol: Protocol,
    pub(crate) trust: Trust,
    pub(crate) db: usize,
    pub(crate) name: Vec<u8>,
    /// Commands that wait for `EXEC`.
    pub(crate) queued: Option<Queued>,
    /// Whether the server closes the connection after the present output.
    pub(crate) is_closing: bool,
    /// Whether it waits for replicas. Requests that arrive in the meantime wait, too.
    pub(crate) is_blocked: bool,
    /// Whether `ASKING` precedes its next request.
    pub(crate) asks: bool,
    /// Whether it belongs to the caller and is never redirected to another node of a cluster.
    pub(crate) is_operator: bool,
    pub(crate) input: Vec<u8>,
    pub(crate) output: Vec<u8>,
}

/// The commands since `MULTI`.
#[derive(Debug, Default)]
pub(crate) struct Queued {
    pub(crate) commands: Vec<Words>,
    /// Whether one of them was refused, so that none will be executed.
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
