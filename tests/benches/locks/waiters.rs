//! 50 waiters of one process on one name: the cost of a hand-over on the servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use quorlock::Locks;
use quorlock::transport::{
    Call, Channel, Listener, RedisConfig, RedisTransport, Request, Subscription, Transport,
};
use quorlock_tests::server::Server;

use crate::options::Options;
use crate::report::{Figure, Target};

const WAITERS: u64 = 50;

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    [1, 5]
        .into_iter()
        .map(|nodes| measure(options, nodes))
        .collect()
}

/// A transport that counts its requests.
#[derive(Clone, Debug)]
pub(crate) struct Counting {
    pub(crate) inner: RedisTransport,
    pub(crate) sent: Arc<Sent>,
}

/// The number of commands that were sent, by kind.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    acquires: AtomicU64,
    releases: AtomicU64,
    renewals: AtomicU64,
    subscriptions: AtomicU64,
}

impl Sent {
    /// Returns the acquires, releases, renewals and subscriptions for each hand-over.
    pub(crate) fn each(&self, handovers: f64) -> [f64; 4] {
        let kinds = [
            &self.acquires,
            &self.releases,
            &self.renewals,
            &self.subscriptions,
        ];
        kinds.map(|kind| kind.load(Ordering::Relaxed) as f64 / handovers)
    }
}

impl Transport for Counting {
    fn call(&self, request: Request) -> Call {
        let kind = match &request {
            Request::Acquire(_) => &self.sent.acquires,
            Request::Release(_) => &self.sent.releases,
            _ => &self.sent.renewals,
        };
        kind.fetch_add(1, Ordering::Relaxed);
        self.inner.call(request)
    }

    /// Counts a subscription twice, because it will also be ended.
    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        self.sent.subscriptions.fetch_add(2, Ordering::Relaxed);
        self.inner.subscribe(channel, listener)
    }

    fn address(&self) -> &str {
        self.inner.address()
    }
}

fn measure(options: &Options, nodes: usize) -> Figure {
    let servers: Vec<_> = (0..nodes).map(|_| Server::start()).collect();
    let holds_each: u64 = options.pick(40, 8);
    let transports = servers.iter().map(|server| {
        RedisTransport::open(&server.address(), RedisConfig::default()).expect("an address")
    });
    let transports: Vec<_> = transports.collect();
    let (sent, elapsed) = options.block_on(async move {
        let sent = Arc::new(Sent::default());
        let transports = transports.into_iter().map(|inner| Counting {
            inner,
            sent: sent.clone(),
        });
        let locks = Locks::builder()
            .trust_fresh_nodes()
            .on_nodes(transports)
            .expect("different servers");
        let began = Instant::now();
        let waiters = (0..WAITERS).map(|_| {
            let locks = locks.clone();
            tokio::spawn(async move {
                for _ in 0..holds_each {
                    let guard = locks
                        .lock("orders")
                        .acquire()
                        .await
                        .expect("it becomes free");
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    guard.release().await.expect("it was held");
                }
            })
        });
        for waiter in join_all(waiters.collect::<Vec<_>>()).await {
            waiter.expect("the waiter ends without a panic");
        }
        let elapsed = began.elapsed();
        locks.close().await;
        (sent, elapsed)
    });
    drop(servers);
    let handovers = (WAITERS * holds_each) as f64;
    let [acquires, releases, renewals, subscriptions] = sent.each(handovers);
    Figure {
        case: "waiters",
        what: "50 in one process, commands a hand-over".into(),
        nodes,
        value: acquires + releases + renewals + subscriptions,
        target: (nodes == 1).then_some(Target::AtMost(4.0)),
        note: format!(
            "{acquires:.2} acquires, {releases:.2} releases, {renewals:.2} renewals, {subscriptions:.2} subscriptions; \
             holds of 1 ms, a hand-over every {:.2} ms",
            elapsed.as_secs_f64() * 1e3 / handovers
        ),
        ..Figure::default()
    }
}
