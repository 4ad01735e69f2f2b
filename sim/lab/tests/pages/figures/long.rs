//! Commands that take minutes. Each one runs only when it is requested.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use quorlock_sim_lab::study::matrix::MatrixTable;
use quorlock_sim_lab::study::results::Stored;
use serde_json::Value;

use crate::figures::locks;
use crate::figures::results::{Figures, Results, root};

/// A command that produces the results with this name.
type Part = fn(&'static str) -> Results;

/// Runs the requested commands: `all`, or names separated by commas. If a command fails, the others still run. Its old
/// results stay, and its name is returned.
#[expect(clippy::print_stderr, reason = "minutes pass")]
#[expect(clippy::disallowed_methods, reason = "it says how long they were")]
pub(crate) fn write(asked: &str, commit: &str) -> Vec<String> {
    let parts: [(&'static str, Part); 6] = [
        ("exhaustive", exhaustive),
        ("conformance", conformance),
        ("matrix", matrix),
        ("matrix-stores", matrix_of_stores),
        ("speed", speed),
        ("locks", locks::figures),
    ];
    let mut failed = Vec::new();
    for (name, run) in parts {
        if asked == "all" || asked.split(',').any(|word| word == name) {
            eprintln!("{name}: begins");
            let began = Instant::now();
            if std::panic::catch_unwind(|| run(name).write(commit)).is_err() {
                failed.push(format!("{name}: failed, see above"));
            }
            eprintln!("{name}: took {} s", began.elapsed().as_secs());
        }
    }
    failed
}

/// Returns what a command prints to stdout. Its progress goes to the terminal.
pub(crate) fn printed(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(root())
        .stderr(Stdio::inherit());
    // Cargo sets these variables for this test. Another package must not be compiled with them.
    for (name, _) in std::env::vars()
        .filter(|(name, _)| name.starts_with("CARGO_PKG") || name.starts_with("CARGO_MANIFEST"))
    {
        command.env_remove(name);
    }
    command
        .env_remove("QUORLOCK_FIGURES")
        .envs(variables.iter().copied());
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}\n{text}",
        output.status
    );
    text
}

/// The locks on stores, which have tables of their own.
const ON_STORES: [&str; 3] = [
    "ours, a consensus store",
    "ours, a database with a replica",
    "ours, a majority of unlike stores",
];

/// Runs the matrix on seeds of a commit, and returns the folder of what it wrote. 1000 runs a cell take about eight minutes on
/// two cores, half of them for one of the four locks in the lane over sockets.
fn run_matrix(name: &str, further: &[&str]) -> PathBuf {
    let runs = std::env::var("QUORLOCK_MATRIX_RUNS");
    let runs = runs.unwrap_or_else(|_| "1000".to_owned());
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&out);
    let folder = out.to_str().expect("a path");
    let commit = printed("git", &["rev-parse", "HEAD"], &[]);
    let measured = [
        "run",
        "-q",
        "--profile",
        "dist",
        "-p",
        "quorlock-sim-lab",
        "--",
    ];
    let results = out.join("results");
    let rows = results.to_str().expect("a path");
    let arguments = ["matrix", "--runs", &runs, "--commit", commit.trim()];
    let written = ["--out", folder, "--results", rows];
    printed(
        "cargo",
        &[&measured[..], &arguments, &written, further].concat(),
        &[],
    );
    out
}

/// Returns the table of a folder that `quorlock-sim matrix --out FOLDER --results FOLDER/results` has written, and the command
/// line with these further words.
fn matrix_of(out: &Path, further: &str) -> (MatrixTable, String) {
    let results = out.join("results");
    let table = MatrixTable::read(&results).expect("a table");
    let stored = Stored::read(&results).expect("results");
    let first = stored.manifest.cells.first().map(|cell| cell.seeds.start);
    // The inverse of what `--commit` does.
    let first = first.and_then(|seed| seed.checked_sub(100_000_000));
    let commit = format!("{:010x}", first.expect("seeds of a commit"));
    let runs = table.runs;
    let command =
        format!("quorlock-sim matrix --runs {runs} --commit {commit} {further} --out matrix");
    (table, command)
}

fn matrix_figures(name: &'static str, table: &MatrixTable, command: String) -> Results {
    let mut figures = Figures::new();
    figures.insert("tables".to_owned(), table.markdown());
    figures.insert("runs".to_owned(), table.runs.to_string());
    figures.insert("block".to_owned(), format!("```sh\n{command}\n```"));
    Results {
        name,
        command,
        figures,
    }
}

