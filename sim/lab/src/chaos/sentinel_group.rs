//! One node of a plan as a Sentinel group: a primary and its replicas, and the sentinels that elect the primary.
//!
//! Clients and sentinels connect to the servers directly, because sentinels announce the servers' own addresses. So
//! links have no faults here.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use quorlock_testbed::sentinels::{self, GroupSetup};
use quorlock_testbed::server::Server;
use quorlock_testbed::wait::within;
use rustix::process::Signal;
use tokio::sync::Mutex;

use super::blocking::blocking;
use super::clock;
use super::node::{self, persistent};
use super::outcome::{Struck, done};
use super::replication;
use quorlock_sim_plan::fault::NodeFault;
use quorlock_sim_plan::{Plan, Sentinels};

/// The longest time that a group may take after a fault until its members agree on a primary.
const SETTLED: Duration = Duration::from_secs(30);

/// The number of sentinels that are ordered to fail over, one after another, and how long each may take. Then the
/// replicas are connected again, because sentinels do not promote a replica that was without its primary for long.
const ORDERS: usize = 2;
const FAILED_OVER: Duration = Duration::from_secs(3);

/// A fault that real groups have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum GroupFault {
    CrashSentinel(usize),
    PauseSentinel(usize),
    CrashPrimary,
    PausePrimary,
    FailOver,
}

impl GroupFault {
    /// Returns the fault, unless real groups lack it.
    fn of(fault: &NodeFault) -> Option<GroupFault> {
        match fault {
            NodeFault::CrashSentinel { sentinel } => {
                Some(GroupFault::CrashSentinel(usize::from(*sentinel)))
            }
            NodeFault::PauseSentinel { sentinel } => {
                Some(GroupFault::PauseSentinel(usize::from(*sentinel)))
            }
            NodeFault::Crash => Some(GroupFault::CrashPrimary),
            NodeFault::Pause => Some(GroupFault::PausePrimary),
            NodeFault::SentinelFailover => Some(GroupFault::FailOver),
            // The row of its kind says the same, and `conduct` reports it (`possible`).
            _ => None,
        }
    }
}

