//! What the product holds in its hands: clocks, timers, tasks and randomness, the way to nodes, and a resource.

pub(crate) mod medium;
pub(crate) mod runtime;
pub(crate) mod store;
pub(crate) mod transport;
