//! The registration of a witness at a cluster.

use std::sync::Weak;

use super::Cluster;
use crate::connection::Attendance;

/// Keeps a witness registered until this value is dropped.
pub(super) struct Attending {
    pub(super) cluster: Weak<Cluster>,
    pub(super) number: u64,
    /// Watches of the nodes that were unreachable when the witness was registered.
    pub(super) _failing: Vec<Attendance>,
}

impl Drop for Attending {
    fn drop(&mut self) {
        if let Some(cluster) = self.cluster.upgrade() {
            cluster.leave(self.number);
        }
    }
}
