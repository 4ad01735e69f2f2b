//! The nodes of a plan as the shards of one Redis Cluster of real processes: a primary and its replicas each.
//!
//! Clients connect to the servers directly, because a cluster announces the servers' own addresses. So links have no
//! faults here.

use std::io;
use std::time::Duration;

use tokio::sync::Mutex;

use super::clock;
use super::cluster_view::{self, KnownNode, layout};
use super::lock_under_test;
use super::node::Node;
use super::replication;
use super::slot_move::SlotMove;
use super::struck::{Struck, done};
use crate::turmoil::tags;
use quorlock_sim_plan::fault::{Handover, NodeFault};
use quorlock_sim_plan::{Cluster, Coverage, Plan};

/// The number of slots of a cluster.
const SLOTS: u16 = 16_384;

/// The longest time that a cluster may take after a fault until its nodes agree.
const SETTLED: Duration = Duration::from_secs(30);

/// The longest time that a promotion by order may take. A replica gives up after five seconds.
const FAILED_OVER: Duration = Duration::from_secs(6);

/// The time between two looks at the nodes of a cluster.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// The number of looks after which nodes that do not know each other are introduced again.
const LOOKS_PER_INTRODUCTION: u32 = 40;

/// A Redis Cluster of real processes.
#[derive(Debug)]
pub(super) struct RedisCluster {
    shards: u16,
    /// The servers. The first ones are the primaries when the run begins. Server `i` belongs to the shard
    /// `i % shards` in all roles. A fault locks the servers until the cluster has recovered, so faults strike one shard
    /// at a time; other faults are skipped in that time.
    servers: Mutex<Vec<Node>>,
    ports: Vec<u16>,
    /// The tags under which the shards store names. Empty if clients see the cluster as one node.
    tags: Vec<String>,
    /// The lease of the clients. A move of a slot that lasts longer pauses.
    lease: Duration,
    /// How long replicas receive nothing before the primary fails: the plan's replication lag.
    lag: Duration,
    scale: u32,
}

impl RedisCluster {
    /// Starts a cluster, and waits until its nodes know each other and serve every slot.
    pub(super) async fn start(
        plan: &Plan,
        rules: &Cluster,
        scale: u32,
        options: &[String],
    ) -> io::Result<RedisCluster> {
        let options: Vec<String> = options.iter().cloned().chain(own(rules, scale)).collect();
        let mut servers = Vec::new();
        for _ in 0..plan.nodes.count * (1 + plan.nodes.replicas) {
            servers.push(Node::start_in_cluster(plan.nodes.persistence, &options).await?);
        }
        let cluster = RedisCluster {
            shards: plan.nodes.count,
            ports: servers.iter().map(Node::port).collect(),
            servers: Mutex::new(servers),
            tags: tags(plan),
            lease: plan.longest_lease().as_duration() * scale,
            lag: plan.nodes.replication_lag.as_duration() * scale,
            scale,
        };
        cluster.join(plan).await?;
        Ok(cluster)
    }

    /// Returns the ports of all servers.
    pub(super) fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Divides the slots among the primaries, and connects the servers.
    async fn join(&self, plan: &Plan) -> io::Result<()> {
        let owners = self.owners(plan).await?;
        for (shard, port) in (0u16..self.shards).zip(&self.ports) {
            let epoch = (shard + 1).to_string();
            order(*port, &["CLUSTER", "SET-CONFIG-EPOCH", &epoch]).await?;
            let mut words = vec!["CLUSTER".to_owned(), "ADDSLOTS".to_owned()];
            let slots = (0u16..).zip(&owners).filter(|(_, owner)| **owner == shard);
            words.extend(slots.map(|(slot, _)| slot.to_string()));
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            order(*port, &words).await?;
        }
        self.introduce().await?;
        let first = usize::from(self.shards);
        for (server, port) in self.ports.iter().enumerate().skip(first) {
            let primary = self.ports.get(server % first).copied().unwrap_or_default();
            let id: Option<String> = Node::ask(primary, &["CLUSTER", "MYID"]).await;
            let id = id.unwrap_or_default();
            order(*port, &["CLUSTER", "REPLICATE", &id]).await?;
        }
        self.agree(clock::START_BOUND).await
    }

