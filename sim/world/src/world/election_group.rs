//! A node of the plan as a group: a primary, its replicas, and the sentinels that name the primary.
//!
//! The sentinels are a pure state machine. Every few milliseconds, the engine passes in what they see and executes
//! what they decide. Promotions and their effect on claims are the engine's task.

mod election;
mod failover;
mod sentinel;
mod separations;
mod view;

use self::failover::{FailoverState, Mandate, UnannouncedPromotion};
use self::sentinel::{Sentinel, Voice};
pub use self::separations::Apart;
use self::separations::Separations;
pub(crate) use self::view::View;
use crate::world::id::{ClientId, FaultId, NodeId};
use crate::world::node::Role;
use quorlock_sim_plan::Sentinels;

/// One group.
#[derive(Debug)]
pub struct ElectionGroup {
    rules: Sentinels,
    servers: Vec<NodeId>,
    sentinels: Vec<Sentinel>,
    electors: Electors,
    stage: FailoverState,
    /// Members that are separated from the others.
    separations: Separations,
    /// Servers whose role differs from what the sentinels want, each with the time at which this was first seen.
    wrong: Vec<(NodeId, u64)>,
    /// The last promotion, until all sentinels have learned of it.
    news: Option<UnannouncedPromotion>,
    /// The fault that last struck a primary.
    cause: Option<FaultId>,
    /// The server that each fault has struck.
    struck: Vec<(FaultId, NodeId)>,
}

/// The nodes that decide on the primary of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Electors {
    Sentinels,
    /// The nodes of the cluster that the group is a shard of.
    Cluster,
}

/// An action of a sentinel, or of a server itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    /// A sentinel names another primary and publishes the switch.
    Name {
        /// The sentinel.
        sentinel: NodeId,
        /// The primary from now on.
        primary: NodeId,
        /// The epoch of the election.
        epoch: u64,
    },
    /// A replica starts over with a full copy of its primary's data.
    Resync {
        /// The replica.
        replica: NodeId,
        /// Its primary.
        primary: NodeId,
    },
    /// A server becomes a replica of another one.
    Demote {
        /// The server.
        server: NodeId,
        /// Its primary from now on.
        primary: NodeId,
    },
    /// A sentinel promotes a replica.
    Promote {
        /// The sentinel that leads the failover.
        leader: NodeId,
        /// The replica.
        primary: NodeId,
    },
}

impl ElectionGroup {
    /// Creates a group whose primary is the first server.
    pub fn new(rules: &Sentinels, servers: Vec<NodeId>, sentinels: Vec<NodeId>) -> Self {
        let primary = *servers.first().expect("BUG: a group without servers");
        let sentinel = |id| Sentinel {
            id,
            names: primary,
            epoch: 1,
            heard: vec![0; servers.len()],
            voice: Voice::Votes,
        };
        ElectionGroup {
            rules: rules.clone(),
            sentinels: sentinels.into_iter().map(sentinel).collect(),
            servers,
            electors: Electors::Sentinels,
            stage: FailoverState::Calm,
            separations: Separations::default(),
            wrong: Vec::new(),
            news: None,
            cause: None,
            struck: Vec::new(),
        }
    }

    /// Creates a shard of a cluster of these nodes. The first `rules.count` nodes vote, and all nodes name the
    /// primary.
    pub(crate) fn of_cluster(rules: &Sentinels, servers: Vec<NodeId>, nodes: Vec<NodeId>) -> Self {
        let mut group = ElectionGroup::new(rules, servers, nodes);
        group.electors = Electors::Cluster;
        for listener in group.sentinels.iter_mut().skip(rules.count.into()) {
            listener.voice = Voice::Listens;
        }
        group
    }

    /// Returns the server that a sentinel, or a node of the cluster, names as the primary.
    pub(crate) fn named_by(&self, sentinel: NodeId) -> Option<NodeId> {
        let mut sentinels = self.sentinels.iter();
        let found = sentinels.find(|known| known.id == sentinel);
        found.map(|known| known.names)
    }

