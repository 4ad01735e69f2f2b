//! Subscriptions: what nodes publish comes as messages, and a gap is followed by a new beginning.

use std::sync::Arc;

use quorlock::transport::{Channel, Listener, Wake};

use crate::engine::clients;
use crate::world::World;
use crate::world::client::{Mail, Who};
use crate::world::event::What;
use crate::world::link::Passage;
use crate::world::slab::Key;
use crate::world::subscription::{Subscribed, Tell};

/// How long it takes to notice that a subscription is gone and to try again.
const AGAIN: u64 = 100_000_000;

pub(crate) fn start(
    world: &mut World,
    who: Who,
    seat: u16,
    channel: &Channel,
    listener: Arc<dyn Listener>,
) -> Key<Subscribed> {
    let Some(departs) = clients::seam(world, who) else {
        return Key::NONE;
    };
    let node = *world.route(who.client, seat);
    let key = world.subscriptions.insert(Subscribed {
        client: who.client,
        seat,
        node,
        channel: channel.clone(),
        listener,
        epoch: 0,
    });
    send(world, key, departs);
    key
}

/// Asks the node for messages; if that gets lost, asks again.
fn send(world: &mut World, key: Key<Subscribed>, departs: u64) {
    let Some(subscribed) = world.subscriptions.get_mut(key) else {
        return;
    };
    let epoch = subscribed.epoch;
    let (client, node) = (subscribed.client, subscribed.node);
    let at = world.link_at(client, node);
    let Some(link) = world.links.get_mut(at) else {
        return;
    };
    match link.to_node.send(departs, &mut world.effects) {
        Passage::Once(at) | Passage::Twice(at, _) => {
            world.push(at, What::Subscribe(key, epoch));
        }
        Passage::Never => start_again(world, key, departs),
    }
}

fn start_again(world: &mut World, key: Key<Subscribed>, from: u64) {
    if let Some(subscribed) = world.subscriptions.get_mut(key) {
        subscribed.epoch = subscribed.epoch.wrapping_add(1);
        let epoch = subscribed.epoch;
        let node = subscribed.node;
        world.node(node).subscribers.retain(|known| *known != key);
        world.push(from + AGAIN, What::Resubscribe(key, epoch));
    }
}

pub(crate) fn resubscribe(world: &mut World, key: Key<Subscribed>, epoch: u32) {
    let now = world.now;
    let subscribed = world.subscriptions.get(key);
    if let Some(subscribed) = subscribed.filter(|s| s.epoch == epoch) {
        let client = subscribed.client;
        let departs = now.max(world.client(client).paused_until);
        send(world, key, departs);
    }
}

/// The node notes who listens, and says so.
pub(crate) fn arrive(world: &mut World, key: Key<Subscribed>, epoch: u32) {
    let now = world.now;
    let subscribed = world.subscriptions.get(key);
    let Some(subscribed) = subscribed.filter(|s| s.epoch == epoch) else {
        return;
    };
    let (client, node) = (subscribed.client, subscribed.node);
    let state = world.node(node);
    if !state.is_up {
        start_again(world, key, now);
        return;
    }
    if now < state.paused_until {
        let at = state.paused_until;
        world.push(at, What::Subscribe(key, epoch));
        return;
    }
    if !state.subscribers.contains(&key) {
        state.subscribers.push(key);
    }
    let at = world.link_at(client, node);
    let Some(link) = world.links.get_mut(at) else {
        return;
    };
    match link.to_client.send(now, &mut world.effects) {
        Passage::Once(at) | Passage::Twice(at, _) => world.push(at, What::Live(key, epoch)),
        Passage::Never => start_again(world, key, now),
    }
}

/// Sends what a node published to everybody who listens.
pub(crate) fn publish(world: &mut World, node: u16, channel: &Channel, wake: Wake) {
    let now = world.now;
    let nodes = world.nodes.len();
    let Some(state) = world.nodes.get(usize::from(node)) else {
        return;
    };
    let mut lost = Vec::new();
    for key in &state.subscribers {
        let subscribed = world.subscriptions.get(*key);
        let Some(subscribed) = subscribed.filter(|s| s.channel == *channel) else {
            continue;
        };
        let at = usize::from(subscribed.client) * nodes + usize::from(node);
        let Some(link) = world.links.get_mut(at) else {
            continue;
        };
        let passage = link.to_client.send(now, &mut world.effects);
        if let Some(recording) = &mut world.recording {
            recording.wake((subscribed.client, node), now, passage, wake);
        }
        match passage {
            Passage::Once(at) | Passage::Twice(at, _) => {
                world.events.push(at, What::Wake(*key, wake));
            }
            Passage::Never => lost.push(*key),
        }
    }
    // On a connection that loses a message, nothing follows either.
    for key in lost {
        start_again(world, key, now);
    }
}

/// A message comes to a client. A paused one hears it later.
pub(crate) fn live(world: &mut World, key: Key<Subscribed>, epoch: u32) -> Option<Tell> {
    let subscribed = world.subscriptions.get(key).filter(|s| s.epoch == epoch)?;
    let client = subscribed.client;
    deliver(world, client, Mail::Live(key))
}

pub(crate) fn wake(world: &mut World, key: Key<Subscribed>, wake: Wake) -> Option<Tell> {
    let client = world.subscriptions.get(key)?.client;
    deliver(world, client, Mail::Wake(key, wake))
}

fn deliver(world: &mut World, client: u16, mail: Mail) -> Option<Tell> {
    let now = world.now;
    let state = world.client(client);
    if now < state.paused_until {
        state.mail.push(mail);
        return None;
    }
    open(world, mail)
}

pub(crate) fn open(world: &mut World, mail: Mail) -> Option<Tell> {
    let (key, wake) = match mail {
        Mail::Live(key) => (key, None),
        Mail::Wake(key, wake) => (key, Some(wake)),
    };
    let subscribed = world.subscriptions.get(key)?;
    Some(Tell(subscribed.listener.clone(), wake))
}

pub(crate) fn end(world: &mut World, key: Key<Subscribed>) -> Option<Subscribed> {
    let subscribed = world.subscriptions.remove(key)?;
    if let Some(node) = world.nodes.get_mut(usize::from(subscribed.node)) {
        node.subscribers.retain(|known| *known != key);
    }
    Some(subscribed)
}

/// A connection has ended, and the subscriptions on it with it.
pub(crate) fn lose(world: &mut World, client: u16, node: u16) {
    let now = world.now;
    let lost = |s: &Subscribed| s.client == client && s.node == node;
    for key in world.subscriptions.keys(lost) {
        start_again(world, key, now);
    }
}

/// A client talks to another node from now on.
pub(crate) fn move_to(world: &mut World, client: u16, seat: u16, node: u16) {
    let now = world.now;
    let moved = |s: &Subscribed| s.client == client && s.seat == seat;
    for key in world.subscriptions.keys(moved) {
        start_again(world, key, now);
        if let Some(subscribed) = world.subscriptions.get_mut(key) {
            subscribed.node = node;
        }
    }
}
