//! One node of a plan as a Sentinel group: a primary and its replicas, and the sentinels that elect the primary.
//!
//! Clients and sentinels connect to the servers directly, because sentinels announce the servers' own addresses. So
//! links have no faults here.

use std::io;
use std::time::Duration;

use tokio::sync::Mutex;

use super::clock;
use super::message::PRIMARY;
use super::node::{Follows, Node};
use super::replication;
use super::struck::{Struck, done};
use quorlock_sim_plan::fault::NodeFault;
use quorlock_sim_plan::{Plan, Sentinels};

/// The longest time that a group may take after a fault until its members agree on a primary.
const SETTLED: Duration = Duration::from_secs(30);

/// The longest time that sentinels may take to carry out an order. Then the replicas are connected again, because
/// sentinels do not promote a replica that was without its primary for long.
const FAILED_OVER: Duration = Duration::from_secs(6);

/// The time between two looks at the members of a group.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// A Sentinel group of real processes.
#[derive(Debug)]
pub(super) struct SentinelGroup {
    first_port: u16,
    /// The servers. A fault of the primary locks them until the group has recovered. Other faults of the primary are
    /// skipped in that time.
    servers: Mutex<Vec<Node>>,
    sentinel_ports: Vec<u16>,
    sentinels: Vec<Mutex<Node>>,
    /// How long replicas receive nothing before the primary fails: the plan's replication lag.
    lag: Duration,
}

impl SentinelGroup {
    /// Starts a group, and waits until its members know each other.
    pub(super) async fn start(
        plan: &Plan,
        sentinels: &Sentinels,
        scale: u32,
        options: &[String],
    ) -> io::Result<SentinelGroup> {
        let options: Vec<String> = options
            .iter()
            .cloned()
            .chain(PROMPT.map(str::to_owned))
            .collect();
        let persistence = plan.nodes.persistence;
        let primary = Node::start(persistence, &options, None).await?;
        let port = primary.port();
        let mut servers = vec![primary];
        for _ in 0..plan.nodes.replicas {
            let mut replica = Node::start(persistence, &options, None).await?;
            replica.follow(Follows::Port(port)).await?;
            servers.push(replica);
        }
        let lines = configuration(port, sentinels, scale);
        let mut started = Vec::new();
        for _ in 0..sentinels.count {
            let sentinel = Node::start_sentinel(&lines).await?;
            hasten(sentinel.port()).await;
            started.push(sentinel);
        }
        let group = SentinelGroup {
            first_port: port,
            sentinel_ports: started.iter().map(Node::port).collect(),
            servers: Mutex::new(servers),
            sentinels: started.into_iter().map(Mutex::new).collect(),
            lag: plan.nodes.replication_lag.as_duration() * scale,
        };
        group.agree(clock::START_BOUND).await?;
        Ok(group)
    }

    /// Waits until all members agree on a primary. Returns its port.
    pub(super) async fn agree(&self, bound: Duration) -> io::Result<u16> {
        self.settle(&self.servers.lock().await, bound).await
    }

    /// Returns the port of the server that was the primary when the run began.
    pub(super) fn first_port(&self) -> u16 {
        self.first_port
    }

    /// Returns the ports of the sentinels.
    pub(super) fn sentinel_ports(&self) -> Vec<u16> {
        self.sentinel_ports.clone()
    }

    /// Injects a fault, and waits until the group has recovered. Calls `began` when the fault begins.
    pub(super) async fn strike(
        &self,
        fault: &NodeFault,
        lasts: Duration,
        began: impl FnOnce(),
    ) -> Struck {
        match fault {
            NodeFault::CrashSentinel { sentinel } | NodeFault::PauseSentinel { sentinel } => {
                let place = self.sentinels.get(usize::from(*sentinel));
                let Some(mut sentinel) = place.and_then(|place| place.try_lock().ok()) else {
                    return Struck::PassedOver;
                };
                began();
                done(strike_sentinel(&mut sentinel, fault, lasts).await)
            }
            NodeFault::Crash | NodeFault::Pause | NodeFault::SentinelFailover => {
                let Ok(mut servers) = self.servers.try_lock() else {
                    return Struck::PassedOver;
                };
                let Some(primary) = self.primary_of(&servers).await else {
                    return Struck::PassedOver;
                };
                replication::cut(&ports_of(&servers)).await;
                clock::sleep(self.lag).await;
                let struck = match servers.get_mut(primary) {
                    Some(primary) => self.strike_primary(primary, fault, lasts, began).await,
                    None => Ok(()),
                };
                let struck = struck.and(self.recover(&mut servers).await.map(|_| ()));
                done(struck)
            }
            _ => {
                Struck::Lacks("a Sentinel group has only faults that lead to elections".to_owned())
            }
        }
    }

