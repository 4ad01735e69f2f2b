//! Many runs: what is drawn, compared with what is expected, counted, and made small.

pub mod campaign;
pub mod export;
pub mod failure;
pub mod matrix;
pub(crate) mod patience;
pub(crate) mod pool;
pub(crate) mod progress;
pub mod scenario;
pub mod shrink;
pub mod source;
