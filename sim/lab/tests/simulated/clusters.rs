//! A Redis Cluster in the lane over sockets, under the production adapter.

use std::ops::Range;
use std::process::Command;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_lab::simulation::{Simulation, run};
use quorlock_sim_lab::turmoil::Lacks;
use quorlock_sim_plan::fault::{Fault, Kind};
use quorlock_sim_plan::generator::{Deployment, FaultChoice, PlanGenerator};
use quorlock_sim_plan::{Lane, LockKind, Plan};

fn plan(text: &str) -> Plan {
    let plan: Plan = toml::from_str(text).expect("a plan");
    quorlock_sim_plan::check(&plan).expect("a plan that can be run");
    assert_eq!(plan.lane, Lane::Turmoil);
    plan
}

/// Returns one cluster of three shards, each with a primary and a replica.
fn cluster(lock: LockKind, faults: &str) -> Plan {
    let lock = match lock {
        LockKind::Redlock => "redlock",
        _ => "single",
    };
    plan(&format!(
        "lane = 'turmoil'\nlock = '{lock}'\nclients = 3\nworkload = {{ names = 2, lease = '300ms' }}\n\
         nodes = {{ count = 3, replicas = 1, cluster = {{}} }}\nfaults = [{faults}]"
    ))
}

fn fine(plan: Plan) -> Run {
    let run = run(&Rc::new(plan));
    assert!(
        !matches!(run.verdict, Verdict::Violated(_)),
        "{:?}",
        run.verdict
    );
    run
}

#[test]
fn a_cluster_and_a_majority_of_its_shards_hand_locks_over() {
    for lock in [LockKind::Single, LockKind::Redlock] {
        let run = fine(cluster(lock, ""));
        assert!(60 < run.history.holds, "{lock:?}: {}", run.history.holds);
    }
}

#[test]
fn a_slot_is_moved_while_its_names_are_held_and_waited_for() {
    for lock in [LockKind::Single, LockKind::Redlock] {
        let moves = "{ kind = 'migrate-slot', at = '300ms', node = 0, name = 0, to = 1, lasts = '400ms' },
                     { kind = 'migrate-slot', at = '1s', node = 0, name = 0, to = 2, lasts = '400ms', gap = '100ms' }";
        let run = fine(cluster(lock, moves));
        assert_eq!(run.effects, [1, 1], "{lock:?}");
        assert!(40 < run.history.holds, "{lock:?}: {}", run.history.holds);
    }
}

#[test]
fn a_shard_is_handed_over_and_elects() {
    for lock in [LockKind::Single, LockKind::Redlock] {
        for fault in [
            "{ kind = 'cluster-failover', at = '300ms', node = 0 }",
            "{ kind = 'cluster-failover', at = '300ms', node = 0, how = 'takeover' }",
            "{ kind = 'crash-node', at = '300ms', node = 0, restart_after = '800ms' }",
            "{ kind = 'isolate-primary', at = '300ms', node = 0, clients = [0], sentinels = [], lasts = '800ms' }",
        ] {
            let run = fine(cluster(lock, fault));
            assert_eq!(run.counters.promotions, 1);
            assert!(20 < run.history.holds, "{lock:?}: {}", run.history.holds);
        }
    }
}

/// The other nodes look at each other every 5 ms, so they do not notice that the process was gone.
#[test]
fn a_shard_that_is_restarted_at_once_serves_again_after_the_node_time_out() {
    for lock in [LockKind::Single, LockKind::Redlock] {
        let restart = "{ kind = 'crash-node', at = '301ms', node = 0, restart_after = '300us' }";
        let run = fine(cluster(lock, restart));
        assert_eq!(run.counters.promotions, 0);
        assert!(40 < run.history.holds, "{lock:?}: {}", run.history.holds);
    }
}

fn generator(lock: LockKind, faults: FaultChoice) -> PlanGenerator {
    PlanGenerator {
        lane: Lane::Turmoil,
        deployment: Deployment::Clusters,
        lock,
        faults,
        nodes: (lock == LockKind::Redlock).then_some(3),
        ..PlanGenerator::default()
    }
}

/// Runs drawn plans, none of which may break a property. Returns how many replicas were promoted and how many slots
/// moved.
fn run_all(generator: &PlanGenerator, seeds: Range<u64>) -> (u64, u32) {
    let (mut promotions, mut moves) = (0, 0);
    for seed in seeds {
        let plan = generator.plan(seed);
        quorlock_sim_plan::check(&plan).expect("a plan that can be run");
        let is_move = |fault: &Fault| fault.kind() == Kind::MigrateSlot;
        let kinds: Vec<bool> = plan.faults.iter().map(is_move).collect();
        let ended = run(&Rc::new(plan));
        let is_fine = !matches!(ended.verdict, Verdict::Violated(_));
        assert!(is_fine, "seed {seed}: {:?}", ended.verdict);
        promotions += ended.counters.promotions;
        let effects = ended.effects.iter().zip(kinds);
        moves += effects
            .map(|(effects, is_move)| if is_move { *effects } else { 0 })
            .sum::<u32>();
    }
    (promotions, moves)
}

#[test]
fn no_drawn_election_breaks_a_lock_whose_claims_count_when_all_replicas_have_them() {
    let (promotions, _) = run_all(&generator(LockKind::Single, FaultChoice::Inside), 0..16);
    assert!(4 < promotions, "{promotions}");
}

#[test]
fn nor_a_majority_of_shards_of_which_one_elects() {
    let (promotions, _) = run_all(&generator(LockKind::Redlock, FaultChoice::Inside), 0..8);
    assert!(0 < promotions, "{promotions}");
}

