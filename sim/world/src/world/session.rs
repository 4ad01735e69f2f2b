//! The wall clocks of servers, and connections that a lane carries outside the world's events.

use std::time::Duration;

/// A reading of a node's wall clock: microseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WallMicros(pub u64);

/// A connection to a server, by the number that the server gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection(pub u64);

/// A connection that waits for replicas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Awaited {
    /// The waiting connection.
    pub connection: Connection,
    /// The number of replicas that must have all writes so far.
    pub replicas: usize,
    /// The longest wait. `None` means for ever.
    pub within: Option<Duration>,
}