    /// Returns the member that learns of a promotion first.
    fn herald(&self, leader: NodeId, promoted: NodeId) -> NodeId {
        match self.electors {
            Electors::Sentinels => leader,
            Electors::Cluster => promoted,
        }
    }

    /// Returns whether a majority of voters names this primary and considers it down.
    pub(crate) fn has_failed(&self, primary: NodeId, now: u64, view: &impl View) -> bool {
        let agrees = |voter: &&Sentinel| {
            view.is_awake(voter.id)
                && voter.names == primary
                && self.takes_for_down(voter, primary, now)
        };
        usize::from(self.rules.majority()) <= self.electorate().filter(agrees).count()
    }

    /// Returns the sentinels that vote.
    fn electorate(&self) -> impl Iterator<Item = &Sentinel> {
        let all = self.sentinels.iter();
        all.filter(|sentinel| sentinel.voice == Voice::Votes)
    }

    pub(crate) fn rules(&self) -> &Sentinels {
        &self.rules
    }

    pub(crate) fn servers(&self) -> &[NodeId] {
        &self.servers
    }

    /// Returns the sentinel with a number.
    pub fn sentinel(&self, number: u16) -> Option<NodeId> {
        let found = self.sentinels.get(usize::from(number));
        found.map(|sentinel| sentinel.id)
    }

