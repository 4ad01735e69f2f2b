//! The shards of a cluster: the owner of each slot, and which nodes know of it.
//!
//! The [group](crate::world::election_group) of a shard decides which server is its primary. What a node tells clients combines
//! both.

use std::collections::BTreeMap;

use crate::world::id::{FaultId, Id, NodeId, Seat, first};
use quorlock_sim_plan::Cluster;

/// The number of slots of a cluster.
const SLOTS: u32 = 16_384;

/// The shards of a cluster.
#[derive(Debug)]
pub struct Shards {
    rules: Cluster,
    count: u16,
    gifts: Vec<Gift>,
    moves: Vec<SlotMove>,
    pulses: Vec<Pulse>,
    /// What each node told clients last.
    told: Vec<Option<KnownSlots>>,
}

/// A slot whose owner has changed since the equal division.
#[derive(Debug)]
struct Gift {
    slot: u16,
    to: Seat,
    /// When the old and the new owner learn of the change, in true time.
    due: [(Seat, u64); 2],
    others: u64,
    known: Vec<NodeId>,
}

/// A slot whose keys are being moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotMove {
    pub(crate) by: FaultId,
    pub(crate) slot: u16,
    pub(crate) from: Seat,
    pub(crate) to: Seat,
    /// When the last key is moved.
    pub until: u64,
    pub(crate) stage: MoveStage,
}

/// The progress of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoveStage {
    /// Keys are moved one after another.
    Keys,
    /// All keys have been moved, but the new owner does not yet know that it is the owner.
    Gap,
}

/// The state of a node's contact with the majority of the primaries.
#[derive(Clone, Copy, Debug, Default)]
struct Pulse {
    /// When the node last reached a majority.
    heard: u64,
    /// Set while the node answers `CLUSTERDOWN`. The inner value is the time since when it has reached a majority
    /// again.
    fails: Option<Option<u64>>,
}

/// The nodes that a node reaches now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reached {
    /// None, because the node is down or paused.
    None,
    /// A minority of the primaries.
    Few,
    /// A majority of the primaries.
    Most,
}

/// What a node tells clients about slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownSlots {
    /// The node that tells it.
    pub own: NodeId,
    /// The owners of all slots.
    pub shares: Vec<KnownShare>,
    /// Slots whose keys are moved from this node to another one.
    pub leaving: Vec<(u16, NodeId)>,
    /// Slots whose keys are moved to this node from another one.
    pub arriving: Vec<(u16, NodeId)>,
    /// Whether the node answers requests.
    pub service: Availability,
}

/// A range of consecutive slots of one owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownShare {
    /// The first slot.
    pub first: u16,
    /// The last slot.
    pub last: u16,
    /// The primary that has the slots.
    pub owner: NodeId,
    /// The replicas of the owner.
    pub replicas: Vec<NodeId>,
}

/// Whether a node of a cluster answers requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Availability {
    /// It answers them.
    Up,
    /// It refuses them.
    Down,
}

/// The primary and the replicas of a shard, as a node knows them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KnownShard {
    pub primary: NodeId,
    pub replicas: Vec<NodeId>,
}

impl Shards {
    /// Divides the slots equally among this many shards of a cluster with this many nodes.
    pub fn new(rules: &Cluster, count: u16, nodes: usize) -> Self {
        Shards {
            rules: rules.clone(),
            count,
            gifts: Vec::new(),
            moves: Vec::new(),
            pulses: vec![Pulse::default(); nodes],
            told: vec![None; nodes],
        }
    }

    pub(crate) fn rules(&self) -> &Cluster {
        &self.rules
    }

    /// Assigns a slot to a shard from the beginning of the run. All nodes know of this.
    pub(crate) fn assign(&mut self, slot: u16, to: Seat) {
        let nodes = first(u16::try_from(self.told.len()).unwrap_or(u16::MAX));
        self.gifts.push(Gift {
            slot,
            to,
            due: [(to, 0); 2],
            others: 0,
            known: nodes.collect(),
        });
    }

    /// Returns the owner of a slot, as the best informed nodes know it.
    pub fn owner(&self, slot: u16) -> Seat {
        let mut gifts = self.gifts.iter().rev();
        let gift = gifts.find(|gift| gift.slot == slot);
        gift.map_or_else(|| self.part(slot), |gift| gift.to)
    }

    /// Returns the shard that has a slot in the equal division.
    fn part(&self, slot: u16) -> Seat {
        let count = u32::from(self.count);
        let mut seats = first::<Seat>(self.count);
        let has = |seat: &Seat| (u32::from(seat.get()) + 1) * SLOTS / count > u32::from(slot);
        seats.find(has).unwrap_or(Seat::new(0))
    }

    pub(crate) fn begin_move(&mut self, slot_move: SlotMove) {
        self.moves.push(slot_move);
    }

    /// Returns the move that a fault has begun, unless it is over.
    pub(crate) fn move_by(&self, fault: FaultId) -> Option<SlotMove> {
        let mut moves = self.moves.iter();
        moves.find(|slot_move| slot_move.by == fault).copied()
    }

    /// Returns whether the keys of a slot are being moved.
    pub(crate) fn is_moving(&self, slot: u16) -> bool {
        self.moves.iter().any(|slot_move| slot_move.slot == slot)
    }

