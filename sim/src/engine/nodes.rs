//! What nodes do: they execute requests, stand still, end, and follow each other.

use std::any::Any;
use std::rc::Rc;

use quorlock::transport::{
    AcquireReply, Act, Cause, Execution, Held, Mode, Node as Keys, Nonce, Release, ReleaseReply,
    Reply, Request,
};
use quorlock::{OwnerId, WallMillis};
use redis_sim::WallMicros;

use crate::history::{Process, Theft};
use crate::plan::Persistence;
use crate::plan::fault::NodeFault;
use crate::world::World;
use crate::world::call::{Answer, Call, failure};
use crate::world::event::What;
use crate::world::node::{EVERY_SECOND, Role};
use crate::world::server::{Servers, Site, strike};
use crate::world::slab::Key;
use crate::world::specification::server::Specification;

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
        if let Some(cause) = node.refusal(now, self.plan.nodes.min_replicas.as_ref()) {
            self.reply(key, Err(failure(Execution::Definite, cause)));
            return;
        }
        let server = specification(&mut *self.servers).at(id);
        if let Some(cause) = server.refuses() {
            if let Some((_, fault)) = node.error {
                self.blame(fault);
            }
            self.reply(key, Err(failure(Execution::Definite, cause)));
            return;
        }
        self.counters.commands += 1;
        let wall = node.wall(now);
        let has_replicas = !node.replicas.is_empty();
        let claimed = match &*request {
            Request::Release(release) => owners(server.keys(), wall, &release.name),
            _ => Owners::Nobody,
        };
        let applied = server.execute(wall, &request);
        let is_write = is_write(&request, &applied.reply);
        if is_write && has_replicas {
            server.write(wall, &request);
        }
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
        if is_write {
            self.persist(id);
            if has_replicas {
                self.replicate(id);
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
                let keys = specification(&mut *self.servers).at(node).keys();
                let left = owners(keys, wall, &release.name);
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
            self.servers.server(id).save();
        }
    }

    /// What a server has written comes to its disk and to its replicas.
    pub(crate) fn keep(&mut self, id: u16) {
        if self.servers.server(id).has_written() {
            self.persist(id);
            self.replicate(id);
        }
    }

    fn replicate(&mut self, id: u16) {
        let usually = self.now + self.plan.nodes.replication_lag.as_nanos();
        let node = self.node(id);
        let delay = node.replication_delay;
        let mut replicas = std::mem::take(&mut node.replicas);
        for (to, last) in &mut replicas {
            *last = (*last).max(usually + delay + self.node(*to).replication_delay);
        }
        self.servers.replicate(id, &replicas);
        self.node(id).replicas = replicas;
    }

    /// A node takes over what has come from its primary by now. To be called before anything is read from a replica,
    /// and before anything about a node changes that decides whether it takes over.
    pub(crate) fn catch_up(&mut self, id: u16) {
        let now = self.now;
        let node = self.node(id);
        let primary = match node.role {
            Role::ReplicaOf(primary) if node.is_up => Some(primary),
            _ => None,
        };
        self.servers.server(id).catch_up(now, primary);
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
        let replicas = node.replicas.len();
        for key in std::mem::take(&mut node.queue) {
            self.forget_queued(key);
        }
        self.servers.hang_up(id);
        self.strike(id, &NodeFault::Crash);
        self.servers.server(id).set_replicas(replicas);
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
        self.servers.server(id).restart();
        let node = self.node(id);
        node.is_up = true;
        let error = node.error.map(|(error, _)| error);
        // A replica begins with all that its primary has.
        if let Role::ReplicaOf(primary) = node.role {
            self.follow(id, primary);
        }
        // It is another process, and what the plan says of the node goes on.
        self.servers.server(id).refuse(error);
        self.servers.listen(id);
    }

    /// A fault does to a server what it does to it. Returns whether it did anything.
    pub(crate) fn strike(&mut self, id: u16, fault: &NodeFault) -> bool {
        let site = Site {
            disk: self.plan.nodes.persistence,
            now: self.micros(id),
            names: &self.history.names,
        };
        strike(self.servers.server(id), fault, &site)
    }

    /// What the clock of a node shows.
    pub(crate) fn micros(&self, id: u16) -> WallMicros {
        let node = self.nodes.get(usize::from(id));
        node.map_or(WallMicros(0), |node| node.micros(self.now))
    }

    /// A replica follows a node, reads all of it and leaves. Returns whether the node goes by another identity since.
    pub(crate) fn back_up(&mut self, id: u16) -> bool {
        // Only a first replica begins another history. A node that has replicas has a backlog, and keeps it for an hour
        // after the last one left: longer than runs last.
        if !self.node(id).is_up || 0 < self.plan.nodes.replicas {
            return false;
        }
        self.servers.server(id).back_up();
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
        let node = self.node(new);
        node.role = Role::Primary;
        node.lives += 1;
        self.servers.server(new).promote();
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
        for node in [old, new] {
            let replicas = self.node(node).replicas.len();
            self.servers.server(node).set_replicas(replicas);
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
        self.node(replica).lives += 1;
        self.servers.follow(replica, primary);
    }

    /// Nodes that are there from the beginning have been watched for long, if the plan says that they are watched.
    pub(crate) fn ripen_nodes(&mut self) {
        let longest_millis = self.plan.longest_lease().as_nanos().div_ceil(1_000_000);
        for id in 0..u16::try_from(self.nodes.len()).unwrap_or(u16::MAX) {
            let now = self.micros(id);
            let node = self.node(id);
            if let Role::ReplicaOf(primary) = node.role {
                self.follow(id, primary);
                continue;
            }
            let replicas = node.replicas.len();
            let server = self.servers.server(id);
            server.set_replicas(replicas);
            server.mark(now, Nonce::new(u64::from(id)), longest_millis);
            server.save();
            self.keep(id);
        }
    }

    /// A client finds the new primary and connects to it.
    pub(crate) fn reroute(&mut self, client: u16, seat: u16) {
        let new = self.primary(seat);
        let old = std::mem::replace(self.route(client, seat), new);
        if old != new {
            let epoch = self.link(client, old).client_epoch;
            self.closed(client, old, epoch);
            self.servers.leave(client, old);
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

/// The servers that execute requests as they are: those of the other lane get bytes.
fn specification(servers: &mut dyn Servers) -> &mut Specification {
    let servers: &mut dyn Any = servers;
    servers.downcast_mut().expect("BUG: it is the other lane")
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
    use super::*;
    use crate::plan::Plan;
    use crate::world::node::NodeState;

    #[test]
    fn a_write_comes_to_a_replica_after_the_delays_of_both() {
        let plan = Rc::new(Plan::default());
        let lag = plan.nodes.replication_lag.as_nanos();
        let mut world = World {
            servers: Box::new(Specification::new(&plan, 2)),
            plan,
            now: 1_000,
            nodes: vec![
                NodeState::new(Role::Primary),
                NodeState::new(Role::ReplicaOf(0)),
            ],
            ..World::default()
        };
        world.node(0).replicas = vec![(1, 0)];
        world.node(0).replication_delay = 30;
        world.node(1).replication_delay = 4;
        world.replicate(0);
        assert_eq!(world.node(0).replicas, [(1, 1_034 + lag)]);
        // What is written later does not overtake it.
        world.node(1).replication_delay = 0;
        world.replicate(0);
        assert_eq!(world.node(0).replicas, [(1, 1_034 + lag)]);
    }
}
