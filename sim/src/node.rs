//! A server: the executable specification of `quorlock-core` behind a clock, a disk and replicas.

use quorlock::WallMillis;
use quorlock::transport::{
    AcquireReply, Cause, Execution, Held, Node as Keys, ReleaseReply, Reply, Request,
};

use crate::call::{Answer, Call};
use crate::client::right_wall_clock;
use crate::clock::Clock;
use crate::event::What;
use crate::fault::ServerError;
use crate::history::{Process, Theft};
use crate::link::FaultId;
use crate::plan::Persistence;
use crate::slab::Key;
use crate::subscription::Subscribed;
use crate::variant;
use crate::world::World;

/// How often a node with `appendfsync everysec` writes to its disk.
const EVERY_SECOND: u64 = 1_000_000_000;

#[derive(Debug)]
pub(crate) struct NodeState {
    pub(crate) keys: Keys,
    /// What is on its disk, unless that is everything or nothing.
    saved: Keys,
    saves: bool,
    /// Nanoseconds since 1970. Keys expire by it.
    pub(crate) clock: Clock,
    pub(crate) is_up: bool,
    pub(crate) role: Role,
    pub(crate) paused_until: u64,
    pub(crate) pauses: u32,
    /// Requests that came while it was paused.
    pub(crate) queue: Vec<Key<Call>>,
    pub(crate) error: Option<(ServerError, FaultId)>,
    pub(crate) subscribers: Vec<Key<Subscribed>>,
    /// Its replicas, each with the time at which the last write comes there.
    pub(crate) replicas: Vec<(u16, u64)>,
    pub(crate) replication_delay: u64,
    /// Writes on their way to it. They are taken over when somebody looks: most replicas are never asked anything.
    replicated: Vec<Replicated>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Primary,
    /// Follows this node and refuses clients.
    ReplicaOf(u16),
}

/// A write on its way to a replica, with the clock of the primary at its execution: what is replicated is absolute.
#[derive(Debug)]
struct Replicated {
    from: u16,
    arrives: u64,
    wall: WallMillis,
    request: Request,
}

impl NodeState {
    pub(crate) fn new(role: Role) -> Self {
        NodeState {
            keys: Keys::new(),
            saved: Keys::new(),
            saves: false,
            clock: right_wall_clock(),
            is_up: true,
            role,
            paused_until: 0,
            pauses: 0,
            queue: Vec::new(),
            error: None,
            subscribers: Vec::new(),
            replicas: Vec::new(),
            replication_delay: 0,
            replicated: Vec::new(),
        }
    }

    pub(crate) fn wall(&self, at: u64) -> WallMillis {
        WallMillis(self.clock.read(at) / 1_000_000)
    }

    /// The error with which it refuses everything now.
    fn refusal(&self) -> Option<(Cause, Option<FaultId>)> {
        if self.role != Role::Primary {
            return Some((Cause::ReadOnly, None));
        }
        let (error, fault) = self.error?;
        let cause = match error {
            ServerError::ReadOnly => Cause::ReadOnly,
            ServerError::Loading => Cause::Loading,
            ServerError::OutOfMemory => Cause::OutOfMemory,
            ServerError::Busy => Cause::Busy,
        };
        Some((cause, Some(fault)))
    }
}

impl World {
    /// A node executes a request and answers.
    pub(crate) fn execute(&mut self, key: Key<Call>) {
        let now = self.now;
        let Some(call) = self.calls.get(key) else {
            return;
        };
        let id = call.node;
        let Some(node) = self.nodes.get_mut(usize::from(id)) else {
            return;
        };
        if let Some((cause, fault)) = node.refusal() {
            if let Some(fault) = fault {
                self.blame(fault);
            }
            self.reply(key, Err((Execution::Definite, cause)));
            return;
        }
        self.counters.commands += 1;
        let wall = node.wall(now);
        let claimed = match &call.request {
            Request::Release(release) => node.keys.held(wall, &release.name),
            _ => None,
        };
        let applied = variant::apply(&mut node.keys, wall, &call.request, self.plan.variant);
        let has_replicas = !node.replicas.is_empty();
        let digest = digest(&applied.reply);
        self.note(digest ^ u64::from(id) << 56);
        if let (Some((held, _)), Ok(Reply::Release(reply))) = (claimed, &applied.reply) {
            self.check_owner(key, held, *reply);
        }
        if let Ok(Reply::Acquire(AcquireReply::Refused { .. })) = applied.reply {
            self.counters.refused += 1;
        } else {
            self.persist(id);
            if has_replicas {
                self.replicate(id, wall, key);
            }
        }
        if let Some((name, wake)) = applied.published {
            self.publish(id, &name, wake);
        }
        let answer: Answer = applied.reply.map_err(|cause| (Execution::Definite, cause));
        self.reply(key, answer);
    }

