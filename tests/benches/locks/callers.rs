//! 64 callers on 64 names: pairs of acquire and release per second, and the cost of a pair on the servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use quorlock_testbed::server::Server;

use crate::contestant::{Contestants, Each, Who};
use crate::options::Options;
use crate::progress::Progress;
use crate::report::{Figure, Spread, Target};

const CALLERS: usize = 64;

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    [1, 5]
        .into_iter()
        .map(|nodes| measure(options, nodes))
        .collect()
}

fn measure(options: &Options, nodes: usize) -> Figure {
    let servers: Vec<_> = (0..nodes).map(|_| Server::start()).collect();
    let (turns, slice) = options.pick((60, 400), (8, 150));
    let slice = Duration::from_millis(slice);
    let (rates, costs) = options.block_on(async move {
        let all = Contestants::connect(&servers).await;
        let mut rates = Each::<Vec<f64>>::default();
        let mut costs = Each::<Vec<f64>>::default();
        let mut progress = Progress::new(format!("n = {nodes}"), turns);
        for turn in 0..turns {
            for who in Who::shuffled() {
                all.settle().await;
                let before = micros_used(&servers);
                let (pairs, rate) = pairs_per_second(&all, who, slice).await;
                // The first turn is a warm-up.
                if turn != 0 {
                    rates.of_mut(who).push(rate);
                    costs
                        .of_mut(who)
                        .push((micros_used(&servers) - before) / pairs);
                }
            }
            progress.at(turn + 1);
        }
        (rates, costs)
    });
    // The contestants of one turn ran within a few seconds of each other.
    let to_bare = |who| {
        let turns = rates.of(who).iter().zip(rates.of(Who::Bare));
        Spread::of(&turns.map(|(rate, bare)| rate / bare).collect::<Vec<_>>()).median
    };
    let spread = |who| Some(Spread::of(rates.of(who)));
    let cost = |who| Spread::of(costs.of(who)).median;
    Figure {
        case: "callers",
        what: "pairs per second, ours / bare".into(),
        nodes,
        value: to_bare(Who::Ours),
        target: Some(Target::AtLeast(if nodes == 1 { 0.8 } else { 0.9 })),
        noise: Some(to_bare(Who::BareAgain)),
        unit: "/s",
        ours: spread(Who::Ours),
        bare: spread(Who::Bare),
        rslock: spread(Who::Rslock),
        note: format!(
            "rslock / bare {:.2}; the servers' processors, us a pair: ours {:.1}, bare {:.1}, rslock {:.1}",
            to_bare(Who::Rslock),
            cost(Who::Ours),
            cost(Who::Bare),
            cost(Who::Rslock)
        ),
    }
}

/// Returns the processor time of the servers, in microseconds.
fn micros_used(servers: &[Server]) -> f64 {
    let used = servers.iter().map(|server| {
        let info: String = server.command(&["INFO", "cpu"]);
        let fields = info.lines().filter_map(|line| line.split_once(':'));
        let times = fields.filter(|(field, _)| {
            ["used_cpu_user_main_thread", "used_cpu_sys_main_thread"].contains(field)
        });
        times
            .map(|(_, seconds)| seconds.parse::<f64>().expect("seconds"))
            .sum::<f64>()
    });
    used.sum::<f64>() * 1e6
}

/// Returns the number of pairs, and the number per second.
async fn pairs_per_second(all: &Contestants, who: Who, slice: Duration) -> (f64, f64) {
    let is_over = Arc::new(AtomicBool::new(false));
    let pairs = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let callers = (0..CALLERS).map(|caller| {
        let (all, is_over, pairs) = (all.clone(), is_over.clone(), pairs.clone());
        tokio::spawn(async move {
            let name = format!("orders/{caller}");
            while !is_over.load(Ordering::Relaxed) {
                let held = all.acquire(who, &name).await;
                all.release(who, &name, held).await;
                pairs.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    let callers: Vec<_> = callers.collect();
    tokio::time::sleep(slice).await;
    is_over.store(true, Ordering::Relaxed);
    for caller in join_all(callers).await {
        caller.expect("the caller ends without a panic");
    }
    let pairs = pairs.load(Ordering::Relaxed) as f64;
    (pairs, pairs / began.elapsed().as_secs_f64())
}
