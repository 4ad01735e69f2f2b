//! `quorlock-sim chaos` on real servers. Without `redis-server`, these tests are listed as ignored.

mod marked;

use std::process::Output;

use quorlock_testbed::trials;
use quorlock_testbed::wait::patiently;

use marked::Marked;

/// Returns a test. A storm runs on its own processes, so it does not matter that it blocks a thread.
macro_rules! storms {
    ($($test:ident),* $(,)?) => {
        vec![$(trials::trial(stringify!($test), async || $test())),*]
    };
}

fn main() {
    trials::run(
        4,
        storms![
            a_killed_command_leaves_nothing_behind,
            a_plan_runs_on_real_servers_and_leaves_nothing_behind,
            servers_load_look_new_and_lose_replicas_and_clients_have_clocks_of_their_own,
            a_fault_that_cannot_be_had_is_named_with_its_reason,
            a_server_without_memory_evicts_the_claim_that_the_plan_names,
            evictions_that_holders_are_told_of_make_nothing_else_go_wrong,
            names_on_different_nodes_are_locked_together,
            sentinels_replace_a_killed_primary_and_clients_find_the_next_one,
        ],
    )
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!(
        "{}{}",
        String::from_utf8_lossy(out),
        String::from_utf8_lossy(err)
    )
}

/// Some of the command's processes are stopped when the command is killed. SIGKILL ends those processes, too.
fn a_killed_command_leaves_nothing_behind() {
    let marked = Marked::new();
    let storm = [
        "chaos",
        "--class",
        "client pauses",
        "--lock",
        "ours",
        "--minutes",
        "5",
    ];
    let mut command = marked.command(&storm).spawn().expect("it starts");
    // There are eight clients and three servers, each with a guardian.
    patiently("a client is stopped", || {
        (22 <= marked.processes().len() && marked.has_stopped()).then_some(())
    });
    assert!(0 < marked.folders());
    command.kill().expect("it runs");
    command.wait().expect("it was killed");
    patiently("all of its processes are gone", || {
        marked.processes().is_empty().then_some(())
    });
    patiently("all of its folders are gone", || {
        (marked.folders() == 0).then_some(())
    });
}

const PLAN: &str = r#"
duration = "500ms"
clients = 3

[nodes]
count = 3
persistence = "memory"

[network]
min = "10us"
max = "100us"
call_timeout = "30ms"
connect_timeout = "30ms"

[workload]
lease = "150ms"
hold_min = "0ms"
hold_max = "60ms"
think_min = "0ms"
think_max = "5ms"

[[faults]]
kind = "crash-node"
node = 1
at = "20ms"
every = "100ms"
times = 3
restart_after = "10ms"

[[faults]]
kind = "pause-client"
client = "holder"
at = "50ms"
lasts = "100ms"
"#;

fn a_plan_runs_on_real_servers_and_leaves_nothing_behind() {
    let observed = runs_well(PLAN);
    let number = |key: &str| observed.get(key).and_then(serde_json::Value::as_u64);
    assert_eq!(number("faults"), Some(4), "{observed}");
    assert!(Some(5) <= number("holds"), "{observed}");
    let waits = observed
        .get("waits")
        .expect("half of the waits have a bound");
    let judged = waits.get("judged").and_then(serde_json::Value::as_u64);
    assert!(Some(1) <= judged, "{observed}");
}

/// Both nodes have one of the names, and each restarts once without breaking anything: they keep their data.
fn names_on_different_nodes_are_locked_together() {
    let plan = PLAN.replace("count = 3", "count = 2");
    let plan = plan.replace("\"memory\"", "\"every-write\"");
    let plan = plan.replace("clients = 3", "clients = 3\nlock = \"multi\"");
    let plan = plan.replace("[workload]", "[workload]\nnames = 2");
    let observed = runs_well(&plan);
    let number = |key: &str| observed.get(key).and_then(serde_json::Value::as_u64);
    assert!(Some(5) <= number("holds"), "{observed}");
    assert!(Some(1) <= number("hand_overs"), "{observed}");
}

