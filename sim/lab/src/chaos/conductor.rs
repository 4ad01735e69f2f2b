//! The conductor: injects the faults of a plan into real processes, at their times.

mod client_faults;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::spawn_local;

use quorlock_testbed::proxy::{Forwarding, Proxy};

use super::backup;
use super::clients::{ClientSlot, NO_LIBRARY};
use super::clock;
use super::eviction;
use super::footprint::Footprints;
use super::node::Node;
use super::node_servers::{NodeServers, Slowness};
use super::other_library::OtherClients;
use super::outcome::{Effects, Struck, done};
use super::possible;
use super::preload::ProcessClocks;
use super::proxies::{Proxies, ends};
use super::redis_cluster::RedisCluster;
use super::report_server::ReportServer;
use super::rights;
use super::sentinel_group::SentinelGroup;
use super::server_command::{say, say_for};
use super::server_error;
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::fault::{
    ClientTarget, Direction, Fault, FaultKind, LinkFault, NodeFault, NodesFault,
};
use quorlock_sim_plan::time::SimTime;

/// How long replicas receive nothing before their primary fails, in the time of the plan.
const CUT_OFF: SimTime = SimTime::millis(30);

/// The processes and links of a run, which faults can affect.
#[derive(Debug)]
pub(super) struct Testbed {
    pub(super) scale: u32,
    /// The number of names that clients compete for.
    pub(super) names: u16,
    pub(super) reports: Rc<ReportServer>,
    pub(super) links: Rc<Proxies>,
    /// The nodes. A fault locks its node until the fault is over. Other faults of the node are skipped in that time.
    pub(super) nodes: Vec<Mutex<NodeServers>>,
    /// The nodes, if they are Sentinel groups. `nodes` is then empty.
    pub(super) groups: Vec<SentinelGroup>,
    /// The cluster whose shards are the nodes, if there is one. `nodes` is then empty.
    pub(super) cluster: Option<RedisCluster>,
    /// The port of each node's primary. Empty if the nodes are the shards of a cluster.
    pub(super) ports: RefCell<Vec<u16>>,
    pub(super) seats: Vec<Mutex<ClientSlot>>,
    /// The other library whose clients are every second one, if there is one.
    pub(super) beside: Option<OtherClients>,
    pub(super) effects: RefCell<Effects>,
    pub(super) footprints: RefCell<Footprints>,
}

impl Testbed {
    fn longer(&self, span: SimTime) -> Duration {
        span.as_duration() * self.scale
    }

    /// Begins the faults of a plan at their times, counted from `from`. Returns when all of them are over.
    pub(super) async fn conduct(self: Rc<Self>, plan: Plan, from: u64) {
        let mut under_way = Vec::new();
        for (index, fault) in plan.faults.into_iter().enumerate() {
            if let Some(why) = possible::lacks_fault(&fault, &plan.nodes) {
                self.note(Struck::Lacks(format!("{}: {why}", fault.kind().name())));
                continue;
            }
            for at in fault.when.times() {
                let (stage, fault) = (Rc::clone(&self), fault.clone());
                let after = u64::try_from(self.longer(at).as_nanos()).unwrap_or(u64::MAX);
                under_way.push(spawn_local(async move {
                    clock::sleep_until(from.saturating_add(after)).await;
                    let struck = stage.strike(index, &fault).await;
                    stage.note(struck);
                }));
            }
        }
        for fault in under_way {
            let _ = fault.await;
        }
    }

    fn note(&self, struck: Struck) {
        self.effects.borrow_mut().add(struck);
    }

    fn began(&self, index: usize, client: Option<u16>) {
        self.reports.records().began(index, client, clock::now());
    }

    async fn strike(&self, index: usize, fault: &Fault) -> Struck {
        let lasts = self.longer(fault.lasts);
        match &fault.what {
            FaultKind::Link {
                clients,
                nodes,
                direction,
                fault,
            } => {
                self.began(index, None);
                self.strike_links((clients, nodes), *direction, *fault, lasts)
                    .await;
                Struck::Yes
            }
            FaultKind::Client { client, fault } => {
                let Some(client) = self.client(*client).await else {
                    return Struck::PassedOver;
                };
                self.strike_client(index, client, *fault, lasts).await
            }
            FaultKind::Node {
                node,
                replica,
                fault,
            } => {
                let began = || self.began(index, None);
                match (self.groups.get(usize::from(*node)), &self.cluster) {
                    (Some(group), _) => group.strike(fault, lasts, began).await,
                    (None, Some(cluster)) => cluster.strike(*node, fault, lasts, began).await,
                    (None, None) => {
                        self.strike_node((*node, *replica), fault, lasts, began)
                            .await
                    }
                }
            }
            FaultKind::Nodes {
                nodes,
                fault: NodesFault::Backup,
            } => self.back_up(index, nodes).await,
        }
    }

