//! One lock of several clients of the product in one process, where each client has its own clock.

use std::time::Duration;

use quorlock_sim_check::run::Verdict;
use quorlock_sim_lab::client::context::Context;
use quorlock_sim_lab::simulation::Simulation;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{LockKind, Nodes, Plan, Remedies, Workload};

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

/// Tries the name alone and together with another node's name, alternately. The first lock belongs to the second
/// node's client, and the other lock is driven by the first node's client.
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

/// An earlier version dated observations of the second node by the clock of the first node's client, which is ahead in
/// half of the runs and behind in the others. In one half, the lock of both names replaced a live claim; in the other
/// half, the lock of the name alone did.
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
        // The first name belongs to the first node, and the second name to the second node.
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
