//! The lab's own clients: the work that they do, and the locks that they use.

pub mod context;
pub(crate) mod hold;
pub mod subject;
pub(crate) mod workload;
