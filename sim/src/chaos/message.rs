//! The messages between the command and its clients: lines of JSON over a loopback connection.

use serde::{Deserialize, Serialize};

use crate::history::{Access, Process};
use crate::plan::Plan;

/// The first line from the command: everything that a client needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WorkerSettings {
    pub(super) process: Process,
    pub(super) plan: Plan,
    /// The factor by which the times of the plan are multiplied.
    pub(super) scale: u32,
    /// The ports under which this client reaches the nodes, in their order.
    pub(super) ports: Vec<u16>,
}

/// A message of a client. Times are readings of [`clock::now`](super::clock::now).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ClientReport {
    /// The first line: the process that connects.
    Hello(Process),
    /// A hold was won.
    Won {
        /// The number of the hold, counted by the client.
        hold: u32,
        name: u16,
        owner: String,
        invoked: u64,
        won: u64,
        /// The fencing token; 0 if the lock has none.
        token: u64,
        access: Access,
        believed: Option<u64>,
    },
    /// A check found the hold held. `at` was read before the check.
    Believed { hold: u32, at: u64 },
    /// The client does nothing more under the hold.
    Left { hold: u32, at: u64 },
    /// A read of the store of a name.
    Read { hold: u32, name: u16, token: u64 },
    /// A write to the store of a value that was computed from a read.
    Write {
        hold: u32,
        name: u16,
        token: u64,
        read_at: u64,
        /// The unfenced counter that was read, plus one.
        count: u64,
    },
    /// An operation failed.
    Failed(String),
}

/// A message of the command.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ConductorReply {
    /// The store accepted the read, and this is its content.
    Stands { at: u64, count: u64 },
    /// The store accepted the write.
    Taken,
    /// The store has seen a larger token.
    Refused,
    /// The client drops the operation that it waits for.
    Cancel,
    /// The client releases what it holds and ends.
    Stop,
}
