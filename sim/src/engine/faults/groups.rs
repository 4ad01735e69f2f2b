//! Event faults do to groups: primaries that are cut off, and sentinels.

use super::links;
use crate::engine::nodes::{self, elections};
use crate::plan::fault::NodeFault;
use crate::world::World;
use crate::world::event::Event;
use crate::world::id::{FaultId, Seat};

/// A fault of a group begins. It is to blame from when it does something.
pub(super) fn begin(world: &mut World, seat: Seat, fault: &NodeFault, id: FaultId, until: u64) {
    match fault {
        NodeFault::IsolatePrimary { clients, sentinels } => {
            elections::isolate(world, seat, id, clients, sentinels);
            set_links(world, seat);
            world.push(until, Event::Ends(id));
        }
        NodeFault::StaleSentinel { sentinel } => {
            elections::make_stale(world, seat, id, *sentinel);
            world.push(until, Event::Ends(id));
        }
        NodeFault::CrashSentinel { sentinel } => {
            let Some(node) = elections::sentinel(world, seat, *sentinel) else {
                return;
            };
            if !nodes::crash(world, node) {
                return;
            }
            world.push(until, Event::RestartNode(node));
        }
        NodeFault::PauseSentinel { sentinel } => {
            if let Some(node) = elections::sentinel(world, seat, *sentinel) {
                nodes::pause(world, node, until);
            }
        }
        NodeFault::SentinelFailover => {
            // It is to blame if a failover begins.
            elections::order(world, seat, id);
            return;
        }
        _ => return,
    }
    world.blame(id);
}

/// The members of a group hear each other again.
pub(super) fn end(world: &mut World, seat: Seat, id: FaultId) {
    elections::unite(world, id);
    set_links(world, seat);
}

/// Clients on one side of a cluster do not reach the other shards.
fn set_links(world: &mut World, seat: Seat) {
    let is_of_cluster = world.shards.is_some();
    for other in world.groups.ids().collect::<Vec<_>>() {
        if other == seat || is_of_cluster {
            links::set_all(world, other);
        }
    }
}
