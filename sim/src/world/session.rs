//! The wall clocks of servers, and connections that a lane carries outside the world's events.

use std::time::Duration;

/// A reading of a node's wall clock: microseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct WallMicros(pub(crate) u64);

/// A connection to a server, by the number that the server gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Connection(pub(crate) u64);

/// A connection that waits for replicas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Awaited {
    /// The waiting connection.
    pub(crate) connection: Connection,
    /// The number of replicas that must have all writes so far.
    pub(crate) replicas: usize,
    /// The longest wait. `None` means for ever.
    pub(crate) within: Option<Duration>,
}
