//! `quorlock-sim chaos` on real servers. Without `redis-server`, these tests are listed as ignored.

#![expect(
    clippy::disallowed_methods,
    reason = "these processes live on the real machine"
)]

mod marked;

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};

use marked::Marked;

fn main() {
    let is_there = Command::new("redis-server")
        .arg("--version")
        .output()
        .is_ok();
    let is_required = std::env::var_os("QUORLOCK_REQUIRE_REDIS").is_some();
    let is_ignored = !is_there && !is_required;
    let trial = |name: &str, test: fn()| {
        let run = move || -> Result<(), Failed> {
            test();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(is_ignored)
    };
    let trials = vec![
        trial(
            "a_killed_command_leaves_nothing_behind",
            a_killed_command_leaves_nothing_behind,
        ),
        trial(
            "a_plan_runs_on_real_servers_and_leaves_nothing_behind",
            a_plan_runs_on_real_servers_and_leaves_nothing_behind,
        ),
        trial(
            "a_class_that_cannot_be_had_says_why",
            a_class_that_cannot_be_had_says_why,
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Polls a condition until it holds.
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
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
    wait_until("a client is stopped", || {
        22 <= marked.processes().len() && marked.has_stopped()
    });
    assert!(0 < marked.folders());
    command.kill().expect("it runs");
    command.wait().expect("it was killed");
    wait_until("all of its processes are gone", || {
        marked.processes().is_empty()
    });
    wait_until("all of its folders are gone", || marked.folders() == 0);
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
    let marked = Marked::new();
    let plan = tempfile::NamedTempFile::with_suffix(".toml").expect("a file");
    std::fs::write(plan.path(), PLAN).expect("it can be written to");
    let path = plan.path().to_str().expect("a path");
    let output = marked
        .command(&["chaos", path, "--json"])
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", text(&output));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let observed = told.get("observed").expect("what was observed");
    let number = |key: &str| observed.get(key).and_then(serde_json::Value::as_u64);
    assert_eq!(number("faults"), Some(4), "{observed}");
    assert!(Some(5) <= number("holds"), "{observed}");
    assert_eq!(number("overlaps"), Some(0), "{observed}");
    for never in [
        "exclusion",
        "fencing",
        "usage",
        "orphans",
        "lacking",
        "complaints",
    ] {
        assert!(observed.get(never).is_none(), "{never}: {observed}");
    }
    assert_eq!(marked.processes().len(), 0);
    assert_eq!(marked.folders(), 0);
}

fn a_class_that_cannot_be_had_says_why() {
    let marked = Marked::new();
    let output = marked
        .command(&["chaos", "--class", "suspend"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output).contains("cannot suspend its machine"),
        "{}",
        text(&output)
    );
}
