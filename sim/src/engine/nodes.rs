//! What nodes do: they execute requests, stand still, end, and follow each other.

use std::rc::Rc;

use quorlock::transport::{
    AcquireReply, Act, Cause, Execution, Held, Lineage, Marker, Mode, Node as Keys, Nonce,
    Process as Started, Release, ReleaseReply, Reply, Request, Ripeness,
};
use quorlock::{OwnerId, WallMillis};

use crate::history::{Process, Theft};
use crate::plan::Persistence;
use crate::world::World;
use crate::world::call::{Answer, Call, failure};
use crate::world::event::What;
use crate::world::node::{EVERY_SECOND, MARKED_MILLIS, Replicated, Role};
use crate::world::slab::Key;
use crate::world::specification;

impl World {
    /// A node executes a request and answers.
    pub(crate) fn execute(&mut self, key: Key<Call>) {
        let now = self.now;
        let Some(call) = self.calls.get(key) else {
            return;
        };
        let (id, by) = (call.node, call.process());
        let request = Rc::clone(&call.request);
        let Some(node) = self.nodes.get_mut(usize::from(id)) else {
            return;
        };
        if let Some((cause, fault)) = node.refusal(now, self.plan.nodes.min_replicas.as_ref()) {
            if let Some(fault) = fault {
                self.blame(fault);
            }
            self.reply(key, Err(failure(Execution::Definite, cause)));
            return;
        }
        self.counters.commands += 1;
        let wall = node.wall(now);
        let claimed = match &*request {
            Request::Release(release) => owners(&node.keys, wall, &release.name),
            _ => Owners::Nobody,
        };
        let applied = specification::apply(&mut node.keys, wall, &request, self.plan.variant);
        let has_replicas = !node.replicas.is_empty();
        self.note(digest(&applied.reply) ^ u64::from(id) << 56);
        if let (Request::Release(release), Ok(Reply::Release(reply))) = (&*request, &applied.reply)
            && !claimed.as_slice().is_empty()
        {
            self.look_for_theft(id, by, claimed.as_slice(), release, *reply, wall);
        }
        self.note_statements(by, &request);
        self.note_turn(id, by, wall, &request, &applied.reply);
        if let Ok(Reply::Acquire(refused) | Reply::Checked(refused, _)) = applied.reply
            && matches!(refused, AcquireReply::Refused { .. })
        {
            self.counters.refused += 1;
        }
        if is_write(&request, &applied.reply) {
            self.persist(id);
            if has_replicas {
                self.replicate(id, wall, &request);
            }
        }
        if let Some((channel, wake)) = applied.published {
            self.publish(id, &channel, wake);
        }
        let answer: Answer = applied
            .reply
            .map_err(|cause| failure(Execution::Definite, cause));
        self.reply_when_replicated(key, id, answer);
    }

    /// Nobody but its owner changes a claim: of those whose claims there were, only whoever asked may have none any more.
    fn look_for_theft(
        &mut self,
        node: u16,
        by: Process,
        claimed: &[OwnerId],
        release: &Release,
        reply: ReleaseReply,
        wall: WallMillis,
    ) {
        let is_theft = match (release.mode, claimed) {
            // A plain claim is asked for by its owner, or the answer says that it is another's.
            (Mode::Plain | Mode::Fair, [owner]) => {
                let says_so = reply == ReleaseReply::NotYours || reply == ReleaseReply::Left;
                !says_so && *owner != release.owner
            }
            _ => {
                let keys = self.nodes.get(usize::from(node)).map(|node| &node.keys);
                let left = keys.map_or(Owners::Nobody, |keys| owners(keys, wall, &release.name));
                let mut others = claimed.iter().filter(|owner| **owner != release.owner);
                others.any(|owner| !left.as_slice().contains(owner))
            }
        };
        if !is_theft {
            return;
        }
        let name = self.history.name(release.name.as_str());
        let at = self.now;
        self.history.thefts.push(Theft { at, node, name, by });
    }

