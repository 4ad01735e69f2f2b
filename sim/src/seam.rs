//! The seams through which the product uses the simulator: clocks, timers, tasks, randomness, the transport to nodes, and
//! a resource.

pub(crate) mod medium;
pub(crate) mod runtime;
pub(crate) mod store;
pub(crate) mod transport;
