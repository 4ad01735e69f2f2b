//! Runs of many seeds: their results, and the failures that are written.

use std::path::Path;

use super::{folder, sim, stderr};

#[test]
fn exit_codes_say_what_came_of_it() {
    let out = folder("codes");
    let out = out.to_str().unwrap();
    let good = sim(&["explore", "--seeds", "0..20", "--out", out]);
    assert_eq!(good.status.code(), Some(0), "{}", stderr(&good));
    let bad = [
        "explore", "--seeds", "0..300", "--faults", "all", "--lock", "single",
    ];
    let bad = sim(&[&bad[..], &["--out", out]].concat());
    assert_eq!(bad.status.code(), Some(2));
    for usage in [
        &["explore", "--seeds", "9"][..],
        &["explore", "--faults", "earthquake"],
        &["explore", "--shard", "3/3"],
        &["explore", "--clients", "0"],
        &["dance"],
        &["replay", "/no/such/file"],
        &["report", "/no/such/file", "-o", "page.html"],
        &["shrink", "/no/such/file", "-o", "small.json"],
    ] {
        assert_eq!(sim(usage).status.code(), Some(1), "{usage:?}");
    }
    for help in [
        "explore", "run", "replay", "serve", "shrink", "report", "merge", "bench",
    ] {
        let output = sim(&[help, "--help"]);
        assert_eq!(output.status.code(), Some(0));
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("Example"),
            "{help}"
        );
    }
}

#[test]
fn runs_that_are_made_twice_print_what_they_print_alone() {
    for command in [
        &["run", "--seed", "42", "--faults", "all"][..],
        &[
            "explore", "--seeds", "0..12", "--faults", "all", "--lock", "single", "--hashes",
        ],
        &[
            "explore", "--seeds", "0..2", "--lane", "turmoil", "--hashes",
        ],
        &["scenarios", "S1", "--seeds", "3", "--json"],
    ] {
        let once = sim(command);
        let twice = sim(&[command, &["--check-determinism"]].concat());
        assert_eq!(
            once.status.code(),
            twice.status.code(),
            "{}",
            stderr(&twice)
        );
        assert!(!once.stdout.is_empty());
        assert_eq!(once.stdout, twice.stdout, "{command:?}");
    }
}

#[test]
fn a_failure_is_written_and_the_last_line_replays_it() {
    let out = folder("failures");
    let explored = sim(&[
        "explore",
        "--seeds",
        "0..300",
        "--faults",
        "all",
        "--lock",
        "single",
        "--out",
        out.to_str().unwrap(),
    ]);
    let text = String::from_utf8(explored.stdout).unwrap();
    let last = text.lines().last().unwrap();
    let file = last.strip_prefix("quorlock-sim replay ").unwrap();
    let replayed = sim(&["replay", file, "--json"]);
    assert_eq!(replayed.status.code(), Some(2), "{}", stderr(&replayed));
    let told: serde_json::Value = serde_json::from_slice(&replayed.stdout).unwrap();
    let written = std::fs::read_to_string(file).unwrap();
    assert!(written.contains(told["trace"].as_str().unwrap()));

    let other = written.replacen(env!("CARGO_PKG_VERSION"), "0.0.0", 1);
    std::fs::write(file, other).unwrap();
    let refused = sim(&["replay", file]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("written by version 0.0.0"));
    std::fs::write(file, "{}").unwrap();
    assert!(stderr(&sim(&["replay", file])).contains("not a failure"));
}

#[test]
fn hashes_are_printed_seed_by_seed_and_are_those_of_the_runs() {
    let base = ["explore", "--seeds", "7..19", "--faults", "all", "--hashes"];
    let whole = sim(&base);
    assert_eq!(whole.status.code(), Some(0), "{}", stderr(&whole));
    let text = String::from_utf8(whole.stdout).unwrap();
    let lines: Vec<(&str, &str)> = text
        .lines()
        .map(|line| line.split_once(' ').expect("a seed and a hash"))
        .collect();
    let seeds: Vec<u64> = lines
        .iter()
        .map(|(seed, _)| seed.parse().unwrap())
        .collect();
    assert_eq!(seeds, (7..19).collect::<Vec<_>>());
    for (seed, hash) in &lines[..3] {
        let run = sim(&["run", "--seed", seed, "--faults", "all", "--json"]);
        let run: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        assert_eq!(run["trace"], **hash, "seed {seed}");
    }
    let part = sim(&[&base[..], &["--shard", "1/3", "--jobs", "1"]].concat());
    let part = String::from_utf8(part.stdout).unwrap();
    let every_third: Vec<&str> = text.lines().skip(1).step_by(3).collect();
    assert_eq!(part.lines().collect::<Vec<_>>(), every_third);
}

