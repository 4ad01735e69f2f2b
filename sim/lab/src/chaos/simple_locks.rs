//! The controls: widely used simple locks, on real servers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use quorlock_core::owner::{ClientId, OwnerId};
use redis::Cmd;
use redis::FromRedisValue;
use redis::aio::MultiplexedConnection;

use super::clock;
use super::message::WorkerSettings;
use quorlock_sim_plan::draw::Draw;
use quorlock_sim_plan::variant::Variant;
use quorlock_sim_plan::{LockKind, WorkloadKind};

/// `SET NX PX` on a majority of the nodes, with a holder that checks its deadline. On one node, this is the lock that
/// most people write; on several nodes, the published algorithm.
#[derive(Debug)]
pub(super) struct Plain {
    members: Vec<PlainNode>,
    owner: ClientId,
    variant: Variant,
    rounds: AtomicU64,
    draw: Mutex<Draw>,
}

/// A node, with a connection to it if there is one.
#[derive(Debug)]
struct PlainNode {
    port: u16,
    call_timeout: Duration,
    connection: tokio::sync::Mutex<Option<MultiplexedConnection>>,
}

/// A hold of a [`Plain`] lock.
#[derive(Debug)]
pub(super) struct PlainGuard {
    name: String,
    owner: OwnerId,
    token: u64,
    valid_until: u64,
}

const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

impl PlainGuard {
    pub(super) fn is_held(&self) -> bool {
        clock::own() < self.valid_until
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn owner(&self) -> OwnerId {
        self.owner
    }

    /// Returns the fencing token, or 0 if the lock has none.
    pub(super) fn token(&self) -> u64 {
        self.token
    }
}

impl PlainNode {
    /// Sends a command. Returns `None` if it fails or takes too long.
    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Option<T> {
        let mut place = self.connection.lock().await;
        let bound = self.call_timeout;
        if place.is_none() {
            *place = clock::within(bound, connect(self.port, bound))
                .await
                .flatten();
        }
        let mut connection = place.clone()?;
        drop(place);
        let answer = command.query_async(&mut connection).await;
        if let Err(error) = &answer
            && (error.is_io_error() || error.is_timeout())
        {
            *self.connection.lock().await = None;
        }
        answer.ok()
    }
}

async fn connect(port: u16, bound: Duration) -> Option<MultiplexedConnection> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/")).ok()?;
    let config = redis::AsyncConnectionConfig::new()
        .set_connection_timeout(Some(bound))
        .set_response_timeout(Some(bound));
    let made = client.get_multiplexed_async_connection_with_config(&config);
    made.await.ok()
}

impl Plain {
    /// The variants that can run on real servers.
    pub(super) const HAD: [Variant; 5] = [
        Variant::SetNxDel,
        Variant::GetThenDel,
        Variant::SetNx,
        Variant::Published,
        Variant::CounterTokens,
    ];

    /// The work that needs more than exclusion.
    pub(super) const LACKS: [WorkloadKind; 2] = [WorkloadKind::ReadWrite, WorkloadKind::Fair];

    pub(super) fn new(settings: &WorkerSettings, draw: &mut Draw) -> Result<Plain, String> {
        let plan = &settings.plan;
        if !Plain::HAD.contains(&plan.variant) || Plain::LACKS.contains(&plan.workload.kind) {
            return Err(format!(
                "the variant {} is not available here",
                plan.variant
            ));
        }
        let many = match plan.lock {
            LockKind::Single => 1,
            LockKind::Redlock => settings.ports.len(),
            LockKind::Multi => return Err("several names are not possible".to_owned()),
        };
        let member = |port: &u16| PlainNode {
            port: *port,
            call_timeout: plan.network.call_timeout.as_duration() * settings.scale,
            connection: tokio::sync::Mutex::default(),
        };
        let owner = u128::from(draw.bits()) << 64 | u128::from(draw.bits());
        Ok(Plain {
            members: settings.ports.iter().take(many).map(member).collect(),
            owner: ClientId::from_random(owner),
            variant: plan.variant,
            rounds: AtomicU64::new(1),
            draw: Mutex::new(draw.clone()),
        })
    }

    /// Tries until the lock is won.
    pub(super) async fn acquire(&self, name: &str, lease: Duration) -> PlainGuard {
        loop {
            let asked = clock::own();
            let owner = OwnerId {
                client: self.owner,
                number: self.rounds.fetch_add(1, Ordering::Relaxed),
            };
            let lease_nanos = u64::try_from(lease.as_nanos()).unwrap_or(u64::MAX);
            let claims = self
                .members
                .iter()
                .map(|member| self.claim(member, name, owner, lease));
            let granted: Vec<u64> = join_all(claims).await.into_iter().flatten().collect();
            let guard = PlainGuard {
                name: name.to_owned(),
                owner,
                token: granted.iter().copied().max().unwrap_or(0),
                // The lease minus the drift: the rates of the clocks may differ by 1 %.
                valid_until: asked + lease_nanos / 100 * 99,
            };
            if self.members.len() / 2 < granted.len() && guard.is_held() {
                return guard;
            }
            if 1 < self.members.len() {
                self.release(&guard).await;
            }
            let pause = {
                let mut draw = self.draw.lock().unwrap_or_else(PoisonError::into_inner);
                draw.between(5, 60)
            };
            clock::sleep(Duration::from_millis(pause)).await;
        }
    }

    /// Claims the name on a node. Returns the node's counter, 0 if the variant has no counters, or `None` if the node
    /// did not grant the name.
    async fn claim(
        &self,
        member: &PlainNode,
        name: &str,
        owner: OwnerId,
        lease: Duration,
    ) -> Option<u64> {
        let mut set = redis::cmd("SET");
        let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        set.arg(name)
            .arg(owner.to_string())
            .arg("NX")
            .arg("PX")
            .arg(lease);
        let granted: Option<String> = member.ask(&set).await?;
        granted?;
        if self.variant != Variant::CounterTokens {
            return Some(0);
        }
        member
            .ask(redis::cmd("INCR").arg(format!("count-of-{name}")))
            .await
    }

    /// Releases a claim as the variant does it.
    pub(super) async fn release(&self, guard: &PlainGuard) {
        let releases = self
            .members
            .iter()
            .map(|member| self.release_at(member, guard));
        join_all(releases).await;
    }

    async fn release_at(&self, member: &PlainNode, guard: &PlainGuard) {
        let owner = guard.owner.to_string();
        match self.variant {
            Variant::SetNxDel => {
                let _: Option<u64> = member.ask(redis::cmd("DEL").arg(&guard.name)).await;
            }
            Variant::GetThenDel => {
                let has: Option<Option<String>> =
                    member.ask(redis::cmd("GET").arg(&guard.name)).await;
                if has.flatten().is_some_and(|has| has == owner) {
                    let _: Option<u64> = member.ask(redis::cmd("DEL").arg(&guard.name)).await;
                }
            }
            _ => {
                let mut compare = redis::cmd("EVAL");
                compare
                    .arg(COMPARE_AND_DELETE)
                    .arg(1)
                    .arg(&guard.name)
                    .arg(owner);
                let _: Option<u64> = member.ask(&compare).await;
            }
        }
    }
}
