//! Faults that repeat, follow a message, or strike a client in a role.

use std::path::Path;
use std::rc::Rc;

use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_lab::plan_file;
use quorlock_sim_lab::simulation::{run, run_recorded};
use quorlock_sim_lab::study::shrink::shrink;
use quorlock_sim_plan::fault::{ClientFault, ClientTarget, Fault, NodeFault, Repeats, Trigger};
use quorlock_sim_plan::time::{ClockStep, SimTime};
use quorlock_sim_plan::variant::Variant;
use quorlock_sim_plan::{LockKind, MinReplicas, Persistence, Plan, Wait};
use quorlock_sim_world::history::recording::MessageSort;

const HOLDER: ClientTarget = ClientTarget::Holder { name: None };

fn single(faults: Vec<Fault>) -> Plan {
    Plan {
        lock: LockKind::Single,
        faults,
        ..Plan::default()
    }
}

fn ran(plan: &Plan) -> Run {
    quorlock_sim_plan::check(plan).unwrap_or_else(|error| panic!("{error}"));
    run(&Rc::new(plan.clone()))
}

/// Parses a fault from the text of a file.
fn read(text: &str) -> Fault {
    toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn every(first: u64, times: u32) -> Trigger {
    Trigger::Every {
        first: SimTime::millis(first),
        every: SimTime::millis(190),
        repeats: Repeats::Times(times),
    }
}

#[test]
fn a_fault_that_comes_again_and_again_is_the_run_of_as_many_tables() {
    let pause = |when: Trigger, client: u16| {
        Fault::of_client(when, client, ClientFault::Pause).lasting(SimTime::millis(60))
    };
    let short = single(vec![pause(every(40, 3), 0), pause(every(100, 2), 1)]);
    let times = [(40, 0), (230, 0), (420, 0), (100, 1), (290, 1)];
    let tables = times.map(|(at, client)| pause(Trigger::At(SimTime::millis(at)), client));
    let long = single(tables.to_vec());
    let (short, long) = (ran(&short), ran(&long));
    assert_eq!(short.trace, long.trace);
    assert_eq!(short.plan, long.plan, "it is told with every repetition");
    assert_eq!(short.effects, [1; 5]);
}

#[test]
fn a_fault_on_the_holder_strikes_the_client_that_is_inside() {
    let pauses = Fault::of_client(every(100, 9), HOLDER, ClientFault::Pause);
    let run = ran(&single(vec![pauses.lasting(SimTime::millis(30))]));
    assert_eq!(run.history.began.len(), 9);
    let mut struck: Vec<u16> = Vec::new();
    for began in &run.history.began {
        let client = began.client.expect("it is one of a client");
        let mut inside = run.history.sections.iter();
        let is_inside = inside.any(|section| {
            section.process.client == client
                && section.entered <= began.at
                && began.at <= section.left
        });
        assert!(is_inside, "{began:?}");
        struck.push(client);
    }
    struck.sort_unstable();
    struck.dedup();
    assert!(1 < struck.len(), "more than one client was the holder");
    let told = run.happened(0).expect("it happened").to_string();
    assert!(told.starts_with("client "), "{told}");
}

#[test]
fn without_a_holder_a_fault_waits_for_the_next_one() {
    let crash = Fault::of_client(SimTime::ZERO, HOLDER, ClientFault::Crash);
    let run = ran(&single(vec![crash.lasting(SimTime::millis(50))]));
    let first = run.history.sections.first().expect("a client went in");
    let [began] = run.history.began.as_slice() else {
        panic!("{:?}", run.history.began)
    };
    assert_eq!(
        (began.at, began.client),
        (first.entered, Some(first.process.client))
    );
    assert_eq!(run.effects, [1]);
    let restarted = run.history.sections.iter().any(|s| 0 < s.process.restarts);
    assert!(restarted, "it was started again");
}

#[test]
fn a_role_that_no_client_has_in_time_is_struck_never() {
    let holder = ClientTarget::Holder { name: Some(1) };
    let mut plan = single(vec![Fault::of_client(
        SimTime::ZERO,
        holder,
        ClientFault::Pause,
    )]);
    plan.faults[0].lasts = SimTime::secs(2);
    plan.workload.names = 2;
    let run = ran(&plan);
    assert_eq!(
        run.effects,
        [0],
        "a pause of the whole run would not be over"
    );
    assert_eq!(run.happened(0), None);
}

#[test]
fn a_fault_after_a_message_begins_when_the_nth_of_its_kind_is_sent_on_that_way() {
    for (towards, sort) in [
        ("from = 'client 1'\nto = 'node 2'", MessageSort::Request),
        ("from = 'node 2'\nto = 'client 1'", MessageSort::Yes),
    ] {
        let pause = format!(
            "kind = 'pause-client'\nat = '100ms'\nlasts = '150ms'\nclient = 1\n\
             [after]\nmessage = 'release'\nnth = 2\ndelay = '3us'\n{towards}"
        );
        let plan = Plan {
            faults: vec![read(&pause)],
            ..Plan::default()
        };
        quorlock_sim_plan::check(&plan).unwrap_or_else(|error| panic!("{error}"));
        let (run, recording) = run_recorded(&Rc::new(plan));
        let messages = recording.messages.iter().filter(|message| {
            // Nothing is renewed here, so "not yours" answers a release, too.
            let is_release = match (sort, message.sort) {
                (MessageSort::Request, MessageSort::Request) => message.text.contains("release"),
                (MessageSort::Yes, MessageSort::Yes) => message.text.contains("released"),
                (MessageSort::Yes, MessageSort::No) => message.text == "not yours",
                _ => false,
            };
            message.client == 1 && message.node == 2 && 100_000_000 <= message.sent && is_release
        });
        let second = messages.map(|message| message.sent).nth(1);
        let began: Vec<u64> = run.history.began.iter().map(|began| began.at).collect();
        assert_eq!(began, [second.expect("two releases") + 3_000], "{towards}");
        assert_eq!(run.effects, [1]);
    }
}

#[test]
fn the_gap_between_get_and_del_is_found_and_its_shrunk_plan_reads_back_and_fails_alike() {
    let pause = "kind = 'pause-client'\nlasts = '190ms'\nclient = 0\n\
                 [after]\nmessage = 'inspect'\nfrom = 'client 0'\nto = 'node 0'\nnth = 3";
    let mut plan = single(vec![read(pause)]);
    plan.variant = Variant::GetThenDel;
    plan.network.call_timeout = SimTime::millis(600);
    plan.workload.lease = SimTime::millis(200);
    plan.workload.poll_cap = SimTime::millis(20);
    let fails = |plan: &Plan| matches!(ran(plan).verdict, Verdict::Violated(_));
    let seed = (0..20).find(|seed| {
        let seed = *seed;
        fails(&Plan {
            seed,
            ..plan.clone()
        })
    });
    plan.seed = seed.expect("a seed of twenty finds it");
    let shrunk = shrink(&plan, 600, &mut |_, _| {}).expect("it fails");
    let [fault] = shrunk.run.plan.faults.as_slice() else {
        panic!("{:?}", shrunk.run.plan.faults)
    };
    assert!(matches!(fault.when, Trigger::After(_)), "{fault:?}");
    let text = plan_file::write(&shrunk.run.plan).expect("it can be written");
    let again: Plan = toml::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(again, *shrunk.run.plan);
    let again = ran(&again);
    assert_eq!(
        (again.trace, again.verdict),
        (shrunk.run.trace, shrunk.run.verdict)
    );
}

fn replicated(faults: Vec<Fault>) -> Plan {
    let mut plan = single(faults);
    plan.nodes.count = 1;
    plan.nodes.replicas = 1;
    plan.nodes.wait = Some(Wait {
        replicas: 1,
        within: SimTime::millis(20),
    });
    plan
}

fn of_replica(text: &str) -> Fault {
    read(&format!("{text}\nnode = 0\nreplica = 0"))
}

/// Returns how many holds were won within this range of milliseconds.
fn won(run: &Run, from: u64, to: u64) -> usize {
    let stretch = from * 1_000_000..to * 1_000_000;
    let grants = run.history.grants.iter();
    grants.filter(|grant| stretch.contains(&grant.won)).count()
}

#[test]
fn a_replica_that_stands_still_or_is_down_confirms_nothing() {
    for fault in [
        "kind = 'pause-node'\nat = '500ms'\nlasts = '500ms'",
        "kind = 'crash-node'\nat = '500ms'\nrestart_after = '500ms'",
    ] {
        let run = ran(&replicated(vec![of_replica(fault)]));
        assert!(0 < won(&run, 0, 500), "{fault}");
        assert_eq!(won(&run, 530, 1_000), 0, "{fault}");
        assert!(0 < won(&run, 1_100, 2_000), "{fault}");
        assert_eq!(run.effects, [1]);
        assert_eq!(run.verdict, Verdict::Holds, "{fault}");
    }
}

#[test]
fn a_primary_that_demands_replicas_notices_that_one_is_down() {
    let crash = of_replica("kind = 'crash-node'\nat = '500ms'\nrestart_after = '500ms'");
    let mut plan = replicated(vec![crash]);
    plan.nodes.wait = None;
    plan.nodes.min_replicas = Some(MinReplicas {
        count: 1,
        max_lag: SimTime::millis(50),
    });
    let run = ran(&plan);
    assert!(0 < won(&run, 0, 500));
    assert_eq!(won(&run, 570, 1_000), 0);
    assert!(0 < won(&run, 1_100, 2_000));
}

#[test]
fn the_clock_of_a_replica_counts_once_it_is_promoted() {
    // What the primary granted for 10 s expires at once on a replica whose clock is 20 s ahead.
    let failover = "kind = 'failover'\nat = '500ms'\nnode = 0\nreplica = 0\nrejoin_after = '10ms'";
    for (ahead, breaks) in [("0s", false), ("20s", true)] {
        let step = of_replica(&format!("kind = 'node-step'\nat = '0s'\nby = '{ahead}'"));
        let mut plan = replicated(vec![step, read(failover)]);
        plan.workload.hold_max = SimTime::millis(400);
        plan.workload.checks = 20;
        let breaks_exclusion = (0..10).any(|seed| {
            plan.seed = seed;
            matches!(ran(&plan).verdict, Verdict::Violated(_))
        });
        assert_eq!(breaks_exclusion, breaks, "{ahead}");
    }
}

#[test]
fn a_fault_on_a_node_that_no_client_uses_has_no_effect() {
    let crash = |node| Fault::of_node(SimTime::millis(300), node, NodeFault::Crash);
    let by = ClockStep::millis(500);
    let step = |node| Fault::of_node(SimTime::ZERO, node, NodeFault::Step { by });
    let mut plan = single(vec![crash(0), crash(1), step(0), step(1)]);
    plan.nodes.persistence = Persistence::EveryWrite;
    assert_eq!(ran(&plan).effects, [1, 0, 1, 0], "the others are not asked");
    // The two names use two of the nodes.
    plan.lock = LockKind::Multi;
    plan.workload.names = 2;
    plan.faults = vec![crash(0), crash(1), crash(2)];
    assert_eq!(ran(&plan).effects, [1, 1, 0]);
}

#[test]
fn a_fault_on_a_replica_that_nothing_rests_on_has_no_effect() {
    let pause = of_replica("kind = 'pause-node'\nat = '500ms'\nlasts = '500ms'");
    let mut plan = replicated(vec![pause]);
    plan.nodes.wait = None;
    assert_eq!(ran(&plan).effects, [0]);
    let failover = "kind = 'failover'\nat = '600ms'\nnode = 0\nreplica = 0\nrejoin_after = '10ms'";
    plan.faults.push(read(failover));
    assert_eq!(ran(&plan).effects, [1, 1]);
}

/// Progress is due after the last fault has ended. A stall waits for requests, so it may end long after its plan tells.
#[test]
fn progress_is_due_after_a_stall_that_began_late() {
    let late = "seed = 0\nduration = '5s'\nlock = 'single'\nclients = 1\n\
        [nodes]\ncount = 1\npersistence = 'every-write'\n\
        [network]\ncall_timeout = '50ms'\n\
        [workload]\nkind = 'long-work'\nnames = 1\nlease = '1s'\nwatchdog = 'off'\nhold_min = '4s'\nhold_max = '4s'\npoll_cap = '1ms'\nbackoff_cap = '1ms'\n\
        [[faults]]\nkind = 'stall-node'\nat = '0s'\nlasts = '5s'\nnode = 0\nnth = 10\n\
        [[faults]]\nkind = 'stall-node'\nat = '0s'\nlasts = '4s'\nnode = 0\nnth = 10";
    let run = ran(&plan_file::parse(Path::new("late.toml"), late).unwrap());
    assert_eq!(run.effects, [1, 1]);
    assert_eq!(run.verdict, Verdict::Holds);
    let told = run.plan.heals_at().as_nanos();
    assert!(told + SimTime::secs(4).as_nanos() < run.history.healed);
}