    /// Returns the shard that owns each slot when the run begins: equal parts, but shard 0 owns the slots of all names
    /// if clients see the cluster as one node.
    async fn owners(&self, plan: &Plan) -> io::Result<Vec<u16>> {
        let part = |slot: u16| {
            let mut shards = 0..self.shards;
            let ends =
                |shard: u16| u32::from(SLOTS) * u32::from(shard + 1) / u32::from(self.shards);
            shards.find(|shard| u32::from(slot) < ends(*shard))
        };
        let mut owners: Vec<u16> = (0..SLOTS).map(|slot| part(slot).unwrap_or(0)).collect();
        if self.tags.is_empty() {
            for name in 0..lock_under_test::names(plan) {
                let slot = self.slot(0, name).await?;
                if let Some(owner) = owners.get_mut(usize::from(slot)) {
                    *owner = 0;
                }
            }
        }
        Ok(owners)
    }

    /// Makes all servers know all others.
    async fn introduce(&self) -> io::Result<()> {
        let mut looks = 0;
        let all_known = async || {
            let are_due = looks % LOOKS_PER_INTRODUCTION == 0;
            looks += 1;
            let mut views = Vec::new();
            for port in &self.ports {
                views.push(view(*port).await?);
            }
            let own: Vec<KnownNode> = views
                .iter()
                .filter_map(|view| cluster_view::reporter(view).cloned())
                .collect();
            let mut all_known = own.len() == self.ports.len();
            for (port, view) in self.ports.iter().zip(&views) {
                let knows = |other: &&KnownNode| {
                    let mut known = view.iter();
                    known.any(|node| node.id == other.id && node.is_linked)
                };
                let missing: Vec<&KnownNode> = own.iter().filter(|other| !knows(other)).collect();
                all_known &= missing.is_empty() && view.len() == self.ports.len();
                for other in missing.into_iter().filter(|_| are_due) {
                    let (to, bus) = (other.port.to_string(), other.bus.to_string());
                    let _ = order(*port, &["CLUSTER", "MEET", "127.0.0.1", &to, &bus]).await;
                }
            }
            clock::sleep(BETWEEN_LOOKS).await;
            all_known.then_some(())
        };
        let known = clock::wait_for(clock::START_BOUND, all_known).await;
        known.ok_or_else(|| io::Error::other("the nodes of a cluster do not find each other"))
    }

    /// Returns the key of a name on a shard.
    fn key(&self, shard: u16, name: u16) -> String {
        let name = lock_under_test::name(name);
        match self.tags.get(usize::from(shard)) {
            Some(tag) => format!("{{{tag}}}:{name}"),
            None => name,
        }
    }

    /// Returns the slot of a name on a shard.
    async fn slot(&self, shard: u16, name: u16) -> io::Result<u16> {
        let key = self.key(shard, name);
        for port in &self.ports {
            if let Some(slot) = Node::ask(*port, &["CLUSTER", "KEYSLOT", &key]).await {
                return Ok(slot);
            }
        }
        Err(io::Error::other("no node of the cluster answers"))
    }

