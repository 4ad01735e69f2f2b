//! The libraries of this program, each as in its documentation and with its defaults, except for leases and the number
//! of tries.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::try_join_all;
use quorlock::redis::{RedisConfig, RedisTransport};
use quorlock::transport::{Intercept, Request, Transport as _};
use quorlock::{Guard, Locks, NodeTrust, Semaphore};
use redis::aio::MultiplexedConnection;
use rslock::LockManager;

use super::bare::{Bare, BareClaim};
use super::program::{Client, Failure, Held, Job, Work};
use super::rows::{Row, Rows};
use super::table::Table;

/// The number of permits, and of the locks beside them.
const TEN: usize = 10;

/// A client of one of the libraries.
#[derive(Clone)]
pub(crate) enum Library {
    Quorlock(Locks, Arc<Sent>),
    Fair(Locks, Arc<Sent>),
    Permits(Semaphore, Arc<Sent>),
    /// Locks of which each caller uses that of its number.
    TenLocks(Locks, Arc<Sent>, usize),
    /// Reads a name, which these guards have, too.
    Reader(Locks, #[expect(dead_code, reason = "held")] Arc<Vec<Guard>>),
    Rslock(LockManager, Duration),
    Bare(Bare),
    Table(Locks, Table),
    Rows(Rows),
    /// No lock: the time of a request and its reply.
    Ping(MultiplexedConnection),
}

/// A lock that is held.
pub(crate) enum AnyHeld {
    Quorlock(Guard),
    Rslock(LockManager, rslock::Lock, Duration),
    Bare(BareClaim),
    Row(Row),
    Ping,
}

/// The number of requests that the client has sent to all nodes, by kind.
#[derive(Default)]
pub(crate) struct Sent {
    acquires: AtomicU64,
    releases: AtomicU64,
    renewals: AtomicU64,
    subscriptions: AtomicU64,
}

impl Sent {
    /// Returns a transport whose requests are counted here.
    fn counting(self: &Arc<Self>, inner: RedisTransport) -> Intercept<RedisTransport> {
        let (calls, subscriptions) = (Arc::clone(self), Arc::clone(self));
        Intercept::new(inner)
            .on_call(move |inner, request| {
                let kind = match &request {
                    Request::Acquire(_) => &calls.acquires,
                    Request::Release(_) => &calls.releases,
                    _ => &calls.renewals,
                };
                kind.fetch_add(1, Ordering::Relaxed);
                inner.call(request)
            })
            .on_subscribe(move |inner, channel, listener| {
                // Twice, because it will also be ended.
                subscriptions.subscriptions.fetch_add(2, Ordering::Relaxed);
                inner.subscribe(channel, listener)
            })
    }
}

/// Connects to one node, or to a majority that has just been started and has no keys.
async fn locks(job: &Job, addresses: &[String], sent: &Arc<Sent>) -> Result<Locks, Failure> {
    let lease = Duration::from_millis(job.lease_millis);
    let mut locks = Locks::builder().watchdog_lease(lease).trust_fresh_nodes();
    if job.library == "quorlock without remedies" {
        locks = locks.node_trust(NodeTrust::Unwatched);
        locks = locks.clock_margin(Duration::ZERO);
    }
    if job.work != Work::Holds {
        return Ok(locks.quorum(addresses).await?);
    }
    let open = |address: &String| RedisTransport::open(address, RedisConfig::default());
    let nodes = addresses.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    Ok(locks.on_nodes(nodes.into_iter().map(|node| sent.counting(node)))?)
}

impl Client for Library {
    type Held = AnyHeld;

