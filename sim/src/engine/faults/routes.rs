//! Addresses that lead to another server.

use crate::engine::nodes::failover;
use crate::plan::fault::{FaultKind, NodeFault};
use crate::world::World;
use crate::world::id::{ClientId, FaultId, Id, NodeId, Seat};

/// Clients are led to another server, which is noticed only where they were not led there already.
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

/// Leads each client to where its address of a node leads now. Returns whether that is another server for one of them.
fn lead(world: &mut World, seat: Seat, clients: &[u16]) -> bool {
    let mut is_another = false;
    for client in clients.iter().copied().map(ClientId::new) {
        let to = destination(world, client, seat);
        is_another |= failover::lead(world, client, seat, to);
    }
    is_another
}

/// Where an address leads a client: what began last counts.
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
