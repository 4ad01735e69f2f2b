//! The tables beside other libraries, made from the rows of a recorded run.
//!
//! A run needs tools of other languages and a machine without other work, so nothing here measures. `docs/results/peers.jsonl`
//! is what `tests/peers/run.sh --json` printed.

use std::fmt::Write as _;

use serde_json::Value;

use crate::results::{Figures, Results, root};

/// The title of a column, the work that it shows, and the figure of that work.
type Column = (&'static str, &'static str, &'static str);

const CALLERS: [Column; 7] = [
    ("pairs a second, 1 server", "callers-1", "pairs a second"),
    ("servers, µs a pair", "callers-1", "servers, us a pair"),
    ("pairs a second, 5 servers", "callers-5", "pairs a second"),
    ("servers, µs a pair", "callers-5", "servers, us a pair"),
    ("acquire, µs, 1 server", "acquire-1", "median, us"),
    ("5 servers", "acquire-5", "median, us"),
    ("5 servers, 1 ms away", "acquire-5-1ms", "median, us"),
];

const ONE_SERVER: [Column; 9] = [
    ("two: in use", "two-1", "in use"),
    ("idle p99, ms", "two-1", "idle p99, ms"),
    ("least share", "two-1", "least share / even"),
    ("commands a hold", "two-1", "commands a hold"),
    ("ten: idle p99, ms", "ten-1", "idle p99, ms"),
    ("least share", "ten-1", "least share / even"),
    ("commands a hold", "ten-1", "commands a hold"),
    ("50: in use", "waiters-1", "in use"),
    ("commands a hold", "waiters-1", "commands a hold"),
];

const FIVE_SERVERS: [Column; 9] = [
    ("two: in use", "two-5", "in use"),
    ("idle p99, ms", "two-5", "idle p99, ms"),
    ("least share", "two-5", "least share / even"),
    ("commands a hold", "two-5", "commands a hold"),
    ("ten: idle p99, ms", "ten-5", "idle p99, ms"),
    ("least share", "ten-5", "least share / even"),
    ("commands a hold", "ten-5", "commands a hold"),
    ("50: in use", "waiters-5", "in use"),
    ("commands a hold", "waiters-5", "commands a hold"),
];

const KEPT: [Column; 3] = [
    ("server, % of a core", "keep-1", "servers, % of a core"),
    ("client, % of a core", "keep-1", "client, % of a core"),
    ("lost", "keep-1", "lost"),
];

const PEERS: [(&str, &str); 8] = [
    ("quorlock", "Quorlock"),
    ("control", "Quorlock again"),
    ("bare", "bare scripts"),
    ("rslock", "`rslock`"),
    ("rlock", "`rlock`"),
    ("redsync", "`redsync`"),
    ("redisson", "Redisson"),
    ("node-redlock", "`node-redlock`"),
];

/// Returns the tables of the recorded run.
pub(crate) fn peers() -> Results {
    let recorded = std::fs::read_to_string(root().join("docs/results/peers.jsonl"));
    let recorded = recorded.expect("a recorded run");
    let mut rows = recorded.lines().map(|line| -> Value {
        serde_json::from_str(line).expect("each line is a JSON object")
    });
    let head = rows.next().expect("the first line has the command and the commit");
    let rows: Vec<Value> = rows.collect();
    let text = |key: &str| head[key].as_str().expect("a text").to_owned();
    let tables = [
        ("callers", table(&rows, &CALLERS)),
        ("one-server", table(&rows, &ONE_SERVER)),
        ("five-servers", table(&rows, &FIVE_SERVERS)),
        ("kept", table(&rows, &KEPT)),
        ("bars", bars(&rows)),
        ("measured-commit", text("commit")),
    ];
    Results {
        name: "peers",
        command: text("command"),
        figures: tables
            .map(|(key, table)| (key.to_owned(), table))
            .into_iter()
            .collect::<Figures>(),
    }
}

/// Returns a table with a line for each library that has one of these figures.
fn table(rows: &[Value], columns: &[Column]) -> String {
    let mut text = String::from("| |");
    for (title, ..) in columns {
        let _ = write!(text, " {title} |");
    }
    text += "\n|---|";
    text += &"---:|".repeat(columns.len());
    for (peer, name) in PEERS {
        let cell = |(_, work, figure): &Column| {
            let is_cell = |row: &&Value| {
                row["peer"] == peer && row["work"] == *work && row["figure"] == *figure
            };
            rows.iter().find(is_cell)?["value"].as_f64()
        };
        let cells: Vec<Option<f64>> = columns.iter().map(cell).collect();
        if cells.iter().any(Option::is_some) {
            let _ = write!(text, "\n| {name} |");
            for cell in cells {
                let _ = write!(text, " {} |", cell.map(number).unwrap_or_default());
            }
        }
    }
    text
}

fn bars(rows: &[Value]) -> String {
    let mut text = String::from("| bar | value | bound | control | |\n|---|---:|---:|---:|---|");
    for row in rows {
        let Some(bar) = row["bar"].as_str() else {
            continue;
        };
        let figure = |key: &str| number(row[key].as_f64().expect("a number"));
        let met = match row["met"].as_bool() {
            Some(true) => "met",
            _ => "**missed**",
        };
        let _ = write!(
            text,
            "\n| {} | {} | {} | {} | {met} |",
            bar.replace(", us", ", µs"),
            figure("value"),
            figure("bound"),
            figure("control"),
        );
    }
    text
}

/// Formats a number with three significant digits, or all digits of its integer part.
fn number(value: f64) -> String {
    match value {
        100.0.. => thousands(value.round()),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if 0 < place && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
