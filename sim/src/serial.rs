//! Whether what is run, and what happened, can be written to files and read: by serde, or not at all in a build that reads none.

#[cfg(feature = "locks")]
pub(crate) use serde::{Deserialize, Serialize};

#[cfg(not(feature = "locks"))]
pub(crate) use quorlock_sim_macros::{NotRead as Deserialize, NotWritten as Serialize};
