//! What simulated Redis servers call their time and their connections.
//!
//! A build without such servers has the same words: the time is that of any node, and there is no connection.

#[cfg(any(feature = "serve", feature = "turmoil"))]
pub(crate) use redis_sim::{Awaited, SessionId, WallMicros};

#[cfg(not(any(feature = "serve", feature = "turmoil")))]
pub(crate) use without::{Awaited, SessionId, WallMicros};

#[cfg(not(any(feature = "serve", feature = "turmoil")))]
mod without {
    use std::time::Duration;

    /// A reading of a node's wall clock: microseconds since 1970.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub(crate) struct WallMicros(pub(crate) u64);

    /// A connection to a server, of which there is none.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum SessionId {}

    /// A connection that waits for replicas.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct Awaited {
        pub(crate) session: SessionId,
        pub(crate) replicas: usize,
        pub(crate) within: Option<Duration>,
    }
}
