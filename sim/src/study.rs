//! Many runs: drawing plans, comparing verdicts with expectations, counting outcomes, and shrinking failures.

#[cfg(feature = "campaigns")]
pub mod campaign;
#[cfg(feature = "campaigns")]
pub mod export;
#[cfg(feature = "locks")]
pub mod failure;
#[cfg(feature = "campaigns")]
pub mod matrix;
#[cfg(feature = "campaigns")]
pub mod part;
#[cfg(feature = "campaigns")]
pub(crate) mod patience;
#[cfg(feature = "campaigns")]
pub(crate) mod pool;
#[cfg(all(unix, feature = "chaos"))]
pub(crate) mod predicted;
#[cfg(feature = "campaigns")]
pub(crate) mod progress;
#[cfg(feature = "campaigns")]
pub mod scenario;
pub mod shrink;
#[cfg(feature = "locks")]
pub mod source;

/// The first line of a file that repeats the failure of a test.
pub(crate) const TEST_FAILURE: &str = "# A failure of a test, found by quorlock-sim.";
