//! Read-write locks: any number of readers, or one writer.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test"
)]

mod bounds;
mod leases;
mod owners;
mod sharing;

use std::time::Duration;

use quorlock::{EmbeddedNode, Locks, Name};

const SECOND: Duration = Duration::from_secs(1);
const MS: fn(u64) -> Duration = Duration::from_millis;

fn name() -> Name {
    Name::new("a").unwrap()
}

/// A client of one node, and a client of five.
fn clients() -> [(Vec<EmbeddedNode>, Locks); 2] {
    [1, 5].map(|count| {
        let nodes: Vec<_> = (0..count).map(|_| EmbeddedNode::new()).collect();
        let settings = Locks::builder()
            .trust_fresh_nodes()
            .clock_margin(Duration::ZERO);
        let locks = settings.on_nodes(nodes.clone()).unwrap();
        (nodes, locks)
    })
}
