//! How a server shows, in one step with requests, that it is the process that a client trusts.

use std::sync::Arc;
use std::time::Duration;

use quorlock_core::lease::drift;
use quorlock_core::marker::{ConfirmedMarker, Process};
use redis::Value;

use crate::script;
use crate::timer::Instant;

/// The commands that surround requests, so that their effects count only if the server is a certain process.
///
/// ```text
/// MULTI  GET marker  INFO replication  ..requests..  EXEC
/// ```
///
/// They are one transaction: the process that shows its marker is the one that executes the requests, on the same data. A
/// server that refuses one of the commands before `EXEC` executes none. `INFO` is left out while the connection
/// [shows the process](super::identity).
#[derive(Debug)]
pub(crate) struct Watch {
    trusted: ConfirmedMarker,
    namespace: Vec<u8>,
    /// The marker as it is stored.
    text: String,
    /// What the server says of itself.
    process: String,
    /// `MULTI` and `GET`.
    begin: Vec<u8>,
    /// The same, and `INFO`.
    begin_whole: Vec<u8>,
}

/// The end of the transaction.
pub(super) const END: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

/// A watch around the acquires of one transaction.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub(super) watch: Arc<Watch>,
    /// Whether the server is asked for its process, and not for its marker alone.
    pub(super) asks_for_process: bool,
    /// A time before the transaction was sent.
    pub(super) at: Instant,
}

impl Watch {
    /// Creates the commands that show whether the server has this marker under this key.
    pub(crate) fn new(trusted: ConfirmedMarker, namespace: &[u8], key: &[u8]) -> Self {
        let text = script::marker_text(trusted);
        let mut begin = b"*1\r\n$5\r\nMULTI\r\n".to_vec();
        begin.extend_from_slice(&redis::cmd("GET").arg(key).get_packed_command());
        let info = redis::cmd("INFO").arg("replication").get_packed_command();
        let begin_whole = [begin.as_slice(), &info].concat();
        Watch {
            trusted,
            namespace: namespace.to_vec(),
            process: format!("master_replid:{:013x}", trusted.process.0),
            text,
            begin,
            begin_whole,
        }
    }

    /// Whether it is about this marker of this namespace.
    pub(crate) fn is_of(&self, trusted: ConfirmedMarker, namespace: &[u8]) -> bool {
        self.trusted == trusted && self.namespace == namespace
    }

    pub(super) fn process(&self) -> Process {
        self.trusted.process
    }

    /// For how long a connection shows the process: the longest lease that its marker grants, without the drift. Any
    /// client watches another process for longer before its votes count.
    pub(super) fn lasts(&self) -> Duration {
        let longest = Duration::from_millis(self.trusted.figures.granted_millis);
        longest.saturating_sub(drift(longest))
    }
}

impl Watched {
    /// The commands before the requests.
    pub(super) fn begin(&self) -> &[u8] {
        match self.asks_for_process {
            true => &self.watch.begin_whole,
            false => &self.watch.begin,
        }
    }

    /// The number of commands that show what is watched.
    fn shown(&self) -> usize {
        1 + usize::from(self.asks_for_process)
    }

    /// The replies of the transaction besides those of its requests' commands, each of which has one: of `MULTI`, `EXEC`,
    /// and the commands that show what is watched.
    pub(super) fn replies(&self) -> usize {
        2 + self.shown()
    }

    /// Whether the server is the trusted process, as far as it was asked.
    fn is_met(&self, shown: &[Value]) -> bool {
        let [Value::BulkString(marker), info @ ..] = shown else {
            return false;
        };
        let is_process = |info: &Value| match info {
            Value::BulkString(info) => {
                let info = std::str::from_utf8(info).unwrap_or_default();
                info.contains(&self.watch.process)
            }
            _ => false,
        };
        *marker == self.watch.text.as_bytes() && info.iter().all(is_process)
    }

    /// Returns the replies to the requests' commands from those of the whole transaction.
    pub(super) fn outcome(&self, mut replies: Vec<Value>) -> Outcome {
        let many = self.shown();
        let Some(executed) = replies.pop() else {
            return Outcome::Aborted(replies);
        };
        match (replies.first(), executed) {
            (Some(Value::Okay), Value::Array(mut shown)) if many <= shown.len() => {
                let rest = shown.split_off(many);
                match self.is_met(&shown) {
                    true => Outcome::Trusted(rest),
                    false => Outcome::Untrusted(rest),
                }
            }
            (Some(Value::Okay), why) => {
                // A command that was refused has its own words in place of `QUEUED`.
                let queued = replies.into_iter().skip(1 + many);
                let words = |reply| match reply {
                    Value::ServerError(_) => reply,
                    _ => why.clone(),
                };
                Outcome::Aborted(queued.map(words).collect())
            }
            _ => {
                let mut replies = replies.into_iter();
                let why = replies.next().unwrap_or(Value::Nil);
                Outcome::Apart(why, replies.skip(many).collect())
            }
        }
    }
}

/// What became of a transaction. Each has the replies to the requests' commands.
#[derive(PartialEq, Debug)]
pub(super) enum Outcome {
    /// The trusted process has executed it.
    Trusted(Vec<Value>),
    /// Another process has executed it, or one with another marker.
    Untrusted(Vec<Value>),
    /// Nothing was executed.
    Aborted(Vec<Value>),
    /// There was no transaction, as this reply says: each command was executed by itself.
    Apart(Value, Vec<Value>),
}