    /// Injects a fault, and waits until the cluster has recovered. Calls `began` when the fault begins.
    pub(super) async fn strike(
        &self,
        shard: u16,
        fault: &NodeFault,
        lasts: Duration,
        began: impl FnOnce(),
    ) -> Struck {
        let Ok(mut servers) = self.servers.try_lock() else {
            return Struck::PassedOver;
        };
        let is_loss = match fault {
            NodeFault::Crash | NodeFault::Pause => true,
            // The replica of a manual failover waits until it has all data.
            NodeFault::ClusterFailover { how } => *how == Handover::Takeover,
            NodeFault::MigrateSlot { name, to, gap } => {
                let gap = gap.as_duration() * self.scale;
                let planned = self.planned_move((shard, *name), *to, (lasts, gap)).await;
                let Some(planned) = planned else {
                    return Struck::PassedOver;
                };
                began();
                return done(planned.run().await.and(self.agree(SETTLED).await));
            }
            _ => {
                let why = "a cluster has only faults that lead to failovers, and moved slots";
                return Struck::Lacks(why.to_owned());
            }
        };
        let Some(primary) = self.primary_of(shard).await else {
            return Struck::PassedOver;
        };
        let own = self.ports.iter().enumerate();
        let own = own.filter(|(server, _)| server % usize::from(self.shards) == usize::from(shard));
        let replicas: Vec<u16> = own
            .map(|(_, port)| *port)
            .filter(|port| *port != primary)
            .collect();
        if is_loss {
            replication::cut(&replicas).await;
            clock::sleep(self.lag).await;
        }
        let place = servers.iter_mut().find(|server| server.port() == primary);
        let struck = match (fault, place) {
            (NodeFault::Crash, Some(primary)) => {
                began();
                primary.crash(lasts).await
            }
            (NodeFault::Pause, Some(primary)) => {
                began();
                primary.pause();
                clock::sleep(lasts).await;
                primary.resume();
                Ok(())
            }
            (NodeFault::ClusterFailover { how }, _) => fail_over(&replicas, *how, began).await,
            _ => Ok(()),
        };
        done(struck.and(self.recover(&mut servers).await))
    }

    /// Returns the move of a name's slot to another shard, unless that shard already owns the slot.
    async fn planned_move(
        &self,
        (shard, name): (u16, u16),
        to: u16,
        (lasts, gap): (Duration, Duration),
    ) -> Option<SlotMove> {
        let slot = self.slot(shard, name).await.ok()?;
        let to = self.primary_of(to).await?;
        let mut from = None;
        for port in &self.ports {
            let nodes = view(*port).await.unwrap_or_default();
            let is_owner = cluster_view::reporter(&nodes).is_some_and(|own| own.owns(slot));
            from = from.or(is_owner.then_some(*port));
        }
        let from = from.filter(|from| *from != to)?;
        Some(SlotMove {
            slot,
            from,
            to,
            all: self.ports.clone(),
            pauses: self.lease < lasts,
            lasts,
            gap,
        })
    }

    /// Returns the port of the primary of a shard, according to the primary itself.
    async fn primary_of(&self, shard: u16) -> Option<u16> {
        let own = self.ports.iter().enumerate();
        for (_, port) in
            own.filter(|(server, _)| server % usize::from(self.shards) == usize::from(shard))
        {
            let nodes = view(*port).await.unwrap_or_default();
            if cluster_view::reporter(&nodes).is_some_and(KnownNode::is_primary) {
                return Some(*port);
            }
        }
        None
    }

    /// Restarts and resumes servers, and waits until the cluster has recovered.
    async fn recover(&self, servers: &mut [Node]) -> io::Result<()> {
        for server in &mut *servers {
            server.resume();
            if !server.is_alive() {
                server.restart().await?;
            }
        }
        replication::mend(&self.ports).await;
        self.agree(SETTLED).await
    }

    /// Reverts all faults.
    pub(super) async fn heal(&self) -> io::Result<()> {
        self.recover(&mut self.servers.lock().await).await
    }

    /// Ends all processes for good, and removes their folders.
    pub(super) async fn end(&self) {
        for server in &mut *self.servers.lock().await {
            server.end().await;
        }
    }

    /// Returns the claims that are left: the shard and the name of each. Only the owner of a slot answers.
    pub(super) async fn claims(&self, names: u16) -> Vec<(u16, u16)> {
        let mut claims = Vec::new();
        for shard in 0..u16::try_from(self.tags.len()).unwrap_or(0).max(1) {
            for name in 0..names {
                let key = self.key(shard, name);
                for port in &self.ports {
                    let there: Option<u64> = Node::ask(*port, &["EXISTS", &key]).await;
                    if there.is_some_and(|there| 0 < there) {
                        claims.push((shard, name));
                    }
                }
            }
        }
        claims
    }

