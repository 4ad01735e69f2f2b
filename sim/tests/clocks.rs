//! One lock over several clients of the product in one process, each with a clock of its own.

use std::time::Duration;

use quorlock_sim::context::Context;
use quorlock_sim::plan::{LockKind, Nodes, Plan, Remedies, Workload};
use quorlock_sim::simulation::{Simulation, Verdict};
use quorlock_sim::span::SimTime;

/// Works under the watchdog for longer than a lease.
async fn hold(ctx: Context) {
    let Ok(guard) = ctx.lock(["b"]).acquire().await else {
        return;
    };
    let section = ctx.critical_section(&guard);
    while section.look(&guard) {
        ctx.sleep(Duration::from_millis(5)).await;
    }
}

/// Tries the name alone and together with another node's, in turns: the first is the client's of the second node, the
/// other is driven by the client of the first.
async fn contend(ctx: Context) {
    let locks = [ctx.lock(["b"]), ctx.lock(["a", "b"])];
    for lock in locks.iter().cycle() {
        ctx.sleep(Duration::from_millis(30)).await;
        if let Ok(Some(guard)) = lock.try_acquire().await {
            let section = ctx.critical_section(&guard);
            let _ = section.look(&guard);
            return;
        }
    }
}

/// What the second node has shown was dated by the clock of the first node's client, which shows more in one half of the
/// runs, and less in the other: the live claim was replaced by the lock of both in the one, by that of the name alone in
/// the other.
#[test]
fn a_lock_of_two_clients_replaces_no_live_claim_whatever_their_clocks_show() {
    let plan = Plan {
        clients: 2,
        duration: SimTime::secs(4),
        lock: LockKind::Multi,
        nodes: Nodes {
            count: 2,
            ..Nodes::default()
        },
        remedies: Remedies {
            margin: Some(SimTime::secs(2)),
            ..Remedies::default()
        },
        workload: Workload {
            lease: SimTime::secs(2),
            ..Workload::default()
        },
        ..Plan::default()
    };
    let simulation = Simulation::new(plan, |ctx| async move {
        // The first name is kept by the first node, the second by the second.
        let _ = ctx.lock(["a", "b"]);
        match ctx.client() {
            0 => hold(ctx).await,
            _ => {
                ctx.sleep(Duration::from_millis(100)).await;
                contend(ctx).await;
            }
        }
    });
    for seed in 0..20 {
        let run = simulation.run(seed);
        assert_eq!(run.verdict, Verdict::Holds, "seed {seed}");
    }
}