    /// Sees to it that a write comes to the disk, if the disk is ever different from the memory.
    pub(crate) fn persist(&mut self, id: u16) {
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
            if self.sockets.is_some() {
                self.save_station(id);
            }
        }
    }

    fn replicate(&mut self, id: u16, wall: WallMillis, request: &Rc<Request>) {
        let usually = self.now + self.plan.nodes.replication_lag.as_nanos();
        let node = self.node(id);
        let (process, delay) = (node.keys.process(), node.replication_delay);
        let mut replicas = std::mem::take(&mut node.replicas);
        for (to, last) in &mut replicas {
            let replica = self.node(*to);
            *last = (*last).max(usually + delay + replica.replication_delay);
            replica.replicated.push(Replicated {
                from: id,
                arrives: *last,
                wall,
                process,
                request: Rc::clone(request),
            });
        }
        self.node(id).replicas = replicas;
    }

    /// A node takes over what has come from its primary by now. To be called before anything is read from a replica,
    /// and before anything about a node changes that decides whether it takes over.
    pub(crate) fn catch_up(&mut self, id: u16) {
        if self.sockets.is_some() {
            self.catch_up_at_station(id);
        }
        let now = self.now;
        let variant = self.plan.variant;
        let node = self.node(id);
        for write in std::mem::take(&mut node.replicated) {
            if now < write.arrives {
                node.replicated.push(write);
            } else if node.is_up && node.role == Role::ReplicaOf(write.from) {
                let own = node.keys.process();
                node.keys.set_process(write.process);
                specification::apply(&mut node.keys, write.wall, &write.request, variant);
                node.keys.set_process(own);
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
        node.lives += u32::from(persistence != Persistence::EveryWrite);
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
        if self.sockets.is_some() {
            self.crash_station(id);
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
        let process = self.next_process(id);
        let node = self.node(id);
        node.is_up = true;
        node.keys.set_process(process);
        // A replica begins with all that its primary has.
        if let Role::ReplicaOf(primary) = node.role {
            self.follow(id, primary);
        }
        if self.sockets.is_some() {
            self.restart_station(id);
        }
    }

    /// A replica follows a node, reads all of it and leaves. Returns whether the node goes by another identity since.
    pub(crate) fn back_up(&mut self, id: u16) -> bool {
        // Only a first replica begins another history. A node that has replicas has a backlog, and keeps it for an hour
        // after the last one left: longer than runs last.
        if !self.node(id).is_up || 0 < self.plan.nodes.replicas {
            return false;
        }
        let process = self.next_process(id);
        self.node(id).keys.set_process(process);
        if self.sockets.is_some() {
            self.back_up_station(id);
        }
        true
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
        let process = self.next_process(new);
        let node = self.node(new);
        node.role = Role::Primary;
        node.lives += 1;
        node.keys.set_process(process);
        if self.sockets.is_some() {
            self.promote_station(new);
        }
        let others = std::mem::take(&mut self.node(old).replicas);
        for (other, _) in others {
            if other != new {
                self.catch_up(other);
                self.node(other).role = Role::ReplicaOf(new);
                self.follow(other, new);
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
        if self.sockets.is_some() {
            self.tell_of_replicas(old);
            self.tell_of_replicas(new);
        }
        self.node(old).replicas_since = now;
        self.node(new).replicas_since = now;
        self.promoted.push((seat, old, new, fault));
    }

    /// The node that clients are sent to for a node of the plan.
    pub(crate) fn primary(&self, seat: u16) -> u16 {
        let last = self.promoted.iter().rev().find(|(s, ..)| *s == seat);
        last.map_or(seat, |(_, _, new, _)| *new)
    }

    /// The node of a plan's node's replica, which is fixed whatever roles they have.
    pub(crate) fn replica_of(&self, seat: u16, replica: u16) -> Option<u16> {
        let nodes = &self.plan.nodes;
        (replica < nodes.replicas).then(|| nodes.count + seat * nodes.replicas + replica)
    }

    /// A replica begins with all that its primary has.
    fn follow(&mut self, replica: u16, primary: u16) {
        let keys = self.node(primary).keys.clone();
        let node = self.node(replica);
        node.lives += 1;
        node.keys = keys;
        if self.sockets.is_some() {
            self.follow_station(primary, replica);
        }
    }

    /// Nodes that are there from the beginning have been watched for long, if the plan says that they are watched.
    pub(crate) fn ripen_nodes(&mut self) {
        let longest_millis = self.plan.longest_lease().as_nanos().div_ceil(1_000_000);
        for id in 0..self.nodes.len() {
            let id = u16::try_from(id).unwrap_or(u16::MAX);
            let process = self.next_process(id);
            if 0 < self.plan.nodes.replicas {
                self.node(id).keys.set_lineage(Lineage::Shared);
            }
            let Role::ReplicaOf(primary) = self.node(id).role else {
                let node = self.node(id);
                node.keys.set_process(process);
                node.keys.put_marker(Some(Marker {
                    process,
                    nonce: Nonce::new(u64::from(id)),
                    longest_millis,
                    ripeness: Ripeness::Ripe,
                    expires: node.wall(0).plus(MARKED_MILLIS),
                }));
                node.saved = node.keys.clone();
                continue;
            };
            self.node(id).keys.set_process(process);
            self.follow(id, primary);
        }
    }

    /// What no process of this run was before.
    fn next_process(&mut self, id: u16) -> Started {
        let node = self.node(id);
        node.starts += 1;
        Started((u64::from(id) + 1) << 32 | u64::from(node.starts))
    }

    /// A client finds the new primary and connects to it.
    pub(crate) fn reroute(&mut self, client: u16, seat: u16) {
        let new = self.primary(seat);
        let old = std::mem::replace(self.route(client, seat), new);
        if old != new {
            let epoch = self.link(client, old).client_epoch;
            self.closed(client, old, epoch);
            if self.sockets.is_some() {
                self.unplug(client, old);
            }
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
        if self.node(old).role == Role::Primary {
            self.node(old).role = Role::ReplicaOf(new);
            self.follow(old, new);
            self.node(new).replicas.push((old, now));
        }
    }
}

/// Who has claims under a name.
enum Owners {
    Nobody,
    One(OwnerId),
    Several(Vec<OwnerId>),
}

impl Owners {
    fn as_slice(&self) -> &[OwnerId] {
        match self {
            Owners::Nobody => &[],
            Owners::One(owner) => std::slice::from_ref(owner),
            Owners::Several(owners) => owners,
        }
    }
}

/// Who has claims under a name, dead readers left out.
fn owners(keys: &Keys, now: WallMillis, name: &quorlock::Name) -> Owners {
    match keys.held(now, name) {
        Some((Held::Plain { owner, .. }, _)) => Owners::One(owner),
        Some((Held::ReadWrite(held), _)) => {
            let readers = keys.readers(now, name).into_iter();
            let readers = readers.map(|(owner, ..)| owner);
            let writer = held.writer.map(|(owner, _)| owner);
            Owners::Several(writer.into_iter().chain(readers).collect())
        }
        _ => Owners::Nobody,
    }
}

/// Whether a request changed anything.
fn is_write(request: &Request, reply: &Result<Reply, Cause>) -> bool {
    match (request, reply) {
        (_, Ok(Reply::Acquire(AcquireReply::Refused { .. }))) => false,
        (Request::Acquire(ask), Ok(Reply::Checked(AcquireReply::Refused { .. }, _))) => {
            ask.check.is_some_and(|check| check.act != Act::Look)
        }
        _ => true,
    }
}

/// What a reply says, as a number for the trace.
fn digest(reply: &Result<Reply, Cause>) -> u64 {
    match reply {
        Ok(Reply::Acquire(reply) | Reply::Checked(reply, _)) => match reply {
            AcquireReply::Granted { freshness, token } => (token.0 << 4) | (1 + *freshness as u64),
            AcquireReply::Refused { .. } => 3,
            AcquireReply::OtherMode(_) => 4,
            AcquireReply::Queued { .. } => 10,
            _ => 15,
        },
        Ok(Reply::Renew(replies)) => (replies.len() as u64) << 4 | 5,
        Ok(Reply::Release(reply)) => 6 + *reply as u64,
        Err(cause) => 16 + *cause as u64,
        _ => 15,
    }
}

#[cfg(test)]
mod tests {
    use quorlock::transport::{Access, Acquire, Retention};
    use quorlock::{Name, OwnerId, Token};
    use quorlock_core::fencing::Fence;
    use quorlock_core::lease::Lease;
    use quorlock_core::owner::ClientId;

    use super::*;
    use crate::world::node::NodeState;

    fn write(from: u16, arrives: u64, name: &str) -> Replicated {
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
            replaces: None,
            check: None,
        });
        Replicated {
            from,
            arrives,
            wall: WallMillis(1),
            process: Started::default(),
            request: Rc::new(request),
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