    /// Nobody but its owner changes a claim.
    fn check_owner(&mut self, key: Key<Call>, held: Held, reply: ReleaseReply) {
        let Some(call) = self.calls.get(key) else {
            return;
        };
        let (Held::Plain { owner, .. }, Request::Release(release)) = (held, &call.request) else {
            return;
        };
        if reply == ReleaseReply::NotYours || owner == release.owner {
            return;
        }
        let (node, client) = (call.node, call.client);
        let name = self.history.name(release.name.as_str());
        let restarts = self.client(client).restarts;
        let at = self.now;
        self.history.thefts.push(Theft {
            at,
            node,
            name,
            by: Process { client, restarts },
        });
    }

    /// Sees to it that a write comes to the disk, if the disk is ever different from the memory.
    fn persist(&mut self, id: u16) {
        if self.plan.nodes.persistence != Persistence::EverySecond {
            return;
        }
        let at = self.now + EVERY_SECOND;
        let node = self.node(id);
        if !node.saves {
            node.saves = true;
            self.push(at, What::Save(id));
        }
    }

    pub(crate) fn save(&mut self, id: u16) {
        let node = self.node(id);
        if node.is_up {
            node.saves = false;
            node.saved = node.keys.clone();
        }
    }

    fn replicate(&mut self, id: u16, wall: WallMillis, key: Key<Call>) {
        let Some(request) = self.calls.get(key).map(|call| call.request.clone()) else {
            return;
        };
        let lag = self.plan.nodes.replication_lag.as_nanos();
        let now = self.now;
        for index in 0..self.node(id).replicas.len() {
            let node = self.node(id);
            let delay = lag + node.replication_delay;
            let Some((to, last)) = node.replicas.get_mut(index) else {
                continue;
            };
            *last = (*last).max(now + delay);
            let (to, arrives) = (*to, *last);
            self.node(to).replicated.push(Replicated {
                from: id,
                arrives,
                wall,
                request: request.clone(),
            });
        }
    }

    /// A node takes over what has come from its primary by now. To be called before anything is read from a replica,
    /// and before anything about a node changes that decides whether it takes over.
    pub(crate) fn catch_up(&mut self, id: u16) {
        let now = self.now;
        let variant = self.plan.variant;
        let node = self.node(id);
        for write in std::mem::take(&mut node.replicated) {
            if now < write.arrives {
                node.replicated.push(write);
            } else if node.is_up && node.role == Role::ReplicaOf(write.from) {
                variant::apply(&mut node.keys, write.wall, &write.request, variant);
            }
        }
    }

    pub(crate) fn pause_node(&mut self, id: u16, until: u64) {
        let node = self.node(id);
        if node.is_up && node.paused_until < until {
            node.paused_until = until;
            node.pauses += 1;
            let pause = node.pauses;
            self.push(until, What::ResumeNode(id, pause));
        }
    }

    pub(crate) fn resume_node(&mut self, id: u16, pause: u32) {
        let node = self.node(id);
        if node.pauses != pause || !node.is_up {
            return;
        }
        for key in std::mem::take(&mut node.queue) {
            self.execute_queued(key);
        }
    }

    /// Ends a node; everybody connected hears it, by way of the network. Returns whether it had been up.
    pub(crate) fn crash_node(&mut self, id: u16) -> bool {
        let persistence = self.plan.nodes.persistence;
        self.catch_up(id);
        let node = self.node(id);
        if !node.is_up {
            return false;
        }
        node.is_up = false;
        node.saves = false;
        node.paused_until = 0;
        match persistence {
            Persistence::Memory => {
                node.keys.flush();
                node.saved.flush();
            }
            Persistence::EverySecond => node.keys = node.saved.clone(),
            Persistence::EveryWrite => {}
        }
        for key in std::mem::take(&mut node.queue) {
            self.forget_queued(key);
        }
        for client in 0..self.plan.clients {
            self.lose_connection(client, id);
        }
        true
    }

    /// The node's end of a connection is gone.
    fn lose_connection(&mut self, client: u16, node: u16) {
        let link = self.link(client, node);
        link.node_epoch = u32::MAX;
        let epoch = link.client_epoch;
        self.tell_closed(client, node, epoch);
        self.lose_subscriptions(client, node);
    }

    pub(crate) fn restart_node(&mut self, id: u16) {
        self.catch_up(id);
        let node = self.node(id);
        node.is_up = true;
        // A replica begins with all that its primary has.
        if let Role::ReplicaOf(primary) = node.role {
            let keys = self.node(primary).keys.clone();
            self.node(id).keys = keys;
        }
    }

