//! Sentinel groups in the lane over sockets: drawn elections under the production adapter.

use std::process::{Command, Output};
use std::rc::Rc;

use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_lab::simulation::run;
use quorlock_sim_lab::turmoil::Lacks;
use quorlock_sim_plan::generator::{Deployment, FaultChoice, PlanGenerator};
use quorlock_sim_plan::{Lane, LockKind, Plan};

fn generator(lock: LockKind, faults: FaultChoice) -> PlanGenerator {
    PlanGenerator {
        lane: Lane::Turmoil,
        deployment: Deployment::Groups,
        lock,
        faults,
        nodes: (lock == LockKind::Redlock).then_some(3),
        ..PlanGenerator::default()
    }
}

/// Runs drawn plans, none of which may break a property.
fn run_all(generator: &PlanGenerator, seeds: std::ops::Range<u64>) -> Vec<Run> {
    let runs = seeds.map(|seed| {
        let plan = generator.plan(seed);
        quorlock_sim_plan::check(&plan).expect("a plan that can be run");
        let ended = run(&Rc::new(plan));
        let is_fine = !matches!(ended.verdict, Verdict::Violated(_));
        assert!(is_fine, "seed {seed}: {:?}", ended.verdict);
        ended
    });
    runs.collect()
}

fn promotions(runs: &[Run]) -> u64 {
    runs.iter().map(|run| run.counters.promotions).sum()
}

#[test]
fn no_drawn_election_breaks_a_lock_whose_claims_count_when_all_replicas_have_them() {
    let runs = run_all(&generator(LockKind::Single, FaultChoice::Inside), 0..24);
    let holds: u32 = runs.iter().map(|run| run.history.holds).sum();
    assert!(24 < promotions(&runs), "{}", promotions(&runs));
    assert!(1_000 < holds, "{holds}");
}

#[test]
fn nor_one_on_several_groups_and_on_a_majority_of_groups() {
    let several = run_all(&generator(LockKind::Multi, FaultChoice::Inside), 0..4);
    let majority = run_all(&generator(LockKind::Redlock, FaultChoice::Inside), 0..4);
    assert!(0 < promotions(&several) && 0 < promotions(&majority));
}

#[test]
fn elections_lose_what_had_not_reached_the_replica_that_is_promoted() {
    let generator = generator(LockKind::Single, FaultChoice::All);
    let mut seeds = 0..40;
    let breaks = |seed: &u64| {
        matches!(
            run(&Rc::new(generator.plan(*seed))).verdict,
            Verdict::Violated(_)
        )
    };
    assert!(seeds.any(|seed| breaks(&seed)));
}

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quorlock-sim"))
        .args(arguments)
        .output()
        .expect("it starts")
}

#[test]
fn another_process_tells_the_same_story_of_an_election() {
    let generator = generator(LockKind::Single, FaultChoice::All);
    let mut elections = 0;
    for seed in 0..3 {
        let plan = Rc::new(generator.plan(seed));
        let here = run(&plan);
        assert_eq!(here.trace, run(&plan).trace);
        let seed = seed.to_string();
        let output = sim(&[
            "run",
            "--json",
            "--lane",
            "turmoil",
            "--deployment",
            "sentinels",
            "--lock",
            "single",
            "--faults",
            "all",
            "--seed",
            &seed,
        ]);
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["trace"], format!("{:016x}", here.trace), "{seed}");
        elections += told["counters"]["promotions"].as_u64().unwrap();
    }
    assert!(0 < elections);
}

#[test]
fn groups_have_dice_of_their_own() {
    let faults = "cut,loss,delay,reset,pause-client,crash-client,cancel,pause-node,crash-node";
    let groups = generator(LockKind::Single, faults.parse().expect("kinds of fault"));
    let servers = PlanGenerator {
        deployment: Deployment::Servers,
        ..groups.clone()
    };
    let mut drawn = 0;
    for seed in 0..50 {
        let (servers, groups) = (servers.plan(seed), groups.plan(seed));
        assert!(servers.nodes.sentinels.is_none() && groups.nodes.sentinels.is_some());
        assert_eq!(servers.workload, groups.workload, "{seed}");
        assert_eq!(servers.faults, groups.faults, "{seed}");
        drawn += servers.faults.len();
    }
    assert!(100 < drawn, "{drawn}");
}

fn refused(text: &str) -> String {
    let head = "lane = 'turmoil'\nlock = 'single'\n";
    let plan: Plan = toml::from_str(&format!("{head}{text}")).expect("a plan");
    quorlock_sim_plan::check(&plan).expect_err(text).to_string()
}

#[test]
fn what_no_group_can_be_is_refused_with_its_place() {
    let group = |sentinels: &str| {
        format!("nodes = {{ count = 1, replicas = 1, sentinels = {{ {sentinels} }} }}")
    };
    let fault = |fault: &str| {
        format!(
            "{}\nfaults = [{{ at = '1s', node = 0, {fault} }}]",
            group("count = 3")
        )
    };
    for (text, place) in [
        (
            "nodes = { count = 1, sentinels = { count = 3 } }".to_owned(),
            "nodes.sentinels: sentinels have no replica",
        ),
        (group("count = 0"), "nodes.sentinels.count: 0"),
        (group("count = 8"), "nodes.sentinels.count: 8"),
        (group("quorum = 4"), "nodes.sentinels.quorum: 4"),
        (group("quorum = 0"), "nodes.sentinels.quorum: 0"),
        (
            group("down_after = '1ms'"),
            "nodes.sentinels.down_after: 1ms",
        ),
        (
            group("election = '2000s'"),
            "nodes.sentinels.election: 2000s",
        ),
        (
            fault("kind = 'pause-sentinel', lasts = '1ms', sentinel = 3"),
            "faults[0].sentinel: there is no sentinel 3, only 3",
        ),
        (
            fault("kind = 'isolate-primary', lasts = '1ms', clients = [3], sentinels = []"),
            "faults[0].client: there is no client 3",
        ),
        (
            fault("kind = 'isolate-primary', lasts = '1ms', clients = [], sentinels = [0, 5]"),
            "faults[0].sentinel: there is no sentinel 5",
        ),
        (
            fault("kind = 'failover', replica = 0, rejoin_after = '1ms'"),
            "faults[0].kind: sentinels decide who is promoted",
        ),
        (
            "faults = [{ kind = 'sentinel-failover', at = '1s', node = 0 }]".to_owned(),
            "faults[0].kind: there are no sentinels",
        ),
        (
            "variant = 'deaf-clients'".to_owned(),
            "variant: deaf-clients has a flaw in the way to a group",
        ),
    ] {
        let error = refused(&text);
        assert!(error.starts_with(place), "{text}: {error}");
    }
    let unknown = toml::from_str::<Plan>(&group("many = 3")).unwrap_err();
    assert!(unknown.to_string().contains("many"), "{unknown}");
}

#[test]
fn the_fast_lane_has_no_sentinels_and_says_so() {
    let mut plan = generator(LockKind::Single, FaultChoice::None).plan(0);
    plan.lane = Lane::Fast;
    assert_eq!(Lacks::check(&plan), Err(Lacks::Sentinels));
    let explored = sim(&["explore", "--seeds", "0..2", "--deployment", "sentinels"]);
    assert_eq!(explored.status.code(), Some(1));
    let why = String::from_utf8_lossy(&explored.stderr).into_owned();
    assert!(why.contains("use the lane turmoil"), "{why}");
}
