//! A Redis Cluster in the lane over sockets, under the production adapter.

use std::rc::Rc;

use quorlock_sim::plan::{Lane, LockKind, Plan};
use quorlock_sim::plan_file;
use quorlock_sim::simulation::{Run, Verdict, run};

fn plan(text: &str) -> Plan {
    let plan: Plan = toml::from_str(text).expect("a plan");
    plan_file::check(&plan).expect("a plan that can be run");
    assert_eq!(plan.lane, Lane::Turmoil);
    plan
}

/// One cluster of three shards, each a primary and a replica.
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
        println!("{lock:?} {} {:?}", run.history.holds, run.effects);
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
            println!(
                "{lock:?} {fault} {} {:?} {:?}",
                run.history.holds, run.effects, run.counters
            );
            assert_eq!(run.counters.promotions, 1);
            assert!(20 < run.history.holds, "{lock:?}: {}", run.history.holds);
        }
    }
}