fn a_server_without_memory_evicts_the_claim_that_the_plan_names() {
    evicts(EVICTIONS, &["faults", "overlaps"]);
}

/// Each holder is told of its eviction, so it need not overlap with the next one: how soon is measured, and not tested here.
fn evictions_that_holders_are_told_of_make_nothing_else_go_wrong() {
    let plan = format!("{EVICTIONS}\n[remedies]\nwatch_claims = true\n");
    evicts(&plan, &["faults"]);
}

/// Runs a plan with evictions until each of these was observed at least once in a run. A machine may be so busy for the half second of a
/// plan that no claim is there to evict.
fn evicts(plan: &str, expected: &[&str]) {
    let mut observed = Vec::new();
    for _ in 0..8 {
        let run = evicted(plan);
        let number = |key: &&str| run.get(*key).and_then(serde_json::Value::as_u64);
        if expected.iter().map(number).all(|number| Some(1) <= number) {
            return;
        }
        observed.push(run);
    }
    panic!("no run had {expected:?}: {observed:?}");
}

/// Runs a plan with evictions, and returns what was observed. Only an eviction by the server counts as a fault here.
fn evicted(plan: &str) -> serde_json::Value {
    let marked = Marked::new();
    let file = tempfile::NamedTempFile::with_suffix(".toml").expect("a file");
    std::fs::write(file.path(), plan).expect("it can be written to");
    let path = file.path().to_str().expect("a path");
    let output = marked
        .command(&["chaos", path, "--json"])
        .output()
        .expect("it runs");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("JSON: {}", text(&output)));
    let observed = told.get("observed").expect("what was observed").clone();
    for never in ["complaints", "orphans", "overrun"] {
        assert!(observed.get(never).is_none(), "{never}: {observed}");
    }
    // On a busy machine an eviction may not be answered in time. Nothing else may keep the server from evicting.
    let lacking = observed
        .get("lacking")
        .and_then(serde_json::Value::as_object);
    let mut reasons = lacking.into_iter().flat_map(serde_json::Map::keys);
    assert!(reasons.all(|why| why == "timed out"), "{observed}");
    assert_eq!(marked.processes().len(), 0);
    assert_eq!(marked.folders(), 0);
    observed
}

const EVICTIONS: &str = r#"
lock = "single"
duration = "600ms"
clients = 3
not_demanded = ["exclusion"]

[nodes]
count = 1

[network]
min = "10us"
max = "100us"
call_timeout = "30ms"
connect_timeout = "30ms"

[workload]
lease = "150ms"
hold_min = "30ms"
hold_max = "80ms"
think_min = "0ms"
think_max = "1ms"
poll_cap = "10ms"

[[faults]]
kind = "evict"
node = 0
name = 0
at = "50ms"
every = "50ms"
times = 10
"#;

/// Runs a plan that breaks nothing, and returns what was observed.
fn runs_well(plan: &str) -> serde_json::Value {
    let marked = Marked::new();
    let file = tempfile::NamedTempFile::with_suffix(".toml").expect("a file");
    std::fs::write(file.path(), plan).expect("it can be written to");
    let path = file.path().to_str().expect("a path");
    let output = marked
        .command(&["chaos", path, "--json"])
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(marked.processes().len(), 0);
    assert_eq!(marked.folders(), 0);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let observed = told.get("observed").expect("what was observed");
    let overlaps = observed.get("overlaps").and_then(serde_json::Value::as_u64);
    assert_eq!(overlaps, Some(0), "{observed}");
    for never in [
        "exclusion",
        "fencing",
        "usage",
        "orphans",
        "overrun",
        "lacking",
        "complaints",
    ] {
        assert!(observed.get(never).is_none(), "{never}: {observed}");
    }
    observed.clone()
}

const MORE: &str = r#"
duration = "600ms"
clients = 3

[nodes]
count = 3
replicas = 1
persistence = "every-write"

[network]
min = "10us"
max = "100us"
call_timeout = "30ms"
connect_timeout = "30ms"

