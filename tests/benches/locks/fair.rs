//! Waiters of a fair lock, each with its own client: the cost of a hand-over on the server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use quorlock::Locks;
use quorlock::redis::{RedisConfig, RedisTransport};
use quorlock_testbed::server::Server;

use crate::options::Options;
use crate::report::{Figure, Target};
use crate::waiters::Sent;

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    let counts = [2, 10, 50].map(|waiters| measure(options, waiters));
    let [few, .., many] = &counts;
    let growth = many.commands / few.commands;
    let mut figures: Vec<Figure> = counts.iter().map(Count::figure).collect();
    figures.push(Figure {
        case: "fair",
        what: "commands a hand-over, 50 waiting / 2 waiting".into(),
        nodes: 1,
        value: growth,
        target: Some(Target::AtMost(1.10)),
        ..Figure::default()
    });
    figures
}

struct Count {
    waiters: usize,
    commands: f64,
    note: String,
}

impl Count {
    fn figure(&self) -> Figure {
        Figure {
            case: "fair",
            what: format!("{} clients want it, commands a hand-over", self.waiters),
            nodes: 1,
            value: self.commands,
            note: self.note.clone(),
            ..Figure::default()
        }
    }
}

fn measure(options: &Options, waiters: usize) -> Count {
    let server = Server::start();
    let address = server.address();
    let handovers = options.pick(2_000, 400);
    let holds_each = handovers / waiters;
    let (sent, elapsed) = options.block_on(async move {
        let sent = Arc::new(Sent::default());
        let clients: Vec<Locks> = (0..waiters)
            .map(|_| {
                let inner = RedisTransport::open(&address, RedisConfig::default());
                let inner = inner.expect("an address");
                Locks::on_node(sent.counting(inner)).expect("one node")
            })
            .collect();
        let began = Instant::now();
        let working = clients.iter().cloned().map(|locks| {
            tokio::spawn(async move {
                for _ in 0..holds_each {
                    let guard = locks
                        .fair("orders")
                        .acquire()
                        .await
                        .expect("it becomes free");
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    guard.release().await.expect("it was held");
                }
            })
        });
        for ended in join_all(working.collect::<Vec<_>>()).await {
            ended.expect("the client ends without a panic");
        }
        let elapsed = began.elapsed();
        join_all(clients.iter().map(Locks::close)).await;
        (sent, elapsed)
    });
    drop(server);
    let handovers = (waiters * holds_each) as f64;
    let [acquires, releases, renewals, subscriptions] = sent.each(handovers);
    Count {
        waiters,
        commands: acquires + releases + renewals + subscriptions,
        note: format!(
            "{acquires:.2} acquires, {releases:.2} releases, {renewals:.2} renewals, {subscriptions:.2} subscriptions; \
             holds of 1 ms, a hand-over every {:.2} ms",
            elapsed.as_secs_f64() * 1e3 / handovers
        ),
    }
}