    async fn strike_primary(
        &self,
        primary: &mut Node,
        fault: &NodeFault,
        lasts: Duration,
        began: impl FnOnce(),
    ) -> io::Result<()> {
        match fault {
            NodeFault::Crash => {
                began();
                primary.kill().await;
                clock::sleep(lasts).await;
                primary.restart_as_primary();
                primary.restart().await
            }
            NodeFault::Pause => {
                began();
                primary.pause();
                clock::sleep(lasts).await;
                primary.resume();
                Ok(())
            }
            _ => self.fail_over(primary.port(), began).await,
        }
    }

    /// Makes a sentinel begin a failover, as an operator does, and waits until the sentinels name another primary. Calls
    /// `began` when a sentinel has accepted.
    async fn fail_over(&self, before: u16, began: impl FnOnce()) -> io::Result<()> {
        let mut number = 0;
        let mut began = Some(began);
        let promoted = clock::wait_for(FAILED_OVER, async || {
            let ports = &self.sentinel_ports;
            let port = ports.get(number % ports.len().max(1)).copied()?;
            number += 1;
            // A sentinel refuses while another failover is in progress.
            let order = ["SENTINEL", "FAILOVER", PRIMARY];
            if Node::ask::<redis::Value>(port, &order).await.is_some()
                && let Some(began) = began.take()
            {
                began();
            }
            let look = async || {
                clock::sleep(BETWEEN_LOOKS).await;
                self.named().await.filter(|named| *named != before)
            };
            clock::wait_for(Duration::from_secs(3), look).await
        });
        let why = || io::Error::other("no sentinel could fail its group over");
        promoted.await.map(|_| ()).ok_or_else(why)
    }

    /// Restarts and resumes servers, and waits until the group has recovered. Returns the port of its primary.
    async fn recover(&self, servers: &mut [Node]) -> io::Result<u16> {
        for server in &mut *servers {
            server.resume();
            if !server.is_alive() {
                server.restart_as_primary();
                server.restart().await?;
            }
        }
        replication::mend(&ports_of(servers)).await;
        self.settle(servers, SETTLED).await
    }

    /// Reverts all faults. Returns the port of the primary.
    pub(super) async fn heal(&self) -> io::Result<u16> {
        for sentinel in &self.sentinels {
            let mut sentinel = sentinel.lock().await;
            sentinel.resume();
            if !sentinel.is_alive() {
                sentinel.restart().await?;
                hasten(sentinel.port()).await;
            }
        }
        self.recover(&mut self.servers.lock().await).await
    }

    /// Ends all processes for good, and removes their folders.
    pub(super) async fn end(&self) {
        for sentinel in &self.sentinels {
            sentinel.lock().await.end().await;
        }
        for server in &mut *self.servers.lock().await {
            server.end().await;
        }
    }

    /// Returns the port of the primary, if a majority of the sentinels names the same one.
    async fn named(&self) -> Option<u16> {
        let words = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", PRIMARY];
        let mut named = Vec::new();
        for port in &self.sentinel_ports {
            let told = Node::ask::<(String, u16)>(*port, &words).await;
            named.extend(told.map(|(_, port)| port));
        }
        let votes = |port: u16| named.iter().filter(|named| **named == port).count();
        let needed = self.sentinel_ports.len() / 2 + 1;
        named.iter().copied().find(|port| needed <= votes(*port))
    }

    /// Returns the index of the primary.
    async fn primary_of(&self, servers: &[Node]) -> Option<usize> {
        let named = self.named().await?;
        servers.iter().position(|server| server.port() == named)
    }

