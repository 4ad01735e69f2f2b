//! Clients and invariants of a user's own: an example of the public interface.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use quorlock_sim::checker::Property;
use quorlock_sim::context::Context;
use quorlock_sim::fault::Fault;
use quorlock_sim::plan::{LockKind, Nodes, Persistence, Plan, Workload};
use quorlock_sim::simulation::{Simulation, Verdict};
use quorlock_sim::span::Span;
use quorlock_sim::swarm::Swarm;

/// What the clients protect: a shop with one last piece.
#[derive(Default)]
struct Shop {
    inside: AtomicI64,
    most_inside: AtomicI64,
    sold: AtomicU64,
}

async fn sell(ctx: Context, shop: Arc<Shop>, takes: Duration) {
    let lock = ctx.lock(["last piece"]).lease(Duration::from_millis(200));
    loop {
        ctx.sleep(ctx.random_span(Span::millis(1), Span::millis(20)))
            .await;
        let Ok(guard) = lock.acquire().await else {
            continue;
        };
        let section = ctx.critical_section(&guard);
        let inside = shop.inside.fetch_add(1, Ordering::Relaxed) + 1;
        shop.most_inside.fetch_max(inside, Ordering::Relaxed);
        ctx.sleep(takes).await;
        if section.look(&guard) {
            shop.sold.fetch_add(1, Ordering::Relaxed);
        }
        shop.inside.fetch_sub(1, Ordering::Relaxed);
        drop(section);
        let _ = guard.release().await;
    }
}

#[test]
fn clients_of_my_own_keep_my_invariant_while_nodes_pause_and_networks_part() {
    let mut sold = 0;
    for seed in 0..20 {
        let shop = Arc::new(Shop::default());
        let plan = Plan {
            faults: Swarm {
                faults: "cut,delay,pause-node,duplicate".parse().unwrap(),
                nodes: Some(5),
                clients: Some(3),
                ..Swarm::default()
            }
            .plan(seed)
            .faults,
            ..Plan::default()
        };
        let clients = shop.clone();
        let simulation = Simulation::new(plan, move |ctx| {
            sell(ctx, clients.clone(), Duration::from_millis(5))
        });
        let run = simulation.run(seed);
        assert_eq!(run.verdict, Verdict::Holds, "seed {seed}");
        assert_eq!(shop.most_inside.load(Ordering::Relaxed), 1, "seed {seed}");
        sold += shop.sold.load(Ordering::Relaxed);
    }
    assert!(1_000 < sold, "{sold}");
}

#[test]
fn a_node_that_forgets_lets_two_of_them_in_and_the_checker_says_so() {
    let plan = Plan {
        lock: LockKind::Single,
        nodes: Nodes {
            count: 1,
            persistence: Persistence::Memory,
            ..Nodes::default()
        },
        workload: Workload {
            lease: Span::millis(200),
            ..Workload::default()
        },
        faults: (1..15)
            .map(|n| Fault::CrashNode {
                at: Span::millis(100 * n),
                node: 0,
                restart_after: Span::micros(100),
            })
            .collect(),
        ..Plan::default()
    };
    let simulation = Simulation::new(plan, |ctx| {
        sell(ctx, Arc::default(), Duration::from_millis(150))
    });
    let broken = (0..10).find_map(|seed| match simulation.run(seed).verdict {
        Verdict::Violated(violation) => Some(violation.property),
        _ => None,
    });
    assert_eq!(broken, Some(Property::Exclusion));
}