#[test]
fn no_slot_that_is_moved_breaks_either() {
    let faults: FaultChoice = "migrate-slot,reset,pause-client"
        .parse()
        .expect("kinds of fault");
    let (_, single) = run_all(&generator(LockKind::Single, faults.clone()), 0..24);
    let (_, majority) = run_all(&generator(LockKind::Redlock, faults), 0..12);
    assert!(2 < single && 0 < majority, "{single}, {majority}");
}

#[test]
fn another_process_tells_the_same_story_of_a_cluster() {
    let plan = Rc::new(generator(LockKind::Single, FaultChoice::All).plan(2));
    let here = run(&plan);
    assert_eq!(here.trace, run(&plan).trace);
    let arguments =
        "run --json --lane turmoil --deployment cluster --lock single --faults all --seed 2";
    let output = Command::new(env!("CARGO_BIN_EXE_quorlock-sim"))
        .args(arguments.split(' '))
        .output()
        .expect("it starts");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["trace"], format!("{:016x}", here.trace));
}

const CLUSTER: &str = "nodes = { count = 3, replicas = 1, cluster = {} }";

/// Checks that each plan is refused, with what is said first.
fn are_refused(plans: &[(&str, &str)]) {
    for (text, place) in plans {
        let plan: Plan = toml::from_str(&format!("lane = 'turmoil'\n{text}")).expect("a plan");
        let error = quorlock_sim_plan::check(&plan).expect_err(text).to_string();
        assert!(error.starts_with(place), "{text}: {error}");
    }
}

#[test]
fn what_no_cluster_can_be_is_refused_with_its_place() {
    are_refused(&[
        (
            "nodes = { count = 3, cluster = {} }",
            "nodes.cluster: a cluster has no replica",
        ),
        (
            "nodes = { count = 2, replicas = 1, cluster = {} }",
            "nodes.count: 2 is not enough",
        ),
        (
            &format!("lock = 'multi'\n{CLUSTER}"),
            "lock: a cluster is one node",
        ),
        (
            "nodes = { count = 3, replicas = 1, cluster = { node_timeout = '1ms' } }",
            "nodes.cluster.node_timeout: 1ms is too short",
        ),
        (
            "nodes = { count = 3, replicas = 1, cluster = {}, sentinels = {} }",
            "nodes.cluster: a cluster elects its primaries by itself",
        ),
        (
            "variant = 'unheard-moved'",
            "variant: unheard-moved has a flaw in the way to a cluster",
        ),
    ]);
}

#[test]
fn faults_that_no_cluster_has_are_refused_with_their_place() {
    let fault = |fault: &str| {
        format!("lock = 'single'\n{CLUSTER}\nfaults = [{{ at = '1s', node = 0, {fault} }}]")
    };
    are_refused(&[
        (
            &fault("kind = 'migrate-slot', name = 0, to = 3, lasts = '1ms'"),
            "faults[0].to: there is no node 3",
        ),
        (
            &fault("kind = 'migrate-slot', name = 9, to = 1, lasts = '1ms'"),
            "faults[0].name: there is no name 9",
        ),
        (
            &fault("kind = 'migrate-slot', name = 0, to = 1, lasts = '1ms', gap = '2ms'"),
            "faults[0].gap: 2ms is more than 1ms",
        ),
        (
            &fault("kind = 'sentinel-failover'"),
            "faults[0].kind: a cluster has no sentinels",
        ),
        (
            &fault("kind = 'isolate-primary', clients = [], sentinels = [0], lasts = '1ms'"),
            "faults[0].sentinels: a cluster has no sentinels",
        ),
        (
            "faults = [{ at = '1s', node = 0, kind = 'cluster-failover' }]",
            "faults[0].kind: there is no cluster",
        ),
    ]);
}

#[test]
fn the_fast_lane_has_no_clusters_and_says_so() {
    let mut plan = generator(LockKind::Single, FaultChoice::None).plan(0);
    plan.lane = Lane::Fast;
    assert_eq!(Lacks::check(&plan), Err(Lacks::Cluster));
}

/// The name `b` is in shard 0 and `c` in shard 1, whose primary is down for longer than a lease. One request for both
/// would fail as a whole, and the hold of `b` would be lost, too.
#[test]
fn a_hold_in_another_slot_outlives_a_silent_shard() {
    let plan = plan(
        "lane = 'turmoil'\nlock = 'single'\nclients = 1\nduration = '12s'\nworkload = { lease = '3s' }
         nodes = { count = 3, replicas = 1, cluster = { node_timeout = '10s', coverage = 'partial' } }
         network = { call_timeout = '100ms', connect_timeout = '100ms' }
         faults = [{ kind = 'crash-node', at = '500ms', node = 1, restart_after = '9s' }]",
    );
    for seed in 0..3 {
        let held = Arc::new(Mutex::new([false; 2]));
        let told = Arc::clone(&held);
        let simulation = Simulation::new(plan.clone(), move |ctx| {
            let told = Arc::clone(&told);
            async move {
                let (healthy, silent) = (ctx.lock(["b"]), ctx.lock(["c"]));
                let healthy = healthy.acquire().await.expect("a healthy shard");
                let silent = silent.acquire().await.expect("a shard that is still up");
                ctx.sleep(Duration::from_secs(6)).await;
                let held = [healthy.is_held(), silent.is_held()];
                *told.lock().expect("no panic before") = held;
            }
        });
        let _ = simulation.run(seed);
        let held = *held.lock().expect("no panic before");
        assert_eq!(held, [true, false], "seed {seed}");
    }
}
