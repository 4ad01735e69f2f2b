//! Calls: a request is sent and answered, or fails without a reply.

use std::task::{Context, Waker};

use quorlock::transport::{Cause, Execution};

use crate::engine::record::message;
use crate::history::Process;
use crate::world::World;
use crate::world::call::{Answer, Call, Replied, failure};
use crate::world::event::Event;
use crate::world::id::{ClientId, Id, NodeId};
use crate::world::link::Passage;
use crate::world::slab::Key;
use quorlock_sim_plan::fault::Towards;

/// Sends a request at a time.
pub fn send(world: &mut World, key: Key<Call>, departs: u64) {
    let Some(call) = world.calls.get_mut(key) else {
        return;
    };
    let Some(link) = world.links.get_mut(call.client(), call.node()) else {
        return;
    };
    call.send(departs, link.epoch());
    let passage = link.send_to_node(departs, &mut world.faults);
    match passage {
        Passage::Never if link.swallows() => {
            // The client replaces the connection after the call timeout.
            let (client, node, epoch) = (call.client(), call.node(), link.epoch());
            let at = departs + world.plan.network.call_timeout.as_nanos();
            world.events.push(at, Event::Closed(client, node, epoch));
        }
        Passage::Never => {}
        Passage::Once(at) => {
            call.copies_leave(1);
            world.events.push(at, Event::Request(key));
        }
        Passage::Twice(first, second) => {
            call.copies_leave(2);
            world.events.push(first, Event::Request(key));
            world.events.push(second, Event::Request(key));
        }
    }
    if world.recording.is_some() {
        record(world, key, passage);
    }
}

fn record(world: &mut World, key: Key<Call>, passage: Passage) {
    let Some(call) = world.calls.get(key) else {
        return;
    };
    let (client, node, departs) = (call.client(), call.node(), call.departs());
    let asked = call.asked().clone();
    let process = Process {
        client: client.get(),
        restarts: world.client(client).restarts(),
    };
    message::asked(world, process, node, departs, passage, &asked);
}

/// Sends a reply.
pub fn reply(world: &mut World, key: Key<Call>, answer: Answer) {
    let Some(call) = world.calls.get(key) else {
        return;
    };
    if call.is_unheard() {
        return;
    }
    let (client, node) = (call.client(), call.node());
    if world.triggers.awaits_messages() {
        let message = call.asked().kind();
        let seat = world.seat_of(node);
        world.pass(client, seat, message, Towards::Client);
    }
    let passage = world.send_to_client(client, node);
    if world.recording.is_some() {
        message::answer(world, (client, node), passage, &answer);
    }
    if let Some(at) = passage.first() {
        let reply = world.replies.insert(Replied::new(key, answer));
        world.push(at, Event::Reply(reply));
    }
}

pub(crate) fn reply_arrives(world: &mut World, reply: Key<Replied>) {
    if let Some(replied) = world.replies.get(reply) {
        end(world, replied.to(), reply);
    }
}

/// Ends a call without a reply.
pub fn fail(world: &mut World, key: Key<Call>, execution: Execution, cause: Cause) {
    let answer = Err(failure(execution, cause));
    let reply = world.replies.insert(Replied::new(key, answer));
    end(world, key, reply);
}

/// Stores the answer of a call, unless the call has one already or no process waits for it.
fn end(world: &mut World, key: Key<Call>, reply: Key<Replied>) {
    let call = world.calls.get_mut(key);
    if !call.is_some_and(|call| call.answer(reply)) {
        world.replies.discard(reply);
    }
}

/// Takes the answer of a call. If there is none yet, the task is woken when it arrives.
pub fn poll(world: &mut World, key: Key<Call>, cx: &Context<'_>) -> Option<Key<Replied>> {
    world.calls.get_mut(key)?.poll(cx)
}

pub(crate) fn take_answer(world: &mut World, reply: Key<Replied>) -> Option<Answer> {
    world.replies.remove(reply).map(Replied::into_answer)
}

/// Records that no process waits for a call. Returns the waker of the call, which must be dropped while the world is
/// not borrowed.
pub(crate) fn abandon(world: &mut World, key: Key<Call>) -> Option<Waker> {
    let call = world.calls.get_mut(key)?;
    let (waker, answer) = call.abandon();
    let is_over = call.is_over();
    if let Some(reply) = answer {
        world.replies.discard(reply);
    }
    if is_over {
        world.calls.discard(key);
    }
    waker
}

pub(crate) fn free_if_over(world: &mut World, key: Key<Call>) {
    if world.calls.get(key).is_some_and(Call::is_over) {
        world.calls.discard(key);
    }
}

/// Fails the open calls of this client to this node: those that were sent, or those that still wait for a connection.
pub(crate) fn end_all(world: &mut World, client: ClientId, node: NodeId, sent: Sent) {
    let of =
        |call: &Call| call.is_open_between(client, node) && call.is_sent() == (sent == Sent::Yes);
    for key in world.calls.keys(of) {
        match sent {
            Sent::Yes => fail(world, key, Execution::Indeterminate, Cause::Closed),
            Sent::No => fail(world, key, Execution::Definite, Cause::Unreachable),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    Yes,
    No,
}
