//! The page about plans must have an example of everything that a plan can contain, and every example must run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use quorlock_sim_lab::plan_file;
use quorlock_sim_lab::study::scenario;
use quorlock_sim_plan::WorkloadKind;
use quorlock_sim_plan::fault::Kind;
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::variant::Variant;
use quorlock_sim_plan::{
    AssertedRestarts, Cluster, Lane, LockKind, MinReplicas, Network, NodeKind, Nodes, Persistence,
    Plan, Remedies, Sentinels, Wait, Watchdog, Workload,
};
use toml::{Table, Value};

const PAGE: &str = include_str!("../../../../docs/src/plans.md");

/// Returns the examples on the page, as written there.
fn examples() -> Vec<&'static str> {
    let mut examples = Vec::new();
    let mut rest = PAGE;
    while let Some((_, from)) = rest.split_once("```toml\n") {
        let (example, after) = from.split_once("```").expect("an example ends");
        examples.push(example);
        rest = after;
    }
    examples
}

/// Collects the fields of a table, `a.b` for a field of an inner table. Lists of tables are left out.
fn fields(table: &Table, prefix: &str, found: &mut BTreeSet<String>) {
    for (key, value) in table {
        match value {
            Value::Table(inner) => fields(inner, &format!("{prefix}{key}."), found),
            _ => {
                found.insert(format!("{prefix}{key}"));
            }
        }
    }
}

/// Collects the fields of faults for each kind.
fn fault_fields(plan: &Table, found: &mut BTreeMap<String, BTreeSet<String>>) {
    let faults = plan.get("faults").and_then(Value::as_array);
    for fault in faults.into_iter().flatten().filter_map(Value::as_table) {
        let kind = fault.get("kind").and_then(Value::as_str).expect("a kind");
        let keys = found.entry(kind.to_owned()).or_default();
        keys.extend(fault.keys().filter(|key| *key != "id").cloned());
    }
}

fn every_field_of_work() -> Workload {
    Workload {
        kind: WorkloadKind::TryStorm,
        names: 1,
        lease: SimTime::secs(1),
        watchdog: Watchdog::On,
        max_hold: Some(SimTime::ZERO),
        longer: 1,
        hold_min: SimTime::ZERO,
        hold_max: SimTime::ZERO,
        think_min: SimTime::ZERO,
        think_max: SimTime::ZERO,
        poll_cap: SimTime::secs(1),
        backoff_cap: SimTime::secs(1),
        checks: 1,
    }
}

/// Returns a plan in which every field is set. All fields are written out, so that a new field must be added here and
/// on the page.
fn every_field() -> Plan {
    Plan {
        seed: 1,
        duration: SimTime::secs(1),
        lane: Lane::Turmoil,
        lock: LockKind::Single,
        variant: Variant::Published,
        clients: 1,
        nodes: Nodes {
            count: 1,
            kinds: vec![NodeKind::Database],
            persistence: Persistence::Memory,
            replicas: 0,
            replication_lag: SimTime::ZERO,
            wait: Some(Wait {
                replicas: 1,
                within: SimTime::ZERO,
            }),
            min_replicas: Some(MinReplicas {
                count: 1,
                max_lag: SimTime::ZERO,
            }),
            sentinels: Some(Sentinels {
                quorum: Some(1),
                ..Sentinels::default()
            }),
            cluster: Some(Cluster::default()),
        },
        network: Network {
            min: SimTime::ZERO,
            max: SimTime::ZERO,
            call_timeout: SimTime::secs(1),
            connect_timeout: SimTime::secs(1),
        },
        remedies: Remedies {
            trust: false,
            restarts: AssertedRestarts::KeepEverything,
            margin: Some(SimTime::ZERO),
            watch_claims: true,
        },
        workload: every_field_of_work(),
        faults: Vec::new(),
        // Outages exist only in property tests of users. They are drawn, not written by hand.
        outages: Vec::new(),
        healed_at: Some(SimTime::ZERO),
        progress_within: Some(SimTime::ZERO),
        idle_within: Some(SimTime::ZERO),
        free_within: Some(SimTime::ZERO),
        holds_last: true,
        not_demanded: vec![Property::Fencing],
    }
}

#[test]
fn every_example_can_be_run_and_everything_has_an_example() {
    let (mut written, mut faults) = (BTreeSet::new(), BTreeMap::new());
    let mut known = BTreeMap::new();
    for example in examples() {
        let mut table: Table = toml::from_str(example).expect("a plan is a table");
        let page = Path::new("plans.md");
        if table.contains_key("case") {
            scenario::parse(page, example).unwrap_or_else(|e| panic!("{example}\n{e}"));
            continue;
        }
        let plan = plan_file::parse(page, example).unwrap_or_else(|e| panic!("{example}\n{e}"));
        plan_file::picture(page, example).unwrap_or_else(|e| panic!("{example}\n{e}"));
        // Shorthand and what a picture shows are not part of the plan.
        table.remove("defaults");
        table.remove("picture");
        fields(&table, "", &mut written);
        fault_fields(&table, &mut faults);
        // When a fault has been read and is written again, it has all its fields.
        let whole = Table::try_from(&plan).expect("a plan is a table");
        fault_fields(&whole, &mut known);
    }
    let mut all = BTreeSet::new();
    let whole = Table::try_from(every_field()).expect("a plan is a table");
    fields(&whole, "", &mut all);
    all.remove("faults");
    written.remove("faults");
    assert_eq!(written, all);
    let kinds: BTreeSet<String> = Kind::ALL
        .iter()
        .map(|kind| kind.name().to_owned())
        .collect();
    assert_eq!(faults.keys().cloned().collect::<BTreeSet<_>>(), kinds);
    assert_eq!(faults, known, "each kind with all its fields");
}

#[test]
fn an_empty_file_is_the_plan_that_the_page_says() {
    let section = PAGE.split("## The defaults").nth(1).expect("a section");
    let block = section.split("```toml\n").nth(1).expect("a block");
    let block = block.split("```").next().expect("its end");
    let default = plan_file::write(&Plan::default()).expect("it can be written");
    assert_eq!(block.trim(), default.trim());
    assert_eq!(toml::from_str::<Plan>(""), Ok(Plan::default()));
}

#[test]
fn every_value_is_named() {
    let work = WorkloadKind::ALL.map(WorkloadKind::name);
    let variants = Variant::ALL.iter().map(|variant| variant.name());
    for name in work.into_iter().chain(variants) {
        assert!(PAGE.contains(&format!("| `{name}` |")), "{name}");
    }
}
