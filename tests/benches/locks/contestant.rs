//! The contestants of the benchmark.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use quorlock::{Guard, Locks, NodeTrust};
use quorlock_testbed::server::Server;
use rand::seq::SliceRandom;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use rslock::LockManager;

/// The lease of all contestants.
const LEASE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    Ours,
    /// The same scripts without a client. They take part twice, and the second time shows the noise.
    Bare,
    BareAgain,
    Rslock,
    /// Our locks without trust in nodes and clock margins: published Redlock, with tokens.
    Plain,
}

impl Who {
    pub(crate) const ALL: [Who; 5] = [
        Who::Ours,
        Who::Bare,
        Who::BareAgain,
        Who::Rslock,
        Who::Plain,
    ];

    /// Returns all contestants in random order.
    pub(crate) fn shuffled() -> [Who; 5] {
        let mut all = Who::ALL;
        all.shuffle(&mut rand::rng());
        all
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Who::Ours => "ours",
            Who::Bare => "bare",
            Who::BareAgain => "bare again",
            Who::Rslock => "rslock",
            Who::Plain => "ours without remedies",
        })
    }
}

/// One value for each contestant.
#[derive(Clone, Default)]
pub(crate) struct Each<T>([T; 5]);

impl<T> Each<T> {
    pub(crate) fn of(&self, who: Who) -> &T {
        &self.0[who as usize]
    }

    pub(crate) fn of_mut(&mut self, who: Who) -> &mut T {
        &mut self.0[who as usize]
    }
}

/// The contestants, all connected to the same servers.
#[derive(Clone)]
pub(crate) struct Contestants {
    pub(crate) ours: Locks,
    plain: Locks,
    pub(crate) bare: Bare,
    bare_again: Bare,
    rslock: LockManager,
    /// A connection to each server that no contestant uses.
    neutral: Vec<MultiplexedConnection>,
}

/// A lock that is held.
pub(crate) enum Held {
    Ours(Guard),
    Bare(String),
    Rslock(rslock::Lock),
}

impl Contestants {
    pub(crate) async fn connect(servers: &[Server]) -> Contestants {
        let addresses: Vec<_> = servers.iter().map(Server::address).collect();
        let ours = Locks::builder().trust_fresh_nodes().watchdog_lease(LEASE);
        let plain = ours.clone().node_trust(NodeTrust::Unwatched);
        let plain = plain.clock_margin(Duration::ZERO);
        Contestants {
            ours: ours.quorum(&addresses).await.expect("servers are there"),
            plain: plain.quorum(&addresses).await.expect("servers are there"),
            bare: Bare::connect(&addresses, 1).await,
            bare_again: Bare::connect(&addresses, 2).await,
            rslock: LockManager::new(addresses.clone()),
            neutral: connections(&addresses).await,
        }
    }

    pub(crate) async fn acquire(&self, who: Who, name: &str) -> Held {
        match who {
            Who::Ours => {
                let guard = self.ours.lock(name).acquire().await;
                Held::Ours(guard.expect("the lock is free"))
            }
            Who::Plain => {
                let guard = self.plain.lock(name).acquire().await;
                Held::Ours(guard.expect("the lock is free"))
            }
            Who::Bare => Held::Bare(self.bare.acquire(name).await),
            Who::BareAgain => Held::Bare(self.bare_again.acquire(name).await),
            Who::Rslock => {
                let lock = self.rslock.lock(name.as_bytes(), LEASE).await;
                Held::Rslock(lock.expect("the lock is free"))
            }
        }
    }

    pub(crate) async fn release(&self, who: Who, name: &str, held: Held) {
        match (who, held) {
            (_, Held::Ours(guard)) => guard.release().await.expect("it was held"),
            (_, Held::Rslock(lock)) => self.rslock.unlock(&lock).await,
            (Who::BareAgain, Held::Bare(owner)) => self.bare_again.release(name, &owner).await,
            (_, Held::Bare(owner)) => self.bare.release(name, &owner).await,
        }
    }