/// A Sentinel group of real processes.
#[derive(Debug)]
pub(super) struct SentinelGroup {
    group: Arc<sentinels::SentinelGroup>,
    /// A fault of the primary locks the servers until the group has recovered. Other faults of the primary are skipped
    /// in that time.
    servers: Mutex<()>,
    sentinels: Vec<Mutex<()>>,
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
        let options = [persistent(plan.nodes.persistence), options.to_vec()].concat();
        let setup = GroupSetup {
            quorum: usize::from(sentinels.quorum()),
            down_after: sentinels.down_after.as_duration() * scale,
            server_options: options,
            ..GroupSetup::new(
                1 + usize::from(plan.nodes.replicas),
                usize::from(sentinels.count),
            )
        };
        let start = || sentinels::SentinelGroup::try_start(setup, clock::START_BOUND);
        Ok(SentinelGroup {
            group: Arc::new(blocking(start).await?),
            servers: Mutex::default(),
            sentinels: (0..sentinels.count).map(|_| Mutex::default()).collect(),
            lag: plan.nodes.replication_lag.as_duration() * scale,
        })
    }

    /// Runs work that waits for members of the group.
    async fn on<T: Send + 'static>(
        &self,
        work: impl FnOnce(&sentinels::SentinelGroup) -> T + Send + 'static,
    ) -> T {
        let group = Arc::clone(&self.group);
        blocking(move || work(&group)).await
    }

    /// Waits until all members agree on a primary. Returns its port.
    pub(super) async fn agree(&self, bound: Duration) -> io::Result<u16> {
        let port_of = |group: &sentinels::SentinelGroup, primary| {
            let primary = group.servers().get(primary);
            primary.map(Server::port).unwrap_or_default()
        };
        let settle = move |group: &sentinels::SentinelGroup| {
            let primary = group.try_settle(bound);
            primary.map(|primary| port_of(group, primary))
        };
        self.on(settle).await
    }

    /// Returns the port of the server that was the primary when the run began.
    pub(super) fn first_port(&self) -> u16 {
        let first = self.group.servers().first();
        first.map(Server::port).unwrap_or_default()
    }

    /// Returns the ports of the sentinels.
    pub(super) fn sentinel_ports(&self) -> Vec<u16> {
        self.group.sentinels().iter().map(Server::port).collect()
    }

    fn ports(&self) -> Vec<u16> {
        self.group.servers().iter().map(Server::port).collect()
    }

    /// Injects a fault, and waits until the group has recovered. Calls `began` when the fault begins.
    pub(super) async fn strike(
        &self,
        fault: &NodeFault,
        lasts: Duration,
        began: impl FnOnce(),
    ) -> Struck {
        let Some(fault) = GroupFault::of(fault) else {
            return Struck::Lacks("a fault of groups".to_owned());
        };
        if let GroupFault::CrashSentinel(place) | GroupFault::PauseSentinel(place) = fault {
            let locked = self.sentinels.get(place);
            let Some(_locked) = locked.and_then(|place| place.try_lock().ok()) else {
                return Struck::PassedOver;
            };
            began();
            return done(self.strike_sentinel(place, fault, lasts).await);
        }
        let Ok(_locked) = self.servers.try_lock() else {
            return Struck::PassedOver;
        };
        let Some(primary) = self.on(sentinels::SentinelGroup::primary).await else {
            return Struck::PassedOver;
        };
        replication::cut(&self.ports()).await;
        clock::sleep(self.lag).await;
        let struck = self.strike_primary(primary, fault, lasts, began).await;
        done(struck.and(self.recover().await.map(|_| ())))
    }

    async fn strike_sentinel(
        &self,
        place: usize,
        fault: GroupFault,
        lasts: Duration,
    ) -> io::Result<()> {
        let Some(sentinel) = self.group.sentinels().get(place) else {
            return Ok(());
        };
        if matches!(fault, GroupFault::PauseSentinel(_)) {
            sentinel.signal(Signal::STOP);
            clock::sleep(lasts).await;
            sentinel.signal(Signal::CONT);
            return Ok(());
        }
        let kill = move |group: &sentinels::SentinelGroup| {
            group.sentinels().get(place).map(Server::kill);
        };
        self.on(kill).await;
        clock::sleep(lasts).await;
        self.on(restart_sentinels).await
    }

    async fn strike_primary(
        &self,
        primary: usize,
        fault: GroupFault,
        lasts: Duration,
        began: impl FnOnce(),
    ) -> io::Result<()> {
        let Some(server) = self.group.servers().get(primary) else {
            return Ok(());
        };
        match fault {
            GroupFault::CrashPrimary => {
                began();
                let kill = move |group: &sentinels::SentinelGroup| {
                    group.servers().get(primary).map(Server::kill);
                };
                self.on(kill).await;
                // The group restarts it when it recovers.
                clock::sleep(lasts).await;
                Ok(())
            }
            GroupFault::PausePrimary => {
                began();
                server.signal(Signal::STOP);
                clock::sleep(lasts).await;
                server.signal(Signal::CONT);
                Ok(())
            }
            GroupFault::FailOver => self.fail_over(primary, began).await,
            GroupFault::CrashSentinel(_) | GroupFault::PauseSentinel(_) => Ok(()),
        }
    }

    /// Makes a sentinel begin a failover, as an operator does, and waits until the sentinels name another primary. Calls
    /// `began` when a sentinel has accepted.
    async fn fail_over(&self, before: usize, began: impl FnOnce()) -> io::Result<()> {
        let mut began = Some(began);
        for number in 0..ORDERS {
            // A sentinel refuses while another failover is in progress.
            let order = move |group: &sentinels::SentinelGroup| group.order_failover(number);
            if self.on(order).await
                && let Some(began) = began.take()
            {
                began();
            }
            let wait = move |group: &sentinels::SentinelGroup| {
                within(FAILED_OVER, || group.another(before))
            };
            if self.on(wait).await.is_some() {
                return Ok(());
            }
        }
        Err(io::Error::other("no sentinel could fail its group over"))
    }

    /// Restarts and resumes servers, and waits until the group has recovered. Returns the port of its primary.
    async fn recover(&self) -> io::Result<u16> {
        let restart = |group: &sentinels::SentinelGroup| {
            group.servers().iter().try_for_each(|server| {
                server.signal(Signal::CONT);
                if server.is_alive() {
                    return Ok(());
                }
                group.start_as_primary(server);
                node::restart(server)
            })
        };
        self.on(restart).await?;
        replication::mend(&self.ports()).await;
        self.agree(SETTLED).await
    }

    /// Reverts all faults. Returns the port of the primary.
    pub(super) async fn heal(&self) -> io::Result<u16> {
        for sentinel in &self.sentinels {
            // A fault of a sentinel may be under way.
            drop(sentinel.lock().await);
        }
        self.on(restart_sentinels).await?;
        let _locked = self.servers.lock().await;
        self.recover().await
    }

    /// Ends all processes for good.
    pub(super) async fn end(&self) {
        self.on(|group| {
            let sentinels = group.sentinels().iter();
            sentinels.chain(group.servers()).for_each(Server::kill);
        })
        .await;
    }
}

/// Resumes sentinels, and restarts those that are down.
fn restart_sentinels(group: &sentinels::SentinelGroup) -> io::Result<()> {
    group.sentinels().iter().try_for_each(|sentinel| {
        sentinel.signal(Signal::CONT);
        match sentinel.is_alive() {
            true => Ok(()),
            false => group.restart_sentinel(sentinel),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::possible::drawn_where;
    use quorlock_sim_plan::Nodes;
    use quorlock_sim_plan::fault::Needs;

    #[test]
    fn groups_have_the_faults_that_the_table_says() {
        let nodes = Nodes {
            sentinels: Some(Sentinels::default()),
            ..Nodes::default()
        };
        let refused = |needs| matches!(needs, Needs::Cluster | Needs::PlainServers { .. });
        for (fault, is_possible) in drawn_where(&nodes, |needs| !refused(needs)) {
            assert_eq!(GroupFault::of(&fault).is_some(), is_possible, "{fault:?}");
        }
    }
}
