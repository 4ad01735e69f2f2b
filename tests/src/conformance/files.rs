//! Runs the conformance files of the protocol, `docs/protocol/*.json`, on lock servers.
//!
//! The page `docs/src/protocol.md` describes the files, which are for authors of other clients. Here, each file runs
//! on the specification, the embedded node and servers behind the adapter, so a file cannot be wrong about this
//! implementation.

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