    /// Returns the sentinels of the group.
    pub fn sentinels(&self) -> impl Iterator<Item = NodeId> {
        self.sentinels.iter().map(|sentinel| sentinel.id)
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = NodeId> {
        let sentinels = self.sentinels.iter();
        let sentinels = sentinels.filter(|_| self.electors == Electors::Sentinels);
        let sentinels = sentinels.map(|sentinel| sentinel.id);
        self.servers.iter().copied().chain(sentinels)
    }

    /// Returns the fault that caused the election, if there is one.
    pub fn cause(&self) -> Option<FaultId> {
        self.cause
    }

    /// Records that a fault strikes a server.
    pub fn strike(&mut self, by: FaultId, server: NodeId) {
        self.cause = Some(by);
        self.struck.push((by, server));
    }

    /// Returns the server that a fault has struck.
    pub(crate) fn struck_by(&self, fault: FaultId) -> Option<NodeId> {
        let mut struck = self.struck.iter();
        struck
            .find(|(by, _)| *by == fault)
            .map(|(_, server)| *server)
    }

    pub(crate) fn separate(&mut self, apart: Apart) {
        self.separations.add(apart);
    }

    pub(crate) fn unite(&mut self, fault: FaultId) {
        self.separations.end(fault);
    }

    /// Returns whether two members are separated from each other.
    pub(crate) fn is_apart(&self, a: NodeId, b: NodeId) -> bool {
        self.separations.has_between(a, b)
    }

    /// Returns the faults that keep a client from reaching a member.
    pub(crate) fn cuts(&self, client: ClientId, member: NodeId) -> impl Iterator<Item = FaultId> {
        self.separations.cuts(client, member)
    }

    /// Orders a sentinel to promote a replica. Returns whether a sentinel could begin.
    pub(crate) fn order(&mut self, now: u64, view: &impl View) -> bool {
        if self.stage != FailoverState::Calm {
            return false;
        }
        let can_lead = |sentinel: &&Sentinel| {
            view.is_awake(sentinel.id) && !self.is_apart(sentinel.id, sentinel.names)
        };
        let Some(leader) = self
            .sentinels
            .iter()
            .filter(can_lead)
            .max_by_key(|s| s.epoch)
        else {
            return false;
        };
        self.stage = FailoverState::Electing {
            leader: leader.id,
            primary: leader.names,
            mandate: Mandate::Order,
            ends: now + self.rules.election.as_nanos(),
        };
        true
    }

    /// Advances the sentinels and servers. Returns what they do, in order.
    pub fn look(&mut self, now: u64, view: &impl View) -> Vec<Deed> {
        self.hear(now, view);
        let mut deeds = self.spread(now, view);
        deeds.extend(self.resyncs(view));
        deeds.extend(self.put_right(now, view));
        deeds.extend(self.elect(now, view));
        deeds
    }

    fn hear(&mut self, now: u64, view: &impl View) {
        for sentinel in &mut self.sentinels {
            // When a paused sentinel resumes, its timeouts start over. Otherwise it would consider every server down.
            let is_awake = view.is_awake(sentinel.id);
            for (server, heard) in self.servers.iter().zip(&mut sentinel.heard) {
                let is_apart = self.separations.has_between(sentinel.id, *server);
                if !is_awake || (view.is_awake(*server) && !is_apart) {
                    *heard = now;
                }
            }
        }
    }

    /// Spreads the newest configuration among the sentinels.
    fn spread(&mut self, now: u64, view: &impl View) -> Vec<Deed> {
        let Some(news) = self.news.filter(|news| news.spreads <= now) else {
            return Vec::new();
        };
        let mut deeds = Vec::new();
        for at in 0..self.sentinels.len() {
            let Some(own) = self.sentinels.get(at).filter(|own| view.is_awake(own.id)) else {
                continue;
            };
            let (id, epoch, names) = (own.id, own.epoch, own.names);
            let others = self.sentinels.iter().filter(|other| {
                epoch < other.epoch && view.is_awake(other.id) && !self.is_apart(id, other.id)
            });
            let newest = others.max_by_key(|other| other.epoch);
            let newest = newest.map(|other| (other.names, other.epoch));
            let (names, epoch) = match newest {
                Some(newest) => newest,
                None if news.untold == Some(id) => (names, epoch),
                None => continue,
            };
            if let Some(own) = self.sentinels.get_mut(at) {
                (own.names, own.epoch) = (names, epoch);
            }
            if let Some(news) = &mut self.news {
                news.untold = news.untold.filter(|untold| *untold != id);
            }
            deeds.push(Deed::Name {
                sentinel: id,
                primary: names,
                epoch,
            });
        }
        deeds
    }

    /// Returns the resynchronizations of replicas that lost their primary and reach it again.
    fn resyncs(&self, view: &impl View) -> Vec<Deed> {
        let servers = self.servers.iter().copied();
        let resync = |replica| match view.role(replica) {
            Role::ReplicaOf(primary) => {
                let is_cut = view.is_awake(replica)
                    && view.is_awake(primary)
                    && !self.is_apart(replica, primary)
                    && !view.flows(primary, replica);
                is_cut.then_some(Deed::Resync { replica, primary })
            }
            Role::Primary | Role::Sentinel => None,
        };
        servers.filter_map(resync).collect()
    }

    /// Returns the demotions of servers that, for long enough, have not followed the primary that a sentinel names.
    fn put_right(&mut self, now: u64, view: &impl View) -> Vec<Deed> {
        let mut deeds = Vec::new();
        for server in self.servers.clone() {
            let is_wrong = |sentinel: &&Sentinel| {
                let is_right = sentinel.names == server
                    || view.role(server) == Role::ReplicaOf(sentinel.names);
                !is_right
                    && view.is_awake(sentinel.id)
                    && view.is_awake(server)
                    && !self.is_apart(sentinel.id, server)
                    // The primary must have its role before others are ordered to follow it. A replica of a server
                    // that is itself still a replica would refuse every client.
                    && view.is_awake(sentinel.names)
                    && view.role(sentinel.names) == Role::Primary
                    && !self.is_apart(sentinel.id, sentinel.names)
            };
            let newest = self.sentinels.iter().map(|s| s.epoch).max();
            let by = self.sentinels.iter().filter(is_wrong);
            let by = by
                .filter(|sentinel| Some(sentinel.epoch) == newest)
                .map(|s| s.names);
            let Some(primary) = by.min() else {
                self.wrong.retain(|(wrong, _)| *wrong != server);
                continue;
            };
            let since = self.wrong.iter().find(|(wrong, _)| *wrong == server);
            match since.map(|(_, since)| *since) {
                None => self.wrong.push((server, now)),
                Some(since) if since + self.rules.demotion.as_nanos() <= now => {
                    self.wrong.retain(|(wrong, _)| *wrong != server);
                    deeds.push(Deed::Demote { server, primary });
                }
                Some(_) => {}
            }
        }
        deeds
    }
}

#[cfg(test)]
mod tests;
