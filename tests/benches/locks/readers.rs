//! A thousand readers of one name: the cost of one more.

use std::time::Instant;

use quorlock::redis::{RedisConfig, RedisTransport};
use quorlock::{Guard, Locks};
use quorlock_testbed::server::Server;

use crate::options::Options;
use crate::report::{Figure, Spread, Target};

const MANY: usize = 1_000;

/// How often one name is read before the next name has its turn.
const IN_A_ROW: usize = 8;

#[derive(Default)]
struct Times {
    acquire: Vec<f64>,
    release: Vec<f64>,
}

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    let server = Server::start();
    let address = server.address();
    let turns = options.pick(1_500, 200);
    let [alone, again, many] = options.block_on(async move {
        let transport = RedisTransport::open(&address, RedisConfig::default());
        let locks = Locks::on_node(transport.expect("an address")).expect("one node");
        let mut inside: Vec<Guard> = Vec::new();
        for name in ["few", "few-again"] {
            inside.push(read(&locks, name).await);
        }
        for _ in 0..MANY {
            inside.push(read(&locks, "many").await);
        }
        let mut times: [Times; 3] = std::array::from_fn(|_| Times::default());
        for turn in 0..turns {
            // Each name is first as often as last.
            for place in 0..3 {
                let which = (turn + place) % 3;
                let name = ["few", "few-again", "many"][which];
                for _ in 0..IN_A_ROW {
                    let began = Instant::now();
                    let guard = read(&locks, name).await;
                    times[which].acquire.push(micros(began));
                    let began = Instant::now();
                    guard.release().await.expect("it was held");
                    times[which].release.push(micros(began));
                }
            }
        }
        drop(inside);
        locks.close().await;
        times
    });
    drop(server);
    let figure = |what: &str, of: fn(&Times) -> &Vec<f64>, target| {
        let [alone, again, many] = [&alone, &again, &many].map(|times| Spread::of(of(times)));
        Figure {
            case: "readers",
            what: format!("{what} beside 1,000 readers / beside 1"),
            nodes: 1,
            value: many.median / alone.median,
            target,
            noise: Some(again.median / alone.median),
            unit: "us",
            ours: Some(many),
            note: format!(
                "beside 1: median {:.1} us, p99 {:.1} us",
                alone.median, alone.p99
            ),
            ..Figure::default()
        }
    };
    vec![
        figure("acquire", |t| &t.acquire, Some(Target::AtMost(2.0))),
        figure("release", |t| &t.release, None),
    ]
}

fn micros(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

async fn read(locks: &Locks, name: &str) -> Guard {
    locks.read(name).acquire().await.expect("readers share")
}
