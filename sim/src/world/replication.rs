//! An answer that waits until replicas have what was written.

use crate::world::call::{Answer, Call};
use crate::world::slab::Key;

/// An answer that waits for replicas.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) call: Key<Call>,
    pub(crate) node: u16,
    pub(crate) answer: Answer,
    /// Each replica with the time at which its primary hears that it has the write.
    pub(crate) confirmed: Vec<(u16, u64)>,
}