[workload]
lease = "150ms"
hold_min = "30ms"
hold_max = "60ms"
think_min = "0ms"
think_max = "5ms"

[[faults]]
kind = "server-error"
node = 0
error = "loading"
at = "20ms"
lasts = "100ms"

[[faults]]
kind = "server-error"
node = 1
error = "busy"
at = "20ms"
lasts = "50ms"

[[faults]]
kind = "crash-node"
node = 2
replica = 0
at = "20ms"
restart_after = "10ms"

[[faults]]
kind = "slow-replication"
node = 2
replica = 0
by = "20ms"
at = "200ms"
lasts = "50ms"

[[faults]]
kind = "backup"
nodes = [0, 1]
at = "250ms"

[[faults]]
kind = "suspend-client"
client = 0
clock = "counts"
at = "100ms"
lasts = "200ms"

[[faults]]
kind = "client-rate"
client = 1
rate_ppm = 4000
at = "100ms"

[[faults]]
kind = "client-step"
client = 2
by = "-100s"
at = "100ms"
"#;

fn servers_load_look_new_and_lose_replicas_and_clients_have_clocks_of_their_own() {
    let observed = runs_well(MORE);
    let number = |key: &str| observed.get(key).and_then(serde_json::Value::as_u64);
    assert_eq!(number("faults"), Some(8), "{observed}");
    assert!(Some(5) <= number("holds"), "{observed}");
}

fn a_fault_that_cannot_be_had_is_named_with_its_reason() {
    let marked = Marked::new();
    let file = tempfile::NamedTempFile::with_suffix(".toml").expect("a file");
    let (settings, _) = PLAN.split_once("[[faults]]").expect("it has faults");
    let loss =
        "[[faults]]\nkind = \"loss\"\nof_million = 100000\nat = \"20ms\"\nlasts = \"100ms\"\n";
    std::fs::write(file.path(), format!("{settings}{loss}")).expect("it can be written to");
    let path = file.path().to_str().expect("a path");
    let output = marked.command(&["chaos", path]).output();
    let told = text(&output.expect("it runs"));
    assert!(told.contains("TCP sends again what is lost"), "{told}");
}

const GROUP: &str = r#"
lane = "turmoil"
lock = "single"
duration = "800ms"
clients = 3

[nodes]
count = 1
persistence = "every-write"
replicas = 1
replication_lag = "1ms"

[nodes.sentinels]
down_after = "50ms"

[network]
min = "10us"
max = "100us"
call_timeout = "30ms"
connect_timeout = "600ms"

[workload]
lease = "150ms"
hold_min = "0ms"
hold_max = "60ms"
think_min = "0ms"
think_max = "5ms"

# The primary stays down until the run ends, so all later holds are on the server that the sentinels promote.
[[faults]]
kind = "crash-node"
node = 0
at = "20ms"
restart_after = "780ms"
"#;

/// A client that did not find the promoted server would win nothing in the last seconds.
fn sentinels_replace_a_killed_primary_and_clients_find_the_next_one() {
    let marked = Marked::new();
    let plan = tempfile::NamedTempFile::with_suffix(".toml").expect("a file");
    std::fs::write(plan.path(), GROUP).expect("it can be written to");
    let path = plan.path().to_str().expect("a path");
    let output = marked
        .command(&["chaos", path, "--json"])
        .output()
        .expect("it runs");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("JSON: {}", text(&output)));
    let observed = told.get("observed").expect("what was observed");
    let number = |key: &str| observed.get(key).and_then(serde_json::Value::as_u64);
    assert_eq!(number("faults"), Some(1), "{observed}");
    // In the first 0.2 s a client wins a few times at most.
    assert!(Some(20) <= number("holds"), "{observed}");
    for never in ["orphans", "lacking", "complaints"] {
        assert!(observed.get(never).is_none(), "{never}: {observed}");
    }
    assert_eq!(marked.processes().len(), 0);
    assert_eq!(marked.folders(), 0);
}