    /// Gives a slot to its new owner after its last key was moved. The old owner knows of it now, the new one at
    /// `knows`.
    pub fn give(&mut self, slot_move: SlotMove, now: u64, knows: u64) {
        self.gifts.push(Gift {
            slot: slot_move.slot,
            to: slot_move.to,
            due: [(slot_move.from, now), (slot_move.to, knows)],
            others: knows + self.rules.gossip.as_nanos(),
            known: Vec::new(),
        });
        for other in &mut self.moves {
            if other.by == slot_move.by {
                other.stage = MoveStage::Gap;
            }
        }
    }

    pub(crate) fn end_move(&mut self, fault: FaultId) {
        self.moves.retain(|slot_move| slot_move.by != fault);
    }

    /// Updates what a node that is awake knows about owners.
    pub(crate) fn learn(&mut self, now: u64, node: NodeId, seat: Seat) {
        for gift in &mut self.gifts {
            let mut due = gift.due.iter();
            let due = due.find(|(of, _)| *of == seat);
            let due = due.map_or(gift.others, |(_, at)| *at);
            if due <= now && !gift.known.contains(&node) {
                gift.known.push(node);
            }
        }
    }

    /// Records that the process of a node has ended, however soon another one is started. The new process answers
    /// `CLUSTERDOWN` until it has reached a majority for a while.
    pub(crate) fn end_process(&mut self, node: NodeId) {
        if let Some(pulse) = self.pulses.get_mut(node.index()) {
            pulse.fails = Some(None);
        }
        if let Some(told) = self.told.get_mut(node.index()) {
            *told = None;
        }
    }

    /// Records which nodes a node reaches. Returns whether the node answers requests about slots from now on.
    pub(crate) fn listen(&mut self, now: u64, node: NodeId, heard: Reached) -> Availability {
        let timeout = self.rules.node_timeout.as_nanos();
        let Some(pulse) = self.pulses.get_mut(node.index()) else {
            return Availability::Up;
        };
        match (heard, pulse.fails) {
            (Reached::None, _) => {}
            (Reached::Few, None) if pulse.heard + timeout <= now => pulse.fails = Some(None),
            (Reached::Few, None) => {}
            (Reached::Few, Some(_)) => pulse.fails = Some(None),
            // The node was paused, and does not know what happened to the others in the meantime. It could be a
            // deposed primary.
            (Reached::Most, None) if pulse.heard + timeout <= now => pulse.fails = Some(Some(now)),
            (Reached::Most, None) => pulse.heard = now,
            (Reached::Most, Some(None)) => pulse.fails = Some(Some(now)),
            // The others have had the time to inform the node about a promotion.
            (Reached::Most, Some(Some(since))) if since + timeout <= now => {
                *pulse = Pulse {
                    heard: now,
                    fails: None,
                };
            }
            (Reached::Most, Some(Some(_))) => {}
        }
        match pulse.fails {
            None => Availability::Up,
            Some(_) => Availability::Down,
        }
    }

    /// Returns what a node of the shard `seat` tells clients, given its view of the shards.
    pub(crate) fn known_by(
        &self,
        own: NodeId,
        seat: Seat,
        shards: &[KnownShard],
        service: Availability,
    ) -> KnownSlots {
        let is_primary = shards
            .get(seat.index())
            .is_some_and(|shard| shard.primary == own);
        let moves = self.moves.iter().filter(|_| is_primary);
        let other = |of: Seat| shards.get(of.index()).map(|shard| shard.primary);
        let leaving = moves
            .clone()
            .filter(|m| m.from == seat && m.stage == MoveStage::Keys);
        let leaving = leaving.filter_map(|m| Some((m.slot, other(m.to)?)));
        // A new owner that does not know of its ownership yet still imports keys.
        let arriving = moves.filter(|m| m.to == seat);
        let arriving = arriving.filter_map(|m| Some((m.slot, other(m.from)?)));
        KnownSlots {
            own,
            shares: self.shares(own, shards),
            leaving: leaving.collect(),
            arriving: arriving.collect(),
            service,
        }
    }

    fn shares(&self, node: NodeId, shards: &[KnownShard]) -> Vec<KnownShare> {
        let known = self.gifts.iter().filter(|gift| gift.known.contains(&node));
        let given: BTreeMap<u16, Seat> = known.map(|gift| (gift.slot, gift.to)).collect();
        let count = u32::from(self.count);
        let mut shares = Vec::new();
        for seat in first::<Seat>(self.count) {
            let end = |seat: u32| u16::try_from(seat * SLOTS / count).unwrap_or(u16::MAX);
            let (mut begin, end) = (end(seat.get().into()), end(u32::from(seat.get()) + 1));
            let inside = given.range(begin..end);
            for (slot, to) in inside.filter(|(_, to)| **to != seat) {
                shares.push((begin, *slot, seat));
                shares.push((*slot, *slot + 1, *to));
                begin = *slot + 1;
            }
            shares.push((begin, end, seat));
        }
        let shares = shares.into_iter().filter(|(begin, end, _)| begin < end);
        let shares = shares.filter_map(|(begin, end, seat)| {
            let shard = shards.get(seat.index())?;
            Some(KnownShare {
                first: begin,
                last: end - 1,
                owner: shard.primary,
                replicas: shard.replicas.clone(),
            })
        });
        shares.collect()
    }

    /// Records what a node tells clients. Returns whether it differs from before.
    pub fn tell(&mut self, known: &KnownSlots) -> Tidings {
        let Some(told) = self.told.get_mut(known.own.index()) else {
            return Tidings::Old;
        };
        if told.as_ref() == Some(known) {
            return Tidings::Old;
        }
        *told = Some(known.clone());
        Tidings::New
    }
}

/// Whether what a node tells clients has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tidings {
    /// It has changed.
    New,
    /// It is the same.
    Old,
}
