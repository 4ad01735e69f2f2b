//! The nodes of a plan as the shards of one Redis Cluster of real processes: a primary and its replicas each.
//!
//! Clients connect to the servers directly, because a cluster announces the servers' own addresses. So links have no
//! faults here.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use quorlock_testbed::cluster::{self, ClusterSetup};
use quorlock_testbed::server::Server;
use quorlock_testbed::wait::within;
use redis_sim::slot_of_key;
use rustix::process::Signal;
use tokio::sync::Mutex;

use super::append_log::AppendLog;
use super::blocking::blocking;
use super::clock;
use super::lock_under_test;
use super::node::{self, persistent};
use super::outcome::{Struck, done};
use super::replication;
use super::server_command::ask;
use super::slot_move::SlotMove;
use crate::turmoil::tags;
use quorlock_sim_plan::fault::{Handover, NodeFault};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{Cluster, Coverage, Persistence, Plan};

/// The number of slots of a cluster.
const SLOTS: u16 = 16_384;

/// The longest time that a cluster may take after a fault until its nodes agree.
const SETTLED: Duration = Duration::from_secs(30);

/// The longest time that a promotion by order may take. A replica gives up after five seconds.
const FAILED_OVER: Duration = Duration::from_secs(6);

/// A fault that real clusters have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ClusterFault {
    Crash,
    Pause,
    FailOver(Handover),
    Move { name: u16, to: u16, gap: SimTime },
}

impl ClusterFault {
    /// Returns the fault, unless real clusters lack it.
    fn of(fault: &NodeFault) -> Option<ClusterFault> {
        match *fault {
            NodeFault::Crash => Some(ClusterFault::Crash),
            NodeFault::Pause => Some(ClusterFault::Pause),
            NodeFault::ClusterFailover { how } => Some(ClusterFault::FailOver(how)),
            NodeFault::MigrateSlot { name, to, gap } => Some(ClusterFault::Move { name, to, gap }),
            // The row of its kind says the same, and `conduct` reports it (`possible`).
            _ => None,
        }
    }
}

