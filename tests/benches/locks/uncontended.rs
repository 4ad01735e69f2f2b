//! One caller, one free lock: the cost of a client in addition to its round trip.

use std::time::Instant;

use quorlock_testbed::server::Server;

use crate::contestant::{Contestants, Each, Who};
use crate::options::Options;
use crate::progress::Progress;
use crate::report::{Figure, Spread, Target};

/// How many times a contestant acquires before the next one has its turn.
const IN_A_ROW: u64 = 8;

/// The times of one contestant, in microseconds.
#[derive(Clone, Default)]
struct Times {
    acquire: Vec<f64>,
    release: Vec<f64>,
    pair: Vec<f64>,
}

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    [1, 5]
        .into_iter()
        .flat_map(|nodes| measure(options, nodes))
        .collect()
}

fn measure(options: &Options, nodes: usize) -> Vec<Figure> {
    let servers: Vec<_> = (0..nodes).map(|_| Server::start()).collect();
    let turns: u64 = options.pick(1200, 100);
    let times = options.block_on(async move {
        let all = Contestants::connect(&servers).await;
        turns_of_all(&all, turns / 10, None).await;
        let mut progress = Progress::new(format!("n = {nodes}"), turns);
        turns_of_all(&all, turns, Some(&mut progress)).await
    });
    let figure = |what: &str, of: fn(&Times) -> &Vec<f64>, target: Option<Target>| {
        let spread = |who| Spread::of(of(times.of(who)));
        let (ours, bare) = (spread(Who::Ours), spread(Who::Bare));
        Figure {
            case: "uncontended",
            what: format!("{what}, ours / bare"),
            nodes,
            value: ours.median / bare.median,
            target,
            noise: Some(spread(Who::BareAgain).median / bare.median),
            unit: "us",
            ours: Some(ours),
            bare: Some(bare),
            rslock: Some(spread(Who::Rslock)),
            ..Figure::default()
        }
    };
    let target = Some(Target::AtMost(if nodes == 1 { 1.10 } else { 1.00 }));
    let remedies = |what: &str, of: fn(&Times) -> &Vec<f64>, target: Option<Target>| {
        let (on, off) = (
            Spread::of(of(times.of(Who::Ours))),
            Spread::of(of(times.of(Who::Plain))),
        );
        Figure {
            case: "uncontended",
            what: format!("{what}, remedies on / off"),
            nodes,
            value: on.median / off.median,
            // One node has no remedies by default.
            target: target.filter(|_| 1 < nodes),
            unit: "us",
            ours: Some(on),
            note: format!("off: median {:.1} us, p99 {:.1} us", off.median, off.p99),
            ..Figure::default()
        }
    };
    vec![
        remedies("acquire", |t| &t.acquire, Some(Target::AtMost(1.10))),
        remedies("release", |t| &t.release, None),
        figure("acquire", |t| &t.acquire, target),
        figure("release", |t| &t.release, target),
        figure("acquire and release at once", |t| &t.pair, None),
    ]
}

/// Waits for the requests in flight before the next contestant begins, and between the acquire and the release.
async fn turns_of_all(
    all: &Contestants,
    turns: u64,
    mut progress: Option<&mut Progress>,
) -> Each<Times> {
    let mut times = Each::<Times>::default();
    let micros = |since: Instant| since.elapsed().as_secs_f64() * 1e6;
    for turn in 0..turns {
        if let Some(progress) = &mut progress {
            progress.at(turn + 1);
        }
        for who in Who::shuffled() {
            for again in 0..IN_A_ROW {
                let name = format!("orders/{turn}/{again}");
                all.settle().await;
                let began = Instant::now();
                let held = all.acquire(who, &name).await;
                times.of_mut(who).acquire.push(micros(began));
                all.settle().await;
                let began = Instant::now();
                all.release(who, &name, held).await;
                times.of_mut(who).release.push(micros(began));
                all.settle().await;
                let began = Instant::now();
                let held = all.acquire(who, &name).await;
                all.release(who, &name, held).await;
                times.of_mut(who).pair.push(micros(began));
            }
        }
    }
    times
}
