//! Faults of routes: addresses that lead to another server.

use crate::engine::nodes::failover;
use crate::world::World;
use crate::world::id::{ClientId, FaultId, Id, NodeId, Seat};
use quorlock_sim_plan::fault::{FaultKind, NodeFault};

/// Routes clients to another server. The fault counts as effective only if this changes a route.
pub(super) fn begin(world: &mut World, seat: Seat, clients: &[u16], id: FaultId, until: u64) {
    world.faults.begin(id, until);
    if lead(world, seat, clients) {
        world.blame(id);
    }
}

pub(super) fn end(world: &mut World, seat: Seat, clients: &[u16], id: FaultId) {
    world.faults.end(id);
    lead(world, seat, clients);
}

/// Routes each client to where its address of a node leads now. Returns whether any route has changed.
fn lead(world: &mut World, seat: Seat, clients: &[u16]) -> bool {
    let mut is_another = false;
    for client in clients.iter().copied().map(ClientId::new) {
        let to = destination(world, client, seat);
        is_another |= failover::lead(world, client, seat, to);
    }
    is_another
}

/// Returns the server to which an address leads a client. Of several faults, the one that began last counts.
fn destination(world: &World, client: ClientId, seat: Seat) -> NodeId {
    let faults = world.faults.active().filter_map(|(id, _)| {
        let fault = &world.plan.faults.get(id.index())?.what;
        match fault {
            FaultKind::Node {
                node,
                fault: NodeFault::Misroute { clients, to },
                ..
            } if *node == seat.get() && clients.contains(&client.get()) => Some(*to),
            _ => None,
        }
    });
    let seat = faults.last().map_or(seat, Seat::new);
    world.failovers.primary(seat)
}
