//! Subscriptions. Nodes publish messages to them, and after a gap, the client subscribes again.

use std::sync::Arc;

use quorlock::transport::{Channel, Listener, Wake};

use crate::engine::clients;
use crate::engine::record::message;
use crate::world::World;
use crate::world::client::Mail;
use crate::world::event::Event;
use crate::world::id::{ClientId, Id, NodeId, ProcessId, Seat};
use crate::world::link::Passage;
use crate::world::slab::Key;
use crate::world::specification::server::Specification;
use crate::world::subscription::{Subscribed, Tell};

/// How long it takes to notice that a subscription has ended and to subscribe again, in nanoseconds.
const AGAIN: u64 = 100_000_000;

/// Subscribes a process to a channel.
pub fn start(
    world: &mut World,
    who: ProcessId,
    seat: Seat,
    channel: &Channel,
    listener: Arc<dyn Listener>,
) -> Key<Subscribed> {
    let Some(departs) = clients::seam(world, who) else {
        return Key::NONE;
    };
    let node = world.links.route(who.client, seat);
    let subscribed = Subscribed::new(who.client, seat, node, channel.clone(), listener);
    let key = world.subscriptions.insert(subscribed);
    send(world, key, departs);
    key
}

/// Sends a subscription to the node. If the message is lost, the client subscribes again later.
fn send(world: &mut World, key: Key<Subscribed>, departs: u64) {
    let Some(subscribed) = world.subscriptions.get(key) else {
        return;
    };
    let epoch = subscribed.epoch();
    let (client, node) = (subscribed.client(), subscribed.node());
    match world.send_to_node(client, node, departs).first() {
        Some(at) => world.push(at, Event::Subscribe(key, epoch)),
        None => start_again(world, key, departs),
    }
}

fn start_again(world: &mut World, key: Key<Subscribed>, from: u64) {
    if let Some(subscribed) = world.subscriptions.get_mut(key) {
        let epoch = subscribed.begin_again();
        let node = subscribed.node();
        world.node(node).unsubscribe(key);
        world.push(from + AGAIN, Event::Resubscribe(key, epoch));
    }
}

/// Returns the ends of a subscription, if this attempt is the current one.
fn attempt(world: &World, key: Key<Subscribed>, epoch: u32) -> Option<(ClientId, NodeId)> {
    let subscribed = world.subscriptions.get(key)?;
    let ends = (subscribed.client(), subscribed.node());
    (subscribed.epoch() == epoch).then_some(ends)
}

pub(crate) fn resubscribe(world: &mut World, key: Key<Subscribed>, epoch: u32) {
    if let Some((client, _)) = attempt(world, key, epoch) {
        let departs = world.now().max(world.client(client).paused_until());
        send(world, key, departs);
    }
}

/// Adds a subscriber at the node and sends the confirmation.
pub fn arrive(world: &mut World, key: Key<Subscribed>, epoch: u32) {
    let now = world.now();
    let Some((client, node)) = attempt(world, key, epoch) else {
        return;
    };
    let state = world.node(node);
    if !state.is_up() {
        start_again(world, key, now);
        return;
    }
    let paused_until = state.paused_until();
    if now < paused_until {
        world.push(paused_until, Event::Subscribe(key, epoch));
        return;
    }
    state.subscribe(key);
    tell_losses(world, node);
    match world.send_to_client(client, node).first() {
        Some(at) => world.push(at, Event::Live(key, epoch)),
        None => start_again(world, key, now),
    }
}

/// Sends what a node published to every subscriber of the channel. Returns how many clients other than `by` there are
/// among them.
pub fn publish(
    world: &mut World,
    node: NodeId,
    channel: &Channel,
    wake: Wake,
    by: ClientId,
) -> u32 {
    let now = world.now();
    let Some(state) = world.nodes.get(node) else {
        return 0;
    };
    let mut lost = Vec::new();
    // A server counts connections, and each client has one. There are at most 60 clients.
    let mut told = 0u64;
    for key in state.subscribers() {
        let subscribed = world.subscriptions.get(*key);
        let Some(subscribed) = subscribed.filter(|s| s.channel() == channel) else {
            continue;
        };
        if subscribed.client() != by {
            told |= 1u64.wrapping_shl(subscribed.client().get().into());
        }
        let Some(link) = world.links.get_mut(subscribed.client(), node) else {
            continue;
        };
        let passage = link.send_to_client(now, &mut world.faults);
        if let Some(recording) = &mut world.recording {
            message::wake(recording, (subscribed.client(), node), now, passage, wake);
        }
        match passage {
            Passage::Once(at) | Passage::Twice(at, _) => {
                world.events.push(at, Event::Wake(*key, wake));
            }
            Passage::Never => lost.push(*key),
        }
    }
    // A connection that loses a message delivers no later ones either.
    for key in lost {
        start_again(world, key, now);
    }
    told.count_ones()
}

