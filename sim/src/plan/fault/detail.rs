//! What a fault says beside its kind, in one word.

use serde::{Deserialize, Serialize};

/// Which messages of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// All.
    #[default]
    Both,
    /// From the client to the node.
    ToNode,
    /// From the node to the client.
    ToClient,
}

/// What becomes of requests that are under way when their connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InFlight {
    /// They are lost.
    #[default]
    Lost,
    /// They arrive and are executed all the same.
    Executed,
}

/// What a monotonic clock does while its machine is suspended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Suspended {
    /// It counts the time, as `CLOCK_BOOTTIME` does.
    Counts,
    /// It stands still, as `CLOCK_MONOTONIC` does.
    Stops,
}

/// An error that a server gives without executing what was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerError {
    /// `READONLY`: it is a replica.
    ReadOnly,
    /// `LOADING`: it reads its data from disk.
    Loading,
    /// `OOM`: its memory is used up.
    OutOfMemory,
    /// `BUSY`: a script does not end.
    Busy,
}

#[cfg(any(feature = "serve", feature = "turmoil"))]
impl From<ServerError> for redis_sim::Condition {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::ReadOnly => redis_sim::Condition::ReadOnly,
            ServerError::Loading => redis_sim::Condition::Loading,
            ServerError::OutOfMemory => redis_sim::Condition::OutOfMemory,
            ServerError::Busy => redis_sim::Condition::Busy,
        }
    }
}

/// How a replica of a cluster takes the place of its primary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Handover {
    /// Once it has everything: the primary takes no writes until then. A primary that cannot be reached is left in its place.
    #[default]
    Manual,
    /// At once, without a vote (`TAKEOVER`): what had not reached it is lost.
    Takeover,
}
