//! The messages between the command and its clients: lines of JSON over a loopback connection.

use serde::{Deserialize, Serialize};

use super::waits::BoundedWait;
use quorlock_sim_plan::Plan;
use quorlock_sim_world::history::{Access, Process};

/// The first line from the command. It has everything that a client needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WorkerSettings {
    pub(super) process: Process,
    pub(super) plan: Plan,
    /// The factor by which the times of the plan are multiplied.
    pub(super) scale: u32,
    /// Whether the client keeps bystanders.
    pub(super) has_bystanders: bool,
    /// The port under which this client reaches each node. Empty if the nodes are Sentinel groups or shards
    /// of a cluster.
    pub(super) ports: Vec<u16>,
    /// The ports of the sentinels of each node. Empty if the nodes are no such groups.
    pub(super) sentinels: Vec<Vec<u16>>,
    /// The ports of the servers of the cluster whose shards are the nodes. Empty if there is no cluster.
    pub(super) cluster: Vec<u16>,
}

/// A message of a client. Times are readings of [`clock::now`](super::clock::now).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ClientReport {
    /// The first message of a process: its identity.
    Hello(Process),
    /// The client is connected to the lock, and begins to work.
    Ready,
    /// A hold was won.
    Won(WonHold),
    /// A check found that the lock is held. `at` was read before the check.
    Believed { hold: u32, at: u64 },
    /// The client has finished its work under the hold.
    Left { hold: u32, at: u64 },
    /// A request to read the store of a name.
    Read { hold: u32, name: u16, token: u64 },
    /// A request to write to the store. The value was computed from a read.
    Write {
        hold: u32,
        name: u16,
        token: u64,
        read_at: u64,
        /// The unfenced counter that was read, plus one.
        count: u64,
    },
    /// A wait with a bound has ended.
    Waited(BoundedWait),
    /// A bystander of this name is no longer held, although no fault concerns it.
    Bereft(String),
    /// A question for the time, from a client that cannot read the clock itself.
    Now,
    /// An operation failed.
    Failed(String),
}

/// What a client holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum HoldKind {
    /// A lock.
    Lock,
    /// The leadership of a name.
    Leadership,
}

/// A hold that was won.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct WonHold {
    /// The number of the hold, counted by the client.
    pub(super) hold: u32,
    pub(super) kind: HoldKind,
    /// The names that were won together.
    pub(super) names: Vec<WonName>,
    pub(super) owner: String,
    pub(super) invoked: u64,
    pub(super) won: u64,
    pub(super) access: Access,
    pub(super) believed: Option<u64>,
}

/// One name of a hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct WonName {
    pub(super) name: u16,
    /// The fencing token of the name, or the term of the leader. 0 if the lock has no tokens.
    pub(super) token: u64,
}

/// A message from the command to a client.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ConductorReply {
    /// The store accepted the read, with this content.
    Stands { at: u64, count: u64 },
    /// The store accepted the write.
    Taken,
    /// The store has seen a larger token.
    Refused,
    /// The time at which the question for it was answered.
    Now { at: u64 },
    /// The client must drop the operation that it waits for.
    Cancel,
    /// The client must release what it holds, and end.
    Stop,
}