    /// A replica takes the place of its primary; the old one goes on until it rejoins.
    pub(crate) fn promote(
        &mut self,
        fault: u16,
        seat: u16,
        replica: u16,
        left_behind: &[u16],
        rejoins: u64,
    ) {
        let now = self.now;
        let old = self.primary(seat);
        let Some(new) = self.replica_of(seat, replica).filter(|new| *new != old) else {
            return;
        };
        self.catch_up(new);
        self.node(new).role = Role::Primary;
        let others = std::mem::take(&mut self.node(old).replicas);
        for (other, _) in others {
            if other != new {
                self.catch_up(other);
                let keys = self.node(new).keys.clone();
                let node = self.node(other);
                node.role = Role::ReplicaOf(new);
                node.keys = keys;
                self.node(new).replicas.push((other, now));
            }
        }
        for client in 0..self.plan.clients {
            let at = if left_behind.contains(&client) {
                rejoins
            } else {
                now
            };
            self.push(at, What::Reroute(client, seat));
        }
        self.node(old).replicas.clear();
        self.promoted.push((seat, old, new, fault));
    }

    /// The node that clients are sent to for a node of the plan.
    pub(crate) fn primary(&self, seat: u16) -> u16 {
        let last = self.promoted.iter().rev().find(|(s, ..)| *s == seat);
        last.map_or(seat, |(_, _, new, _)| *new)
    }

    /// The node of a plan's node's replica, which is fixed whatever roles they have.
    fn replica_of(&self, seat: u16, replica: u16) -> Option<u16> {
        let nodes = &self.plan.nodes;
        (replica < nodes.replicas).then(|| nodes.count + seat * nodes.replicas + replica)
    }

    /// A client finds the new primary and connects to it.
    pub(crate) fn reroute(&mut self, client: u16, seat: u16) {
        let new = self.primary(seat);
        let old = std::mem::replace(self.route(client, seat), new);
        if old != new {
            let epoch = self.link(client, old).client_epoch;
            self.closed(client, old, epoch);
            self.move_subscriptions(client, seat, new);
        }
    }

    /// The old primary follows the new one, and forgets what only it had.
    pub(crate) fn rejoin(&mut self, fault: u16) {
        let now = self.now;
        let promotion = self.promoted.iter().find(|(.., by)| *by == fault);
        let Some((seat, old, _, _)) = promotion.copied() else {
            return;
        };
        // Somebody else may have been promoted since; if it was the old primary itself, it stays one.
        let new = self.primary(seat);
        if new == old {
            return;
        }
        self.catch_up(old);
        let keys = self.node(new).keys.clone();
        let node = self.node(old);
        if node.role == Role::Primary {
            node.role = Role::ReplicaOf(new);
            node.keys = keys;
            self.node(new).replicas.push((old, now));
        }
    }
}

/// What a reply says, as a number for the trace.
fn digest(reply: &Result<Reply, Cause>) -> u64 {
    match reply {
        Ok(Reply::Acquire(AcquireReply::Granted { freshness, token })) => {
            (token.0 << 4) | (1 + *freshness as u64)
        }
        Ok(Reply::Acquire(AcquireReply::Refused { .. })) => 3,
        Ok(Reply::Acquire(AcquireReply::OtherMode(_))) => 4,
        Ok(Reply::Renew(replies)) => (replies.len() as u64) << 4 | 5,
        Ok(Reply::Release(reply)) => 6 + *reply as u64,
        Err(cause) => 16 + *cause as u64,
        _ => 15,
    }
}

#[cfg(test)]
mod tests {
    use quorlock::transport::{Acquire, Retention};
    use quorlock::{Name, OwnerId, Token};
    use quorlock_core::fencing::Fence;
    use quorlock_core::lease::Lease;
    use quorlock_core::owner::ClientId;

    use super::*;

    fn write(from: u16, arrives: u64, name: &str) -> Replicated {
        let request = Request::Acquire(Acquire {
            name: Name::new(name).unwrap(),
            owner: OwnerId {
                client: ClientId::from_random(1),
                number: 1,
            },
            count: 1,
            lease: Lease::new(Lease::SHORTEST).unwrap(),
            fence: Fence::Carry(Token(1)),
            retention: Retention::Forever,
        });
        Replicated {
            from,
            arrives,
            wall: WallMillis(1),
            request,
        }
    }

    #[test]
    fn a_replica_takes_over_what_has_come_from_its_own_primary() {
        let mut world = World {
            nodes: vec![
                NodeState::new(Role::Primary),
                NodeState::new(Role::ReplicaOf(0)),
            ],
            ..World::default()
        };
        world.node(1).replicated = vec![write(0, 5, "a"), write(7, 6, "b"), write(0, 15, "c")];
        for (now, names) in [(4, &[][..]), (10, &["a"]), (15, &["a", "c"])] {
            world.now = now;
            world.catch_up(1);
            let taken: Vec<_> = world.node(1).keys.names(WallMillis(1)).collect();
            let taken: Vec<_> = taken.into_iter().map(Name::as_str).collect();
            assert_eq!(taken, names, "{now}");
        }
        world.node(1).replicated = vec![write(0, 20, "d")];
        world.now = 20;
        world.node(1).is_up = false;
        world.catch_up(1);
        assert_eq!(world.node(1).keys.names(WallMillis(1)).count(), 2);
    }
}
