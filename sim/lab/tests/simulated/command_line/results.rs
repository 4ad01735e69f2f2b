//! Folders of results: their form, what a killed command leaves of them, and how shards are merged.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use quorlock_sim_lab::study::results::{Row, Stored};
use serde_json::Value;

use super::{folder, sim, stderr};

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

fn rows(results: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let stored = Stored::read(results).expect("results");
    let take = |row: Row| {
        lines.push(row.line());
        Ok(())
    };
    stored.rows(take).expect("rows");
    lines.sort_unstable();
    lines
}

fn manifest(results: &Path) -> Value {
    let text = std::fs::read(results.join("manifest.json")).expect("a manifest");
    serde_json::from_slice(&text).expect("JSON")
}

/// Runs a command with `--results`, and returns its folder.
fn results(folder: &Path, name: &str, arguments: &[&str]) -> PathBuf {
    let results = folder.join(name);
    let out = text(folder);
    let mut all = [arguments, &["--results", text(&results)]].concat();
    if arguments
        .first()
        .is_some_and(|name| ["explore", "matrix"].contains(name))
    {
        all.extend(["--out", out]);
    }
    let output = sim(&all);
    assert_ne!(
        output.status.code(),
        Some(1),
        "{all:?}: {}",
        stderr(&output)
    );
    results
}

const EXPLORE: [&str; 8] = [
    "explore",
    "--seeds",
    "0..60",
    "--faults",
    "all",
    "--lock",
    "single",
    "--keep-going",
];

#[test]
fn rows_and_manifests_have_the_form_of_their_schemas() {
    let folder = folder("schemas");
    let schema = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("schemas")
            .join(name);
        let text = std::fs::read(path).expect("a schema");
        let schema: Value = serde_json::from_slice(&text).expect("JSON");
        jsonschema::draft202012::new(&schema).expect("a schema")
    };
    let (row, whole) = (schema("row.schema.json"), schema("manifest.schema.json"));
    let study = concat!(env!("CARGO_MANIFEST_DIR"), "/../studies/own-algorithm.toml");
    let out = folder.join("pictures");
    let deployment = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../studies/deployments/one-server.toml"
    );
    let commands: [(&str, &[&str]); 5] = [
        ("explore", &EXPLORE),
        (
            "study",
            &["study", study, "--runs", "3", "--out", text(&out)],
        ),
        (
            "rate",
            &[
                "rate",
                deployment,
                "--runs",
                "1000",
                "--relative-error",
                "9",
            ],
        ),
        (
            "matrix",
            &[
                "matrix",
                "--runs",
                "6",
                "--lock",
                "published",
                "--class",
                "steps",
                "--commit",
                "0123456789",
            ],
        ),
        ("scenarios", &["scenarios", "F1"]),
    ];
    for (name, arguments) in commands {
        let results = results(&folder, name, arguments);
        let manifest = manifest(&results);
        let wrong: Vec<String> = whole
            .iter_errors(&manifest)
            .map(|e| e.to_string())
            .collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
        assert_eq!(manifest["law"]["command"], name);
        let lines = rows(&results);
        assert_eq!(manifest["rows"], lines.len(), "{name}");
        for line in &lines {
            let value = serde_json::from_str(line).expect("JSON");
            let wrong: Vec<String> = row.iter_errors(&value).map(|e| e.to_string()).collect();
            assert!(wrong.is_empty(), "{line}: {wrong:?}");
        }
    }
    // A schema that takes anything shows nothing.
    let good: Value = serde_json::from_str(&rows(&folder.join("explore"))[0]).expect("JSON");
    for (key, value) in [
        ("verdict", Value::from("fine")),
        ("seed", Value::from(-1)),
        ("more", Value::Null),
    ] {
        let mut bad = good.clone();
        bad[key] = value;
        assert!(!row.is_valid(&bad), "{bad}");
    }
}

