//! The conformance files of the protocol, `docs/protocol/*.json`, against lock servers.
//!
//! The page `docs/src/protocol.md` says what a file is made of. A file is for those who write another client; here each
//! is held against the specification, the embedded node and servers behind the adapter, so that it cannot be wrong
//! about this implementation.

mod act;
mod bench;
mod compare;
mod keys;
mod reply;
mod sequence;
mod server;

pub use bench::{ArmBench, Bench};
pub use compare::agree_on;
pub use sequence::{Only, Sequence, read};
pub use server::ServerBench;
