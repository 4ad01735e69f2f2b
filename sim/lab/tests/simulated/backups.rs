//! The cost of a backup of all nodes at the same time, in both lanes: new locks wait for one longest lease, and no
//! hold is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorlock_sim_check::run::Verdict;
use quorlock_sim_lab::client::context::Context;
use quorlock_sim_lab::simulation::Simulation;
use quorlock_sim_plan::fault::{Fault, FaultKind, NodesFault, Trigger};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{Lane, Nodes, Plan, Watchdog, Workload};

const LEASE: Duration = Duration::from_millis(400);

/// What happened to the lock that is held during the backup, and to the lock that is acquired after it.
#[derive(Default)]
struct Seen {
    kept: AtomicU64,
    lost: AtomicU64,
    granted_after_millis: AtomicU64,
}

/// Client 0 holds a lock from before the backup until long after it. Client 1 acquires another lock just after the
/// backup.
async fn client(ctx: Context, seen: Arc<Seen>) {
    if ctx.client() == 0 {
        let Ok(guard) = ctx.lock(["kept"]).acquire().await else {
            return;
        };
        let work = ctx.sleep(Duration::from_millis(2_500));
        let count = match guard.while_held(async |_| work.await).await {
            Ok(_) => &seen.kept,
            Err(_) => &seen.lost,
        };
        count.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<()>().await;
    }
    // This acquisition makes the client watch the nodes before the backup.
    if let Ok(guard) = ctx.lock(["before"]).acquire().await {
        let _ = guard.release().await;
    }
    ctx.sleep(Duration::from_millis(1_100)).await;
    let began = ctx.now();
    if ctx.lock(["new"]).acquire().await.is_ok() {
        let waited = ctx.now().since(began).as_millis();
        let waited = u64::try_from(waited).unwrap_or(u64::MAX);
        seen.granted_after_millis.store(waited, Ordering::Relaxed);
    }
    std::future::pending::<()>().await;
}

/// Returns how long acquiring the new lock took, with these nodes backed up one second after the beginning.
fn wait_after_backup_of(nodes: &[u16], lane: Lane) -> u64 {
    let plan = Plan {
        lane,
        clients: 2,
        duration: SimTime::secs(3),
        nodes: Nodes {
            count: 3,
            ..Nodes::default()
        },
        workload: Workload {
            lease: SimTime::millis(400),
            watchdog: Watchdog::On,
            ..Workload::default()
        },
        faults: vec![Fault {
            when: Trigger::At(SimTime::secs(1)),
            lasts: SimTime::ZERO,
            what: FaultKind::Nodes {
                fault: NodesFault::Backup,
                nodes: nodes.to_vec(),
            },
        }],
        ..Plan::default()
    };
    let seen = Arc::new(Seen::default());
    let place = Arc::clone(&seen);
    let run = Simulation::new(plan, move |ctx| client(ctx, Arc::clone(&place))).run(7);
    // No two clients want the same lock, so only progress and the rest at the end could be violated.
    assert!(
        !matches!(run.verdict, Verdict::Violated(_)),
        "{:?}",
        run.verdict
    );
    assert_eq!(seen.lost.load(Ordering::Relaxed), 0, "{lane:?}");
    assert_eq!(seen.kept.load(Ordering::Relaxed), 1, "{lane:?}");
    seen.granted_after_millis.load(Ordering::Relaxed)
}

#[test]
fn a_backup_of_all_nodes_delays_new_locks_by_one_longest_lease_and_loses_none() {
    for lane in [Lane::Fast, Lane::Turmoil] {
        let lease = LEASE.as_millis() as u64;
        let waited = wait_after_backup_of(&[0, 1, 2], lane);
        assert!(
            (lease - 200..2 * lease).contains(&waited),
            "{lane:?}: {waited} ms"
        );
    }
}

#[test]
fn a_backup_of_one_node_of_three_delays_nothing() {
    for lane in [Lane::Fast, Lane::Turmoil] {
        let waited = wait_after_backup_of(&[1], lane);
        assert!((1..100).contains(&waited), "{lane:?}: {waited} ms");
    }
}
