//! A client asks: its request is sent, or waits for a connection.

use std::rc::Rc;

use quorlock::transport::Request;

use crate::engine::clients;
use crate::engine::network::{calls, connections, deadlines};
use crate::world::World;
use crate::world::call::Call;
use crate::world::client::Who;
use crate::world::link::Line;
use crate::world::slab::Key;

/// Takes a request and sends it, or begins to connect.
pub(crate) fn start(world: &mut World, who: Who, seat: u16, request: Rc<Request>) -> Key<Call> {
    let Some(departs) = clients::seam(world, who) else {
        return Key::NONE;
    };
    let client = who.client;
    let node = *world.route(client, seat);
    let key = world.calls.insert(Call {
        client,
        restarts: who.restarts,
        node,
        request,
        epoch: 0,
        departs,
        copies: 0,
        is_sent: false,
        is_dropped: false,
        is_done: false,
        is_sent_by_the_dead: false,
        outlives_its_connection: false,
        is_void: false,
        waker: None,
        answer: None,
    });
    deadlines::watch(world, client, departs, key);
    match world.link(client, node).line {
        Line::Up => calls::send(world, key, departs),
        Line::Connecting => world.link(client, node).waiting.push(key),
        Line::Down => {
            world.link(client, node).waiting.push(key);
            connections::connect(world, client, node, departs);
        }
    }
    key
}
