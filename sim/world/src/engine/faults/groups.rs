//! Faults of groups: isolated primaries, and sentinels.

use super::links;
use crate::engine::nodes::{self, elections};
use crate::world::World;
use crate::world::event::Event;
use crate::world::id::{FaultId, Seat};

/// Cuts a primary off, together with some clients and sentinels.
pub(super) fn isolate(
    world: &mut World,
    seat: Seat,
    id: FaultId,
    (clients, sentinels): (&[u16], &[u16]),
    until: u64,
) {
    elections::isolate(world, seat, id, clients, sentinels);
    set_links(world, seat);
    world.push(until, Event::Ends(id));
}

/// Cuts a sentinel off from servers and other sentinels.
pub(super) fn make_stale(world: &mut World, seat: Seat, id: FaultId, sentinel: u16, until: u64) {
    elections::make_stale(world, seat, id, sentinel);
    world.push(until, Event::Ends(id));
}

/// Crashes a sentinel. Returns whether it was up.
pub(super) fn crash_sentinel(world: &mut World, seat: Seat, sentinel: u16, until: u64) -> bool {
    let node = elections::sentinel(world, seat, sentinel);
    let crashed = node.filter(|node| nodes::crash(world, *node));
    if let Some(node) = crashed {
        world.push(until, Event::RestartNode(node));
    }
    crashed.is_some()
}

/// Pauses a sentinel.
pub(super) fn pause_sentinel(world: &mut World, seat: Seat, sentinel: u16, until: u64) {
    if let Some(node) = elections::sentinel(world, seat, sentinel) {
        nodes::pause(world, node, until);
    }
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
