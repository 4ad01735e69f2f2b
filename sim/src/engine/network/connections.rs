//! Connections: how they are established, how they end, and what happens to the calls on them.

use crate::engine::network::calls::{self, Sent};
use crate::engine::network::{attendances, subscriptions};
use crate::plan::fault::InFlight;
use crate::world::World;
use crate::world::event::Event;
use crate::world::id::{ClientId, NodeId};
use crate::world::link::ConnectionStatus;

/// Begins to connect a client to a node.
pub(crate) fn connect(world: &mut World, client: ClientId, node: NodeId, departs: u64) {
    let timeout = world.plan.network.connect_timeout.as_nanos();
    let again = world.now().max(departs) + timeout;
    let epoch = world.link(client, node).begin_connection();
    if world.link(client, node).swallow_no_more() {
        subscriptions::lose(world, client, node);
    }
    if let Some(at) = world.send_to_node(client, node, departs).first() {
        world.push(at, Event::Connect(client, node, epoch));
    }
    world.push(again, Event::Reconnect(client, node, epoch));
}

/// Handles a connection attempt at a node. A paused node answers when it resumes. The scripts are loaded with the
/// connection.
pub(crate) fn connect_arrives(world: &mut World, client: ClientId, node: NodeId, epoch: u32) {
    let now = world.now();
    let state = world.node(node);
    let (is_up, paused_until) = (state.is_up(), state.paused_until());
    if is_up && now < paused_until {
        world.push(paused_until, Event::Connect(client, node, epoch));
        return;
    }
    let answer = if is_up {
        world.link(client, node).accept(epoch);
        Event::Connected(client, node, epoch)
    } else {
        Event::Refused(client, node, epoch)
    };
    if let Some(at) = world.send_to_client(client, node).first() {
        world.push(at, answer);
    }
}

/// Handles an established connection. The calls that waited for it are sent when the client is not paused.
pub(crate) fn connected(world: &mut World, client: ClientId, node: NodeId, epoch: u32) {
    let now = world.now();
    let paused_until = world.client(client).paused_until();
    if now < paused_until {
        world.push(paused_until, Event::Connected(client, node, epoch));
        return;
    }
    let Some(waiting) = world.link(client, node).connect(epoch) else {
        return;
    };
    for key in waiting {
        if world.calls.get(key).is_some_and(|call| call.is_awaited()) {
            calls::send(world, key, now);
        }
    }
    attendances::tell(world, client, node);
}

/// Handles a failed connection attempt. The calls that waited for it were certainly not sent.
pub(crate) fn not_connected(world: &mut World, client: ClientId, node: NodeId, epoch: u32) {
    if world.link(client, node).fail_connection(epoch) {
        calls::end_all(world, client, node, Sent::No);
        attendances::rest(world, client, node);
    }
}

/// Notifies a client over the network that its connection has ended.
pub(crate) fn tell_closed(world: &mut World, client: ClientId, node: NodeId, epoch: u32) {
    if let Some(at) = world.send_to_client(client, node).first() {
        world.push(at, Event::Closed(client, node, epoch));
    }
}

/// Handles the end of a connection at a client. Calls that were sent on it may have been executed.
pub(crate) fn closed(world: &mut World, client: ClientId, node: NodeId, epoch: u32) {
    if world.link(client, node).close(epoch) {
        calls::end_all(world, client, node, Sent::Yes);
        seek(world, client, node);
    }
}

/// Handles a call that got no answer in time on this connection. If there is a witness, the connection is replaced.
pub(crate) fn doubt(world: &mut World, client: ClientId, node: NodeId, epoch: u32) {
    if world.link(client, node).doubt(epoch) {
        seek(world, client, node);
    }
}

/// Connects again if there is a witness. A paused client does so after its pause.
fn seek(world: &mut World, client: ClientId, node: NodeId) {
    let departs = world.now().max(world.client(client).paused_until());
    attendances::seek(world, client, node, departs);
}

/// Ends the connection between a client and a node at both ends. Returns whether any message was in flight.
pub(crate) fn reset(
    world: &mut World,
    client: ClientId,
    node: NodeId,
    in_flight: InFlight,
) -> bool {
    let seats = world.links.seats_of(client, node);
    let is_under_way = world.servers.reset(client, node, &seats, in_flight);
    let link = world.link(client, node);
    if link.line() != ConnectionStatus::Up {
        return is_under_way;
    }
    let epoch = link.epoch();
    link.end_at_node();
    let calls = &mut world.calls;
    let open = calls.keys(|call| call.is_open_between(client, node) && call.is_sent());
    if in_flight == InFlight::Executed {
        for key in &open {
            if let Some(call) = calls.get_mut(*key) {
                call.outlive_connection();
            }
        }
    }
    closed(world, client, node, epoch);
    subscriptions::lose(world, client, node);
    is_under_way || !open.is_empty()
}

/// Ends the node's side of a connection.
pub(crate) fn lose(world: &mut World, client: ClientId, node: NodeId) {
    let link = world.link(client, node);
    link.end_at_node();
    let epoch = link.epoch();
    tell_closed(world, client, node, epoch);
    subscriptions::lose(world, client, node);
}