    /// Waits until all servers serve every slot and agree on the owners, and every replica follows its primary.
    pub(super) async fn agree(&self, bound: Duration) -> io::Result<()> {
        let look = async || {
            clock::sleep(BETWEEN_LOOKS).await;
            let mut agreed = None;
            for port in &self.ports {
                let info: String = Node::ask(*port, &["CLUSTER", "INFO"]).await?;
                let replication: String = Node::ask(*port, &["INFO", "replication"]).await?;
                let words = ["state=online", "master_link_status:up"];
                let is_linked = words.iter().any(|word| replication.contains(word));
                if !info.contains("cluster_state:ok") || !is_linked {
                    return None;
                }
                let seen = layout(&view(*port).await?);
                if agreed.get_or_insert_with(|| seen.clone()) != &seen {
                    return None;
                }
            }
            let agreed = agreed?;
            let primaries = agreed.iter().filter(|(_, _, _, follows)| follows.is_none());
            let is_whole =
                agreed.len() == self.ports.len() && primaries.count() == usize::from(self.shards);
            is_whole.then_some(())
        };
        let settled = clock::wait_for(bound, look).await;
        settled.ok_or_else(|| io::Error::other("the nodes of a cluster do not agree"))
    }
}

/// Orders a replica to replace its primary, and waits until it is the primary. Calls `began` when the replica has
/// accepted.
async fn fail_over(replicas: &[u16], how: Handover, began: impl FnOnce()) -> io::Result<()> {
    let Some(replica) = replicas.first().copied() else {
        return Err(io::Error::other("the shard has no replica"));
    };
    let words: &[&str] = match how {
        Handover::Manual => &["CLUSTER", "FAILOVER"],
        Handover::Takeover => &["CLUSTER", "FAILOVER", "TAKEOVER"],
    };
    order(replica, words).await?;
    began();
    let promoted = clock::wait_for(FAILED_OVER, async || {
        clock::sleep(BETWEEN_LOOKS).await;
        let nodes = view(replica).await?;
        let own = cluster_view::reporter(&nodes)?;
        own.is_primary().then_some(())
    });
    let why = || io::Error::other("a replica of the cluster was not promoted");
    promoted.await.ok_or_else(why)
}

/// Sends an order to a server.
async fn order(port: u16, words: &[&str]) -> io::Result<()> {
    let done: Option<redis::Value> = Node::ask(port, words).await;
    let why = || {
        let words: Vec<&str> = words.iter().copied().take(4).collect();
        io::Error::other(format!("a node of the cluster refused {}", words.join(" ")))
    };
    done.map(|_| ()).ok_or_else(why)
}

/// Returns the nodes of the cluster as one of them knows them.
async fn view(port: u16) -> Option<Vec<KnownNode>> {
    let text: String = Node::ask(port, &["CLUSTER", "NODES"]).await?;
    Some(cluster_view::parse(&text))
}

/// Returns the options of the servers of a cluster.
fn own(rules: &Cluster, scale: u32) -> Vec<String> {
    let timeout = (rules.node_timeout.as_duration() * scale).as_millis();
    let timeout = timeout.to_string();
    let coverage = match rules.coverage {
        Coverage::Full => "yes",
        Coverage::Partial => "no",
    };
    let options = [
        "--cluster-node-timeout",
        &timeout,
        "--cluster-require-full-coverage",
        coverage,
        // A replica may be promoted although its data is old, as in the simulator.
        "--cluster-replica-validity-factor",
        "0",
        // Replicas stay in their shards.
        "--cluster-allow-replica-migration",
        "no",
        "--repl-ping-replica-period",
        "1",
        "--repl-timeout",
        "60",
    ];
    options.into_iter().map(str::to_owned).collect()
}
