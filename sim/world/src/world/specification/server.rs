//! Servers that are the executable specification of `quorlock-core`.

use std::any::Any;
use std::rc::Rc;

use crate::world::session::WallMicros;
use quorlock::runtime::WallMillis;
use quorlock::transport::{Cause, Request};
use quorlock::{Name, OwnerId};
use quorlock_core::marker::Nonce;
use quorlock_core::marker::{Figures, Lineage, Marker, MarkerState, Process};
use quorlock_core::message::Ttl;
use quorlock_core::node::{Applied, Held, Node as Keys};

use super::apply;
use crate::world::by_id::ById;
use crate::world::id::{Id, NodeId, Seat};
use crate::world::node::MARKED_MILLIS;
use crate::world::records::RecordServer;
use crate::world::server::{Server, Servers};
use quorlock_sim_plan::fault::ServerError;
use quorlock_sim_plan::variant::Variant;
use quorlock_sim_plan::{NodeKind, Persistence, Plan};

/// The servers of a run whose messages are values, not bytes on sockets.
#[derive(Debug, Default)]
pub(crate) struct Specification {
    servers: ById<NodeId, ValueServer>,
}

/// A server whose messages are values.
#[derive(Debug)]
enum ValueServer {
    Locks(SpecifiedServer),
    Records(RecordServer),
}

/// A server that executes requests as the specification does.
#[derive(Debug)]
pub(crate) struct SpecifiedServer {
    keys: Keys,
    /// The keys on the disk. Unused if the disk has all keys or none.
    saved: Keys,
    variant: Variant,
    id: NodeId,
    /// The number of processes that the server has had. A promotion counts as a new process.
    starts: u32,
    refuses: Option<ServerError>,
    written: Vec<SpecificationWrite>,
    /// Writes in flight to this server. They are applied only when a run reads the server's keys, because most
    /// replicas never serve a request.
    replicated: Vec<SpecificationChange>,
}

/// A write, with the clock of the primary at its execution. What is replicated has absolute times.
#[derive(Clone, Debug)]
struct SpecificationWrite {
    wall: WallMillis,
    /// The process of the primary. The replicas store the primary's marker unchanged.
    process: Process,
    /// The request, shared with the replicas.
    request: Rc<Request>,
}

/// A write in flight to a replica.
#[derive(Debug)]
struct SpecificationChange {
    from: NodeId,
    arrives: u64,
    written: SpecificationWrite,
}

fn millis(now: WallMicros) -> WallMillis {
    WallMillis(now.0 / 1_000)
}

impl Specification {
    pub(crate) fn new(plan: &Plan, nodes: usize) -> Self {
        let lineage = (0 < plan.nodes.replicas).then_some(Lineage::Shared);
        let ids = (0..=u16::MAX).take(nodes).map(NodeId::new);
        let of = |id: NodeId| {
            let replica = id.get().checked_sub(plan.nodes.count);
            let seat = replica.map_or(id.get(), |n| n / plan.nodes.replicas.max(1));
            match plan.nodes.kind(seat) {
                NodeKind::Server => {
                    ValueServer::Locks(SpecifiedServer::new(id, plan.variant, lineage))
                }
                kind => {
                    let seat = Seat::new(seat);
                    ValueServer::Records(RecordServer::new(kind, id, seat, plan))
                }
            }
        };
        Specification {
            servers: ids.map(of).collect(),
        }
    }

    /// Returns the servers of a run whose messages are values. Only these servers receive requests as events of the
    /// world, so nothing else needs their concrete type. This module cannot name the servers of the other medium.
    pub(crate) fn of(servers: &mut dyn Servers) -> &mut Specification {
        let servers: &mut dyn Any = servers;
        let specification = servers.downcast_mut();
        specification.expect("BUG: an event of another medium")
    }

    /// Returns a lock server.
    pub(crate) fn at(&mut self, node: NodeId) -> &mut SpecifiedServer {
        match self.servers.get_mut(node) {
            Some(ValueServer::Locks(server)) => server,
            _ => panic!("BUG: no such lock server"),
        }
    }

    /// Returns a server of a store.
    pub(crate) fn records_at(&mut self, node: NodeId) -> &mut RecordServer {
        match self.servers.get_mut(node) {
            Some(ValueServer::Records(server)) => server,
            _ => panic!("BUG: no such store"),
        }
    }

    /// Returns the error with which a server refuses every request, if it does.
    pub(crate) fn refuses(&self, node: NodeId) -> Option<Cause> {
        let refuses = match self.servers.get(node)? {
            ValueServer::Locks(server) => server.refuses,
            ValueServer::Records(server) => server.refuses(),
        };
        refuses.map(|error| match error {
            ServerError::ReadOnly => Cause::ReadOnly,
            ServerError::Loading => Cause::Loading,
            ServerError::OutOfMemory => Cause::OutOfMemory,
            ServerError::Busy => Cause::Busy,
        })
    }

