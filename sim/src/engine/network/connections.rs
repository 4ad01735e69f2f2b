//! Connections: how they come about and end, and what becomes of the calls on them.

use crate::engine::network::calls::{self, Sent};
use crate::engine::network::subscriptions;
use crate::plan::fault::InFlight;
use crate::world::World;
use crate::world::event::What;
use crate::world::link::{Line, Passage};

pub(crate) fn connect(world: &mut World, client: u16, node: u16, departs: u64) {
    let now = world.now;
    let timeout = world.plan.network.connect_timeout.as_nanos();
    let at = world.link_at(client, node);
    let Some(link) = world.links.get_mut(at) else {
        return;
    };
    link.line = Line::Connecting;
    link.client_epoch += 1;
    let epoch = link.client_epoch;
    if let Passage::Once(at) | Passage::Twice(at, _) =
        link.to_node.send(departs, &mut world.effects)
    {
        world.push(at, What::Connect(client, node, epoch));
    }
    world.push(
        now.max(departs) + timeout,
        What::Reconnect(client, node, epoch),
    );
}

/// A node is asked to connect. A paused one answers when it goes on: the scripts are loaded with the connection.
pub(crate) fn connect_arrives(world: &mut World, client: u16, node: u16, epoch: u32) {
    let now = world.now;
    let state = world.node(node);
    let (is_up, paused_until) = (state.is_up, state.paused_until);
    if is_up && now < paused_until {
        world.push(paused_until, What::Connect(client, node, epoch));
        return;
    }
    let at = world.link_at(client, node);
    let Some(link) = world.links.get_mut(at) else {
        return;
    };
    let answer = if is_up {
        link.node_epoch = epoch;
        link.lacks_scripts = None;
        What::Connected(client, node, epoch)
    } else {
        What::Refused(client, node, epoch)
    };
    if let Passage::Once(at) | Passage::Twice(at, _) = link.to_client.send(now, &mut world.effects)
    {
        world.push(at, answer);
    }
}

/// The connection is there: what has waited for it is sent, once the client is not paused.
pub(crate) fn connected(world: &mut World, client: u16, node: u16, epoch: u32) {
    let now = world.now;
    let paused_until = world.client(client).paused_until;
    if now < paused_until {
        world.push(paused_until, What::Connected(client, node, epoch));
        return;
    }
    let link = world.link(client, node);
    if link.client_epoch != epoch || link.line != Line::Connecting {
        return;
    }
    link.line = Line::Up;
    for key in std::mem::take(&mut link.waiting) {
        let call = world.calls.get(key);
        if call.is_some_and(|call| !call.is_done && !call.is_dropped) {
            calls::send(world, key, now);
        }
    }
}

/// No connection came about, so nothing was sent.
pub(crate) fn not_connected(world: &mut World, client: u16, node: u16, epoch: u32) {
    let link = world.link(client, node);
    if link.client_epoch != epoch || link.line != Line::Connecting {
        return;
    }
    link.line = Line::Down;
    link.waiting.clear();
    calls::end_all(world, client, node, Sent::No);
}

/// Tells a client, by way of the network, that its connection is gone.
pub(crate) fn tell_closed(world: &mut World, client: u16, node: u16, epoch: u32) {
    let now = world.now;
    let at = world.link_at(client, node);
    let Some(link) = world.links.get_mut(at) else {
        return;
    };
    if let Passage::Once(at) | Passage::Twice(at, _) = link.to_client.send(now, &mut world.effects)
    {
        world.push(at, What::Closed(client, node, epoch));
    }
}

/// A client hears that its connection has ended: what was sent on it may have been executed.
pub(crate) fn closed(world: &mut World, client: u16, node: u16, epoch: u32) {
    let link = world.link(client, node);
    if link.client_epoch != epoch || link.line != Line::Up {
        return;
    }
    link.line = Line::Down;
    calls::end_all(world, client, node, Sent::Yes);
}

/// Ends the connection of a client and a node at both ends. Returns whether anything was under way.
pub(crate) fn reset(world: &mut World, client: u16, node: u16, in_flight: InFlight) -> bool {
    let mut seats: Vec<u16> = (0..world.plan.nodes.count).collect();
    seats.retain(|seat| *world.route(client, *seat) == node);
    let is_under_way = world.servers.reset(client, node, &seats, in_flight);
    let link = world.link(client, node);
    if link.line != Line::Up {
        return is_under_way;
    }
    let epoch = link.client_epoch;
    link.node_epoch = u32::MAX;
    let open = world
        .calls
        .keys(|call| call.client == client && call.node == node && call.is_sent && !call.is_done);
    if in_flight == InFlight::Executed {
        for key in &open {
            if let Some(call) = world.calls.get_mut(*key) {
                call.outlives_its_connection = true;
            }
        }
    }
    closed(world, client, node, epoch);
    subscriptions::lose(world, client, node);
    is_under_way || !open.is_empty()
}

/// The node's end of a connection is gone.
pub(crate) fn lose(world: &mut World, client: u16, node: u16) {
    let link = world.link(client, node);
    link.node_epoch = u32::MAX;
    let epoch = link.client_epoch;
    tell_closed(world, client, node, epoch);
    subscriptions::lose(world, client, node);
}
