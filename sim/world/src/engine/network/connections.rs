//! Connections: how they are established, how they end, and what happens to the calls on them.
//!
//! While a process has witnesses at a node that it cannot reach, it tries to connect, and notifies them when it has a
//! connection. The product's adapter does the same.

use std::sync::Arc;

use quorlock::transport::Witness;

use crate::engine::clients;
use crate::engine::network::calls::{self, Sent};
use crate::engine::network::subscriptions;
use crate::world::World;
use crate::world::call::Call;
use crate::world::client::Mail;
use crate::world::event::Event;
use crate::world::id::{ClientId, NodeId, ProcessId, Seat};
use crate::world::link::ConnectionStatus;
use crate::world::slab::Key;
use crate::world::subscription::Tell;
use crate::world::witnesses::Attendance;
use quorlock_sim_plan::fault::InFlight;

/// Begins to connect a client to a node.
pub fn connect(world: &mut World, client: ClientId, node: NodeId, departs: u64) {
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
pub fn connected(world: &mut World, client: ClientId, node: NodeId, epoch: u32) {
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
    tell(world, client, node);
}

/// Handles a failed connection attempt. The calls that waited for it were certainly not sent.
pub(crate) fn not_connected(world: &mut World, client: ClientId, node: NodeId, epoch: u32) {
    if world.link(client, node).fail_connection(epoch) {
        calls::end_all(world, client, node, Sent::No);
        rest(world, client, node);
    }
}

/// Notifies a client over the network that its connection has ended.
pub(crate) fn tell_closed(world: &mut World, client: ClientId, node: NodeId, epoch: u32) {
    if let Some(at) = world.send_to_client(client, node).first() {
        world.push(at, Event::Closed(client, node, epoch));
    }
}

/// Handles the end of a connection at a client. Calls that were sent on it may have been executed.
pub fn closed(world: &mut World, client: ClientId, node: NodeId, epoch: u32) {
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
    seek_at(world, client, node, departs);
}

/// Ends the connection between a client and a node at both ends. Returns whether any message was in flight.
pub fn reset(world: &mut World, client: ClientId, node: NodeId, in_flight: InFlight) -> bool {
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
pub fn lose(world: &mut World, client: ClientId, node: NodeId) {
    let link = world.link(client, node);
    link.end_at_node();
    let epoch = link.epoch();
    tell_closed(world, client, node, epoch);
    subscriptions::lose(world, client, node);
}

/// The pause after the first failed attempt to connect, in nanoseconds. It doubles with each further failure.
const FIRST_REST: u64 = 50_000_000;

/// The longest pause between two attempts, in nanoseconds.
const LONGEST_REST: u64 = 1_000_000_000;

/// Adds a witness. It is notified at once if the node can be reached: there is a connection, which owes no reply.
pub fn attend(
    world: &mut World,
    who: ProcessId,
    seat: Seat,
    witness: Arc<dyn Witness>,
) -> Key<Attendance> {
    let Some(departs) = clients::seam(world, who) else {
        return Key::NONE;
    };
    let client = who.client;
    let node = world.links.route(client, seat);
    let attendance = Attendance::new(client, seat, witness);
    let key = world.attendances.insert(attendance);
    let owed = |call: &Call| call.is_open_between(client, node) && call.is_sent();
    if world.link(client, node).is_usable() && !world.calls.iter().any(|(_, call)| owed(call)) {
        world.push(departs, Event::Reachable(key));
    } else {
        seek_at(world, client, node, departs);
    }
    key
}

/// Removes a witness. The result must be dropped while the world is not borrowed.
pub fn leave(world: &mut World, key: Key<Attendance>) -> Option<Attendance> {
    world.attendances.remove(key)
}

/// Begins to connect if there is a witness, and neither a connection nor an attempt.
fn seek_at(world: &mut World, client: ClientId, node: NodeId, departs: u64) {
    if keys(world, client, node).is_empty() {
        return;
    }
    match world.link(client, node).line() {
        ConnectionStatus::Connecting => return,
        ConnectionStatus::Up if world.link(client, node).is_usable() => return,
        ConnectionStatus::Up => world.link(client, node).retire(),
        ConnectionStatus::Down => {}
    }
    connect(world, client, node, departs);
}

/// Looks for the node that serves a node of the plan from now on.
pub(crate) fn move_to(world: &mut World, client: ClientId, node: NodeId) {
    if world.link(client, node).is_usable() {
        tell(world, client, node);
    } else {
        seek(world, client, node);
    }
}

/// Schedules another attempt after a failed one, if there is a witness.
pub(super) fn rest(world: &mut World, client: ClientId, node: NodeId) {
    if keys(world, client, node).is_empty() {
        return;
    }
    let link = world.link(client, node);
    let (failures, epoch) = (link.failures(), link.epoch());
    let rest = FIRST_REST << failures.saturating_sub(1).min(5);
    let at = world.now() + rest.min(LONGEST_REST);
    world.push(at, Event::Seek(client, node, epoch));
}

/// Connects again after a pause, unless a call has done so in the meantime.
pub(crate) fn seek_again(world: &mut World, client: ClientId, node: NodeId, epoch: u32) {
    if world.link(client, node).epoch() == epoch {
        seek(world, client, node);
    }
}

/// Notifies all witnesses at a node to which there is a new connection.
pub(super) fn tell(world: &mut World, client: ClientId, node: NodeId) {
    for key in keys(world, client, node) {
        world.push(world.now(), Event::Reachable(key));
    }
}

pub(crate) fn reachable(world: &mut World, key: Key<Attendance>) -> Option<Tell> {
    let client = world.attendances.get(key)?.client();
    subscriptions::deliver(world, client, Mail::Reachable(key))
}

/// Returns the witnesses of a client that watch what this node serves.
fn keys(world: &World, client: ClientId, node: NodeId) -> Vec<Key<Attendance>> {
    let links = &world.links;
    let is_there = |attendance: &Attendance| {
        attendance.client() == client && links.route(client, attendance.seat()) == node
    };
    world.attendances.keys(is_there)
}
