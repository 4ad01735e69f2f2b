//! What goes wrong with the servers and the connections of this lane.

use super::cable::Plug;
use super::{Order, Sockets};
use crate::plan::fault::InFlight;
use crate::world::client::Who;
use crate::world::server::{Server, Servers};

impl Servers for Sockets {
    fn server(&mut self, node: u16) -> &mut dyn Server {
        &mut self.station(node).redis
    }

    fn follow(&mut self, replica: u16, primary: u16) {
        let ends = [usize::from(primary), usize::from(replica)];
        if let Ok([primary, replica]) = self.stations.get_disjoint_mut(ends) {
            replica.redis.follow(&primary.redis);
        }
    }

    fn replicate(&mut self, node: u16, arrivals: &[(u16, u64)]) {
        let written = self.station(node).redis.take_written();
        for (to, arrives) in arrivals.iter().copied() {
            let replica = &mut self.station(to).redis;
            replica.send(node, arrives, written.clone());
        }
    }

    fn boot(&mut self, who: Who) {
        if 0 < who.restarts {
            self.orders.push(Order::Boot(who.client));
        }
    }

    /// Nothing that the process has left here goes on.
    fn kill(&mut self, client: u16) {
        self.orders.push(Order::Kill(client));
        for key in self.posted.keys(|posted| posted.client == client) {
            self.posted.remove(key);
        }
    }

    fn hang_up(&mut self, node: u16) {
        let station = self.station(node);
        station.hang_up(None);
        station.call_acceptor();
    }

    fn listen(&mut self, node: u16) {
        self.station(node).call_acceptor();
    }

    /// Resets the connections at the client's end.
    fn leave(&mut self, client: u16, node: u16) {
        let theirs = |plug: &Plug| plug.client == client && plug.node == node;
        for key in self.plugs.keys(theirs) {
            if let Some(plug) = self.plugs.get_mut(key) {
                plug.reset();
            }
        }
    }

    fn reset(&mut self, client: u16, node: u16, seats: &[u16], in_flight: InFlight) -> bool {
        let is_under_way = self.posted.iter().any(|(_, posted)| {
            posted.client == client && !posted.is_over && seats.contains(&posted.seat)
        });
        self.leave(client, node);
        if in_flight == InFlight::Lost {
            self.station(node).hang_up(Some(client));
            self.orders.push(Order::Lose(client, node));
        }
        is_under_way
    }

    fn is_quiet(&self) -> bool {
        self.posted.iter().next().is_none()
    }
}
