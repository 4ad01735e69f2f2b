//! Faults of the servers and the connections of this lane.

use redis_sim::{SessionId, slot_of_key};

use super::stream::StreamHandle;
use super::{Order, Sockets, cluster, place};
use crate::redis::micros;
use quorlock_sim_plan::fault::InFlight;
use quorlock_sim_world::world::id::{ClientId, Id, NodeId, ProcessId, Seat};
use quorlock_sim_world::world::server::{Hand, News, Server, Servers};
use quorlock_sim_world::world::session::{Awaited, Connection, WallMicros};
use quorlock_sim_world::world::shards::KnownSlots;

impl Servers for Sockets {
    fn server(&mut self, node: NodeId) -> &mut dyn Server {
        &mut self.station(node).redis
    }

    fn follow(&mut self, replica: NodeId, primary: NodeId) {
        if let Some([primary, replica]) = self.stations.pair_mut(primary, replica) {
            replica.redis.follow(&primary.redis);
        }
    }

    fn replicate(&mut self, node: NodeId, arrivals: &[(NodeId, u64)]) {
        let written = self.station(node).redis.take_written();
        for (to, arrives) in arrivals.iter().copied() {
            let replica = &mut self.station(to).redis;
            replica.send(node, arrives, written.clone());
        }
    }

    fn boot(&mut self, who: ProcessId) {
        if 0 < who.restarts {
            self.orders.push(Order::Boot(who.client));
        }
    }

    /// Drops everything that the process has left in this lane.
    fn kill(&mut self, client: ClientId) {
        self.orders.push(Order::Kill(client));
        for key in self.posted.keys(|posted| posted.client() == client) {
            self.posted.remove(key);
        }
    }

    fn hang_up(&mut self, node: NodeId) {
        let station = self.station(node);
        station.hang_up(None);
        station.call_acceptor();
    }

    fn listen(&mut self, node: NodeId) {
        self.station(node).call_acceptor();
    }

    /// Resets the connections at the client's end.
    fn leave(&mut self, client: ClientId, node: NodeId) {
        let theirs = |plug: &StreamHandle| plug.client == client && plug.node == node;
        for key in self.plugs.keys(theirs) {
            if let Some(plug) = self.plugs.get_mut(key) {
                plug.reset();
            }
        }
    }

    fn reset(
        &mut self,
        client: ClientId,
        node: NodeId,
        seats: &[Seat],
        in_flight: InFlight,
    ) -> bool {
        let is_under_way = self.posted.iter().any(|(_, posted)| {
            posted.client() == client && !posted.is_over() && seats.contains(&posted.seat())
        });
        self.leave(client, node);
        if in_flight == InFlight::Lost {
            self.station(node).hang_up(Some(client));
            self.orders.push(Order::Lose(client, node));
        }
        is_under_way
    }

    fn name_primary(&mut self, sentinel: NodeId, primary: NodeId, epoch: u64, news: News) {
        let station = self.station(sentinel);
        let server = &mut station.redis.process;
        match news {
            News::Promoted => server.promoted(place(primary), epoch),
            News::Switched => server.switch(place(primary), epoch),
        }
        station.pass_on();
    }

    fn slot_of(&self, seat: Seat, name: &str) -> u16 {
        let tag = self.tags.get(seat.index());
        slot_of_key(tag.map_or(name, String::as_str).as_bytes())
    }

    fn know_slots(&mut self, known: &KnownSlots) {
        let station = self.station(known.own);
        station.redis.process.know_slots(cluster::table(known));
        station.pass_on();
    }

    fn move_key(&mut self, slot: u16, from: Hand, to: Hand) -> bool {
        let process = &mut self.station(from.node).redis.process;
        let moved = process.hand_over(micros(from.now), slot);
        let is_moved = moved.is_some();
        if let Some(moved) = moved {
            let process = &mut self.station(to.node).redis.process;
            process.take_in(micros(to.now), moved);
        }
        is_moved
    }

    fn take_awaited(&mut self, node: NodeId) -> Vec<Awaited> {
        let awaited = self.station(node).redis.process.take_awaited().into_iter();
        let awaited = awaited.map(|awaited| Awaited {
            connection: Connection(awaited.session.0),
            replicas: awaited.replicas,
            within: awaited.within,
        });
        awaited.collect()
    }

    fn confirm(&mut self, node: NodeId, waiting: Connection, now: WallMicros, replicas: usize) {
        let station = self.station(node);
        station
            .redis
            .process
            .confirm(SessionId(waiting.0), micros(now), replicas);
        station.pass_on();
    }

    fn is_quiet(&self) -> bool {
        self.posted.iter().next().is_none()
    }
}
