//! The traits with which plans and results are written to files and read. They are those of serde, or, in a build without
//! files, derives that do nothing.

#[cfg(feature = "locks")]
pub(crate) use serde::{Deserialize, Serialize};

#[cfg(not(feature = "locks"))]
pub(crate) use quorlock_sim_macros::{NotRead as Deserialize, NotWritten as Serialize};
