//! 50 waiters of one process on one name: the cost of a hand-over on the servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use quorlock::Locks;
use quorlock::redis::{RedisConfig, RedisTransport};
use quorlock::transport::{Intercept, Request, Transport};
use quorlock_testbed::server::Server;

use crate::options::Options;
use crate::report::{Figure, Target};

const WAITERS: u64 = 50;

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    [1, 5]
        .into_iter()
        .map(|nodes| measure(options, nodes))
        .collect()
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
    /// Returns a transport whose requests are counted here.
    pub(crate) fn counting(self: &Arc<Self>, inner: RedisTransport) -> Intercept<RedisTransport> {
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

fn measure(options: &Options, nodes: usize) -> Figure {
    let servers: Vec<_> = (0..nodes).map(|_| Server::start()).collect();
    let holds_each: u64 = options.pick(40, 8);
    let transports = servers.iter().map(|server| {
        RedisTransport::open(&server.address(), RedisConfig::default()).expect("an address")
    });
    let transports: Vec<_> = transports.collect();
    let (sent, elapsed) = options.block_on(async move {
        let sent = Arc::new(Sent::default());
        let transports = transports.into_iter().map(|inner| sent.counting(inner));
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
