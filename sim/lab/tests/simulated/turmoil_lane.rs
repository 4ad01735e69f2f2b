//! The turmoil lane. The same plans run through the production adapter and the real Lua scripts, deterministically and
//! with the same verdicts.

use std::collections::BTreeSet;
use std::process::{Command, Output};
use std::rc::Rc;

use quorlock_sim_lab::simulation::run;
use quorlock_sim_lab::study::scenario::{CaseVerdict, Depth, built_in, find};
use quorlock_sim_lab::turmoil::Lacks;
use quorlock_sim_plan::PlanError;
use quorlock_sim_plan::generator::{FaultChoice, PlanGenerator};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{Lane, LockKind, Plan, WorkloadKind};

const LOCKS: [(LockKind, &str); 3] = [
    (LockKind::Single, "single"),
    (LockKind::Multi, "multi"),
    (LockKind::Redlock, "redlock"),
];

fn plan(lock: LockKind, faults: FaultChoice, seed: u64) -> Rc<Plan> {
    let generator = PlanGenerator {
        lane: Lane::Turmoil,
        lock,
        faults,
        nodes: (lock == LockKind::Redlock).then_some(3),
        clients: Some(2),
        duration: Some(SimTime::millis(600)),
        ..PlanGenerator::default()
    };
    Rc::new(generator.plan(seed))
}

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quorlock-sim"))
        .args(arguments)
        .output()
        .expect("it starts")
}

#[test]
fn another_process_tells_the_same_story() {
    for (lock, name) in LOCKS {
        for seed in 0..2 {
            let here = run(&plan(lock, FaultChoice::All, seed));
            assert_eq!(here.trace, run(&plan(lock, FaultChoice::All, seed)).trace);
            let nodes = if lock == LockKind::Redlock {
                &["--nodes", "3"][..]
            } else {
                &[]
            };
            let seed = seed.to_string();
            let fixed = [
                "run",
                "--json",
                "--lane",
                "turmoil",
                "--faults",
                "all",
                "--clients",
                "2",
            ];
            let drawn = ["--duration", "600ms", "--lock", name, "--seed", &seed];
            let output = sim(&[&fixed[..], &drawn[..], nodes].concat());
            let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(
                told["trace"],
                format!("{:016x}", here.trace),
                "{name} {seed}"
            );
        }
    }
}

#[test]
fn what_the_assumptions_allow_breaks_nothing_and_what_happens_is_not_nothing() {
    let mut holds = 0;
    for (lock, name) in LOCKS {
        for seed in 0..4 {
            let ended = run(&plan(lock, FaultChoice::Inside, seed));
            let is_fine = !matches!(ended.verdict, quorlock_sim_check::run::Verdict::Violated(_));
            assert!(is_fine, "{name} {seed}: {:?}", ended.verdict);
            holds += ended.history.holds;
            assert!(0 < ended.counters.commands, "{name} {seed}");
        }
    }
    assert!(40 < holds, "{holds}");
}

#[test]
fn fair_and_read_write_locks_do_here_what_they_are_to_do() {
    for kind in [WorkloadKind::Fair, WorkloadKind::ReadWrite] {
        let mut holds = 0;
        for (lock, name) in LOCKS {
            if kind == WorkloadKind::Fair && lock == LockKind::Redlock {
                // Queues on several nodes have no common order.
                continue;
            }
            for seed in 0..3 {
                let mut plan = (*plan(lock, FaultChoice::Inside, seed)).clone();
                plan.workload.kind = kind;
                quorlock_sim_plan::check(&plan).unwrap();
                let ended = run(&Rc::new(plan));
                let is_fine =
                    !matches!(ended.verdict, quorlock_sim_check::run::Verdict::Violated(_));
                assert!(is_fine, "{kind:?} {name} {seed}: {:?}", ended.verdict);
                holds += ended.history.holds;
            }
        }
        assert!(40 < holds, "{kind:?}: {holds}");
    }
}

/// One or two cases of each part of the catalog that run quickly.
const CHOSEN: [&str; 6] = ["S7", "S9", "S18", "R4", "M3", "Q8"];

