//! The lock under test on real servers: the product's, or one of the widely used simple locks.

use std::time::Duration;

use futures_util::future::join_all;
use quorlock::redis::{RedisConfig, Wait};
use quorlock::{
    AcquireError, Candidacy, ConfigError, LeaderEvent, Leadership, Locks, LocksBuilder, RetryPolicy,
};
use quorlock_core::owner::OwnerId;

use quorlock_testbed::sentinels::NAME;

use super::message::{HoldKind, WonName, WorkerSettings};
use super::simple_locks::{Plain, PlainGuard};
use quorlock_sim_plan::draw::Draw;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::variant::Flaw;
use quorlock_sim_plan::{LockKind, Plan, WorkloadKind};
use quorlock_sim_world::history::Access;

/// A lock under test on real servers.
#[derive(Debug)]
pub(super) enum LockUnderTest {
    Product {
        /// One client for all nodes, or one client for each node if names are on different nodes.
        locks: Vec<Locks>,
        writers: WriterNames,
    },
    Plain(Plain),
}

/// The names that writers lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WriterNames {
    /// The names that readers lock.
    Shared,
    /// Names of their own, so that readers and writers do not exclude each other.
    OfTheirOwn,
}

/// A request of a client to the lock under test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LockRequest {
    /// What the client asks for.
    pub(super) kind: HoldKind,
    /// The names, which are acquired together.
    pub(super) names: Vec<u16>,
    pub(super) access: Access,
    /// Whether the watchdog renews the hold.
    pub(super) is_renewed: bool,
    /// The order in which waiters are served.
    pub(super) queue: QueueOrder,
    /// How long the client is willing to wait. `None` if there is no bound.
    pub(super) wait: Option<Duration>,
}

/// The reason why a lock was not acquired.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum NotAcquired {
    /// Others held the lock until the end of the wait.
    Contended,
    /// The error of the lock.
    Failed(String),
}

impl From<ConfigError> for NotAcquired {
    fn from(error: ConfigError) -> Self {
        NotAcquired::Failed(error.to_string())
    }
}

impl From<AcquireError> for NotAcquired {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Contended { .. } => NotAcquired::Contended,
            error => NotAcquired::Failed(error.to_string()),
        }
    }
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
    Leader {
        leadership: Leadership,
        candidacy: Box<Candidacy>,
    },
    /// A guard for each name.
    Plain(Vec<PlainGuard>),
}

impl LockUnderTest {
    /// Connects to the lock that a plan selects.
    pub(super) async fn connect(
        settings: &WorkerSettings,
        draw: &mut Draw,
    ) -> Result<LockUnderTest, String> {
        let plan = &settings.plan;
        let addresses = addresses(settings);
        if !plan.variant.has_product_clients() {
            return Plain::new(settings, draw).map(LockUnderTest::Plain);
        }
        let first = addresses.first().cloned().unwrap_or_default();
        let builder = || builder(plan, settings);
        let made = match plan.lock {
            LockKind::Single => vec![builder().connect(first).await],
            LockKind::Redlock if plan.nodes.cluster.is_some() => {
                let shards = usize::from(plan.nodes.count);
                vec![builder().majority_of_shards(first, shards).await]
            }
            LockKind::Redlock => vec![builder().quorum(addresses).await],
            LockKind::Multi => {
                join_all(addresses.into_iter().map(|node| builder().connect(node))).await
            }
        };
        let writers = match plan.variant.has(Flaw::WriterJoinsReaders) {
            true => WriterNames::OfTheirOwn,
            false => WriterNames::Shared,
        };
        let locks = made.into_iter().collect::<Result<Vec<Locks>, _>>();
        locks
            .map(|locks| LockUnderTest::Product { locks, writers })
            .map_err(|error| error.to_string())
    }

    /// Waits until the lock is acquired, or until the client leads.
    pub(super) async fn acquire(
        &self,
        wanted: &LockRequest,
        lease: Duration,
    ) -> Result<Guard, NotAcquired> {
        match self {
            LockUnderTest::Product { locks, .. } if wanted.kind == HoldKind::Leadership => {
                let led = lead(locks, wanted, lease).await;
                led.map_err(NotAcquired::Failed)
            }
            LockUnderTest::Product { locks, writers } => {
                let lock = product_lock(locks, *writers, wanted)?;
                let lock = match wanted.is_renewed {
                    true => lock,
                    false => lock.lease(lease),
                };
                let lock = match wanted.wait {
                    Some(bound) => lock.wait(bound),
                    None => lock,
                };
                Ok(Guard::Product(lock.acquire().await?))
            }
            LockUnderTest::Plain(plain) => {
                // All clients acquire in the same order, so that none of them waits for another in a circle.
                let mut names = wanted.names.clone();
                names.sort_unstable();
                let mut guards = Vec::new();
                for index in names {
                    guards.push(plain.acquire(&name(index), lease).await);
                }
                Ok(Guard::Plain(guards))
            }
        }
    }
}