/// Takes the matrix from the folder that QUORLOCK_MATRIX names, or runs it.
fn matrix(name: &'static str) -> Results {
    let out = std::env::var_os("QUORLOCK_MATRIX");
    let out = out.map_or_else(|| run_matrix(name, &["--examples"]), PathBuf::from);
    let (table, command) = matrix_of(&out, "--examples");
    // The command also wrote the page of what still breaks, and the pictures of that page.
    let pages = root().join("docs/src");
    std::fs::copy(out.join("breaks.md"), pages.join("breaks.md")).expect("the page");
    let pictures = pages.join("breaks");
    let _ = std::fs::remove_dir_all(&pictures);
    std::fs::create_dir_all(&pictures).expect("a folder");
    for file in std::fs::read_dir(out.join("breaks")).expect("pictures") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), pictures.join(file.file_name())).expect("a picture");
    }
    let mut results = matrix_figures(name, &table, command);
    let summary = short_table(&table);
    results.figures.insert("summary".to_owned(), summary);
    results
}

/// Takes the matrix of the locks on stores from the folder that QUORLOCK_MATRIX_STORES names, or runs it.
fn matrix_of_stores(name: &'static str) -> Results {
    let further: Vec<&str> = ON_STORES.iter().flat_map(|lock| ["--lock", lock]).collect();
    let out = std::env::var_os("QUORLOCK_MATRIX_STORES");
    let out = out.map_or_else(|| run_matrix(name, &further), PathBuf::from);
    let words = ON_STORES.map(|lock| format!("--lock '{lock}'"));
    let (table, command) = matrix_of(&out, &words.join(" "));
    matrix_figures(name, &table, command)
}

