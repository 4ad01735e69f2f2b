//! Tests byte streams that the user provides.

use std::io;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorlock::Locks;
use quorlock::errors::NodeProblem;
use quorlock::redis::{
    ByteStream, Connect, Connecting, Endpoint, Network, NodeConnectError, RedisConfig,
};
use quorlock::transport::Cause;
use quorlock_redis::advice;
use quorlock_testbed::proxy::Proxy;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::until;

server_tests![
    a_network_of_one_s_own_carries_requests_and_wake_ups,
    a_host_name_that_leads_elsewhere_is_followed_at_the_next_connect,
    what_a_network_of_one_s_own_says_is_reported,
    a_hold_outlives_a_connection_that_swallows_everything,
];

/// Connects to one server at a time, whatever the address, by the operating system's sockets, and records the requests.
#[derive(Clone, Debug)]
struct Tunnel {
    port: Arc<AtomicU16>,
    asked: Arc<Mutex<Vec<Endpoint>>>,
}

impl Tunnel {
    fn to(server: &Server) -> Self {
        Tunnel {
            port: Arc::new(AtomicU16::new(server.port())),
            asked: Arc::default(),
        }
    }

    /// Makes the tunnel connect to this server from now on.
    fn turn_to(&self, server: &Server) {
        self.port.store(server.port(), Ordering::Relaxed);
    }

    fn asked(&self) -> Vec<Endpoint> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.clone()
    }
}

impl Connect for Tunnel {
    fn connect(&self, to: &Endpoint) -> Connecting {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(to.clone());
        Network.connect(&Endpoint::Tcp {
            host: "127.0.0.1".to_owned(),
            port: self.port.load(Ordering::Relaxed),
        })
    }
}

async fn a_network_of_one_s_own_carries_requests_and_wake_ups() {
    let server = Server::start();
    let tunnel = Tunnel::to(&server);
    let builder = Locks::builder().redis(RedisConfig::default().network(tunnel.clone()));
    let locks = builder.connect("redis://far.invalid:7000/").await.unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    assert_eq!(server.command::<u32>(&["EXISTS", "a"]), 1);
    let waiter = locks.lock("a");
    let waiting = tokio::spawn(async move { waiter.acquire().await });
    until("a client waits", || {
        let channels: Vec<String> = server.command(&["PUBSUB", "CHANNELS"]);
        !channels.is_empty()
    })
    .await;
    guard.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
    let far = Endpoint::Tcp {
        host: "far.invalid".to_owned(),
        port: 7000,
    };
    assert_eq!(
        tunnel.asked(),
        [far.clone(), far],
        "requests, then wake-ups"
    );
}

/// After a failover, the host name of a managed service leads to another server. What the name resolved to when the
/// client was created must not matter.
async fn a_host_name_that_leads_elsewhere_is_followed_at_the_next_connect() {
    let (before, after) = (Server::start(), Server::start());
    let names = Tunnel::to(&before);
    let builder = Locks::builder().redis(RedisConfig::default().network(names.clone()));
    let locks = builder.connect("redis://db.example/").await.unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    assert_eq!(before.command::<u32>(&["EXISTS", "a"]), 1);
    guard.release().await.unwrap();
    names.turn_to(&after);
    // Existing connections stay, because nothing shows that the name has changed.
    let guard = locks.lock("b").acquire().await.unwrap();
    assert_eq!(before.command::<u32>(&["EXISTS", "b"]), 1);
    guard.release().await.unwrap();
    before.kill();
    let guard = locks.lock("c").acquire().await.unwrap();
    assert_eq!(after.command::<u32>(&["EXISTS", "c"]), 1);
    guard.release().await.unwrap();
    let asked = names.asked();
    let name = Endpoint::Tcp {
        host: "db.example".to_owned(),
        port: 6379,
    };
    assert!(
        2 <= asked.len() && asked.iter().all(|to| *to == name),
        "{asked:?}"
    );
}

/// A network on which nothing can be reached.
#[derive(Debug)]
struct Walled;

impl Connect for Walled {
    fn connect(&self, _: &Endpoint) -> Connecting {
        let why = io::Error::other("the tunnel is shut");
        Box::pin(async { Err::<Box<dyn ByteStream>, _>(why) })
    }
}

async fn what_a_network_of_one_s_own_says_is_reported() {
    let builder = Locks::builder().redis(RedisConfig::default().network(Walled));
    let error = builder.connect("redis://far.invalid:7000/").await;
    let quorlock::ConnectError::Nodes { problems, .. } = error.unwrap_err() else {
        panic!("the node is to blame")
    };
    let [NodeProblem::Redis(NodeConnectError::Unreachable { address, detail })] =
        problems.as_slice()
    else {
        panic!("{problems:?}")
    };
    assert_eq!(address, "far.invalid:7000/0");
    assert!(detail.contains("the tunnel is shut"), "{detail}");
    assert_eq!(
        problems[0]
            .to_string()
            .matches(advice(Cause::Unreachable))
            .count(),
        1
    );
}

/// The lease is shorter than a call may take, and long enough for a busy machine: a renewal that has to wait for the end of
/// a call would be too late. Short leases are tested in virtual time.
async fn a_hold_outlives_a_connection_that_swallows_everything() {
    let server = Server::start();
    let proxy = Proxy::to(&server).await;
    let patient = RedisConfig::default().call_timeout(Duration::from_secs(12));
    let builder = Locks::builder()
        .redis(patient)
        .watchdog_lease(Duration::from_secs(6));
    let locks = builder.connect(&proxy.address()).await.unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    let left = || server.command::<i64>(&["PTTL", "a"]);
    for _ in 0..2 {
        let opened = proxy.opened();
        proxy.swallow();
        let mut before = left();
        until("the claim is renewed, or lost", || {
            let (earlier, now) = (before, left());
            before = now;
            earlier < now || now < 0
        })
        .await;
        assert!(guard.is_held() && 0 < left(), "{:?}", guard.validity());
        assert!(opened < proxy.opened(), "on another connection");
    }
    guard.release().await.unwrap();
}
