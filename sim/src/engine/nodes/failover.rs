//! A replica takes the place of its primary.

use crate::engine::network::{connections, subscriptions};
use crate::engine::nodes::replicas;
use crate::world::World;
use crate::world::event::Event;
use crate::world::fault::Failover;
use crate::world::id::{ClientId, FaultId, Id, NodeId, Seat, first};
use crate::world::node::Role;

/// Who takes the place of the primary of a node of the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promotion<'a> {
    pub(crate) by: FaultId,
    pub(crate) seat: Seat,
    /// Which of its replicas.
    pub(crate) replica: u16,
    /// The clients that find the new primary only when the old one rejoins, in the plan's numbers.
    pub(crate) left_behind: &'a [u16],
    /// When that is.
    pub(crate) rejoins: u64,
}

/// A replica takes the place of its primary; the old one goes on until it rejoins.
pub(crate) fn promote(world: &mut World, promotion: Promotion<'_>) {
    let Promotion { by, seat, .. } = promotion;
    let now = world.now();
    let old = world.failovers.primary(seat);
    let new = match world.replicas_of(seat).nth(promotion.replica.into()) {
        // The first primary of the node has its place since it was promoted.
        Some(new) if new == old => seat.first_node(),
        Some(new) => new,
        None => return,
    };
    // One that has not come back from an earlier failover is no replica that could be promoted.
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

/// A replica becomes the primary, and the others that follow the old one follow it. The old one goes on.
pub(crate) fn replace(world: &mut World, failover: Failover) {
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

/// A node becomes a replica of another one, and begins with all that it has.
pub(crate) fn follow(world: &mut World, node: NodeId, primary: NodeId) {
    let now = world.now();
    world.node(node).set_role(Role::ReplicaOf(primary));
    replicas::follow(world, node, primary);
    world.node(primary).add_replica(node, now);
}

/// A client finds the new primary and connects to it.
pub(crate) fn reroute(world: &mut World, client: ClientId, seat: Seat) {
    let new = world.failovers.primary(seat);
    lead(world, client, seat, new);
}

/// A client is led to a server, and connects to it. Returns whether that is another one than before.
pub(crate) fn lead(world: &mut World, client: ClientId, seat: Seat, new: NodeId) -> bool {
    let old = world.links.reroute(client, seat, new);
    if old != new {
        let epoch = world.link(client, old).epoch();
        connections::closed(world, client, old, epoch);
        world.servers.leave(client, old);
        subscriptions::move_to(world, client, seat, new);
    }
    old != new
}

/// The old primary follows the new one, and forgets what only it had.
pub(crate) fn rejoin(world: &mut World, fault: FaultId) {
    let Some(Failover {
        seat, from: old, ..
    }) = world.failovers.by(fault)
    else {
        return;
    };
    // Another one may have been promoted since; if it was the old primary itself, it stays one.
    let new = world.failovers.primary(seat);
    if new == old {
        return;
    }
    replicas::catch_up(world, old);
    if world.node(old).role() == Role::Primary {
        follow(world, old, new);
    }
}