/// Returns the table with the rows and columns of the summary.
fn short_table(table: &MatrixTable) -> String {
    let locks = [
        ("SET NX, DEL", "`SET NX`, `DEL`"),
        ("SET NX, compare", "`SET NX`, compare and delete"),
        ("published", "Redlock as published"),
        ("ours, one node", "Quorlock, one server"),
        ("ours", "Quorlock, majority"),
    ];
    let classes = [
        ("partitions", "partitions"),
        ("client pauses", "clients pause for up to two leases"),
        ("restarts, amnesia", "servers restart without their data"),
        ("steps", "clocks of servers are stepped, within the margin"),
        ("failover", "failover to a replica"),
        (
            "suspend, clock stops",
            "clients are suspended, and their clocks stand still",
        ),
    ];
    let titles: Vec<&str> = locks.iter().map(|(_, title)| *title).collect();
    let mut text = format!(
        "| what goes wrong | {} |\n|---|{}",
        titles.join(" | "),
        "---:|".repeat(locks.len())
    );
    for (class, title) in classes {
        let cells = locks.iter().map(|(lock, _)| {
            let cell = table.cell(lock, class).expect("a cell");
            match (cell.exclusion.violations, cell.exclusion.is_claimed_to_hold) {
                (0, true) => "**0**".to_owned(),
                (0, false) => "0".to_owned(),
                _ => format!("{:.2}", 100.0 * cell.exclusion.rate),
            }
        });
        text += &format!("\n| {title} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    text
}

/// Returns the variant that a line is about, and its row of the table.
fn row_of(line: &str) -> Option<(String, String)> {
    // A line is "V-A (a title), 4 ticks: holds in all of 7 states" or "...: breaks after 7 actions, 9 states".
    let (id, rest) = line
        .split_once(" (")
        .filter(|(id, _)| id.ends_with(char::is_alphanumeric) || id.ends_with('+'))?;
    let id = id
        .rsplit(' ')
        .next()
        .unwrap_or(id)
        .trim_start_matches('.')
        .to_owned();
    let (title, verdict) = rest.split_once("), ").filter(|_| id.starts_with("V-"))?;
    let (ticks, verdict) = verdict.split_once(" ticks: ").expect("ticks");
    let (verdict, states) = match verdict.strip_prefix("holds in all of ") {
        Some(states) => ("holds".to_owned(), states.trim_end_matches(" states")),
        None => {
            let steps = verdict
                .strip_prefix("breaks after ")
                .and_then(|v| v.split_once(' '));
            (format!("breaks, {} steps", steps.expect("steps").0), "")
        }
    };
    let row = format!("| {id} | {title} | {ticks} | {verdict} | {states} |");
    Some((id, row))
}

fn exhaustive(name: &'static str) -> Results {
    let arguments = [
        "test",
        "-q",
        "-p",
        "quorlock-exhaustive",
        "--",
        "--nocapture",
        "--test-threads=1",
    ];
    let text = printed("cargo", &arguments, &[("QUORLOCK_FIGURES", "exhaustive")]);
    let mut rows: Vec<(String, String)> = text.lines().filter_map(row_of).collect();
    assert!(!rows.is_empty(), "{text}");
    rows.sort();
    let lines: Vec<String> = rows.iter().map(|(_, row)| row.clone()).collect();
    let head = "| | variant | ticks | | states |\n|---|---|---:|---|---:|";
    let mut figures = Figures::new();
    figures.insert("variants".to_owned(), rows.len().to_string());
    figures.insert("table".to_owned(), format!("{head}\n{}", lines.join("\n")));
    let trace = text.split("V-G (").nth(1).expect("V-G").lines().skip(1);
    let trace: Vec<&str> = trace
        .take_while(|line| line.starts_with("    "))
        .map(str::trim)
        .collect();
    figures.insert(
        "trace".to_owned(),
        format!("```text\n{}\n```", trace.join("\n")),
    );
    Results {
        name,
        command: "cargo test -p quorlock-exhaustive -- --nocapture --test-threads=1".to_owned(),
        figures,
    }
}

/// The number of generated sequences of requests that are compared.
const SEQUENCES: &str = "2000";

fn conformance(name: &'static str) -> Results {
    let arguments = [
        "test",
        "-q",
        "-p",
        "quorlock-tests",
        "--test",
        "servers",
        "agree_on_every_sequence",
        "--",
        "--nocapture",
    ];
    let text = printed(
        "cargo",
        &arguments,
        &[("QUORLOCK_CONFORMANCE_CASES", SEQUENCES)],
    );
    let found = text.lines().find(|line| line.contains("replies the same"));
    let mut figures = Figures::new();
    figures.insert("sequences".to_owned(), SEQUENCES.to_owned());
    figures.insert(
        "found".to_owned(),
        found.expect("what was found").trim().to_owned(),
    );
    let redis = printed("redis-server", &["--version"], &[]);
    let version = redis
        .split("v=")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    figures.insert("redis".to_owned(), version.unwrap_or_default().to_owned());
    Results {
        name,
        command: format!(
            "QUORLOCK_CONFORMANCE_CASES={SEQUENCES} cargo test -p quorlock-tests --test servers agree_on_every_sequence -- --nocapture"
        ),
        figures,
    }
}

/// The rows of the table of speeds: what is measured, and its place in the output of `bench`.
const SPEEDS: [(&str, &str); 6] = [
    (
        "node commands, reference workload (5 nodes, 3 clients, no faults, checkers on)",
        "/reference/commands/per_second",
    ),
    (
        "the same with trust in nodes and a clock margin",
        "/with_remedies/commands/per_second",
    ),
    (
        "the same in the lane over sockets, with the real client, RESP and Lua",
        "/turmoil/commands/per_second",
    ),
    (
        "standard runs (2 s of virtual time, all faults)",
        "/standard/runs/per_second",
    ),
    (
        "standard runs of a campaign on all cores, as a part of one core's times their number",
        "/scaling/of_linear",
    ),
    (
        "the same, as a part of what as many processes do that share nothing",
        "/scaling/of_processes",
    ),
];

fn speed(name: &'static str) -> Results {
    let arguments = [
        "run",
        "-q",
        "--profile",
        "dist",
        "-p",
        "quorlock-sim-lab",
        "--",
        "bench",
        "--seconds",
        "5",
        "--json",
    ];
    let text = printed("cargo", &arguments, &[]);
    let value: Value = serde_json::from_str(text.trim()).expect("JSON");
    let number = |place: &str| value.pointer(place).and_then(Value::as_f64);
    let rate = |place: &str| thousands(number(place).unwrap_or(f64::NAN));
    let share = |place: &str| format!("{:.2}", number(place).unwrap_or(f64::NAN));
    // Parts of a whole are not rounded to whole numbers.
    let rows = SPEEDS.map(|(what, place)| match place.starts_with("/scaling") {
        true => (what, share(place)),
        false => (what, rate(place)),
    });
    let lines: Vec<String> = rows
        .iter()
        .map(|(what, value)| format!("| {what} | {value} |"))
        .collect();
    let mut figures = Figures::new();
    figures.insert(
        "table".to_owned(),
        format!(
            "| on one core, a second | |\n|---|---:|\n{}",
            lines.join("\n")
        ),
    );
    Results {
        name,
        command: "cargo run --profile dist -p quorlock-sim-lab -- bench --seconds 5 --json"
            .to_owned(),
        figures,
    }
}

/// Formats a value with its significant digits.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        1000.0.. => thousands(value),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if 0 < place && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