#[test]
fn cases_of_the_catalog_come_to_the_same_verdict_as_in_the_fast_lane() {
    let mut wrong = Vec::new();
    let mut ran = 0;
    for id in CHOSEN {
        for mut case in find(id).unwrap().cases {
            case.plan.lane = Lane::Turmoil;
            // A break is found with the first seeds or never. Cases that hold run for longer on the command line.
            case.seeds = case.seeds.min(match case.expect.property() {
                Some(_) => 60,
                None => 1,
            });
            let judged = case.judge(Depth::UntilFound);
            match judged.verdict {
                CaseVerdict::AsExpected => ran += 1,
                CaseVerdict::NotInLane(_) => {}
                other => wrong.push(format!("{id}, {}: {other:?}", case.name)),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(CHOSEN.len() <= ran, "{ran}");
}

const PAGE: &str = include_str!("../../../../docs/src/simulator.md");

#[test]
fn the_page_lists_every_case_that_is_not_in_this_lane_and_no_other() {
    let (_, listed) = PAGE
        .split_once("| scenario | case | what it needs |\n|---|---|---|\n")
        .expect("the table");
    let listed = listed.lines().take_while(|line| line.starts_with('|'));
    let listed: BTreeSet<(String, String)> = listed
        .map(|line| {
            let mut cells = line.split('|').skip(1).map(|cell| cell.trim().to_owned());
            cells.next().zip(cells.next()).expect("two cells")
        })
        .collect();
    let mut left_out = BTreeSet::new();
    for scenario in built_in().unwrap() {
        for mut case in scenario.cases {
            case.plan.lane = Lane::Turmoil;
            if case.fast_only.is_some() || Lacks::check(&case.plan).is_err() {
                left_out.insert((scenario.id.clone(), case.name));
            }
        }
    }
    assert_eq!(listed, left_out);
}

#[test]
fn what_the_lane_lacks_is_refused_by_name_and_never_left_out_in_silence() {
    let (mut missing, mut cases) = (0_u32, 0_u32);
    for scenario in built_in().unwrap() {
        for mut case in scenario.cases {
            // Stores have no place in this lane at all.
            let has_servers = case.plan.nodes.kinds.is_empty();
            cases += u32::from(has_servers);
            case.plan.lane = Lane::Turmoil;
            match Lacks::check(&case.plan) {
                Ok(()) => quorlock_sim_plan::check(&case.plan).unwrap(),
                Err(lacks) => {
                    missing += u32::from(has_servers);
                    let refused = quorlock_sim_plan::check(&case.plan).unwrap_err();
                    assert!(matches!(refused, PlanError::Lacks(known) if known == lacks));
                    case.seeds = 1;
                    let judged = case.judge(Depth::UntilFound);
                    assert_eq!(judged.verdict, CaseVerdict::NotInLane(lacks.to_string()));
                }
            }
        }
    }
    assert!(0 < missing && 6 * missing < cases, "{missing} of {cases}");
    let explored = [
        "explore",
        "--seeds",
        "0..2",
        "--lane",
        "turmoil",
        "--faults",
        "duplicate",
    ];
    let refused = sim(&explored);
    assert_eq!(refused.status.code(), Some(1));
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        why.contains("duplicate") && why.contains("turmoil"),
        "{why}"
    );
    let told = sim(&["scenarios", "Q31", "--lane", "turmoil"]);
    assert_eq!(told.status.code(), Some(0));
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("not in this lane"), "{told}");
    let page = sim(&["report", "no-such-plan", "-o", "x.html"]);
    assert_eq!(page.status.code(), Some(1));
}

/// Shrinking and writers of plans may set such time-outs: no client gets a lock then, and that is a verdict.
#[test]
fn time_outs_that_are_shorter_than_a_handshake_are_simulated() {
    for timeout in [SimTime::millis(1), SimTime::millis(3), SimTime::millis(4)] {
        let mut plan = (*plan(LockKind::Redlock, FaultChoice::None, 1)).clone();
        plan.network.call_timeout = timeout;
        plan.network.connect_timeout = timeout;
        let holds = run(&Rc::new(plan)).history.holds;
        assert_eq!(0 < holds, SimTime::millis(4) <= timeout, "{holds} holds");
    }
}
