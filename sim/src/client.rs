//! Clients of a simulation: the work that they do, and the locks that they use.

pub mod assertion;
pub mod context;
pub(crate) mod hold;
pub mod subject;
pub(crate) mod workload;