    /// Asks about the keys of a name on a node, and the time by which they are judged. Returns `None` if a store has no record
    /// of the name.
    pub(crate) fn look<R>(
        &self,
        node: NodeId,
        wall: WallMillis,
        name: &Name,
        question: impl FnOnce(&Keys, WallMillis) -> R,
    ) -> Option<R> {
        match self.servers.get(node)? {
            ValueServer::Locks(server) => Some(question(&server.keys, wall)),
            ValueServer::Records(server) => {
                let (keys, now) = server.keys(wall, name)?;
                Some(question(&keys, now))
            }
        }
    }
}

impl ValueServer {
    fn as_server(&mut self) -> &mut dyn Server {
        match self {
            ValueServer::Locks(server) => server,
            ValueServer::Records(server) => server,
        }
    }
}

/// The servers before the first run of a thread, and after each run.
impl Default for Box<dyn Servers> {
    fn default() -> Self {
        Box::new(Specification::default())
    }
}

impl Servers for Specification {
    fn server(&mut self, node: NodeId) -> &mut dyn Server {
        let server = self.servers.get_mut(node);
        server.expect("BUG: no such node").as_server()
    }

    fn follow(&mut self, replica: NodeId, primary: NodeId) {
        match self.servers.pair_mut(replica, primary) {
            Some([ValueServer::Locks(replica), ValueServer::Locks(primary)]) => {
                replica.keys = primary.keys.clone();
                // What is in flight is part of the copy, or of what the primary has lost. If it were applied later, it would
                // overwrite newer keys with older ones.
                replica.replicated.clear();
            }
            Some([ValueServer::Records(replica), ValueServer::Records(primary)]) => {
                replica.copy_of(primary);
            }
            _ => panic!("BUG: a replica is of the kind of its primary"),
        }
    }

    fn replicate(&mut self, node: NodeId, arrivals: &[(NodeId, u64)]) {
        match self.servers.get_mut(node) {
            Some(ValueServer::Locks(server)) => {
                for written in std::mem::take(&mut server.written) {
                    for (to, arrives) in arrivals.iter().copied() {
                        self.at(to).replicated.push(SpecificationChange {
                            from: node,
                            arrives,
                            written: written.clone(),
                        });
                    }
                }
            }
            Some(ValueServer::Records(server)) => {
                for change in server.take_written() {
                    for (to, arrives) in arrivals.iter().copied() {
                        self.records_at(to).receive(node, arrives, &change);
                    }
                }
            }
            None => {}
        }
    }

    fn claims(&self, node: NodeId, now: WallMicros, name: &Name) -> Vec<(Option<OwnerId>, Ttl)> {
        if let Some(ValueServer::Records(server)) = self.servers.get(node)
            && !server.has_clock()
        {
            // The claim of a dead owner stays until a client has observed it.
            return Vec::new();
        }
        let claims = self.look(node, millis(now), name, |keys, wall| {
            match keys.held(wall, name) {
                None => Vec::new(),
                Some((Held::Plain { owner, .. }, ttl)) => vec![(Some(owner), ttl)],
                Some((Held::ReadWrite(held), ttl)) => {
                    let readers = keys.readers(wall, name).into_iter();
                    let readers = readers.map(|(owner, _, ttl)| (Some(owner), ttl));
                    let writer = held.writer.map(|(owner, _)| (Some(owner), ttl));
                    writer.into_iter().chain(readers).collect()
                }
                Some((Held::NotALock, ttl)) => vec![(None, ttl)],
            }
        });
        claims.unwrap_or_default()
    }
}

impl SpecifiedServer {
    fn new(id: NodeId, variant: Variant, lineage: Option<Lineage>) -> Self {
        let mut server = SpecifiedServer {
            keys: Keys::new(),
            saved: Keys::new(),
            variant,
            id,
            starts: 0,
            refuses: None,
            written: Vec::new(),
            replicated: Vec::new(),
        };
        if let Some(lineage) = lineage {
            server.keys.set_lineage(lineage);
        }
        server.begin_process();
        server
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(crate) fn execute(&mut self, wall: WallMillis, request: &Request) -> Applied {
        apply(&mut self.keys, wall, request, self.variant)
    }

    /// Queues a request that the server has executed for its replicas.
    pub(crate) fn write(&mut self, wall: WallMillis, request: &Rc<Request>) {
        self.written.push(SpecificationWrite {
            wall,
            process: self.keys.process(),
            request: Rc::clone(request),
        });
    }

    /// Draws an identity that no process of this run has had before.
    fn begin_process(&mut self) {
        self.starts += 1;
        let process = (u64::from(self.id.get()) + 1) << 32 | u64::from(self.starts);
        self.keys.set_process(Process(process));
    }
}

impl Server for SpecifiedServer {
    fn crash(&mut self, disk: Persistence) {
        match disk {
            Persistence::Memory => {
                self.keys.flush();
                self.saved.flush();
            }
            Persistence::EverySecond => self.keys = self.saved.clone(),
            Persistence::EveryWrite => {}
        }
    }

