//! Calls: a request is sent and answered, or ends without a reply.

use std::rc::Rc;
use std::task::{Context, Waker};

use quorlock::transport::{Cause, Execution};

use crate::engine::record::message;
use crate::history::Process;
use crate::world::World;
use crate::world::call::{Answer, Call, Replied, failure};
use crate::world::event::What;
use crate::world::link::Passage;
use crate::world::slab::Key;
use crate::world::task::remember;

/// Puts a request on the wire.
pub(crate) fn send(world: &mut World, key: Key<Call>, departs: u64) {
    let Some(call) = world.calls.get_mut(key) else {
        return;
    };
    let at = usize::from(call.client) * world.nodes.len() + usize::from(call.node);
    let Some(link) = world.links.get_mut(at) else {
        return;
    };
    call.is_sent = true;
    call.departs = departs;
    call.epoch = link.client_epoch;
    let passage = link.to_node.send(departs, &mut world.effects);
    match passage {
        Passage::Never => {}
        Passage::Once(at) => {
            call.copies = 1;
            world.events.push(at, What::Request(key));
        }
        Passage::Twice(first, second) => {
            call.copies = 2;
            world.events.push(first, What::Request(key));
            world.events.push(second, What::Request(key));
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
    let (client, node, departs) = (call.client, call.node, call.departs);
    let request = Rc::clone(&call.request);
    let restarts = world.client(client).restarts;
    let process = Process { client, restarts };
    message::request(world, process, node, departs, passage, &request);
}

/// Sends a reply back.
pub(crate) fn reply(world: &mut World, key: Key<Call>, answer: Answer) {
    let Some(call) = world.calls.get(key) else {
        return;
    };
    if call.is_dropped || call.is_sent_by_the_dead {
        return;
    }
    let ends = (call.client, call.node);
    let at = world.link_at(ends.0, ends.1);
    let now = world.now;
    let Some(link) = world.links.get_mut(at) else {
        return;
    };
    let passage = link.to_client.send(now, &mut world.effects);
    if world.recording.is_some() {
        message::answer(world, ends, passage, &answer);
    }
    if let Passage::Once(at) | Passage::Twice(at, _) = passage {
        let reply = world.replies.insert(Replied { to: key, answer });
        world.events.push(at, What::Reply(reply));
    }
}

pub(crate) fn reply_arrives(world: &mut World, reply: Key<Replied>) {
    if let Some(replied) = world.replies.get(reply) {
        end(world, replied.to, reply);
    }
}

/// A call ends without a reply.
pub(crate) fn fail(world: &mut World, key: Key<Call>, execution: Execution, cause: Cause) {
    let answer = Err(failure(execution, cause));
    let reply = world.replies.insert(Replied { to: key, answer });
    end(world, key, reply);
}

/// The first answer counts, if anybody waits for it.
fn end(world: &mut World, key: Key<Call>, reply: Key<Replied>) {
    match world.calls.get_mut(key) {
        Some(call) if !call.is_done => {
            call.is_done = true;
            call.answer = Some(reply);
            if let Some(waker) = &call.waker {
                waker.wake_by_ref();
            }
        }
        _ => world.replies.discard(reply),
    }
}

/// The answer of a call, once; until there is one, the task is woken when it comes.
pub(crate) fn poll(world: &mut World, key: Key<Call>, cx: &Context<'_>) -> Option<Key<Replied>> {
    let call = world.calls.get_mut(key)?;
    if call.answer.is_some() {
        return call.answer.take();
    }
    remember(&mut call.waker, cx);
    None
}

pub(crate) fn take_answer(world: &mut World, reply: Key<Replied>) -> Option<Answer> {
    world.replies.remove(reply).map(|replied| replied.answer)
}

/// Nobody waits for a call any more. Its waker is not the world's to drop.
pub(crate) fn abandon(world: &mut World, key: Key<Call>) -> Option<Waker> {
    let call = world.calls.get_mut(key)?;
    let waker = call.waker.take();
    call.is_dropped = true;
    if let Some(reply) = call.answer.take() {
        world.replies.discard(reply);
    }
    if call.copies == 0 {
        world.calls.discard(key);
    }
    waker
}

pub(crate) fn free_if_over(world: &mut World, key: Key<Call>) {
    let call = world.calls.get(key);
    if call.is_some_and(|call| call.is_dropped && call.copies == 0) {
        world.calls.discard(key);
    }
}

/// The calls that were sent on a connection of this client and node and have not ended.
pub(super) fn end_all(world: &mut World, client: u16, node: u16, is_sent: Sent) {
    let of = |call: &Call| {
        call.client == client
            && call.node == node
            && !call.is_done
            && call.is_sent == (is_sent == Sent::Yes)
    };
    for key in world.calls.keys(of) {
        match is_sent {
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
