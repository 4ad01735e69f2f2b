//! The slots of a cluster, as one node sees them.

use std::collections::BTreeMap;

use crc::{CRC_16_XMODEM, Crc};

use crate::watch::Place;

/// The number of slots of a cluster.
const SLOTS: u16 = 16_384;

const CRC: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// Returns the slot of a key or of a channel of a shard.
#[must_use]
pub fn slot_of_key(key: &[u8]) -> u16 {
    CRC.checksum(tag(key).unwrap_or(key)) % SLOTS
}

/// Returns the text between the first `{` and the next `}`, unless it is empty.
fn tag(key: &[u8]) -> Option<&[u8]> {
    let begin = key.iter().position(|byte| *byte == b'{')? + 1;
    let behind = key.get(begin..)?;
    let end = behind.iter().position(|byte| *byte == b'}')?;
    behind.get(..end).filter(|tag| !tag.is_empty())
}

/// One node's view of the slots of its cluster. It is what the caller set last; the node holds no elections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotTable {
    /// Address of the node itself.
    pub own: Place,
    /// Ranges of slots and their owners.
    pub shares: Vec<SlotShare>,
    /// Slots whose keys are being moved away from the node, and the target (`CLUSTER SETSLOT MIGRATING`).
    pub leaving: BTreeMap<u16, Place>,
    /// Slots whose keys are being moved to the node, and the source (`CLUSTER SETSLOT IMPORTING`).
    pub arriving: BTreeMap<u16, Place>,
    /// State of the cluster, as `cluster_state` reports it.
    pub state: ClusterState,
}

/// Consecutive slots of one owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotShare {
    /// First slot of the range.
    pub first: u16,
    /// Last slot of the range.
    pub last: u16,
    /// Address of the owner.
    pub owner: Place,
    /// Addresses of the owner's replicas.
    pub replicas: Vec<Place>,
}

/// Whether a node of a cluster answers requests about keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClusterState {
    /// The node answers requests.
    Ok,
    /// The node reaches no majority, or some slots have no owner that is up. It answers `CLUSTERDOWN`.
    Fail,
}

impl SlotTable {
    /// Returns the owner of a slot.
    pub(crate) fn owner(&self, slot: u16) -> Option<&Place> {
        let mut shares = self.shares.iter();
        let share = shares.find(|share| (share.first..=share.last).contains(&slot));
        share.map(|share| &share.owner)
    }

    /// Returns whether a script may use a key on this node. `is_missing` states whether the key does not exist.
    pub(crate) fn is_local(&self, key: &[u8], is_missing: bool) -> bool {
        let slot = slot_of_key(key);
        match self.owner(slot) {
            Some(owner) if *owner == self.own => !(is_missing && self.leaving.contains_key(&slot)),
            _ => self.arriving.contains_key(&slot),
        }
    }

    /// Returns whether the node, or its primary, owns a slot.
    pub(crate) fn serves(&self, slot: u16) -> bool {
        let mut shares = self.shares.iter();
        let share = shares.find(|share| (share.first..=share.last).contains(&slot));
        share.is_some_and(|share| share.owner == self.own || share.replicas.contains(&self.own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected slots are from `CLUSTER KEYSLOT` of redis-server 7.0.15.
    #[test]
    fn slots_are_those_of_redis() {
        for (key, slot) in [
            ("", 0),
            ("123456789", 12_739),
            ("foo", 12_182),
            ("{foo}", 12_182),
            ("a{foo}b{bar}", 12_182),
        ] {
            assert_eq!(slot_of_key(key.as_bytes()), slot, "{key}");
        }
        assert_ne!(slot_of_key(b"{}foo"), slot_of_key(b""));
    }
}