/// Returns the first failure that a campaign finds.
pub(super) fn failure(folder: &Path) -> String {
    let out = folder.to_str().expect("a path");
    let explore = ["explore", "--seeds", "0..300", "--faults", "all"];
    let explored = sim(&[&explore[..], &["--lock", "single", "--out", out]].concat());
    let text = String::from_utf8(explored.stdout).expect("text");
    let last = text.lines().last().expect("a line");
    last.strip_prefix("quorlock-sim replay ")
        .expect("a failure")
        .to_owned()
}

#[test]
fn a_campaign_writes_a_hundred_failures_at_most_on_however_many_threads() {
    let folder = folder("hundred");
    let out = folder.to_str().unwrap();
    let generator = [
        "--lock",
        "single",
        "--variant",
        "set-nx-del",
        "--faults",
        "pause-client",
        "--nodes",
        "1",
    ];
    let explore = [
        "explore",
        "--seeds",
        "0..700",
        "--keep-going",
        "--jobs",
        "8",
    ];
    let explored = sim(&[&explore[..], &generator, &["--out", out, "--json"]].concat());
    let summary: serde_json::Value = serde_json::from_slice(&explored.stdout).unwrap();
    let failed = summary["cells"][0]["failed"].as_object().unwrap();
    let violated = failed.values().filter_map(|count| count["runs"].as_u64());
    let violated: u64 = violated.sum();
    assert!(120 < violated, "{violated}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 100);
}

#[test]
fn a_failure_is_shrunk_and_the_small_one_replays() {
    let folder = folder("shrink");
    let file = failure(&folder);
    let small = folder.join("small/one.json");
    let small = small.to_str().unwrap();
    let shrunk = sim(&["shrink", &file, "-o", small, "--json", "--runs", "1500"]);
    // The command succeeded: the failure that it shrank is its result.
    assert_eq!(shrunk.status.code(), Some(0), "{}", stderr(&shrunk));
    let told: serde_json::Value = serde_json::from_slice(&shrunk.stdout).unwrap();
    let size = |when: &str, what: &str| told[when][what].as_u64().unwrap();
    assert!(size("after", "faults") < size("before", "faults"), "{told}");
    assert!(size("after", "events") < size("before", "events"), "{told}");
    assert_eq!(sim(&["replay", small]).status.code(), Some(2));

    let good = folder.join("good.toml");
    std::fs::write(&good, "clients = 2").unwrap();
    let refused = sim(&["shrink", good.to_str().unwrap(), "-o", small]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("good.toml: this does not fail"));
}

#[test]
fn a_break_that_needs_more_seeds_than_were_given_is_no_failure() {
    let folder = folder("few-seeds");
    let file = folder.join("rare.toml");
    let scenario = |seeds: u64| {
        format!(
            "id = \"rare\"\ntitle = \"rare\"\nseeds = {seeds}\nlock = \"single\"\n[nodes]\ncount = 1\n\
             [[case]]\nexpect = \"breaks\"\nproperty = \"exclusion\"\n"
        )
    };
    let path = file.to_str().unwrap();
    std::fs::write(&file, scenario(300)).unwrap();
    let few = sim(&["scenarios", path, "--seeds", "2"]);
    let text = String::from_utf8(few.stdout).unwrap();
    assert_eq!(few.status.code(), Some(0), "{text}");
    assert!(
        text.contains("not shown: needs 300 seeds, was given 2"),
        "{text}"
    );
    assert!(text.contains("0 as expected, 0 not, 1 not shown"), "{text}");
    // With all seeds of the scenario, the missing failure is an error.
    std::fs::write(&file, scenario(2)).unwrap();
    let all = sim(&["scenarios", path, "--seeds", "2"]);
    let text = String::from_utf8(all.stdout).unwrap();
    assert_eq!(all.status.code(), Some(4), "{text}");
    assert!(text.contains("NOT FOUND: exclusion"), "{text}");
}