/// Tells the clients that listen for it that their claims are gone from a node.
pub(crate) fn tell_losses(world: &mut World, node: NodeId) {
    if !world.plan.remedies.watch_claims {
        return;
    }
    for key in gone(world, node) {
        tell_loss(world, node, key);
    }
}

/// Returns the subscriptions whose claims are gone, each once until the claim is there again.
fn gone(world: &mut World, node: NodeId) -> Vec<Key<Subscribed>> {
    let now = world.now();
    let Some(state) = world.nodes.get(node) else {
        return Vec::new();
    };
    let wall = state.wall(now);
    let mut gone = Vec::new();
    for key in state.subscribers() {
        let Some(subscribed) = world.subscriptions.get_mut(*key) else {
            continue;
        };
        let Channel::Claim(name, mode, owner) = subscribed.channel().clone() else {
            continue;
        };
        let keys = Specification::of(&mut *world.servers).at(node).keys();
        if subscribed.look(keys.is_claimed_by(wall, &name, mode, owner)) {
            gone.push(*key);
        }
    }
    gone
}

fn tell_loss(world: &mut World, node: NodeId, key: Key<Subscribed>) {
    let now = world.now();
    let Some(client) = world.subscriptions.get(key).map(Subscribed::client) else {
        return;
    };
    let Some(link) = world.links.get_mut(client, node) else {
        return;
    };
    let passage = link.send_to_client(now, &mut world.faults);
    let wake = Wake::Unlocked;
    if let Some(recording) = &mut world.recording {
        message::wake(recording, (client, node), now, passage, wake);
    }
    match passage {
        Passage::Once(at) | Passage::Twice(at, _) => world.events.push(at, Event::Wake(key, wake)),
        // A connection that loses a message delivers no later ones either.
        Passage::Never => start_again(world, key, now),
    }
}

/// Notifies a listener that messages flow. A paused client is notified after its pause.
pub fn live(world: &mut World, key: Key<Subscribed>, epoch: u32) -> Option<Tell> {
    let (client, _) = attempt(world, key, epoch)?;
    deliver(world, client, Mail::Live(key))
}

pub(crate) fn wake(world: &mut World, key: Key<Subscribed>, wake: Wake) -> Option<Tell> {
    let client = world.subscriptions.get(key)?.client();
    deliver(world, client, Mail::Wake(key, wake))
}

/// Delivers a message to a client. A paused client receives it after its pause.
pub(super) fn deliver(world: &mut World, client: ClientId, mail: Mail) -> Option<Tell> {
    let now = world.now();
    let state = world.client(client);
    if now < state.paused_until() {
        state.miss_mail(mail);
        return None;
    }
    open(world, mail)
}

/// Returns the notification for a listener or a witness, unless it has left.
pub fn open(world: &World, mail: Mail) -> Option<Tell> {
    let listener = |key| Some(Arc::clone(world.subscriptions.get(key)?.listener()));
    Some(match mail {
        Mail::Live(key) => Tell::Live(listener(key)?),
        Mail::Wake(key, wake) => Tell::Wake(listener(key)?, wake),
        Mail::Reachable(key) => Tell::Reachable(Arc::clone(world.attendances.get(key)?.witness())),
    })
}

pub(crate) fn end(world: &mut World, key: Key<Subscribed>) -> Option<Subscribed> {
    let subscribed = world.subscriptions.remove(key)?;
    if let Some(node) = world.nodes.get_mut(subscribed.node()) {
        node.unsubscribe(key);
    }
    Some(subscribed)
}

/// Ends the subscriptions on a connection that has ended.
pub fn lose(world: &mut World, client: ClientId, node: NodeId) {
    let now = world.now();
    let lost = |s: &Subscribed| s.client() == client && s.node() == node;
    for key in world.subscriptions.keys(lost) {
        start_again(world, key, now);
    }
}

/// Moves the subscriptions of a client to another node that serves this node of the plan from now on.
pub(crate) fn move_to(world: &mut World, client: ClientId, seat: Seat, node: NodeId) {
    let now = world.now();
    let moved = |s: &Subscribed| s.client() == client && s.seat() == seat;
    for key in world.subscriptions.keys(moved) {
        start_again(world, key, now);
        if let Some(subscribed) = world.subscriptions.get_mut(key) {
            subscribed.move_to(node);
        }
    }
}