#[test]
fn shards_merge_to_the_rows_and_the_output_of_the_whole() {
    let folder = folder("merged");
    let study = concat!(env!("CARGO_MANIFEST_DIR"), "/../studies/own-algorithm.toml");
    let out = folder.join("pictures");
    let commands: [(&str, &[&str]); 4] = [
        (
            "study",
            &["study", study, "--runs", "7", "--out", text(&out)],
        ),
        ("explore", &EXPLORE),
        (
            "matrix",
            &[
                "matrix",
                "--runs",
                "9",
                "--lock",
                "published",
                "--class",
                "steps",
            ],
        ),
        (
            "scenarios",
            &["scenarios", "S9", "--rates", "--seeds", "20"],
        ),
    ];
    for (name, arguments) in commands {
        let whole = results(&folder, &format!("{name}-whole"), arguments);
        let parts = [0, 1, 2].map(|index| {
            let shard = format!("{index}/3");
            let arguments = [arguments, &["--shard", &shard]].concat();
            results(&folder, &format!("{name}-{index}"), &arguments)
        });
        let merged = folder.join(format!("{name}-merged"));
        let [zero, one, two] = parts.each_ref().map(|part| text(part));
        let merge = sim(&["merge", two, zero, one, "--out", text(&merged), "--json"]);
        assert_eq!(rows(&merged), rows(&whole), "{name}: {}", stderr(&merge));
        let again = sim(&["merge", text(&whole), "--json"]);
        assert_eq!(merge.stdout, again.stdout, "{name}");
        assert_eq!(merge.status.code(), again.status.code(), "{name}");
        let printed: Value = serde_json::from_slice(&merge.stdout).expect("JSON");
        assert_eq!(printed["command"], name);
        let double = sim(&["merge", zero, zero, one]);
        assert_eq!(double.status.code(), Some(1));
        assert!(stderr(&double).contains("shard 0/3 is given twice"));
        let missing = sim(&["merge", one]);
        assert!(stderr(&missing).contains("there is no shard 0/3, 2/3"));
        assert!(missing.stdout.is_empty());
    }
    let [explored, matrix] = ["explore-0", "matrix-1"].map(|name| folder.join(name));
    let unlike = sim(&["merge", text(&explored), text(&matrix)]);
    assert!(
        stderr(&unlike).contains("is of other runs: its"),
        "{}",
        stderr(&unlike)
    );
}

#[test]
fn a_command_that_is_killed_is_continued_to_the_same_rows() {
    let folder = folder("killed");
    // More seeds than run before the first rows are written.
    let mut arguments = EXPLORE;
    arguments[2] = "0..100000";
    let cut = folder.join("cut");
    let command = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorlock-sim"));
        command
            .args(arguments)
            .args(["--out", text(&folder), "--results", text(&cut)]);
        command
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    let mut killed = command(&[]).spawn().expect("it starts");
    let file = cut.join("rows.jsonl.zst");
    let is_begun = || std::fs::metadata(&file).is_ok_and(|file| 0 < file.len());
    while !is_begun() {
        assert!(killed.try_wait().expect("a process").is_none(), "it ended");
        std::thread::yield_now();
    }
    killed.kill().expect("it runs");
    killed.wait().expect("it ends");
    let written = rows(&cut).len();
    assert!(0 < written && written < 100_000, "{written}");
    assert_eq!(manifest(&cut)["is_complete"], false);
    // Some more rows, and then the comparison with runs that nothing interrupts.
    let resumed = command(&["--resume", "--for", "1ms"])
        .status()
        .expect("it starts");
    assert_ne!(resumed.code(), Some(1));
    let lines = rows(&cut);
    assert!(written <= lines.len());
    let mut seen = std::collections::BTreeSet::new();
    for line in &lines {
        let row: Value = serde_json::from_str(line).expect("JSON");
        assert!(seen.insert(row["seed"].as_u64()), "twice: {line}");
    }
    // What is there is what a command has that nothing interrupts.
    let whole = rows(&results(&folder, "whole", &EXPLORE));
    let is_in_both = |line: &&String| {
        let row: Value = serde_json::from_str(line).expect("JSON");
        row["seed"].as_u64() < Some(60)
    };
    let some: Vec<&String> = lines.iter().filter(is_in_both).collect();
    assert!(!some.is_empty());
    assert!(some.iter().all(|line| whole.contains(line)));
}

/// Runs a command with these results, and kills it as soon as `is_time`. Returns whether it was killed before it ended.
fn killed(arguments: &[&str], is_time: impl Fn() -> bool) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorlock-sim"));
    command
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut running = command.spawn().expect("it starts");
    loop {
        if running.try_wait().expect("a process").is_some() {
            return false;
        }
        if is_time() {
            running.kill().expect("it runs");
            let ended = running.wait().expect("it ends");
            return ended.code().is_none();
        }
        std::thread::yield_now();
    }
}

