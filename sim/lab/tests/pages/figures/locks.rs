//! The tables of the benchmark of locks, from the JSON that it prints.

use serde_json::Value;

use crate::figures::long::{printed, short};
use crate::figures::results::{Figures, Results};

/// The cases that run with `--quick`. The herd runs in full, because fifty processes would otherwise end before they
/// reach a steady state.
const QUICK: [&str; 8] = [
    "uncontended",
    "distance",
    "callers",
    "handover",
    "waiters",
    "fair",
    "readers",
    "keeping",
];

/// Runs the benchmark, which takes a minute or two.
pub(crate) fn figures(name: &'static str) -> Results {
    let quick = format!("{} --quick --json -", QUICK.join(" "));
    let whole = "herd --json -";
    let lines = [quick.as_str(), whole].map(report);
    Results {
        name,
        command: format!("{BENCH} {quick}; {BENCH} {whole}"),
        figures: tables(&lines.concat()),
    }
}

const BENCH: &str = "cargo bench -p quorlock-tests --bench locks --";

/// Returns the lines that the benchmark prints with these arguments.
fn report(arguments: &str) -> Vec<Value> {
    let command = format!("{BENCH} {arguments}");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let text = printed("cargo", &words, &[]);
    let json = text.get(text.find('{').unwrap_or(0)..).unwrap_or_default();
    let mut report: Value = serde_json::from_str(json.trim()).expect("JSON");
    match report["figures"].take() {
        Value::Array(lines) => lines,
        other => panic!("no figures: {other}"),
    }
}

/// Returns one table for each case, and the table of the README.
fn tables(lines: &[Value]) -> Figures {
    let mut cases: Vec<&str> = lines.iter().map(|line| text_of(line, "case")).collect();
    cases.dedup();
    let mut figures = Figures::new();
    for case in cases {
        let lines: Vec<&Value> = lines
            .iter()
            .filter(|l| text_of(l, "case") == case)
            .collect();
        figures.insert(case.to_owned(), table(&lines));
    }
    figures.insert("readme".to_owned(), summary(lines));
    figures
}

/// Returns the table of one case. Columns without any value are omitted.
fn table(lines: &[&Value]) -> String {
    const TITLES: [&str; 8] = [
        "", "nodes", "value", "noise", "ours", "bare", "rslock", "besides",
    ];
    let unit = lines.first().map_or("", |line| text_of(line, "unit"));
    let unit = if unit == "us" { "µs" } else { unit };
    let rows: Vec<[String; 8]> = lines.iter().map(|line| row(line)).collect();
    let shown: Vec<usize> = (0..TITLES.len())
        .filter(|column| rows.iter().any(|row| !row[*column].is_empty()))
        .collect();
    let titles = shown.iter().map(|column| match column {
        4..=6 if !unit.is_empty() => format!("{}, {unit}", TITLES[*column]),
        _ => TITLES[*column].to_owned(),
    });
    let dashes = shown.iter().map(|column| match column {
        0 | 7 => "---",
        _ => "---:",
    });
    let mut text = format!(
        "| {} |\n|{}|",
        titles.collect::<Vec<_>>().join(" | "),
        dashes.collect::<Vec<_>>().join("|")
    );
    for row in &rows {
        let cells: Vec<&str> = shown.iter().map(|column| row[*column].as_str()).collect();
        text += &format!("\n| {} |", cells.join(" | "));
    }
    text
}

fn row(line: &Value) -> [String; 8] {
    let spread = |who: &str| {
        let median = line[who]["median"].as_f64()?;
        Some(format!(
            "{} / {}",
            short(median),
            short(line[who]["p99"].as_f64()?)
        ))
    };
    [
        text_of(line, "what").to_owned(),
        line["nodes"].to_string(),
        format!("**{}**", short(line["value"].as_f64().expect("a value"))),
        line["noise"].as_f64().map_or(String::new(), short),
        spread("ours").unwrap_or_default(),
        spread("bare").unwrap_or_default(),
        spread("rslock").unwrap_or_default(),
        text_of(line, "note").to_owned(),
    ]
}

/// Returns the table of the README. Each row has a title, and the case and figure that it shows.
fn summary(lines: &[Value]) -> String {
    const ROWS: [(&str, &str, &str); 7] = [
        (
            "acquire, as a multiple of the bare script's round trip",
            "uncontended",
            "acquire, ours / bare",
        ),
        (
            "64 callers: pairs a second, as a multiple of the bare scripts",
            "callers",
            "pairs per second, ours / bare",
        ),
        (
            "share of the time in which the lock is held while two clients hand it over, holds of 5 ms",
            "handover",
            "sum of the holds / time",
        ),
        (
            "the same with `rslock`, which asks again from time to time",
            "handover",
            "rslock",
        ),
        (
            "commands for one hand-over among 50 waiters in one process",
            "waiters",
            "50 in one process, commands a hand-over",
        ),
        (
            "commands for one hand-over among 50 processes",
            "herd",
            "50 processes, commands a hand-over",
        ),
        (
            "processor time of one client that keeps many locks, in percent of a core",
            "keeping",
            "% of a core",
        ),
    ];
    let mut text = "| | one server | five servers |\n|---|---:|---:|".to_owned();
    for (title, case, what) in ROWS {
        let value = |nodes: u64| {
            let mut lines = lines.iter().filter(|line| {
                let is_of_peer = what == "rslock" || text_of(line, "what").ends_with(what);
                text_of(line, "case") == case && line["nodes"].as_u64() == Some(nodes) && is_of_peer
            });
            let line = lines.next()?;
            match what {
                "rslock" => line[what]["median"].as_f64(),
                _ => line["value"].as_f64(),
            }
        };
        let [one, five] = [1, 5].map(|nodes| value(nodes).map_or(String::new(), short));
        assert!(
            !one.is_empty(),
            "the benchmark has no line `{case}: {what}`"
        );
        text += &format!("\n| {title} | {one} | {five} |");
    }
    text
}

fn text_of<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or_default()
}

#[test]
fn lines_of_the_benchmark_become_tables() {
    let line = |case: &str, what: &str, nodes: u64| {
        let spread = serde_json::json!({ "median": 0.5, "p99": 1234.0 });
        serde_json::json!({ "case": case, "what": what, "nodes": nodes, "value": 1.018, "noise": null,
            "unit": "us", "ours": spread, "bare": null, "rslock": spread, "note": "" })
    };
    let lines = [
        line("uncontended", "acquire, ours / bare", 1),
        line("uncontended", "acquire, ours / bare", 5),
        line("callers", "pairs per second, ours / bare", 1),
        line("handover", "sum of the holds / time", 1),
        line("waiters", "50 in one process, commands a hand-over", 1),
        line("herd", "50 processes, commands a hand-over", 1),
        line("keeping", "10000 locks for 20 s, % of a core", 1),
    ];
    let figures = tables(&lines);
    assert_eq!(
        figures["uncontended"],
        "|  | nodes | value | ours, µs | rslock, µs |\n|---|---:|---:|---:|---:|\n\
         | acquire, ours / bare | 1 | **1.02** | 0.50 / 1,234 | 0.50 / 1,234 |\n\
         | acquire, ours / bare | 5 | **1.02** | 0.50 / 1,234 | 0.50 / 1,234 |"
    );
    assert!(
        figures["readme"].contains("bare script's round trip | 1.02 | 1.02 |"),
        "{}",
        figures["readme"]
    );
}
