//! Faults of groups: isolated primaries, and sentinels.

use super::links;
use crate::engine::nodes::{self, elections};
use crate::world::World;
use crate::world::event::Event;
use crate::world::id::{FaultId, Seat};
use quorlock_sim_plan::fault::NodeFault;

/// Begins a fault of a group. The fault counts as effective as soon as it changes something.
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
            // This fault counts as effective if a failover begins.
            elections::order(world, seat, id);
            return;
        }
        _ => return,
    }
    world.blame(id);
}

/// Ends the separation of the members of a group.
pub(super) fn end(world: &mut World, seat: Seat, id: FaultId) {
    elections::unite(world, id);
    set_links(world, seat);
}

/// Updates the links to a group. In a cluster, clients on one side do not reach the other shards either.
fn set_links(world: &mut World, seat: Seat) {
    let is_of_cluster = world.shards.is_some();
    for other in world.groups.ids().collect::<Vec<_>>() {
        if other == seat || is_of_cluster {
            links::set_all(world, other);
        }
    }
}
