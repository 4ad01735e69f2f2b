//! Moves of slots between the nodes of a cluster.

use super::{Cluster, own};
use crate::server::Server;
use crate::wait::wait_for;

impl Cluster {
    /// Begins to move a slot from one node to another. After that, its keys can be moved.
    ///
    /// The nodes must first agree on the owners. A node that gets a slot takes the next epoch after those that it
    /// knows, and a late message with a higher epoch would take the slot back.
    ///
    /// # Panics
    /// Panics if the nodes refuse.
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) {
        self.settle();
        let (from, to) = (&self.nodes[from], &self.nodes[to]);
        let slot = slot.to_string();
        let id = |node: &Server| node.command::<String>(&["CLUSTER", "MYID"]);
        to.command::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &id(from)]);
        from.command::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &id(to)]);
    }

    /// Moves these keys of a slot. On a busy machine the nodes may take each other for dead for a moment, and refuse.
    ///
    /// # Panics
    /// Panics if the nodes go on to refuse.
    pub fn move_keys(&self, from: usize, to: usize, keys: &[&str]) {
        let port = self.nodes[to].port().to_string();
        let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
        words.extend(keys);
        wait_for("the keys of a slot are moved", || {
            self.nodes[from].order(&words).ok()
        });
    }

    /// Returns the keys of a slot at a node.
    ///
    /// # Panics
    /// Panics if the node refuses.
    #[must_use]
    pub fn keys_of(&self, node: usize, slot: u16) -> Vec<String> {
        let slot = slot.to_string();
        self.nodes[node].command(&["CLUSTER", "GETKEYSINSLOT", &slot, "1000"])
    }

    /// Moves the remaining keys of a slot, and informs all nodes about the new owner.
    ///
    /// # Panics
    /// Panics if the nodes refuse.
    pub fn end_move(&self, slot: u16, from: usize, to: usize) {
        let keys = self.keys_of(from, slot);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        if !keys.is_empty() {
            self.move_keys(from, to, &keys);
        }
        let id: String = self.nodes[to].command(&["CLUSTER", "MYID"]);
        let slot = slot.to_string();
        let told = ["CLUSTER", "SETSLOT", &slot, "NODE", &id];
        self.nodes[to].command::<()>(&told);
        for node in &self.nodes {
            // Replicas refuse the command, and learn of the new owner from their primaries.
            let _ = node.try_command::<()>(&told);
        }
    }

    /// Gives up the moves that have not ended.
    pub(super) fn give_up_moves(&self) {
        for node in &self.nodes {
            let moving = own(node).map(|own| own.moving()).unwrap_or_default();
            for slot in moving {
                let _ = node.order(&["CLUSTER", "SETSLOT", &slot, "STABLE"]);
            }
        }
    }

    /// Moves a slot with all of its keys.
    ///
    /// # Panics
    /// Panics if the nodes refuse.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.begin_move(slot, from, to);
        self.end_move(slot, from, to);
    }
}
