//! Many clients that want one name on a majority of nodes. One of them must acquire it as soon as it is free.

use std::path::Path;
use std::rc::Rc;

use quorlock_sim_lab::plan_file::parse;
use quorlock_sim_lab::simulation::run;
use quorlock_sim_plan::{LockKind, Plan};

/// Returns the holds and the commands of all clients, added up over some seeds.
fn measure(clients: u16) -> (u64, u64) {
    let mut sum = (0, 0);
    for seed in 0..3 {
        let plan = Rc::new(Plan {
            seed,
            clients,
            lock: LockKind::Redlock,
            ..Plan::default()
        });
        let run = run(&plan);
        sum.0 += u64::from(run.history.holds);
        sum.1 += run.counters.commands;
    }
    sum
}

#[test]
fn a_crowd_wins_as_many_holds_as_a_few_and_each_of_it_asks_a_few_times() {
    let (few, _) = measure(3);
    for clients in [10, 20, 40] {
        let (holds, commands) = measure(clients);
        assert!(3 * few <= 4 * holds, "{clients}: {holds} holds, and {few}");
        let bound = 5 * u64::from(clients) * holds;
        assert!(commands <= bound, "{clients}: {commands} of {bound}");
    }
}

/// Returns the holds of a run with this fault, for example the third node cut off from all clients.
fn holds_of(seed: u64, fault: &str) -> u32 {
    let text = format!(
        r#"
        seed = {seed}
        duration = "10s"
        lock = "redlock"
        clients = 4
        progress_within = "1s"
        nodes.count = 3
        network = {{ min = "95us", max = "347us", call_timeout = "132ms" }}
        workload.names = 1
        workload.lease = "15s"
        workload.backoff_cap = "93ms"
        workload.hold_min = "9ms"
        workload.hold_max = "16ms"
        workload.think_min = "6ms"
        workload.think_max = "11ms"
        {fault}
        "#
    );
    let plan = parse(Path::new("cut.toml"), &text).expect("a plan");
    run(&Rc::new(plan)).history.holds
}

/// A is granted one of the two remaining nodes, and B the other one. If both waited for the third node until it timed
/// out, the lock would be idle during that time, and the next two clients would find the same situation.
#[test]
fn a_node_that_is_cut_off_costs_competitors_no_time_out_in_each_round() {
    let cut = r#"faults = [{ kind = "cut", at = "1ms", lasts = "9s", nodes = [2] }]"#;
    for seed in 0..5 {
        let (with, without) = (holds_of(seed, cut), holds_of(seed, ""));
        assert!(
            3 * without <= 5 * with,
            "seed {seed}: {with} holds of {without}"
        );
    }
}

/// Four clients that do not wait try again and again. Tries of one round alone split the votes of a majority: over sockets, three
/// holds were won in three seconds. Of several names on different nodes, each client gets some.
#[test]
fn of_clients_that_only_try_one_gets_the_lock() {
    for (lane, lock, nodes) in [
        ("fast", "redlock", 3),
        ("turmoil", "redlock", 3),
        ("fast", "redlock", 5),
        ("turmoil", "redlock", 5),
        ("fast", "multi", 2),
        ("turmoil", "multi", 2),
        ("fast", "multi", 3),
        ("turmoil", "multi", 3),
    ] {
        let text = format!(
            r#"
            seed = 1
            duration = "3s"
            lane = "{lane}"
            lock = "{lock}"
            clients = 4
            nodes.count = {nodes}
            network = {{ min = "60us", max = "3ms", call_timeout = "400ms", connect_timeout = "400ms" }}
            workload.kind = "try-storm"
            workload.names = 1
            workload.lease = "1s"
            workload.hold_min = "0s"
            workload.hold_max = "0s"
            workload.think_min = "0s"
            workload.think_max = "0s"
            "#
        );
        let plan = parse(Path::new("tries.toml"), &text).expect("a plan");
        let holds = run(&Rc::new(plan)).history.holds;
        assert!(100 < holds, "{lane}, {lock}, {nodes} nodes: {holds} holds");
    }
}
