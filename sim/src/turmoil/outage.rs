//! What goes wrong with nodes and connections, where it is not the same in both lanes.

use quorlock_core::marker::Nonce;

use crate::plan::Persistence;
use crate::plan::fault::InFlight;
use crate::world::World;
use crate::world::link::FaultId;
use crate::world::node::{MARKED_MILLIS, Role};
use redis_sim::{Dataset, Effect};

use super::Order;

/// Changes on their way to a replica.
#[derive(Debug)]
pub(super) struct Replicated {
    from: u16,
    arrives: u64,
    effects: Vec<Effect>,
}

impl World {
    /// What a server has just executed comes to its disk and to its replicas.
    pub(super) fn keep(&mut self, node: u16) {
        let effects = self.sockets().station(node).server.take_effects();
        if effects.is_empty() {
            return;
        }
        self.persist(node);
        let lag = self.plan.nodes.replication_lag.as_nanos();
        let now = self.now;
        for index in 0..self.node(node).replicas.len() {
            let state = self.node(node);
            let delay = lag + state.replication_delay;
            let Some((to, _)) = state.replicas.get(index).copied() else {
                continue;
            };
            let arrives = now + delay + self.node(to).replication_delay;
            let Some((_, last)) = self.node(node).replicas.get_mut(index) else {
                continue;
            };
            *last = (*last).max(arrives);
            let arrives = *last;
            let effects = effects.clone();
            self.sockets().station(to).replicated.push(Replicated {
                from: node,
                arrives,
                effects,
            });
        }
    }

    /// A replica takes over what has come from its primary by now.
    pub(crate) fn catch_up_at_station(&mut self, node: u16) {
        let now = self.now;
        let state = self.node(node);
        let (is_up, role) = (state.is_up, state.role);
        let station = self.sockets().station(node);
        for write in std::mem::take(&mut station.replicated) {
            if now < write.arrives {
                station.replicated.push(write);
            } else if is_up && role == Role::ReplicaOf(write.from) {
                for effect in &write.effects {
                    station.server.apply(effect);
                }
            }
        }
    }

    pub(crate) fn save_station(&mut self, node: u16) {
        let station = self.sockets().station(node);
        station.saved = station.server.dataset();
    }

    /// Servers that are there from the beginning have been watched for long, as the other lane's nodes have been.
    pub(crate) fn ripen_stations(&mut self) {
        let longest = self.plan.longest_lease().as_nanos().div_ceil(1_000_000);
        for node in 0..u16::try_from(self.nodes.len()).unwrap_or(u16::MAX) {
            if let Role::ReplicaOf(primary) = self.node(node).role {
                self.follow_station(primary, node);
                continue;
            }
            self.tell_of_replicas(node);
            let info = self.operate(node, &[b"INFO"]);
            let info = String::from_utf8_lossy(&info).into_owned();
            let says = |field: &str| {
                let mut pairs = info.lines().filter_map(|line| line.split_once(':'));
                pairs
                    .find(|(name, _)| *name == field)
                    .map(|(_, value)| value.to_owned())
            };
            let id = says("master_replid").expect("BUG: a server says which process it is");
            let process = &id[..13];
            let nonce = Nonce::new(u64::from(node)).get();
            let marker = format!("{process}:{nonce}:{longest}:ripe");
            let kept = MARKED_MILLIS.to_string();
            let key = b"quorlock_marker";
            let set = [b"SET", &key[..], marker.as_bytes(), b"PX", kept.as_bytes()];
            assert_eq!(self.operate(node, &set), b"+OK\r\n", "BUG: a marker");
            self.save_station(node);
            self.keep(node);
        }
    }

    /// The process of a server ends, and with it its connections; what its disk has is what it begins with next.
    pub(crate) fn crash_station(&mut self, node: u16) {
        let persistence = self.plan.nodes.persistence;
        let replicas = self.node(node).replicas.len();
        let station = self.sockets().station(node);
        let kept = match persistence {
            Persistence::Memory => Dataset::empty(),
            Persistence::EverySecond => station.saved.clone(),
            Persistence::EveryWrite => station.server.dataset(),
        };
        station.saved = kept.clone();
        station.hang_up(None);
        station.server.restart(kept);
        station.server.replicate();
        station.server.set_replicas(replicas);
        station.operator = station.server.open_session();
        station.call_acceptor();
    }

    /// It begins, and is what it was: it refuses what it refused.
    pub(crate) fn restart_station(&mut self, node: u16) {
        self.tell_of_trouble(node);
        self.sockets().station(node).call_acceptor();
    }

    /// How many replicas follow a server, which changes its identity when the first one comes.
    pub(crate) fn tell_of_replicas(&mut self, node: u16) {
        let replicas = self.node(node).replicas.len();
        self.sockets().station(node).server.set_replicas(replicas);
    }

    /// A first replica comes and leaves. Backups are nights apart: the backlog of the one before has been freed since.
    pub(crate) fn back_up_station(&mut self, node: u16) {
        let server = &mut self.sockets().station(node).server;
        server.free_backlog();
        server.set_replicas(1);
        server.set_replicas(0);
    }

    /// A server becomes a replica of another one, with all that it has.
    pub(crate) fn follow_station(&mut self, primary: u16, replica: u16) {
        let stations = &mut self.sockets().stations;
        let ends = [usize::from(primary), usize::from(replica)];
        if let Ok([primary, replica]) = stations.get_disjoint_mut(ends) {
            replica.server.follow(&primary.server);
        }
    }

    pub(crate) fn promote_station(&mut self, node: u16) {
        self.sockets().station(node).server.promote();
    }

    /// What a server refuses follows what the plan says.
    pub(crate) fn tell_of_trouble(&mut self, node: u16) {
        let error = self.node(node).error.map(|(error, _)| error);
        self.sockets()
            .station(node)
            .server
            .set_condition(error.map(Into::into));
    }

    /// `FLUSHALL`. Returns whether there was any lock.
    pub(crate) fn flush_station(&mut self, node: u16) -> bool {
        let names = self.history.names.clone();
        let had_any = names.iter().any(|name| self.stands(node, name));
        self.sockets().station(node).server.flush();
        self.keep(node);
        had_any
    }

    /// Forgets what is under a name. Returns whether there was a lock.
    pub(crate) fn evict_at_station(&mut self, node: u16, name: &str) -> bool {
        let wall = self.wall_of(node);
        let server = &mut self.sockets().station(node).server;
        server.tick(wall);
        let had_one = server.evict(name.as_bytes());
        self.keep(node);
        had_one
    }

    pub(crate) fn forget_scripts_at_station(&mut self, node: u16, fault: FaultId) {
        let station = self.sockets().station(node);
        station.server.forget_scripts();
        station.forgot = Some(fault);
    }

    /// Ends the connections of a client and a node. Returns whether anything was under way.
    pub(crate) fn reset_sockets(&mut self, client: u16, node: u16, in_flight: InFlight) -> bool {
        let calls = self.sockets().calls_of(client);
        let is_under_way = calls
            .into_iter()
            .any(|seat| *self.route(client, seat) == node);
        self.unplug(client, node);
        if in_flight == InFlight::Lost {
            let sockets = self.sockets();
            sockets.station(node).hang_up(Some(client));
            sockets.orders.push(Order::Lose(client, node));
        }
        is_under_way
    }
}
