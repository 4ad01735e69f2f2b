//! Requests of clients. They are sent at once, or when a connection has been established.

use crate::engine::clients;
use crate::engine::network::{calls, connections, deadlines};
use crate::world::World;
use crate::world::call::{Asked, Call};
use crate::world::id::{ProcessId, Seat};
use crate::world::link::ConnectionStatus;
use crate::world::slab::Key;
use quorlock_sim_plan::fault::Towards;

/// Accepts a request, and either sends it or begins to connect.
pub fn start(world: &mut World, who: ProcessId, seat: Seat, asked: Asked) -> Key<Call> {
    let Some(departs) = clients::seam(world, who) else {
        return Key::NONE;
    };
    let client = who.client;
    world.pass(client, seat, asked.kind(), Towards::Node);
    let node = world.links.route(client, seat);
    let key = world.calls.insert(Call::new(who, node, asked, departs));
    deadlines::watch(world, client, departs, key);
    let link = world.link(client, node);
    match link.line() {
        ConnectionStatus::Up => calls::send(world, key, departs),
        ConnectionStatus::Connecting => link.wait(key),
        ConnectionStatus::Down => {
            link.wait(key);
            connections::connect(world, client, node, departs);
        }
    }
    key
}