    /// Waits until the sentinels agree on a primary, and every other server follows it. Returns the primary's port.
    async fn settle(&self, servers: &[Node], bound: Duration) -> io::Result<u16> {
        let look = async || {
            clock::sleep(BETWEEN_LOOKS).await;
            let port = self.named().await?;
            let info: String = Node::ask(port, &["INFO", "replication"]).await?;
            let replicas = servers.len().checked_sub(1)?;
            let is_followed =
                info.contains("role:master") && info.matches("state=online").count() == replicas;
            if !is_followed {
                return None;
            }
            for sentinel in &self.sentinels {
                // A sentinel that is down or stopped takes part again later.
                let Ok(sentinel) = sentinel.try_lock() else {
                    continue;
                };
                knows_all(sentinel.port(), replicas, self.sentinels.len() - 1).await?;
            }
            Some(port)
        };
        let settled = clock::wait_for(bound, look).await;
        settled.ok_or_else(|| io::Error::other("the members of a Sentinel group do not agree"))
    }
}

fn ports_of(servers: &[Node]) -> Vec<u16> {
    servers.iter().map(Node::port).collect()
}

async fn strike_sentinel(
    sentinel: &mut Node,
    fault: &NodeFault,
    lasts: Duration,
) -> io::Result<()> {
    if matches!(fault, NodeFault::PauseSentinel { .. }) {
        sentinel.pause();
        clock::sleep(lasts).await;
        sentinel.resume();
        return Ok(());
    }
    sentinel.kill().await;
    clock::sleep(lasts).await;
    sentinel.restart().await?;
    hasten(sentinel.port()).await;
    Ok(())
}

/// Checks that a sentinel considers the primary up, and knows these numbers of replicas that follow it and of other
/// sentinels.
async fn knows_all(sentinel: u16, replicas: usize, sentinels: usize) -> Option<()> {
    let state: Vec<String> = Node::ask(sentinel, &["SENTINEL", "MASTER", PRIMARY]).await?;
    let fits = has(&state, "flags", "master")
        && has(&state, "num-slaves", &replicas.to_string())
        && has(&state, "num-other-sentinels", &sentinels.to_string());
    let told: Vec<Vec<String>> = Node::ask(sentinel, &["SENTINEL", "REPLICAS", PRIMARY]).await?;
    let fit = told.iter().filter(|replica| {
        has(replica, "flags", "slave") && has(replica, "master-link-status", "ok")
    });
    (fits && fit.count() == replicas).then_some(())
}

/// Returns whether a list of fields and values has this field with this value.
fn has(fields: &[String], field: &str, value: &str) -> bool {
    let mut pairs = fields.chunks_exact(2);
    pairs.any(|pair| pair == [field, value])
}

/// Options with which a primary and its replicas check their connection often.
const PROMPT: [&str; 4] = ["--repl-ping-replica-period", "1", "--repl-timeout", "60"];

/// Returns the lines of a sentinel's configuration file.
fn configuration(primary: u16, sentinels: &Sentinels, scale: u32) -> Vec<String> {
    let down_after = (sentinels.down_after.as_duration() * scale).as_millis();
    let quorum = sentinels.quorum();
    // Sentinels that voted for each other vote again after twice this time.
    let failover_timeout = 3 * down_after;
    vec![
        format!("sentinel monitor {PRIMARY} 127.0.0.1 {primary} {quorum}"),
        format!("sentinel down-after-milliseconds {PRIMARY} {down_after}"),
        format!("sentinel failover-timeout {PRIMARY} {failover_timeout}"),
        format!("sentinel parallel-syncs {PRIMARY} 2"),
    ]
}

/// Shortens a sentinel's periods, which it does not keep in its configuration file, and lengthens the pause after which
/// it assumes that its machine was suspended.
async fn hasten(sentinel: u16) {
    let words = [
        "SENTINEL",
        "DEBUG",
        "info-period",
        "200",
        // After five of these periods, the report of a replica is too old for its promotion. While the primary is
        // down, replicas report once a second.
        "ping-period",
        "300",
        "ask-period",
        "100",
        "publish-period",
        "200",
        "tilt-trigger",
        "20000",
        "tilt-period",
        "1000",
    ];
    let _ = Node::ask::<redis::Value>(sentinel, &words).await;
}