    /// Returns the client with this number, or the client that holds a lock. In the latter case, waits until there is
    /// one.
    async fn client(&self, target: ClientTarget) -> Option<u16> {
        let ClientTarget::Holder { name } = target else {
            return target.number();
        };
        let bound = Duration::from_secs(10);
        clock::wait_for(bound, async || self.reports.records().holder(name)).await
    }

    async fn strike_links(
        &self,
        (clients, nodes): (&[u16], &[u16]),
        direction: Direction,
        fault: LinkFault,
        lasts: Duration,
    ) {
        let way = match fault {
            LinkFault::Reset { .. } => {
                self.links.between(clients, nodes).for_each(Proxy::cut);
                return;
            }
            LinkFault::Swallow => {
                self.links.between(clients, nodes).for_each(Proxy::swallow);
                return;
            }
            LinkFault::Delay { min, max } => Forwarding::Slow {
                min: self.longer(min),
                max: self.longer(max),
            },
            // Of the last three, TCP shows an application nothing but silence.
            LinkFault::Cut
            | LinkFault::HoldBack
            | LinkFault::Loss { .. }
            | LinkFault::Duplicate { .. }
            | LinkFault::Reorder { .. } => Forwarding::Held,
        };
        self.set(clients, nodes, direction, way);
        clock::sleep(lasts).await;
        self.set(clients, nodes, direction, self.links.usual());
    }

    fn set(&self, clients: &[u16], nodes: &[u16], direction: Direction, way: Forwarding) {
        for proxy in self.links.between(clients, nodes) {
            for end in ends(direction) {
                proxy.set(*end, way);
            }
        }
    }

    /// Leads clients to another node. The processes of both nodes are left alone.
    async fn misroute(&self, clients: &[u16], node: u16, to: u16, lasts: Duration) {
        let (Some(own), Some(other)) = (self.port(node), self.port(to)) else {
            return;
        };
        let lead_to = |port| {
            let nodes = [node];
            let links = self.links.between(clients, &nodes);
            links.for_each(|proxy| proxy.lead_to(port));
        };
        lead_to(other);
        clock::sleep(lasts).await;
        lead_to(own);
    }

    /// Returns the port of a node's primary.
    fn port(&self, node: u16) -> Option<u16> {
        self.ports.borrow().get(usize::from(node)).copied()
    }

    /// Promotes a replica that has not received the latest writes of its primary. Clients that are left behind keep
    /// using the old primary. If there are none, the old primary is killed. It rejoins when the fault ends.
    async fn fail_over(
        &self,
        number: u16,
        member: &mut NodeServers,
        (replica, left_behind): (u16, &[u16]),
        lasts: Duration,
    ) -> Struck {
        member.slow_down(None, Slowness::Held);
        clock::sleep(self.longer(CUT_OFF)).await;
        if left_behind.is_empty() {
            member.primary().kill().await;
        }
        let Some(port) = member.promote(replica).await else {
            return Struck::Lacks("the replica does not answer".to_owned());
        };
        self.primary_is(usize::from(number), port);
        let clients = 0..u16::try_from(self.seats.len()).unwrap_or(u16::MAX);
        let (stay, go): (Vec<u16>, Vec<u16>) =
            clients.partition(|client| left_behind.contains(client));
        self.links
            .between(&go, &[number])
            .for_each(|proxy| proxy.lead_to(port));
        clock::sleep(lasts).await;
        self.links
            .between(&stay, &[number])
            .for_each(|proxy| proxy.lead_to(port));
        done(member.rejoin().await)
    }

    /// Backs up some nodes at the same time. Nodes that another fault is using are left out.
    async fn back_up(&self, index: usize, nodes: &[u16]) -> Struck {
        let nodes = nodes.iter();
        let nodes = nodes.filter_map(|node| self.nodes.get(usize::from(*node))?.try_lock().ok());
        let mut nodes: Vec<_> = nodes.collect();
        if nodes.is_empty() {
            return Struck::PassedOver;
        }
        self.began(index, None);
        let backups = nodes
            .iter_mut()
            .map(|node| backup::back_up(node.primary().port()));
        let ended = futures_util::future::join_all(backups).await;
        done(ended.into_iter().collect())
    }

    async fn strike_node(
        &self,
        (number, replica): (u16, Option<u16>),
        fault: &NodeFault,
        lasts: Duration,
        began: impl FnOnce(),
    ) -> Struck {
        // Other faults of the node go on.
        if let NodeFault::Misroute { clients, to } = fault {
            began();
            self.misroute(clients, number, *to, lasts).await;
            return Struck::Yes;
        }
        let place = self.nodes.get(usize::from(number));
        let Some(mut member) = place.and_then(|node| node.try_lock().ok()) else {
            return Struck::PassedOver;
        };
        match fault {
            NodeFault::Evict { name } => {
                eviction::evict(member.server(replica).port(), *name, began).await
            }
            NodeFault::Rate { rate_ppm } => {
                let clock = member.server(replica).clock();
                set(clock, began, |clock| clock.run_wall_at(*rate_ppm))
            }
            NodeFault::Step { by } => {
                let by = by.as_nanos().saturating_mul(i64::from(self.scale));
                set(member.server(replica).clock(), began, |clock| {
                    clock.step(by)
                })
            }
            NodeFault::Failover {
                replica,
                left_behind,
            } => {
                began();
                let what = (*replica, left_behind.as_slice());
                self.fail_over(number, &mut member, what, lasts).await
            }
            NodeFault::SlowReplication { by, replica } => {
                began();
                self.slow_down(&member, (*replica, *by), lasts).await;
                Struck::Yes
            }
            fault => {
                began();
                self.strike_server(member.server(replica), fault, lasts)
                    .await
            }
        }
    }

