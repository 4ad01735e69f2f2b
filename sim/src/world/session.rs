//! The time and connection types of simulated Redis servers.
//!
//! A build without such servers has the same types. The time is then that of any node, and there are no connections.

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

    /// A connection to a server. There are none in this build.
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