/// Each command that records rows is killed (SIGKILL) at its beginning, and then twice behind further rows. What it has in the end is what
/// a command has that nothing interrupts.
#[test]
fn every_command_that_is_killed_ends_with_the_rows_of_one_that_is_not() {
    let folder = folder("killed-each");
    let study = concat!(env!("CARGO_MANIFEST_DIR"), "/../studies/own-algorithm.toml");
    let deployment = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../studies/deployments/one-server.toml"
    );
    let out = folder.join("out");
    let out = text(&out);
    let commands: [&[&str]; 5] = [
        &[
            "explore",
            "--seeds",
            "0..300",
            "--faults",
            "all",
            "--keep-going",
            "--out",
            out,
        ],
        &[
            "matrix",
            "--runs",
            "40",
            "--lock",
            "published",
            "--class",
            "steps",
            "--out",
            out,
        ],
        &["scenarios", "S9", "--rates", "--seeds", "200"],
        &["study", study, "--runs", "40", "--out", out],
        &[
            "rate",
            deployment,
            "--runs",
            "3000",
            "--relative-error",
            "0.01",
        ],
    ];
    let check = |arguments: &[&str]| {
        let name = arguments[0];
        let whole = folder.join(format!("{name}-whole"));
        let alone = sim(&[arguments, &["--results", text(&whole)]].concat());
        assert_ne!(alone.status.code(), Some(1), "{name}: {}", stderr(&alone));
        let cut = folder.join(format!("{name}-cut"));
        let mut all = [arguments, &["--jobs", "1", "--results", text(&cut)]].concat();
        let is_begun = || cut.join("manifest.json").exists();
        assert!(killed(&all, is_begun), "{name} ended before it began");
        all.push("--resume");
        let size = || std::fs::metadata(cut.join("rows.jsonl.zst")).map_or(0, |file| file.len());
        for _ in 0..2 {
            let before = size();
            if !killed(&all, || before < size()) {
                break;
            }
        }
        let ended = sim(&all);
        assert_ne!(ended.status.code(), Some(1), "{name}: {}", stderr(&ended));
        let (one, other) = (rows(&cut), rows(&whole));
        assert!(
            !other.is_empty() && one == other,
            "{name}: {} and {} rows",
            one.len(),
            other.len()
        );
        assert_eq!(
            manifest(&cut)["is_complete"],
            manifest(&whole)["is_complete"],
            "{name}"
        );
    };
    std::thread::scope(|scope| {
        for arguments in commands {
            let check = &check;
            scope.spawn(move || check(arguments));
        }
    });
}

/// The signal USR1 does not end a command, and gets one line of JSON on standard error.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_gets_the_progress_as_json() {
    use std::io::{BufRead as _, BufReader};

    let folder = folder("signal");
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorlock-sim"));
    let command = command
        .args(["explore", "--lock", "single", "--seeds", "0..100000000"])
        .args(["--jobs", "1", "--keep-going", "--json"])
        .args([
            "--out",
            text(&folder),
            "--results",
            text(&folder.join("rows")),
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut running = command.spawn().expect("it starts");
    // The manifest is written behind the beginning, when the signal is expected.
    while !folder.join("rows/manifest.json").exists() {
        assert!(running.try_wait().expect("a process").is_none(), "it ended");
        std::thread::yield_now();
    }
    let pid = running.id().to_string();
    let mut lines = BufReader::new(running.stderr.take().expect("a pipe")).lines();
    let report = loop {
        let sent = Command::new("kill").args(["-USR1", &pid]).status();
        assert!(sent.expect("kill").success());
        let line = lines.next().expect("it goes on").expect("text");
        let report: Value = serde_json::from_str(&line).expect("JSON");
        // Before the first run there is no progress yet.
        if report["done"].as_u64() > Some(0) {
            break report;
        }
        assert!(report["progress"].is_null() || report["progress"] == "runs");
    };
    assert_eq!(report["progress"], "runs");
    assert_eq!(report["of"], 100_000_000);
    for key in ["per_second", "seconds", "seconds_left"] {
        assert!(report[key].is_number(), "{report}");
    }
    assert!(running.try_wait().expect("a process").is_none(), "it ended");
    running.kill().expect("it runs");
    running.wait().expect("it ends");
}
