//! Faults of replicas.

use crate::engine::nodes::{self, elections, replicas};
use crate::world::World;
use crate::world::event::Event;
use crate::world::id::{FaultId, NodeId, Seat};
use quorlock_sim_plan::fault::NodeFault;

/// Begins a fault of a replica. If the replica has been promoted since, the fault strikes it as the primary.
pub(super) fn begin(
    world: &mut World,
    seat: Seat,
    replica: NodeId,
    fault: &NodeFault,
    id: FaultId,
    until: u64,
) {
    let now = world.now();
    let is_primary = world.failovers.primary(seat) == replica;
    if is_primary {
        elections::strike(world, seat, id, replica);
    }
    match fault {
        NodeFault::Pause => {
            // Writes that arrived before the pause are applied; later ones wait until it ends.
            replicas::catch_up(world, replica);
            world.node(replica).hold_stream(until);
            nodes::pause(world, replica, until);
        }
        NodeFault::Crash => {
            if !nodes::crash(world, replica) {
                return;
            }
            if is_primary {
                elections::primary_ended(world, seat, replica);
            } else {
                // The primary has one replica fewer until this one returns.
                let primary = world.failovers.primary(seat);
                elections::cut_streams(world, primary, |other| other == replica);
            }
            world.push(until, Event::RestartNode(replica));
            world.push(until, Event::Ends(id));
        }
        NodeFault::Rate { rate_ppm } => {
            world.node(replica).clock_mut().run_at(now, *rate_ppm);
        }
        NodeFault::Step { by } => world.node(replica).clock_mut().step(now, by.as_nanos()),
        // A plan is refused if it strikes a replica with any of these (`Kind::strikes_replicas`).
        NodeFault::PowerLoss { .. }
        | NodeFault::Flush
        | NodeFault::Evict { .. }
        | NodeFault::Error { .. }
        | NodeFault::RevokeKeys { .. }
        | NodeFault::ForgetScripts
        | NodeFault::SlowReplication { .. }
        | NodeFault::Failover { .. }
        | NodeFault::IsolatePrimary { .. }
        | NodeFault::SentinelFailover
        | NodeFault::CrashSentinel { .. }
        | NodeFault::PauseSentinel { .. }
        | NodeFault::StaleSentinel { .. }
        | NodeFault::Stall { .. }
        | NodeFault::FreeBacklog
        | NodeFault::Misroute { .. }
        | NodeFault::MigrateSlot { .. }
        | NodeFault::ClusterFailover { .. } => return,
    }
    world.blame(id);
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
