//! A replica takes the place of its primary.

use crate::engine::network::{connections, subscriptions};
use crate::engine::nodes::replicas;
use crate::world::World;
use crate::world::event::What;
use crate::world::node::Role;

/// A replica takes the place of its primary; the old one goes on until it rejoins.
pub(crate) fn promote(
    world: &mut World,
    fault: u16,
    seat: u16,
    replica: u16,
    left_behind: &[u16],
    rejoins: u64,
) {
    let now = world.now;
    let old = primary(world, seat);
    let Some(new) = replica_of(world, seat, replica).filter(|new| *new != old) else {
        return;
    };
    replicas::catch_up(world, new);
    let node = world.node(new);
    node.role = Role::Primary;
    node.lives += 1;
    world.servers.server(new).promote();
    let others = std::mem::take(&mut world.node(old).replicas);
    for (other, _) in others {
        if other != new {
            replicas::catch_up(world, other);
            world.node(other).role = Role::ReplicaOf(new);
            replicas::follow(world, other, new);
            world.node(new).replicas.push((other, now));
        }
    }
    for client in 0..world.plan.clients {
        let at = if left_behind.contains(&client) {
            rejoins
        } else {
            now
        };
        world.push(at, What::Reroute(client, seat));
    }
    world.node(old).replicas.clear();
    for node in [old, new] {
        let replicas = world.node(node).replicas.len();
        world.servers.server(node).set_replicas(replicas);
    }
    world.node(old).replicas_since = now;
    world.node(new).replicas_since = now;
    world.promoted.push((seat, old, new, fault));
}

/// The node that clients are sent to for a node of the plan.
pub(crate) fn primary(world: &World, seat: u16) -> u16 {
    let last = world.promoted.iter().rev().find(|(s, ..)| *s == seat);
    last.map_or(seat, |(_, _, new, _)| *new)
}

/// The node of a plan's node's replica, which is fixed whatever roles they have.
pub(crate) fn replica_of(world: &World, seat: u16, replica: u16) -> Option<u16> {
    let nodes = &world.plan.nodes;
    (replica < nodes.replicas).then(|| nodes.count + seat * nodes.replicas + replica)
}

/// A client finds the new primary and connects to it.
pub(crate) fn reroute(world: &mut World, client: u16, seat: u16) {
    let new = primary(world, seat);
    let old = std::mem::replace(world.route(client, seat), new);
    if old != new {
        let epoch = world.link(client, old).client_epoch;
        connections::closed(world, client, old, epoch);
        world.servers.leave(client, old);
        subscriptions::move_to(world, client, seat, new);
    }
}

/// The old primary follows the new one, and forgets what only it had.
pub(crate) fn rejoin(world: &mut World, fault: u16) {
    let now = world.now;
    let promotion = world.promoted.iter().find(|(.., by)| *by == fault);
    let Some((seat, old, _, _)) = promotion.copied() else {
        return;
    };
    // Somebody else may have been promoted since; if it was the old primary itself, it stays one.
    let new = primary(world, seat);
    if new == old {
        return;
    }
    replicas::catch_up(world, old);
    if world.node(old).role == Role::Primary {
        world.node(old).role = Role::ReplicaOf(new);
        replicas::follow(world, old, new);
        world.node(new).replicas.push((old, now));
    }
}
