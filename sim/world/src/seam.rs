//! The seams through which the product uses the simulator: clocks, timers, tasks, randomness, the transport to nodes, and
//! a resource.

pub mod medium;
pub mod records;
pub mod runtime;
pub mod store;
pub mod transport;
