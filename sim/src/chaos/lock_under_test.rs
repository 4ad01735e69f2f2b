//! The lock under test on real servers: the product's, or one of the widely used simple locks.

use std::time::Duration;

use quorlock::transport::{RedisConfig, Wait};
use quorlock::{Locks, LocksBuilder, RetryPolicy};
use quorlock_core::owner::OwnerId;

use super::message::{PRIMARY, WorkerSettings};
use super::plain::{Plain, PlainGuard};
use crate::history::Access;
use crate::plan::draw::Draw;
use crate::plan::time::SimTime;
use crate::plan::variant::Variant;
use crate::plan::{LockKind, Plan, Watchdog};

/// A lock under test on real servers.
#[derive(Debug)]
pub(super) enum LockUnderTest {
    Product(Locks),
    Plain(Plain),
}

/// A request of a client to the lock under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LockRequest {
    pub(super) name: u16,
    pub(super) access: Access,
    pub(super) watchdog: Watchdog,
    /// The order in which waiters are served.
    pub(super) queue: QueueOrder,
}

/// The order in which waiters are served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum QueueOrder {
    Any,
    Fair,
}

/// A guard of a lock under test.
#[derive(Debug)]
pub(super) enum Guard {
    Product(quorlock::Guard),
    Plain(PlainGuard),
}

impl LockUnderTest {
    /// Connects to the lock that a plan selects.
    pub(super) async fn connect(
        settings: &WorkerSettings,
        draw: &mut Draw,
    ) -> Result<LockUnderTest, String> {
        let plan = &settings.plan;
        let addresses = addresses(settings);
        if plan.variant != Variant::Product {
            return Plain::new(settings, draw).map(LockUnderTest::Plain);
        }
        let builder = builder(plan, settings);
        let made = match plan.lock {
            LockKind::Single => {
                builder
                    .connect(addresses.first().cloned().unwrap_or_default())
                    .await
            }
            LockKind::Redlock if plan.nodes.cluster.is_some() => {
                let address = addresses.first().cloned().unwrap_or_default();
                let shards = usize::from(plan.nodes.count);
                builder.majority_of_shards(address, shards).await
            }
            LockKind::Redlock => builder.quorum(addresses).await,
            LockKind::Multi => return Err("a lock of several names is not available".to_owned()),
        };
        made.map(LockUnderTest::Product)
            .map_err(|error| error.to_string())
    }

    /// Waits until the lock is acquired.
    pub(super) async fn acquire(
        &self,
        wanted: LockRequest,
        lease: Duration,
    ) -> Result<Guard, String> {
        let name = name(wanted.name);
        match self {
            LockUnderTest::Product(locks) => {
                let lock = match wanted.access {
                    Access::Alone if wanted.queue == QueueOrder::Fair => locks.fair(name),
                    Access::Alone => locks.lock(name),
                    Access::Read => locks.read(name),
                    Access::Write => locks.write(name),
                };
                let lock = match wanted.watchdog {
                    Watchdog::On => lock,
                    Watchdog::Off => lock.lease(lease),
                };
                let guard = lock.acquire().await;
                guard.map(Guard::Product).map_err(|error| error.to_string())
            }
            LockUnderTest::Plain(plain) => Ok(Guard::Plain(plain.acquire(&name, lease).await)),
        }
    }
}

impl Guard {
    pub(super) fn is_held(&self) -> bool {
        match self {
            Guard::Product(guard) => guard.is_held(),
            Guard::Plain(guard) => guard.is_held(),
        }
    }

    pub(super) fn owner(&self) -> OwnerId {
        match self {
            Guard::Product(guard) => guard.owner_id(),
            Guard::Plain(guard) => guard.owner(),
        }
    }

    /// Returns the fencing token, or 0 if the lock has none.
    pub(super) fn token(&self) -> u64 {
        match self {
            Guard::Product(guard) => guard.fencing_token().0,
            Guard::Plain(guard) => guard.token(),
        }
    }

    pub(super) async fn release(self, subject: &LockUnderTest) -> Result<(), String> {
        match (self, subject) {
            (Guard::Product(guard), _) => guard.release().await.map_err(|error| error.to_string()),
            (Guard::Plain(guard), LockUnderTest::Plain(plain)) => {
                plain.release(&guard).await;
                Ok(())
            }
            (Guard::Plain(_), LockUnderTest::Product(_)) => Ok(()),
        }
    }
}

/// Returns the text of a name, the same as for the simulator's clients.
pub(super) fn name(index: u16) -> String {
    format!("lock-{index}")
}

/// Returns the addresses of the nodes: of servers, or of Sentinel groups, whose primary the client finds by itself. A
/// cluster has one address for all of its shards.
fn addresses(settings: &WorkerSettings) -> Vec<String> {
    let server = |port: &u16| format!("redis://127.0.0.1:{port}/");
    let hosts = |ports: &[u16]| {
        let hosts = ports.iter().map(|port| format!("127.0.0.1:{port}"));
        hosts.collect::<Vec<String>>().join(",")
    };
    if !settings.cluster.is_empty() {
        return vec![format!("redis+cluster://{}", hosts(&settings.cluster))];
    }
    let group = |sentinels: &Vec<u16>| format!("redis+sentinel://{}/{PRIMARY}", hosts(sentinels));
    let servers = settings.ports.iter().map(server);
    servers
        .chain(settings.sentinels.iter().map(group))
        .collect()
}

fn builder(plan: &Plan, settings: &WorkerSettings) -> LocksBuilder {
    let longer = |span: SimTime| span.as_duration() * settings.scale;
    let client = settings.process.client;
    let policy = RetryPolicy::default();
    let backoff_cap = longer(plan.workload.backoff_cap);
    let policy = policy
        .backoff(policy.backoff.min(backoff_cap))
        .backoff_cap(backoff_cap)
        .poll_cap(longer(plan.workload.poll_cap));
    let redis = RedisConfig::default()
        .connect_timeout(longer(plan.network.connect_timeout))
        .call_timeout(longer(plan.network.call_timeout));
    let redis = match plan.awaited() {
        Some(wait) => redis.wait(Wait::replicas(
            u32::from(wait.replicas),
            longer(wait.within),
        )),
        None => redis,
    };
    let builder = Locks::builder();
    let builder = match plan.workload.max_hold {
        Some(max) => builder.max_hold(longer(max)),
        None => builder,
    };
    let lease = plan.lease_of(client);
    builder
        .retry(policy)
        .redis(redis)
        .watchdog_lease(longer(lease))
        .longest_lease(longer(plan.longest_lease().max(lease)))
        .node_trust(plan.node_trust())
        .clock_margin(longer(plan.clock_margin()))
}
