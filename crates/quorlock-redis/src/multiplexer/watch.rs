//! How a server shows, in one step with requests, that it is the process that a client trusts.

use quorlock_core::marker::ConfirmedMarker;
use redis::Value;

use crate::script;

/// The commands that surround requests, so that their effects count only if the server is a certain process.
///
/// ```text
/// MULTI  GET marker  INFO replication  ..requests..  EXEC
/// ```
///
/// They are one transaction: the process that shows its marker is the one that executes the requests, on the same data. A
/// server that refuses one of the commands before `EXEC` executes none.
#[derive(Debug)]
pub(crate) struct Watch {
    trusted: ConfirmedMarker,
    namespace: Vec<u8>,
    /// The marker as it is stored.
    text: String,
    /// What the server says of itself.
    process: String,
    begin: Vec<u8>,
}

/// The end of the transaction.
pub(super) const END: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

/// The replies of a transaction besides those of its requests' commands, each of which has one: of `MULTI`, `EXEC`, and the commands that
/// show the process.
pub(super) const REPLIES: usize = 2 + SHOWN;

/// The commands that show the process.
const SHOWN: usize = 2;

impl Watch {
    /// Creates the commands that show whether the server has this marker under this key.
    pub(crate) fn new(trusted: ConfirmedMarker, namespace: &[u8], key: &[u8]) -> Self {
        let text = script::marker_text(trusted);
        let mut begin = b"*1\r\n$5\r\nMULTI\r\n".to_vec();
        begin.extend_from_slice(&redis::cmd("GET").arg(key).get_packed_command());
        begin.extend_from_slice(&redis::cmd("INFO").arg("replication").get_packed_command());
        Watch {
            trusted,
            namespace: namespace.to_vec(),
            process: format!("master_replid:{:013x}", trusted.process.0),
            text,
            begin,
        }
    }

    /// Whether it is about this marker of this namespace.
    pub(crate) fn is_of(&self, trusted: ConfirmedMarker, namespace: &[u8]) -> bool {
        self.trusted == trusted && self.namespace == namespace
    }

    /// The commands before the requests.
    pub(super) fn begin(&self) -> &[u8] {
        &self.begin
    }

    /// Whether the server is the trusted process.
    fn is_met(&self, marker: &Value, info: &Value) -> bool {
        let (Value::BulkString(marker), Value::BulkString(info)) = (marker, info) else {
            return false;
        };
        let info = std::str::from_utf8(info).unwrap_or_default();
        *marker == self.text.as_bytes() && info.contains(&self.process)
    }

    /// Returns the replies to the requests' commands from those of the whole transaction.
    pub(super) fn outcome(&self, mut replies: Vec<Value>) -> Outcome {
        let Some(executed) = replies.pop() else {
            return Outcome::Aborted(replies);
        };
        match (replies.first(), executed) {
            (Some(Value::Okay), Value::Array(mut shown)) if SHOWN <= shown.len() => {
                let rest = shown.split_off(SHOWN);
                match shown.as_slice() {
                    [marker, info] if self.is_met(marker, info) => Outcome::Trusted(rest),
                    _ => Outcome::Untrusted(rest),
                }
            }
            (Some(Value::Okay), why) => {
                // A command that was refused has its own words in place of `QUEUED`.
                let queued = replies.into_iter().skip(1 + SHOWN);
                let words = |reply| match reply {
                    Value::ServerError(_) => reply,
                    _ => why.clone(),
                };
                Outcome::Aborted(queued.map(words).collect())
            }
            _ => {
                let mut replies = replies.into_iter();
                let why = replies.next().unwrap_or(Value::Nil);
                Outcome::Apart(why, replies.skip(SHOWN).collect())
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
