//! What faults do to replicas.

use crate::engine::nodes::{self, elections, replicas};
use crate::plan::fault::NodeFault;
use crate::world::World;
use crate::world::event::Event;
use crate::world::id::{FaultId, NodeId, Seat};

/// A fault of a replica begins. If it is the primary by now, that is what is struck.
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
            // What had come before it stood still is taken over, and nothing until it goes on.
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
                // Its primary has one replica less until it is back.
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
        _ => return,
    }
    world.blame(id);
}

/// A replica that has begun again follows its primary, which counts it again.
pub(super) fn end(world: &mut World, seat: Seat, replica: NodeId, fault: &NodeFault) {
    let now = world.now();
    let primary = world.failovers.primary(seat);
    let follows = world.node(replica).follows() == Some(primary);
    let mut known = world.node(primary).replicas().iter();
    // Those of a group are brought back by its sentinels.
    let is_known = known.any(|(other, _)| *other == replica) || world.groups.get(seat).is_some();
    if *fault == NodeFault::Crash && follows && !is_known {
        world.node(primary).add_replica(replica, now);
        let many = world.node(primary).replicas().len();
        world.servers.server(primary).set_replicas(many);
    }
}
