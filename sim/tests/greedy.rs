//! Clients that ask again as soon as they have released: a lock that one of them waits for is not idle, and each gets its share.

use std::rc::Rc;

use quorlock_sim::checker::gaps;
use quorlock_sim::history::{Action, Outcome};
use quorlock_sim::plan::fault::{Direction, Fault, FaultKind, LinkFault};
use quorlock_sim::plan::time::Span;
use quorlock_sim::plan::{LockKind, Nodes, Plan, Workload, WorkloadKind};
use quorlock_sim::simulation::{Verdict, run};

/// What some seeds have come to.
#[derive(Debug)]
struct Measured {
    /// For how long the lock stood free though a client waited for it, in ms: the median, the 99th percentile and the longest.
    gaps: [f64; 3],
    /// The least part that a client had, in parts of an even share.
    least_share: f64,
    /// The part of the time for which it was held.
    in_use: f64,
    commands_a_hold: f64,
    holds: u64,
}

fn measure(nodes: u16, clients: u16, of_million: u32) -> Measured {
    let (mut idle, mut holds, mut commands) = (Vec::new(), 0, 0);
    let mut least_share = f64::INFINITY;
    let mut in_use = 0.0;
    let seeds = 6;
    for seed in 0..seeds {
        let duration = Span::secs(5);
        let plan = Plan {
            seed,
            clients,
            duration,
            lock: LockKind::Redlock,
            nodes: Nodes {
                count: nodes,
                ..Nodes::default()
            },
            workload: Workload {
                kind: WorkloadKind::Greedy,
                hold_least: Span::millis(5),
                hold_most: Span::millis(5),
                ..Workload::default()
            },
            faults: lossy(clients, nodes, of_million, duration),
            ..Plan::default()
        };
        let run = run(&Rc::new(plan));
        assert!(
            run.verdict == Verdict::Holds,
            "seed {seed}: {:?}",
            run.verdict
        );
        let ms = |nanos: u64| nanos as f64 / 1e6;
        let found = gaps(&run.history);
        let found = found.filter(|gap| gap.to != u64::MAX);
        idle.extend(found.map(|gap| ms(gap.to - gap.from)));
        let won = run.history.operations.iter();
        let won = won.filter(|op| op.action == Action::Acquire && op.outcome == Outcome::Ok);
        let shares = (0..clients).map(|client| {
            let its = won.clone().filter(|op| op.process.client == client);
            its.count() as f64 * f64::from(clients) / won.clone().count() as f64
        });
        least_share = shares.fold(least_share, f64::min);
        in_use += 5.0 * won.clone().count() as f64 / ms(duration.as_nanos()) / seeds as f64;
        holds += won.count() as u64;
        commands += run.counters.commands;
    }
    idle.sort_by(f64::total_cmp);
    let at = |share: f64| idle[((idle.len() - 1) as f64 * share).round() as usize];
    Measured {
        gaps: [at(0.5), at(0.99), at(1.0)],
        least_share,
        in_use,
        commands_a_hold: commands as f64 / holds as f64,
        holds,
    }
}

/// Every link loses so many of a million messages in both directions.
fn lossy(clients: u16, nodes: u16, of_million: u32, duration: Span) -> Vec<Fault> {
    if of_million == 0 {
        return Vec::new();
    }
    vec![Fault {
        at: Span::ZERO,
        lasts: duration,
        what: FaultKind::Link {
            clients: (0..clients).collect(),
            nodes: (0..nodes).collect(),
            direction: Direction::Both,
            fault: LinkFault::Loss { of_million },
        },
    }]
}

#[test]
fn figures() {
    for nodes in [1, 5] {
        for clients in [2, 10] {
            for of_million in [0, 2_000] {
                let measured = measure(nodes, clients, of_million);
                println!("{nodes} nodes, {clients} clients, {of_million}: {measured:?}");
            }
        }
    }
}