    fn restart(&mut self) {
        self.begin_process();
    }

    fn promote(&mut self) {
        self.begin_process();
    }

    /// Does nothing, because only a backup changes the server's identity.
    fn set_replicas(&mut self, _many: usize) {}

    fn back_up(&mut self) {
        self.begin_process();
    }

    fn save(&mut self) {
        self.saved = self.keys.clone();
    }

    fn flush(&mut self, now: WallMicros, _names: &[String]) -> bool {
        let had_any = self.keys.names(millis(now)).next().is_some();
        self.keys.flush();
        had_any
    }

    fn evict(&mut self, now: WallMicros, name: &str) -> bool {
        let Ok(name) = Name::new(name) else {
            return false;
        };
        let had_one = self.keys.held(millis(now), &name).is_some();
        // An expired key is the same as a missing one.
        let gone = Some(WallMillis(0));
        self.keys.put(&name, Held::NotALock, gone);
        had_one
    }

    fn refuse(&mut self, error: Option<ServerError>) {
        self.refuses = error;
    }

    /// Does nothing, because the client's link accounts for the extra round trip.
    fn forget_scripts(&mut self) {}

    fn mark(&mut self, now: WallMicros, nonce: Nonce, longest_millis: u64) {
        self.keys.put_marker(Some(Marker {
            process: self.keys.process(),
            nonce,
            figures: Figures::same(longest_millis),
            state: MarkerState::Confirmed,
            expires: millis(now).plus(MARKED_MILLIS),
        }));
    }

    fn names_left(&mut self, now: WallMicros, names: &[String]) -> Vec<String> {
        let wall = millis(now);
        let claimed = self.keys.names(wall).map(|name| name.to_string());
        let mut left: Vec<String> = claimed.collect();
        // A fair lock can be free and still have waiters in its queue.
        let names = names.iter().filter_map(|name| Name::new(name).ok());
        let waited_for = names.filter(|name| !self.keys.queue(wall, name).is_empty());
        left.extend(waited_for.map(|name| name.to_string()));
        left
    }

    fn catch_up(&mut self, now: u64, primary: Option<NodeId>) {
        for write in std::mem::take(&mut self.replicated) {
            if now < write.arrives {
                self.replicated.push(write);
            } else if primary == Some(write.from) {
                let SpecificationWrite {
                    wall,
                    process,
                    request,
                } = write.written;
                let own = self.keys.process();
                self.keys.set_process(process);
                apply(&mut self.keys, wall, &request, self.variant);
                self.keys.set_process(own);
            }
        }
    }

    fn has_written(&mut self) -> bool {
        !self.written.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use quorlock::Token;
    use quorlock::transport::Acquire;
    use quorlock_core::fencing::Fence;
    use quorlock_core::lease::Lease;
    use quorlock_core::message::{Access, Retention};
    use quorlock_core::owner::ClientId;

    use super::*;

    fn write(from: u16, arrives: u64, name: &str) -> SpecificationChange {
        let request = Request::Acquire(Acquire {
            name: Name::new(name).unwrap(),
            access: Access::Plain,
            owner: OwnerId {
                client: ClientId::from_random(1),
                number: 1,
            },
            count: 1,
            lease: Lease::new(Lease::SHORTEST).unwrap(),
            fence: Fence::Carry(Token(1)),
            retention: Retention::Forever,
            keep: None,
            after: None,
            replaces: None,
            continues: None,
            check: None,
        });
        SpecificationChange {
            from: NodeId::new(from),
            arrives,
            written: SpecificationWrite {
                wall: WallMillis(1),
                process: Process::default(),
                request: Rc::new(request),
            },
        }
    }

    #[test]
    fn a_replica_takes_over_what_has_come_from_its_own_primary() {
        let mut replica = SpecifiedServer::new(NodeId::new(1), Variant::default(), None);
        replica.replicated = vec![write(0, 5, "a"), write(7, 6, "b"), write(0, 15, "c")];
        for (now, names) in [(4, &[][..]), (10, &["a"]), (15, &["a", "c"])] {
            replica.catch_up(now, Some(NodeId::new(0)));
            let taken: Vec<_> = replica.keys.names(WallMillis(1)).collect();
            let taken: Vec<_> = taken.into_iter().filter_map(Name::to_str).collect();
            assert_eq!(taken, names, "{now}");
        }
        replica.replicated = vec![write(0, 20, "d")];
        replica.catch_up(20, None);
        assert_eq!(replica.keys.names(WallMillis(1)).count(), 2);
    }
}