    /// Injects a fault of one server that needs nothing but its process and its commands.
    async fn strike_server(&self, server: &mut Node, fault: &NodeFault, lasts: Duration) -> Struck {
        let port = server.port();
        let said = match fault {
            NodeFault::Pause => {
                server.pause();
                clock::sleep(lasts).await;
                server.resume();
                return Struck::Yes;
            }
            NodeFault::Crash => return done(server.crash(lasts).await),
            NodeFault::PowerLoss { loses } => {
                return done(server.lose_power_for(self.longer(*loses), lasts).await);
            }
            NodeFault::Flush => redis::cmd("FLUSHALL"),
            NodeFault::ForgetScripts => redis::cmd("SCRIPT").arg("FLUSH").clone(),
            NodeFault::Stall { .. } => {
                let mut sleep = redis::cmd("DEBUG");
                let sleep = sleep.arg("SLEEP").arg(lasts.as_secs_f64()).clone();
                say_for(port, lasts + Duration::from_secs(5), &[sleep]).await;
                return Struck::Yes;
            }
            NodeFault::Error { error } => {
                return done(server_error::refuse(port, *error, lasts).await);
            }
            NodeFault::RevokeKeys { name } => {
                return done(rights::revoke(port, *name, self.names, lasts).await);
            }
            NodeFault::FreeBacklog => return done(backup::free_backlog(port).await),
            // These faults need more than one server, or have no effect on real ones.
            NodeFault::Evict { .. }
            | NodeFault::Rate { .. }
            | NodeFault::Step { .. }
            | NodeFault::SlowReplication { .. }
            | NodeFault::Failover { .. }
            | NodeFault::IsolatePrimary { .. }
            | NodeFault::SentinelFailover
            | NodeFault::CrashSentinel { .. }
            | NodeFault::PauseSentinel { .. }
            | NodeFault::StaleSentinel { .. }
            | NodeFault::Misroute { .. }
            | NodeFault::MigrateSlot { .. }
            | NodeFault::ClusterFailover { .. } => {
                return Struck::Lacks("a fault of one server".to_owned());
            }
        };
        say(port, &[said]).await;
        Struck::Yes
    }

    async fn slow_down(
        &self,
        member: &NodeServers,
        (replica, by): (Option<u16>, SimTime),
        lasts: Duration,
    ) {
        member.slow_down(replica, Slowness::By(self.longer(by)));
        clock::sleep(lasts).await;
        member.slow_down(replica, Slowness::Usual);
    }

    /// Waits until each Sentinel group and the cluster agree on their primaries.
    pub(super) async fn agree(&self, bound: Duration) -> Result<(), String> {
        for (place, group) in self.groups.iter().enumerate() {
            let primary = group
                .agree(bound)
                .await
                .map_err(|error| error.to_string())?;
            self.primary_is(place, primary);
        }
        match &self.cluster {
            Some(cluster) => cluster
                .agree(bound)
                .await
                .map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    fn primary_is(&self, place: usize, port: u16) {
        if let Some(known) = self.ports.borrow_mut().get_mut(place) {
            *known = port;
        }
    }

    /// Reverts all faults, as far as possible.
    pub(super) async fn heal(&self) -> Result<(), String> {
        self.links.heal();
        for node in &self.nodes {
            let healed = node.lock().await.heal().await;
            healed.map_err(|error| error.to_string())?;
        }
        for (place, group) in self.groups.iter().enumerate() {
            let primary = group.heal().await.map_err(|error| error.to_string())?;
            self.primary_is(place, primary);
        }
        if let Some(cluster) = &self.cluster {
            cluster.heal().await.map_err(|error| error.to_string())?;
        }
        for seat in &self.seats {
            seat.lock().await.resume();
        }
        Ok(())
    }
}

/// Sets the clock of a server, if it has one that can be set.
fn set(
    clock: Option<&mut ProcessClocks>,
    began: impl FnOnce(),
    set: impl FnOnce(&mut ProcessClocks) -> std::io::Result<()>,
) -> Struck {
    let Some(clock) = clock else {
        return Struck::Lacks(NO_LIBRARY.to_owned());
    };
    began();
    done(set(clock))
}
