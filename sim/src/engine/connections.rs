//! Connections: how they come about and end, and what becomes of the calls on them.

use super::calls::Sent;
use crate::plan::fault::InFlight;
use crate::world::World;
use crate::world::event::What;
use crate::world::link::{Line, Passage};

impl World {
    pub(super) fn connect(&mut self, client: u16, node: u16, departs: u64) {
        let now = self.now;
        let timeout = self.plan.network.connect_timeout.as_nanos();
        let at = self.link_at(client, node);
        let Some(link) = self.links.get_mut(at) else {
            return;
        };
        link.line = Line::Connecting;
        link.client_epoch += 1;
        let epoch = link.client_epoch;
        if let Passage::Once(at) | Passage::Twice(at, _) =
            link.to_node.send(departs, &mut self.effects)
        {
            self.push(at, What::Connect(client, node, epoch));
        }
        self.push(
            now.max(departs) + timeout,
            What::Reconnect(client, node, epoch),
        );
    }

    /// A node is asked to connect. A paused one answers when it goes on: the scripts are loaded with the connection.
    pub(crate) fn connect_arrives(&mut self, client: u16, node: u16, epoch: u32) {
        let now = self.now;
        let state = self.node(node);
        let (is_up, paused_until) = (state.is_up, state.paused_until);
        if is_up && now < paused_until {
            self.push(paused_until, What::Connect(client, node, epoch));
            return;
        }
        let at = self.link_at(client, node);
        let Some(link) = self.links.get_mut(at) else {
            return;
        };
        let answer = if is_up {
            link.node_epoch = epoch;
            link.lacks_scripts = None;
            What::Connected(client, node, epoch)
        } else {
            What::Refused(client, node, epoch)
        };
        if let Passage::Once(at) | Passage::Twice(at, _) =
            link.to_client.send(now, &mut self.effects)
        {
            self.push(at, answer);
        }
    }

    /// The connection is there: what has waited for it is sent, once the client is not paused.
    pub(crate) fn connected(&mut self, client: u16, node: u16, epoch: u32) {
        let now = self.now;
        let paused_until = self.client(client).paused_until;
        if now < paused_until {
            self.push(paused_until, What::Connected(client, node, epoch));
            return;
        }
        let link = self.link(client, node);
        if link.client_epoch != epoch || link.line != Line::Connecting {
            return;
        }
        link.line = Line::Up;
        for key in std::mem::take(&mut link.waiting) {
            let call = self.calls.get(key);
            if call.is_some_and(|call| !call.is_done && !call.is_dropped) {
                self.send(key, now);
            }
        }
    }

    /// No connection came about, so nothing was sent.
    pub(crate) fn not_connected(&mut self, client: u16, node: u16, epoch: u32) {
        let link = self.link(client, node);
        if link.client_epoch != epoch || link.line != Line::Connecting {
            return;
        }
        link.line = Line::Down;
        link.waiting.clear();
        self.end_calls(client, node, Sent::No);
    }

    /// Tells a client, by way of the network, that its connection is gone.
    pub(crate) fn tell_closed(&mut self, client: u16, node: u16, epoch: u32) {
        let now = self.now;
        let at = self.link_at(client, node);
        let Some(link) = self.links.get_mut(at) else {
            return;
        };
        if let Passage::Once(at) | Passage::Twice(at, _) =
            link.to_client.send(now, &mut self.effects)
        {
            self.push(at, What::Closed(client, node, epoch));
        }
    }

    /// A client hears that its connection has ended: what was sent on it may have been executed.
    pub(crate) fn closed(&mut self, client: u16, node: u16, epoch: u32) {
        let link = self.link(client, node);
        if link.client_epoch != epoch || link.line != Line::Up {
            return;
        }
        link.line = Line::Down;
        self.end_calls(client, node, Sent::Yes);
    }

    /// Ends the connection of a client and a node at both ends. Returns whether anything was under way.
    pub(crate) fn reset(&mut self, client: u16, node: u16, in_flight: InFlight) -> bool {
        let mut seats: Vec<u16> = (0..self.plan.nodes.count).collect();
        seats.retain(|seat| *self.route(client, *seat) == node);
        let is_under_way = self.servers.reset(client, node, &seats, in_flight);
        let link = self.link(client, node);
        if link.line != Line::Up {
            return is_under_way;
        }
        let epoch = link.client_epoch;
        link.node_epoch = u32::MAX;
        let open = self.calls.keys(|call| {
            call.client == client && call.node == node && call.is_sent && !call.is_done
        });
        if in_flight == InFlight::Executed {
            for key in &open {
                if let Some(call) = self.calls.get_mut(*key) {
                    call.outlives_its_connection = true;
                }
            }
        }
        self.closed(client, node, epoch);
        self.lose_subscriptions(client, node);
        is_under_way || !open.is_empty()
    }
}
