//! What the command and its clients tell each other: lines of JSON over a connection of the loopback interface.

use serde::{Deserialize, Serialize};

use crate::history::{Access, Process};
use crate::plan::Plan;

/// The first line of the command: all that a client works by.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) process: Process,
    pub(super) plan: Plan,
    /// By how much the times of the plan are longer.
    pub(super) scale: u32,
    /// The ports at which this client finds the nodes, one of each.
    pub(super) ports: Vec<u16>,
}

/// What a client says. Times are those of [`clock::now`](super::clock::now).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Said {
    /// The first line: which client it is.
    Hello(Process),
    /// A hold was won.
    Won {
        /// Which, counted by the client.
        hold: u32,
        name: u16,
        owner: String,
        invoked: u64,
        won: u64,
        /// 0 where the lock has none.
        token: u64,
        access: Access,
        believed: Option<u64>,
    },
    /// It was found held: the clock was read before it was asked.
    Believed { hold: u32, at: u64 },
    /// The client does nothing more under the hold.
    Left { hold: u32, at: u64 },
    /// What stands in the store of a name?
    Read { hold: u32, name: u16, token: u64 },
    /// Writes to the store what came of a read.
    Write {
        hold: u32,
        name: u16,
        token: u64,
        read_at: u64,
        /// What the unfenced counter said, and one more.
        count: u64,
    },
    /// An operation failed.
    Failed(String),
}

/// What the command says.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Told {
    /// What stands in the store, which let the read.
    Stands { at: u64, count: u64 },
    /// The store took the write.
    Taken,
    /// The store has seen a larger token.
    Refused,
    /// What the client waits for is dropped.
    Cancel,
    /// The client ends when it has released what it holds.
    Stop,
}
