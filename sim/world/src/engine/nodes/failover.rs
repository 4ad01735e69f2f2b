//! Failovers: a replica replaces its primary.

use crate::engine::network::{connections, subscriptions};
use crate::engine::nodes::replicas;
use crate::world::World;
use crate::world::event::Event;
use crate::world::fault::Failover;
use crate::world::id::{ClientId, FaultId, Id, NodeId, Seat, first};
use crate::world::node::Role;

/// A promotion at a node of the plan.
#[derive(Clone, Copy, Debug)]
pub struct Promotion<'a> {
    pub(crate) by: FaultId,
    pub(crate) seat: Seat,
    /// The index of the promoted replica.
    pub replica: u16,
    /// The clients that find the new primary only when the old one rejoins, by their numbers in the plan.
    pub(crate) left_behind: &'a [u16],
    /// When the old primary rejoins.
    pub(crate) rejoins: u64,
}

/// Promotes a replica. The old primary stays a primary until it rejoins.
pub fn promote(world: &mut World, promotion: Promotion<'_>) {
    let Promotion { by, seat, .. } = promotion;
    let now = world.now();
    let old = world.failovers.primary(seat);
    let new = match world.replicas_of(seat).nth(promotion.replica.into()) {
        // That replica is already the primary, so the first primary of the node is promoted instead.
        Some(new) if new == old => seat.first_node(),
        Some(new) => new,
        None => return,
    };
    // A server that has not rejoined after an earlier failover is not a replica, and cannot be promoted.
    if world.node(new).role() == Role::Primary {
        return;
    }
    replace(
        world,
        Failover {
            seat,
            from: old,
            to: new,
            by: Some(by),
        },
    );
    for client in first::<ClientId>(world.plan.clients) {
        let at = if promotion.left_behind.contains(&client.get()) {
            promotion.rejoins
        } else {
            now
        };
        world.push(at, Event::Reroute(client, seat));
    }
}

/// Makes a replica the primary. The other replicas of the old primary follow it. The old primary stays a primary.
pub fn replace(world: &mut World, failover: Failover) {
    let now = world.now();
    let Failover {
        from: old, to: new, ..
    } = failover;
    replicas::catch_up(world, new);
    let node = world.node(new);
    node.set_role(Role::Primary);
    node.begin_life();
    world.servers.server(new).promote();
    for (other, _) in world.node(old).take_replicas() {
        if other != new {
            replicas::catch_up(world, other);
            follow(world, other, new);
        }
    }
    for node in [old, new] {
        let replicas = world.node(node).replicas().len();
        world.servers.server(node).set_replicas(replicas);
        world.node(node).count_replicas_from(now);
    }
    world.failovers.push(failover);
}

/// Makes a node a replica of another one, with a full copy of its data.
pub fn follow(world: &mut World, node: NodeId, primary: NodeId) {
    let now = world.now();
    world.node(node).set_role(Role::ReplicaOf(primary));
    replicas::follow(world, node, primary);
    world.node(primary).add_replica(node, now);
}

/// Routes a client to the new primary, to which the client then connects.
pub(crate) fn reroute(world: &mut World, client: ClientId, seat: Seat) {
    let new = world.failovers.primary(seat);
    lead(world, client, seat, new);
}

/// Routes a client to a server, to which the client then connects. Returns whether the route has changed.
pub fn lead(world: &mut World, client: ClientId, seat: Seat, new: NodeId) -> bool {
    let old = world.links.reroute(client, seat, new);
    if old != new {
        let epoch = world.link(client, old).epoch();
        connections::closed(world, client, old, epoch);
        world.servers.leave(client, old);
        subscriptions::move_to(world, client, seat, new);
        connections::move_to(world, client, new);
    }
    old != new
}

/// Makes the old primary follow the new one. Data that only the old primary has is lost.
pub fn rejoin(world: &mut World, fault: FaultId) {
    let Some(Failover {
        seat, from: old, ..
    }) = world.failovers.by(fault)
    else {
        return;
    };
    // Another server may have been promoted since. If that is the old primary itself, it stays a primary.
    let new = world.failovers.primary(seat);
    if new == old {
        return;
    }
    replicas::catch_up(world, old);
    if world.node(old).role() == Role::Primary {
        follow(world, old, new);
    }
}
