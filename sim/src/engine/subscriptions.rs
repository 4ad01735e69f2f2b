//! Subscriptions: what nodes publish comes as messages, and a gap is followed by a new beginning.

use std::sync::Arc;

use quorlock::transport::{Channel, Listener, Wake};

use crate::world::World;
use crate::world::client::{Mail, Who};
use crate::world::event::What;
use crate::world::link::Passage;
use crate::world::slab::Key;
use crate::world::subscription::{Subscribed, Tell};

/// How long it takes to notice that a subscription is gone and to try again.
const AGAIN: u64 = 100_000_000;

impl World {
    pub(crate) fn subscribe(
        &mut self,
        who: Who,
        seat: u16,
        channel: &Channel,
        listener: Arc<dyn Listener>,
    ) -> Key<Subscribed> {
        let Some(departs) = self.seam(who) else {
            return Key::NONE;
        };
        let node = *self.route(who.client, seat);
        let key = self.subscriptions.insert(Subscribed {
            client: who.client,
            seat,
            node,
            channel: channel.clone(),
            listener,
            epoch: 0,
        });
        self.send_subscribe(key, departs);
        key
    }

    /// Asks the node for messages; if that gets lost, asks again.
    fn send_subscribe(&mut self, key: Key<Subscribed>, departs: u64) {
        let Some(subscribed) = self.subscriptions.get_mut(key) else {
            return;
        };
        let epoch = subscribed.epoch;
        let (client, node) = (subscribed.client, subscribed.node);
        let at = self.link_at(client, node);
        let Some(link) = self.links.get_mut(at) else {
            return;
        };
        match link.to_node.send(departs, &mut self.effects) {
            Passage::Once(at) | Passage::Twice(at, _) => {
                self.push(at, What::Subscribe(key, epoch));
            }
            Passage::Never => self.subscribe_again(key, departs),
        }
    }

    fn subscribe_again(&mut self, key: Key<Subscribed>, from: u64) {
        if let Some(subscribed) = self.subscriptions.get_mut(key) {
            subscribed.epoch = subscribed.epoch.wrapping_add(1);
            let epoch = subscribed.epoch;
            let node = subscribed.node;
            self.node(node).subscribers.retain(|known| *known != key);
            self.push(from + AGAIN, What::Resubscribe(key, epoch));
        }
    }

    pub(crate) fn resubscribe(&mut self, key: Key<Subscribed>, epoch: u32) {
        let now = self.now;
        let subscribed = self.subscriptions.get(key);
        if let Some(subscribed) = subscribed.filter(|s| s.epoch == epoch) {
            let client = subscribed.client;
            let departs = now.max(self.client(client).paused_until);
            self.send_subscribe(key, departs);
        }
    }

    /// The node notes who listens, and says so.
    pub(crate) fn subscribe_arrives(&mut self, key: Key<Subscribed>, epoch: u32) {
        let now = self.now;
        let subscribed = self.subscriptions.get(key);
        let Some(subscribed) = subscribed.filter(|s| s.epoch == epoch) else {
            return;
        };
        let (client, node) = (subscribed.client, subscribed.node);
        let state = self.node(node);
        if !state.is_up {
            self.subscribe_again(key, now);
            return;
        }
        if now < state.paused_until {
            let at = state.paused_until;
            self.push(at, What::Subscribe(key, epoch));
            return;
        }
        if !state.subscribers.contains(&key) {
            state.subscribers.push(key);
        }
        let at = self.link_at(client, node);
        let Some(link) = self.links.get_mut(at) else {
            return;
        };
        match link.to_client.send(now, &mut self.effects) {
            Passage::Once(at) | Passage::Twice(at, _) => self.push(at, What::Live(key, epoch)),
            Passage::Never => self.subscribe_again(key, now),
        }
    }

    /// Sends what a node published to everybody who listens.
    pub(crate) fn publish(&mut self, node: u16, channel: &Channel, wake: Wake) {
        let now = self.now;
        let nodes = self.nodes.len();
        let Some(state) = self.nodes.get(usize::from(node)) else {
            return;
        };
        let mut lost = Vec::new();
        for key in &state.subscribers {
            let subscribed = self.subscriptions.get(*key);
            let Some(subscribed) = subscribed.filter(|s| s.channel == *channel) else {
                continue;
            };
            let at = usize::from(subscribed.client) * nodes + usize::from(node);
            let Some(link) = self.links.get_mut(at) else {
                continue;
            };
            let passage = link.to_client.send(now, &mut self.effects);
            if let Some(recording) = &mut self.recording {
                recording.wake((subscribed.client, node), now, passage, wake);
            }
            match passage {
                Passage::Once(at) | Passage::Twice(at, _) => {
                    self.events.push(at, What::Wake(*key, wake));
                }
                Passage::Never => lost.push(*key),
            }
        }
        // On a connection that loses a message, nothing follows either.
        for key in lost {
            self.subscribe_again(key, now);
        }
    }

    /// A message comes to a client. A paused one hears it later.
    pub(crate) fn live(&mut self, key: Key<Subscribed>, epoch: u32) -> Option<Tell> {
        let subscribed = self.subscriptions.get(key).filter(|s| s.epoch == epoch)?;
        let client = subscribed.client;
        self.deliver(client, Mail::Live(key))
    }

    pub(crate) fn wake(&mut self, key: Key<Subscribed>, wake: Wake) -> Option<Tell> {
        let client = self.subscriptions.get(key)?.client;
        self.deliver(client, Mail::Wake(key, wake))
    }

    fn deliver(&mut self, client: u16, mail: Mail) -> Option<Tell> {
        let now = self.now;
        let state = self.client(client);
        if now < state.paused_until {
            state.mail.push(mail);
            return None;
        }
        self.open(mail)
    }

    pub(crate) fn open(&mut self, mail: Mail) -> Option<Tell> {
        let (key, wake) = match mail {
            Mail::Live(key) => (key, None),
            Mail::Wake(key, wake) => (key, Some(wake)),
        };
        let subscribed = self.subscriptions.get(key)?;
        Some(Tell(subscribed.listener.clone(), wake))
    }

    pub(crate) fn unsubscribe(&mut self, key: Key<Subscribed>) -> Option<Subscribed> {
        let subscribed = self.subscriptions.remove(key)?;
        if let Some(node) = self.nodes.get_mut(usize::from(subscribed.node)) {
            node.subscribers.retain(|known| *known != key);
        }
        Some(subscribed)
    }

    /// A connection has ended, and the subscriptions on it with it.
    pub(crate) fn lose_subscriptions(&mut self, client: u16, node: u16) {
        let now = self.now;
        let lost = |s: &Subscribed| s.client == client && s.node == node;
        for key in self.subscriptions.keys(lost) {
            self.subscribe_again(key, now);
        }
    }

    /// A client talks to another node from now on.
    pub(crate) fn move_subscriptions(&mut self, client: u16, seat: u16, node: u16) {
        let now = self.now;
        let moved = |s: &Subscribed| s.client == client && s.seat == seat;
        for key in self.subscriptions.keys(moved) {
            self.subscribe_again(key, now);
            if let Some(subscribed) = self.subscriptions.get_mut(key) {
                subscribed.node = node;
            }
        }
    }
}
