//! Holds that learn at once that their claims were removed.

use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorlock_sim_check::run::Verdict;
use quorlock_sim_lab::client::context::Context;
use quorlock_sim_lab::simulation::{Simulation, run};
use quorlock_sim_plan::fault::{Fault, NodeFault};
use quorlock_sim_plan::generator::{FaultChoice, PlanGenerator};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{LockKind, Nodes, Plan};

const SEEDS: u64 = 100;

/// Holds a lock for longer than the run, and notes when it is lost.
async fn hold(ctx: Context, lost: Arc<Mutex<Vec<Duration>>>) {
    let lock = ctx.lock(["a"]).watchdog_lease(Duration::from_secs(9));
    let Ok(guard) = lock.acquire().await else {
        return;
    };
    let began = ctx.now();
    guard.lost().await;
    let mut lost = lost.lock().expect("no test panics with it");
    lost.push(ctx.now().since(began));
}

/// Returns when a hold of a lock on this many nodes was lost, of which so many are flushed after a second.
fn lost_after(nodes: u16, flushed: u16, watch_claims: bool, seed: u64) -> Vec<Duration> {
    let flush = |node| Fault::of_node(SimTime::secs(1), node, NodeFault::Flush);
    let mut plan = Plan {
        clients: 1,
        duration: SimTime::secs(8),
        nodes: Nodes {
            count: nodes,
            ..Nodes::default()
        },
        lock: match nodes {
            1 => LockKind::Single,
            _ => LockKind::Redlock,
        },
        faults: (0..flushed).map(flush).collect(),
        ..Plan::default()
    };
    plan.remedies.watch_claims = watch_claims;
    let lost = Arc::new(Mutex::new(Vec::new()));
    let noted = lost.clone();
    let run = Simulation::new(plan, move |ctx| hold(ctx, noted.clone())).run(seed);
    assert_eq!(run.verdict, Verdict::Holds, "seed {seed}");
    let lost = lost.lock().expect("no test panics with it");
    lost.clone()
}

#[test]
fn a_loss_is_told_within_two_round_trips_and_without_a_watch_by_the_next_renewal() {
    for seed in 0..20 {
        for nodes in [1, 3] {
            let soon = lost_after(nodes, nodes / 2 + 1, true, seed);
            let [soon] = soon.as_slice() else {
                panic!("{nodes}, seed {seed}: {soon:?}");
            };
            // A message takes 5 ms at most.
            let at_most = Duration::from_millis(1_020);
            assert!(*soon <= at_most, "{nodes}, seed {seed}: {soon:?}");
            let late = lost_after(nodes, nodes / 2 + 1, false, seed);
            assert!(
                late.iter().all(|late| Duration::from_secs(2) < *late),
                "{late:?}"
            );
        }
        assert!(lost_after(3, 1, true, seed).is_empty());
    }
}

/// Whatever is told, early, late, twice or never, a lock is held by one owner, and no claim is lost by a question.
#[test]
fn watched_claims_violate_nothing() {
    for lock in [LockKind::Single, LockKind::Multi, LockKind::Redlock] {
        let generator = PlanGenerator {
            lock,
            faults: FaultChoice::Inside,
            ..PlanGenerator::default()
        };
        for seed in 0..SEEDS {
            let mut plan = generator.plan(seed);
            plan.remedies.watch_claims = true;
            let run = run(&Rc::new(plan));
            let verdict = &run.verdict;
            let is_clean = !matches!(verdict, Verdict::Violated(_));
            assert!(is_clean, "{lock:?}, seed {seed}: {verdict:?}");
        }
    }
}
