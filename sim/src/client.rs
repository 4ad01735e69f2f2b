//! Clients of a simulation: the work that they do, and the locks that they use.

pub mod assertion;
pub mod context;
#[cfg(feature = "locks")]
pub(crate) mod hold;
#[cfg(feature = "locks")]
pub mod subject;
#[cfg(feature = "locks")]
pub(crate) mod workload;
