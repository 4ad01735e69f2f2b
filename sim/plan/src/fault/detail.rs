//! Parameters of faults that are a single word.

use serde::{Deserialize, Serialize};

/// The direction of messages on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Messages in both directions.
    #[default]
    Both,
    /// Messages from the client to the node.
    ToNode,
    /// Messages from the node to the client.
    ToClient,
}

/// The fate of the requests in flight when their connection is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InFlight {
    /// The requests are lost.
    #[default]
    Lost,
    /// The requests still arrive and are executed.
    Executed,
}

/// The behaviour of a monotonic clock while its machine is suspended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Suspended {
    /// The clock counts the time, as `CLOCK_BOOTTIME` does.
    Counts,
    /// The clock stops, as `CLOCK_MONOTONIC` does.
    Stops,
}

/// An error that a server returns without executing the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerError {
    /// `READONLY`: the server is a replica.
    ReadOnly,
    /// `LOADING`: the server is reading its data from disk.
    Loading,
    /// `OOM`: the server has no memory left.
    OutOfMemory,
    /// `BUSY`: a script has been running for too long.
    Busy,
}

/// The way in which a replica of a cluster replaces its primary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Handover {
    /// The replica waits until it has all data, and the primary accepts no writes in the meantime. A primary that
    /// cannot be reached keeps its role.
    #[default]
    Manual,
    /// The replica takes over at once, without a vote (`TAKEOVER`). Writes that it has not received are lost.
    Takeover,
}
