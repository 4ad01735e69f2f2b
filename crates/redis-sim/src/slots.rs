//! What a node of a cluster knows of its slots.

use std::collections::BTreeMap;

use crc::{CRC_16_XMODEM, Crc};

use crate::watch::Place;

/// How many slots a cluster has.
const SLOTS: u16 = 16_384;

const CRC: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// The slot of a key or of a channel of a shard.
#[must_use]
pub fn slot_of_key(key: &[u8]) -> u16 {
    CRC.checksum(tag(key).unwrap_or(key)) % SLOTS
}

/// What stands between the first `{` and the next `}`, unless that is nothing.
fn tag(key: &[u8]) -> Option<&[u8]> {
    let begin = key.iter().position(|byte| *byte == b'{')? + 1;
    let behind = key.get(begin..)?;
    let end = behind.iter().position(|byte| *byte == b'}')?;
    behind.get(..end).filter(|tag| !tag.is_empty())
}

/// What one node knows of the slots of its cluster. It believes what it was told last, and holds no election.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotTable {
    /// Where the node itself listens.
    pub own: Place,
    /// Who owns which slots.
    pub shares: Vec<SlotShare>,
    /// Slots whose keys are being moved away from it, and to where (`CLUSTER SETSLOT MIGRATING`).
    pub leaving: BTreeMap<u16, Place>,
    /// Slots whose keys are being moved to it (`CLUSTER SETSLOT IMPORTING`).
    pub arriving: BTreeMap<u16, Place>,
    /// What `cluster_state` says.
    pub state: ClusterState,
}

/// Consecutive slots of one owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotShare {
    /// The first slot.
    pub first: u16,
    /// The last slot.
    pub last: u16,
    /// Where the owner listens.
    pub owner: Place,
    /// Where its replicas listen.
    pub replicas: Vec<Place>,
}

/// Whether a node of a cluster answers requests about keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClusterState {
    /// It does.
    Ok,
    /// It hears no majority, or some slots have no owner that is up: it answers `CLUSTERDOWN`.
    Fail,
}

impl SlotTable {
    /// The owner of a slot.
    pub(crate) fn owner(&self, slot: u16) -> Option<&Place> {
        let mut shares = self.shares.iter();
        let share = shares.find(|share| (share.first..=share.last).contains(&slot));
        share.map(|share| &share.owner)
    }

    /// Whether a script may use a key here that is there or missing.
    pub(crate) fn is_local(&self, key: &[u8], is_missing: bool) -> bool {
        let slot = slot_of_key(key);
        match self.owner(slot) {
            Some(owner) if *owner == self.own => !(is_missing && self.leaving.contains_key(&slot)),
            _ => self.arriving.contains_key(&slot),
        }
    }

    /// Whether the node, or its primary, owns a slot.
    pub(crate) fn serves(&self, slot: u16) -> bool {
        let mut shares = self.shares.iter();
        let share = shares.find(|share| (share.first..=share.last).contains(&slot));
        share.is_some_and(|share| share.owner == self.own || share.replicas.contains(&self.own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `CLUSTER KEYSLOT` says on redis-server 7.0.15.
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
