//! Faults of links.

use crate::engine::network::{connections, subscriptions};
use crate::world::World;
use crate::world::event::Event;
use crate::world::id::{ClientId, FaultId, Id, NodeId, Seat, first};
use crate::world::link::Impairment;
use quorlock_sim_plan::fault::{Direction, Fault, FaultKind, LinkFault};

pub(super) fn begin(world: &mut World, fault: &Fault, id: FaultId, until: u64) {
    if let FaultKind::Link {
        clients,
        nodes,
        fault: LinkFault::Reset { in_flight },
        ..
    } = &fault.what
    {
        for (client, seat) in pairs(clients, nodes) {
            let mut is_under_way = false;
            for node in ends(world, client, seat) {
                is_under_way |= connections::reset(world, client, node, *in_flight);
            }
            if is_under_way {
                world.blame(id);
            }
        }
        return;
    }
    if let FaultKind::Link {
        clients,
        nodes,
        fault: LinkFault::Swallow,
        ..
    } = &fault.what
    {
        for (client, seat) in pairs(clients, nodes) {
            for node in ends(world, client, seat) {
                world.link(client, node).swallow(id);
            }
        }
        return;
    }
    world.faults.begin(id, until);
    world.push(until, Event::Ends(id));
    set_troubles(world, fault);
}

pub(super) fn end(world: &mut World, fault: &Fault, id: FaultId) {
    world.faults.end(id);
    set_troubles(world, fault);
}

/// Updates the links of a fault according to all active faults.
fn set_troubles(world: &mut World, changed: &Fault) {
    let FaultKind::Link { clients, nodes, .. } = &changed.what else {
        return;
    };
    for (client, seat) in pairs(clients, nodes) {
        set(world, client, seat);
    }
}

/// Updates the links of all clients to a node of the plan.
pub(super) fn set_all(world: &mut World, seat: Seat) {
    for client in first(world.plan.clients) {
        set(world, client, seat);
    }
}

fn set(world: &mut World, client: ClientId, seat: Seat) {
    for node in ends(world, client, seat) {
        let (to_node, to_client) = troubles(world, client, seat, node);
        // Messages that were published in the meantime may be missing. Without a new subscription, a waiter would
        // sleep through a release whose message was lost.
        if world.link(client, node).set_troubles(to_node, to_client) {
            subscriptions::lose(world, client, node);
        }
    }
}

/// Returns the far ends of a client's links to a node of the plan: the server that serves it, or every member of a
/// group.
fn ends(world: &World, client: ClientId, seat: Seat) -> Vec<NodeId> {
    match world.groups.get(seat) {
        Some(group) => group.members().collect(),
        None => vec![world.links.route(client, seat)],
    }
}

/// Returns the impairments of a client's link to a node of the plan: towards the node, and towards the client.
fn troubles(
    world: &World,
    client: ClientId,
    seat: Seat,
    node: NodeId,
) -> (Option<Impairment>, Option<Impairment>) {
    let mut to_node = None;
    let mut to_client = None;
    for (id, ends) in world.faults.active() {
        let Some(fault) = world.plan.faults.get(id.index()) else {
            continue;
        };
        let FaultKind::Link {
            clients,
            nodes,
            direction,
            fault: what,
        } = &fault.what
        else {
            continue;
        };
        if !clients.contains(&client.get()) || !nodes.contains(&seat.get()) {
            continue;
        }
        if *direction != Direction::ToClient {
            to_node
                .get_or_insert_with(Impairment::default)
                .add(*what, ends, id);
        }
        if *direction != Direction::ToNode {
            to_client
                .get_or_insert_with(Impairment::default)
                .add(*what, ends, id);
        }
    }
    let group = world.groups.get(seat);
    for id in group.into_iter().flat_map(|group| group.cuts(client, node)) {
        for trouble in [&mut to_node, &mut to_client] {
            let trouble = trouble.get_or_insert_with(Impairment::default);
            trouble.add(LinkFault::Cut, 0, id);
        }
    }
    (to_node, to_client)
}

fn pairs<'a>(clients: &'a [u16], nodes: &'a [u16]) -> impl Iterator<Item = (ClientId, Seat)> + 'a {
    clients.iter().flat_map(|client| {
        let client = ClientId::new(*client);
        nodes.iter().map(move |node| (client, Seat::new(*node)))
    })
}