/// A Redis Cluster of real processes.
#[derive(Debug)]
pub(super) struct RedisCluster {
    cluster: Arc<cluster::Cluster>,
    shards: u16,
    ports: Vec<u16>,
    persistence: Persistence,
    /// A fault locks the servers until the cluster has recovered, so faults strike one shard at a time; other faults are
    /// skipped in that time.
    servers: Mutex<()>,
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
        let coverage = match rules.coverage {
            Coverage::Full => "yes",
            Coverage::Partial => "no",
        };
        let coverage = ["--cluster-require-full-coverage", coverage].map(str::to_owned);
        let persistence = plan.nodes.persistence;
        let tags = tags(plan);
        let mut setup = ClusterSetup {
            primaries: usize::from(plan.nodes.count),
            replicas: usize::from(plan.nodes.replicas),
            node_timeout: rules.node_timeout.as_duration() * scale,
            options: [persistent(persistence), options.to_vec(), coverage.to_vec()].concat(),
            ..ClusterSetup::new(&[])
        };
        if tags.is_empty() {
            // Clients see the cluster as one node, so shard 0 owns the slots of all names.
            setup.owners = (0..SLOTS).map(|slot| setup.part(slot)).collect();
            for name in 0..lock_under_test::names(plan) {
                let slot = slot_of_key(lock_under_test::name(name).as_bytes());
                if let Some(owner) = setup.owners.get_mut(usize::from(slot)) {
                    *owner = 0;
                }
            }
        }
        let start = move || cluster::Cluster::try_start(&setup, clock::START_BOUND);
        let cluster = blocking(start).await?;
        Ok(RedisCluster {
            shards: plan.nodes.count,
            ports: cluster.nodes().iter().map(Server::port).collect(),
            cluster: Arc::new(cluster),
            persistence,
            servers: Mutex::default(),
            tags,
            lease: plan.longest_lease().as_duration() * scale,
            lag: plan.nodes.replication_lag.as_duration() * scale,
            scale,
        })
    }

    /// Returns the ports of all servers.
    pub(super) fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Runs work that waits for servers.
    async fn on<T: Send + 'static>(
        &self,
        work: impl FnOnce(&cluster::Cluster) -> T + Send + 'static,
    ) -> T {
        let cluster = Arc::clone(&self.cluster);
        blocking(move || work(&cluster)).await
    }

    /// Returns the key of a name on a shard.
    fn key(&self, shard: u16, name: u16) -> String {
        let name = lock_under_test::name(name);
        match self.tags.get(usize::from(shard)) {
            Some(tag) => format!("{{{tag}}}:{name}"),
            None => name,
        }
    }

    /// Injects a fault, and waits until the cluster has recovered. Calls `began` when the fault begins.
    pub(super) async fn strike(
        &self,
        shard: u16,
        fault: &NodeFault,
        lasts: Duration,
        began: impl FnOnce(),
    ) -> Struck {
        let Ok(_locked) = self.servers.try_lock() else {
            return Struck::PassedOver;
        };
        let Some(fault) = ClusterFault::of(fault) else {
            return Struck::Lacks("a fault of clusters".to_owned());
        };
        if let ClusterFault::Move { name, to, gap } = fault {
            let gap = gap.as_duration() * self.scale;
            let planned = self.planned_move((shard, name), to, (lasts, gap)).await;
            let Some(planned) = planned else {
                return Struck::PassedOver;
            };
            began();
            return done(planned.run().await.and(self.agree(SETTLED).await));
        }
        let Some(primary) = self.primary_of(shard).await else {
            return Struck::PassedOver;
        };
        let mut replicas = self.shard(shard).filter(|server| *server != primary);
        let first = replicas.next();
        // The replica of a manual failover waits until it has all data.
        if fault != ClusterFault::FailOver(Handover::Manual) {
            let replicas = first.into_iter().chain(replicas);
            let ports = replicas.filter_map(|server| self.ports.get(server).copied());
            replication::cut(&ports.collect::<Vec<_>>()).await;
            clock::sleep(self.lag).await;
        }
        let struck = match (fault, self.cluster.nodes().get(primary)) {
            (ClusterFault::Crash, _) => {
                began();
                self.crash(primary, lasts).await
            }
            (ClusterFault::Pause, Some(server)) => {
                began();
                server.signal(Signal::STOP);
                clock::sleep(lasts).await;
                server.signal(Signal::CONT);
                Ok(())
            }
            (ClusterFault::FailOver(how), _) => self.fail_over(first, how, began).await,
            (ClusterFault::Pause, None) | (ClusterFault::Move { .. }, _) => Ok(()),
        };
        done(struck.and(self.recover().await))
    }

    /// Kills a server for a while. What it restarts with is what its persistence kept.
    async fn crash(&self, server: usize, lasts: Duration) -> io::Result<()> {
        let dir = self.cluster.nodes().get(server).map(Server::dir);
        self.on(move |cluster| cluster.nodes().get(server).map(Server::kill))
            .await;
        if let Some(dir) = dir.filter(|_| self.persistence == Persistence::EverySecond) {
            // How long the file was a second ago is not known here. A power cut may lose more.
            AppendLog::default().cut(&dir, 0)?;
        }
        clock::sleep(lasts).await;
        Ok(())
    }

    /// Orders a replica to replace its primary, and waits until it is the primary. Calls `began` when the replica has
    /// accepted.
    async fn fail_over(
        &self,
        replica: Option<usize>,
        how: Handover,
        began: impl FnOnce(),
    ) -> io::Result<()> {
        let port = replica.and_then(|replica| self.ports.get(replica).copied());
        let (Some(replica), Some(port)) = (replica, port) else {
            return Err(io::Error::other("the shard has no replica"));
        };
        let words: &[&str] = match how {
            Handover::Manual => &["CLUSTER", "FAILOVER"],
            Handover::Takeover => &["CLUSTER", "FAILOVER", "TAKEOVER"],
        };
        let accepted: Option<redis::Value> = ask(port, words).await;
        accepted.ok_or_else(|| io::Error::other("a replica of the cluster refused a failover"))?;
        began();
        let promoted = move |cluster: &cluster::Cluster| {
            within(FAILED_OVER, || cluster.is_primary(replica).then_some(()))
        };
        let why = || io::Error::other("a replica of the cluster was not promoted");
        self.on(promoted).await.ok_or_else(why)
    }

    /// Returns the move of a name's slot to another shard, unless that shard already owns the slot.
    async fn planned_move(
        &self,
        (shard, name): (u16, u16),
        to: u16,
        (lasts, gap): (Duration, Duration),
    ) -> Option<SlotMove> {
        let key = self.key(shard, name);
        let slot = slot_of_key(key.as_bytes());
        let to = self.primary_of(to).await?;
        let from = self.on(move |cluster| cluster.owner_of_slot(slot)).await;
        let from = from.filter(|from| *from != to)?;
        let port = |server: usize| self.ports.get(server).copied();
        Some(SlotMove {
            slot,
            from: port(from)?,
            to: port(to)?,
            all: self.ports.clone(),
            pauses: self.lease < lasts,
            lasts,
            gap,
        })
    }

    /// Returns the servers of a shard, in all roles.
    fn shard(&self, shard: u16) -> impl Iterator<Item = usize> + use<> {
        let (shards, shard) = (usize::from(self.shards), usize::from(shard));
        (0..self.ports.len()).filter(move |server| server % shards == shard)
    }

    /// Returns the primary of a shard, according to the primary itself.
    async fn primary_of(&self, shard: u16) -> Option<usize> {
        let mut servers = self.shard(shard);
        self.on(move |cluster| servers.find(|server| cluster.is_primary(*server)))
            .await
    }

    /// Restarts and resumes servers, and waits until the cluster has recovered.
    async fn recover(&self) -> io::Result<()> {
        let restart = |cluster: &cluster::Cluster| {
            cluster.nodes().iter().try_for_each(|server| {
                server.signal(Signal::CONT);
                match server.is_alive() {
                    true => Ok(()),
                    false => node::restart(server),
                }
            })
        };
        self.on(restart).await?;
        replication::mend(&self.ports).await;
        self.agree(SETTLED).await
    }

    /// Reverts all faults.
    pub(super) async fn heal(&self) -> io::Result<()> {
        let _locked = self.servers.lock().await;
        self.recover().await
    }

    /// Ends all processes for good.
    pub(super) async fn end(&self) {
        self.on(|cluster| cluster.nodes().iter().for_each(Server::kill))
            .await;
    }

    /// Returns the claims that are left: the shard and the name of each. Only the owner of a slot answers.
    pub(super) async fn claims(&self, names: u16) -> Vec<(u16, u16)> {
        let mut claims = Vec::new();
        for shard in 0..u16::try_from(self.tags.len()).unwrap_or(0).max(1) {
            for name in 0..names {
                let key = self.key(shard, name);
                for port in &self.ports {
                    let there: Option<u64> = ask(*port, &["EXISTS", &key]).await;
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
        self.on(move |cluster| cluster.try_settle(bound)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::possible::drawn_where;
    use quorlock_sim_plan::Nodes;
    use quorlock_sim_plan::fault::Needs;

    #[test]
    fn clusters_have_the_faults_that_the_table_says() {
        let nodes = Nodes {
            cluster: Some(Cluster::default()),
            ..Nodes::default()
        };
        let refused = |needs| matches!(needs, Needs::Sentinels | Needs::PlainServers { .. });
        for (fault, is_possible) in drawn_where(&nodes, |needs| !refused(needs)) {
            assert_eq!(ClusterFault::of(&fault).is_some(), is_possible, "{fault:?}");
        }
    }
}