    /// Waits until the requests of the previous contestant are done, so that they do not slow down the next one. A
    /// request goes to every server and back.
    pub(crate) async fn settle(&self) {
        // A release returns after the reply of a quorum. Its requests to the other nodes precede this one, which all
        // nodes answer.
        for locks in [&self.ours, &self.plain] {
            let looked = locks.inspect("settled").await;
            looked.expect("the servers answer");
        }
        for _ in 0..2 {
            let pings = self.neutral.iter().map(|connection| {
                let mut connection = connection.clone();
                async move { connection.send_packed_command(&redis::cmd("PING")).await }
            });
            for pong in join_all(pings).await {
                pong.expect("the server answers");
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Returns multiplexed connections with the defaults of the `redis` crate.
async fn connections(addresses: &[String]) -> Vec<MultiplexedConnection> {
    let connections = addresses.iter().map(|address| async move {
        let client = redis::Client::open(address.as_str()).expect("an address");
        client.get_multiplexed_async_connection().await
    });
    let connections = join_all(connections).await.into_iter();
    connections.map(|c| c.expect("a connection")).collect()
}

/// The same scripts without a client: one multiplexed connection to each server, and a wait for every reply. On
/// several servers, the scripts check the process of the server and leave a claim version, as our locks do there.
#[derive(Clone)]
pub(crate) struct Bare {
    connections: Vec<MultiplexedConnection>,
    /// The marker of each server, or none without remedies.
    markers: Vec<String>,
    acquire: Arc<redis::Script>,
    release: Arc<redis::Script>,
    client: u32,
    next: Arc<AtomicU64>,
}

impl Bare {
    pub(crate) async fn connect(addresses: &[String], client: u32) -> Bare {
        let connections = connections(addresses).await;
        let mut markers = Vec::new();
        let mut acquire = ACQUIRE.to_owned();
        if 1 < addresses.len() {
            for connection in &connections {
                markers.push(mark(connection.clone()).await);
            }
            acquire = checked(ACQUIRE);
        }
        let bare = Bare {
            connections,
            markers,
            acquire: Arc::new(redis::Script::new(&acquire)),
            release: Arc::new(redis::Script::new(RELEASE)),
            client,
            next: Arc::default(),
        };
        for connection in &bare.connections {
            for script in [&bare.acquire, &bare.release] {
                let loaded = script.load_async(&mut connection.clone()).await;
                loaded.expect("the script loads");
            }
        }
        bare
    }

    /// Sends a command to every server and waits for all replies.
    async fn send(&self, cmd: impl Fn(usize) -> Cmd) -> Vec<Value> {
        if let [only] = self.connections.as_slice() {
            let answer = only.clone().send_packed_command(&cmd(0)).await;
            return vec![answer.expect("the server answers")];
        }
        let calls = self.connections.iter().enumerate().map(|(at, connection)| {
            let mut connection = connection.clone();
            let cmd = cmd(at);
            async move { connection.send_packed_command(&cmd).await }
        });
        let answers = join_all(calls).await.into_iter();
        answers
            .map(|answer| answer.expect("the server answers"))
            .collect()
    }

    pub(crate) async fn acquire(&self, name: &str) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let owner = format!("00000000-0000-4000-8000-{:012x}:{number}", self.client);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = u64::try_from(now.expect("a date").as_millis()).expect("a date");
        let cmd = |at: usize| {
            let marker = self.markers.get(at);
            let mut cmd = redis::cmd("EVALSHA");
            cmd.arg(self.acquire.get_hash())
                .arg(if marker.is_some() { 4 } else { 3 })
                .arg(name)
                .arg(format!("redisson_lock_token:{{{name}}}"))
                .arg(format!("redisson_lock_queue:{{{name}}}"));
            if marker.is_some() {
                cmd.arg(MARKER);
            }
            cmd.arg(&owner)
                .arg(1)
                .arg(if marker.is_some() { 90_000 } else { 30_000 })
                .arg(86_400_000)
                .arg(now)
                .arg(15_000);
            if let Some(marker) = marker {
                cmd.arg(format!("{owner} 1 30000")).arg("");
                cmd.arg(marker).arg("");
                cmd.arg("look").arg(0).arg(30_000).arg(60_000);
            }
            cmd
        };
        for answer in self.send(cmd).await {
            assert!(matches!(answer, Value::Int(_)), "granted: {answer:?}");
        }
        owner
    }

    pub(crate) async fn release(&self, name: &str, owner: &str) {
        let cmd = |_| {
            let mut cmd = redis::cmd("EVALSHA");
            cmd.arg(self.release.get_hash()).arg(1).arg(name);
            cmd.arg(owner)
                .arg(0)
                .arg(format!("redisson_lock__channel:{{{name}}}"));
            cmd
        };
        for answer in self.send(cmd).await {
            assert_eq!(answer, Value::Int(1), "freed");
        }
    }
}

const ACQUIRE: &str = concat!(
    include_str!("../../../crates/quorlock-redis/lua/shared/clock.lua"),
    include_str!("../../../crates/quorlock-redis/lua/shared/counter.lua"),
    include_str!("../../../crates/quorlock-redis/lua/acquire.lua"),
);
const RELEASE: &str = include_str!("../../../crates/quorlock-redis/lua/release.lua");
const CHECK: &str = include_str!("../../../crates/quorlock-redis/lua/check.lua");
const MARKER: &str = "quorlock_marker";

/// Returns a script that first checks the process of the server.
fn checked(script: &str) -> String {
    format!("local function execute()\n{script}\nend\n{CHECK}")
}

/// Returns the confirmed marker of a server. It is written if there is none.
async fn mark(mut connection: MultiplexedConnection) -> String {
    let mut probe = redis::cmd("EVAL");
    probe.arg(checked("return false")).arg(1).arg(MARKER);
    probe.arg("").arg("");
    probe.arg("fresh").arg(1).arg(0).arg(60_000);
    let marked: Result<Value, _> = probe.query_async(&mut connection).await;
    marked.expect("the server is marked");
    let marker = redis::cmd("GET")
        .arg(MARKER)
        .query_async(&mut connection)
        .await;
    marker.expect("a marker")
}
