//! Migrations: a slot of a cluster moves from one shard to another, key by key.

use crate::engine::nodes::{clusters, replicas};
use crate::world::World;
use crate::world::event::Event;
use crate::world::id::{FaultId, Id, NodeId, Seat};
use crate::world::server::Hand;
use crate::world::shards::{MoveStage, SlotMove};
use quorlock_sim_plan::fault::{FaultKind, NodeFault};

/// The fraction of the time after which the first key moves. Each further key moves after half of the remaining time,
/// and the rest at the end.
const FIRST: u64 = 4;

/// How long a move waits for a node that is paused or down, in nanoseconds.
const LATER: u64 = 10_000_000;

/// Begins to move a slot, unless the shard already owns it or it is already being moved.
pub fn begin(world: &mut World, seat: Seat, (name, to): (u16, Seat), by: FaultId, until: u64) {
    let slot = world
        .servers
        .slot_of(seat, &quorlock_sim_plan::name_of(name));
    let now = world.now();
    let until = until.saturating_sub(gap(world, by)).max(now);
    let Some(shards) = &mut world.shards else {
        return;
    };
    let from = shards.owner(slot);
    if from == to || shards.is_moving(slot) {
        return;
    }
    shards.begin_move(SlotMove {
        by,
        slot,
        from,
        to,
        until,
        stage: MoveStage::Keys,
    });
    world.push(now + (until - now) / FIRST, Event::Migrate(by));
    world.blame(by);
    clusters::refresh(world);
}

/// Continues a move, with the next key, with the last keys, or by ending it.
pub fn go_on(world: &mut World, by: FaultId) {
    let found = world.shards.as_ref();
    let Some(slot_move) = found.and_then(|shards| shards.move_by(by)) else {
        return;
    };
    let now = world.now();
    let (from, to) = (
        world.failovers.primary(slot_move.from),
        world.failovers.primary(slot_move.to),
    );
    if !is_awake(world, from) || !is_awake(world, to) {
        world.push(now + LATER, Event::Migrate(by));
        return;
    }
    match slot_move.stage {
        MoveStage::Keys if now < slot_move.until => {
            move_key(world, slot_move.slot, from, to);
            let part = (slot_move.until - now) / 2;
            world.push(now + part.max(1_000_000), Event::Migrate(by));
        }
        MoveStage::Keys => {
            while move_key(world, slot_move.slot, from, to) {}
            let knows = now + gap(world, by);
            if let Some(shards) = &mut world.shards {
                shards.give(slot_move, now, knows);
            }
            world.push(knows, Event::Migrate(by));
        }
        MoveStage::Gap => {
            if let Some(shards) = &mut world.shards {
                shards.end_move(by);
            }
        }
    }
    clusters::refresh(world);
}

fn move_key(world: &mut World, slot: u16, from: NodeId, to: NodeId) -> bool {
    let hand = |node| Hand {
        node,
        now: world.micros(node),
    };
    let (gives, takes) = (hand(from), hand(to));
    let is_moved = world.servers.move_key(slot, gives, takes);
    replicas::keep(world, from);
    replicas::keep(world, to);
    is_moved
}

fn is_awake(world: &World, node: NodeId) -> bool {
    let now = world.now();
    let node = world.nodes.get(node);
    node.is_some_and(|node| node.is_up() && node.paused_until() <= now)
}

/// Returns for how long the old and the new owner each name the other one as the owner.
fn gap(world: &World, by: FaultId) -> u64 {
    let fault = world.plan.faults.get(by.index());
    match fault.map(|fault| &fault.what) {
        Some(FaultKind::Node {
            fault: NodeFault::MigrateSlot { gap, .. },
            ..
        }) => gap.as_nanos(),
        _ => 0,
    }
}
