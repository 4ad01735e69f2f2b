//! What clients do: the work, and the lock that they do it with.

pub mod context;
pub mod subject;
pub(crate) mod workload;
