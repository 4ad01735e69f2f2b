//! What clients do: the work, and the lock that they do it with.

pub mod assertion;
pub mod context;
pub(crate) mod hold;
pub mod subject;
pub(crate) mod workload;