    async fn connect(job: &Job) -> Result<Self, Failure> {
        let ports = job.ports.iter();
        let addresses: Vec<_> = ports
            .map(|port| format!("redis://127.0.0.1:{port}/"))
            .collect();
        let sent = Arc::new(Sent::default());
        if let Some(address) = &job.database {
            return Ok(match job.library.as_str() {
                "rows by hand" => Library::Rows(Rows::connect(address).await?),
                _ => {
                    let (locks, table) = Table::connect(job, address).await?;
                    Library::Table(locks, table)
                }
            });
        }
        Ok(match job.library.as_str() {
            "quorlock" | "quorlock without remedies" => {
                Library::Quorlock(locks(job, &addresses, &sent).await?, sent)
            }
            "quorlock fair" => Library::Fair(locks(job, &addresses, &sent).await?, sent),
            "quorlock semaphore" => {
                let locks = locks(job, &addresses, &sent).await?;
                Library::Permits(locks.semaphore(&job.names, TEN), sent)
            }
            "quorlock ten locks" => {
                Library::TenLocks(locks(job, &addresses, &sent).await?, sent, 0)
            }
            "quorlock reader" => {
                let locks = locks(job, &addresses, &sent).await?;
                let others = (0..job.locks).map(|_| locks.read(&job.names));
                let others = others.map(|lock| async move { lock.acquire().await });
                let others = Arc::new(try_join_all(others).await?);
                Library::Reader(locks, others)
            }
            "rslock" => {
                let lease = Duration::from_millis(job.lease_millis);
                Library::Rslock(LockManager::new(addresses), lease)
            }
            "bare scripts" => Library::Bare(Bare::connect(&addresses, job.lease_millis).await?),
            "PING" => {
                let first = addresses.first().ok_or("no server")?;
                let client = redis::Client::open(first.as_str())?;
                Library::Ping(client.get_multiplexed_async_connection().await?)
            }
            other => return Err(format!("no library {other}").into()),
        })
    }

    async fn acquire(&self, name: &str) -> Result<AnyHeld, Failure> {
        Ok(match self {
            Library::Quorlock(locks, _) | Library::Table(locks, _) => {
                AnyHeld::Quorlock(locks.lock(name).acquire().await?)
            }
            Library::Rows(rows) => AnyHeld::Row(rows.acquire(name).await?),
            Library::Permits(semaphore, _) => AnyHeld::Quorlock(semaphore.acquire().await?),
            Library::TenLocks(locks, _, number) => {
                let name = format!("{name}/{number}");
                AnyHeld::Quorlock(locks.lock(name).acquire().await?)
            }
            Library::Fair(locks, _) => AnyHeld::Quorlock(locks.fair(name).acquire().await?),
            Library::Reader(locks, _) => AnyHeld::Quorlock(locks.read(name).acquire().await?),
            Library::Rslock(manager, lease) => {
                let lock = manager.acquire_no_guard(name.as_bytes(), *lease).await?;
                AnyHeld::Rslock(manager.clone(), lock, *lease)
            }
            Library::Bare(bare) => AnyHeld::Bare(bare.acquire(name).await?),
            Library::Ping(connection) => {
                let ping = redis::cmd("PING");
                ping.exec_async(&mut connection.clone()).await?;
                AnyHeld::Ping
            }
        })
    }

    fn of_caller(&self, number: usize) -> Self {
        match self.clone() {
            Library::TenLocks(locks, sent, _) => Library::TenLocks(locks, sent, number % TEN),
            other => other,
        }
    }

    fn requests(&self) -> Vec<(&'static str, u64)> {
        let sent = match self {
            Library::Quorlock(_, sent)
            | Library::Fair(_, sent)
            | Library::Permits(_, sent)
            | Library::TenLocks(_, sent, _) => sent,
            Library::Table(_, table) => return table.statements(),
            _ => return Vec::new(),
        };
        let count = |kind: &AtomicU64| kind.load(Ordering::Relaxed);
        vec![
            ("acquires", count(&sent.acquires)),
            ("releases", count(&sent.releases)),
            ("renewals", count(&sent.renewals)),
            ("subscriptions", count(&sent.subscriptions)),
        ]
    }
}

impl Held for AnyHeld {
    async fn release(self) -> Result<(), Failure> {
        match self {
            AnyHeld::Quorlock(guard) => guard.release().await?,
            AnyHeld::Rslock(manager, lock, _) => manager.unlock(&lock).await,
            AnyHeld::Bare(claim) => claim.release().await?,
            AnyHeld::Row(row) => row.release().await?,
            AnyHeld::Ping => {}
        }
        Ok(())
    }

    /// Extends the lease of `rslock` every third of it.
    async fn keep(&mut self) {
        let AnyHeld::Rslock(manager, lock, lease) = self else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(*lease / 3).await;
            match manager.extend(lock, *lease).await {
                Ok(extended) => *lock = extended,
                Err(_) => return,
            }
        }
    }

    fn is_held(&self) -> bool {
        match self {
            AnyHeld::Quorlock(guard) => guard.is_held(),
            // `keep` ends when the lock is lost, and the other work ends before a lease does.
            AnyHeld::Rslock(..) | AnyHeld::Bare(_) | AnyHeld::Row(_) | AnyHeld::Ping => true,
        }
    }
}
