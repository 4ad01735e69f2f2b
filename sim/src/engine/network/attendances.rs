//! The returns of nodes. While a process has witnesses at a node that it cannot reach, it tries to connect, and notifies
//! them when it has a connection. The product's adapter does the same.

use std::sync::Arc;

use quorlock::transport::Witness;

use crate::engine::clients;
use crate::engine::network::{connections, subscriptions};
use crate::world::World;
use crate::world::attendance::Attendance;
use crate::world::call::Call;
use crate::world::client::Mail;
use crate::world::event::Event;
use crate::world::id::{ClientId, NodeId, ProcessId, Seat};
use crate::world::link::ConnectionStatus;
use crate::world::slab::Key;
use crate::world::subscription::Tell;

/// The pause after the first failed attempt to connect, in nanoseconds. It doubles with each further failure.
const FIRST_REST: u64 = 50_000_000;

/// The longest pause between two attempts, in nanoseconds.
const LONGEST_REST: u64 = 1_000_000_000;

/// Adds a witness. It is notified at once if the node can be reached: there is a connection, which owes no reply.
pub(crate) fn start(
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
        seek(world, client, node, departs);
    }
    key
}

/// Removes a witness. The result must be dropped while the world is not borrowed.
pub(crate) fn end(world: &mut World, key: Key<Attendance>) -> Option<Attendance> {
    world.attendances.remove(key)
}

/// Begins to connect if there is a witness, and neither a connection nor an attempt.
pub(super) fn seek(world: &mut World, client: ClientId, node: NodeId, departs: u64) {
    if keys(world, client, node).is_empty() {
        return;
    }
    match world.link(client, node).line() {
        ConnectionStatus::Connecting => return,
        ConnectionStatus::Up if world.link(client, node).is_usable() => return,
        ConnectionStatus::Up => world.link(client, node).retire(),
        ConnectionStatus::Down => {}
    }
    connections::connect(world, client, node, departs);
}

/// Looks for the node that serves a node of the plan from now on.
pub(crate) fn move_to(world: &mut World, client: ClientId, node: NodeId) {
    if world.link(client, node).is_usable() {
        tell(world, client, node);
    } else {
        let departs = world.now().max(world.client(client).paused_until());
        seek(world, client, node, departs);
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
        let departs = world.now().max(world.client(client).paused_until());
        seek(world, client, node, departs);
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
