//! Faults of replicas.

use crate::engine::nodes::{self, elections, replicas};
use crate::world::World;
use crate::world::event::Event;
use crate::world::id::{FaultId, NodeId, Seat};
use quorlock_sim_plan::fault::NodeFault;

/// Pauses a replica. Writes that arrived before the pause are applied; later ones wait until it ends.
pub(super) fn pause(world: &mut World, replica: NodeId, until: u64) {
    replicas::catch_up(world, replica);
    world.node(replica).hold_stream(until);
    nodes::pause(world, replica, until);
}

/// Crashes a replica. Returns whether it was up.
pub(super) fn crash(
    world: &mut World,
    seat: Seat,
    replica: NodeId,
    id: FaultId,
    until: u64,
) -> bool {
    if !nodes::crash(world, replica) {
        return false;
    }
    let primary = world.failovers.primary(seat);
    if primary == replica {
        elections::primary_ended(world, seat, replica);
    } else {
        // The primary has one replica fewer until this one returns.
        elections::cut_streams(world, primary, |other| other == replica);
    }
    world.push(until, Event::RestartNode(replica));
    world.push(until, Event::Ends(id));
    true
}

/// Ends a fault of a replica. After a crash, the replica follows its primary again, and the primary counts it again.
pub(super) fn end(world: &mut World, seat: Seat, replica: NodeId, fault: &NodeFault) {
    let now = world.now();
    let primary = world.failovers.primary(seat);
    let follows = world.node(replica).follows() == Some(primary);
    let mut known = world.node(primary).replicas().iter();
    // In a group, the sentinels themselves bring the replicas back.
    let is_known = known.any(|(other, _)| *other == replica) || world.groups.get(seat).is_some();
    if *fault == NodeFault::Crash && follows && !is_known {
        world.node(primary).add_replica(replica, now);
        let many = world.node(primary).replicas().len();
        world.servers.server(primary).set_replicas(many);
    }
}