fn product_lock(
    locks: &[Locks],
    writers: WriterNames,
    wanted: &LockRequest,
) -> Result<quorlock::Lock, ConfigError> {
    match (locks, wanted.names.as_slice()) {
        (_, [only]) => part(locks, writers, wanted, *only),
        ([locks], several) => Ok(locks.all(several.iter().map(|index| name(*index)))),
        // The names are on different nodes.
        (_, several) => {
            let parts = several.iter();
            let parts = parts.map(|index| part(locks, writers, wanted, *index));
            let mut parts = parts.collect::<Result<Vec<_>, _>>()?.into_iter();
            let first = parts.next().ok_or(ConfigError::NoNames)?;
            Ok(first.and(parts))
        }
    }
}

/// Returns the lock of one name, at the node of the name.
fn part(
    locks: &[Locks],
    writers: WriterNames,
    wanted: &LockRequest,
    index: u16,
) -> Result<quorlock::Lock, ConfigError> {
    let place = usize::from(index) % locks.len().max(1);
    let locks = locks.get(place).ok_or(ConfigError::NoNames)?;
    let name = name(index);
    Ok(match wanted.access {
        Access::Alone if wanted.queue == QueueOrder::Fair => locks.fair(name),
        Access::Alone => locks.lock(name),
        Access::Read => locks.read(name),
        Access::Write if writers == WriterNames::OfTheirOwn => {
            locks.write(format!("{name}-writers"))
        }
        Access::Write => locks.write(name),
    })
}

/// Campaigns until elected.
async fn lead(locks: &[Locks], wanted: &LockRequest, lease: Duration) -> Result<Guard, String> {
    let name = wanted.names.first().map(|index| name(*index));
    let locks = locks.first().ok_or("a leader needs a node")?;
    let candidate = locks.leader(name.unwrap_or_default()).watchdog_lease(lease);
    let mut candidacy = Box::new(candidate.campaign());
    loop {
        match candidacy.next().await {
            Some(LeaderEvent::Elected { leadership, .. }) => {
                return Ok(Guard::Leader {
                    leadership,
                    candidacy,
                });
            }
            Some(LeaderEvent::Failed { error, .. }) => return Err(error.to_string()),
            Some(_) => {}
            None => return Err("the candidacy is over".to_owned()),
        }
    }
}

impl Guard {
    pub(super) fn is_held(&self) -> bool {
        match self {
            Guard::Product(guard) => guard.is_held(),
            Guard::Leader { leadership, .. } => leadership.is_leading(),
            Guard::Plain(guards) => guards.iter().all(PlainGuard::is_held),
        }
    }

    /// Returns the identity of the hold. A lock without one for all its names has one for the first name.
    pub(super) fn owner(&self) -> Option<OwnerId> {
        match self {
            Guard::Product(guard) => Some(guard.owner_id()),
            Guard::Leader { leadership, .. } => Some(leadership.owner_id()),
            Guard::Plain(guards) => guards.first().map(PlainGuard::owner),
        }
    }

    /// Returns the names of a request, each with its fencing token, or with 0 if the lock has none.
    pub(super) fn tokens(&self, wanted: &LockRequest) -> Vec<WonName> {
        let token = |index: u16| match self {
            Guard::Product(guard) if wanted.names.len() == 1 => guard.fencing_token().0,
            Guard::Product(guard) => {
                let token = guard.fencing_token_of(name(index));
                token.map_or(0, |token| token.0)
            }
            Guard::Leader { leadership, .. } => leadership.term().0,
            Guard::Plain(guards) => {
                let guard = guards.iter().find(|guard| guard.name() == name(index));
                guard.map_or(0, PlainGuard::token)
            }
        };
        let names = wanted.names.iter();
        names
            .map(|index| WonName {
                name: *index,
                token: token(*index),
            })
            .collect()
    }

    pub(super) async fn release(self, subject: &LockUnderTest) -> Result<(), String> {
        match (self, subject) {
            (Guard::Product(guard), _) => guard.release().await.map_err(|error| error.to_string()),
            (Guard::Leader { candidacy, .. }, _) => {
                candidacy.resign().await.map_err(|error| error.to_string())
            }
            (Guard::Plain(guards), LockUnderTest::Plain(plain)) => {
                for guard in guards {
                    plain.release(&guard).await;
                }
                Ok(())
            }
            (Guard::Plain(_), LockUnderTest::Product { .. }) => Ok(()),
        }
    }
}

/// Returns the text of a name, the same as for the simulator's clients.
pub(super) fn name(index: u16) -> String {
    format!("lock-{index}")
}

/// Returns how many names clients lock, the same as in the simulator.
pub(super) fn names(plan: &Plan) -> u16 {
    let needs_several =
        plan.lock == LockKind::Multi || plan.workload.kind == WorkloadKind::Overlapping;
    plan.workload.names.max(if needs_several { 2 } else { 1 })
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
    let group = |sentinels: &Vec<u16>| format!("redis+sentinel://{}/{NAME}", hosts(sentinels));
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
        // As in the simulator, which a storm is compared with.
        .watch_claims(plan.remedies.watch_claims)
}
