//! A process that is stopped in the middle of a step while the world continues.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_lab::client::context::Context;
use quorlock_sim_lab::plan_file::parse;
use quorlock_sim_lab::simulation::{Simulation, run};
use quorlock_sim_plan::fault::{Direction, Fault, FaultKind, LinkFault, Trigger};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{Nodes, Plan, Workload};

const LEASE: Duration = Duration::from_secs(2);
const NAME: &str = "a";

/// Holds a lock for two leases, and extends the first lease just before its end.
async fn hold(ctx: Context) {
    let lock = ctx.lock([NAME]).lease(LEASE);
    let Ok(guard) = lock.acquire().await else {
        return;
    };
    let section = ctx.critical_section(&guard);
    ctx.sleep(Duration::from_millis(1_000)).await;
    let _ = guard.extend(LEASE).await;
    while section.look(&guard) {
        ctx.sleep(Duration::from_millis(5)).await;
    }
}

/// Tries, is stopped for a second in the middle of a try, and keeps trying.
async fn contend(ctx: Context, nth: u32, has_won: Arc<AtomicBool>) {
    let lock = ctx.lock([NAME]).lease(LEASE);
    ctx.sleep(Duration::from_millis(100)).await;
    ctx.stop_inside(nth, Duration::from_secs(1));
    loop {
        if let Ok(Some(guard)) = lock.try_acquire().await {
            let section = ctx.critical_section(&guard);
            has_won.store(true, Ordering::Relaxed);
            let _ = section.look(&guard);
            ctx.sleep(Duration::from_millis(20)).await;
            return;
        }
        ctx.sleep(Duration::from_millis(20)).await;
    }
}

/// Runs a plan in which the contender's first requests to all nodes except the first arrive after the holder has
/// extended its lease. The replies arrive before the contender continues.
fn stopped_at(nth: u32, seed: u64) -> Run {
    let plan = Plan {
        clients: 2,
        duration: SimTime::secs(6),
        nodes: Nodes {
            count: 3,
            ..Nodes::default()
        },
        workload: Workload {
            lease: SimTime::secs(2),
            ..Workload::default()
        },
        faults: vec![Fault {
            when: Trigger::At(SimTime::millis(50)),
            lasts: SimTime::millis(500),
            what: FaultKind::Link {
                clients: vec![1],
                nodes: vec![1, 2],
                direction: Direction::ToNode,
                fault: LinkFault::Delay {
                    min: SimTime::millis(940),
                    max: SimTime::millis(950),
                },
            },
        }],
        ..Plan::default()
    };
    let has_won = Arc::new(AtomicBool::new(false));
    let simulation = {
        let has_won = Arc::clone(&has_won);
        Simulation::new(plan, move |ctx| {
            let has_won = Arc::clone(&has_won);
            async move {
                match ctx.client() {
                    0 => hold(ctx).await,
                    _ => contend(ctx, nth, has_won).await,
                }
            }
        })
    };
    let run = simulation.run(seed);
    assert!(has_won.load(Ordering::Relaxed), "use {nth}, seed {seed}");
    run
}

/// The contender reads its clock and is stopped. In the meantime, the holder extends its hold. The contender's
/// requests arrive at the nodes, which refuse them and show the new claim version, and the replies arrive. If the
/// claim version were dated by the old reading, it would seem a second older than it is. The contender would then
/// replace the claim a second before the holder's lease ends.
#[test]
fn a_contender_that_is_stopped_between_its_clock_and_its_replies_replaces_no_live_claim() {
    for nth in 1..=150 {
        for seed in 0..4 {
            let run = stopped_at(nth, seed);
            assert_eq!(run.verdict, Verdict::Holds, "use {nth}, seed {seed}");
            if seed == 0 {
                assert_eq!(run.trace, stopped_at(nth, seed).trace);
            }
        }
    }
}

/// A client that tries again and again is paused in the middle of the try that wins, and its node dies in the
/// meantime. Its next try fails at once, so its first check of the lock is in a step without a pause, long after the
/// end of its lease.
#[test]
fn a_guard_whose_process_stood_still_when_it_was_given_is_none_that_holds_nothing() {
    let text = r#"
        duration = "700ms"
        lock = "single"
        clients = 1
        nodes = { count = 1 }
        network = { min = "1ms", max = "1ms", call_timeout = "100ms", connect_timeout = "100ms" }

        [workload]
        kind = "try-storm"
        lease = "10ms"
        hold_min = "50ms"
        hold_max = "50ms"
        think_min = "0s"
        think_max = "1ms"
        poll_cap = "1ms"
        backoff_cap = "1ms"

        [[faults]]
        kind = "pause-inside"
        at = "0s"
        lasts = "650ms"
        client = 0
        nth = 13

        [[faults]]
        kind = "crash-node"
        at = "2ms"
        node = 0
        restart_after = "0s"
        "#;
    let plan = parse(Path::new("paused.toml"), text).unwrap();
    for seed in 0..100 {
        let plan = Plan {
            seed,
            ..plan.clone()
        };
        let verdict = run(&Rc::new(plan)).verdict;
        assert_eq!(verdict, Verdict::Holds, "seed {seed}");
    }
}
