//! Many runs: drawing plans, comparing verdicts with expectations, counting outcomes, and shrinking failures.

pub mod campaign;
pub mod experiment;
pub mod export;
pub mod failure;
pub mod gallery;
pub mod interval;
pub mod law;
mod lock_changes;
pub mod matrix;
pub mod measure;
pub(crate) mod pool;
#[cfg(unix)]
pub(crate) mod predicted;
pub(crate) mod progress;
pub mod rate;
pub mod results;
pub mod runs;
pub mod scenario;
pub mod service;
pub mod shrink;
pub mod source;
pub(crate) mod time_limit;
pub mod why;
