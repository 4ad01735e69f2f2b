//! The tables of the comparison with other libraries, from the rows that `benches/peers/run.sh --json` prints.

use serde_json::Value;

use crate::figures::long::{short, thousands};
use crate::figures::results::Figures;

/// The libraries, in the order of the tables: how the rows name them, and how the page does.
pub(crate) const PEERS: [(&str, &str); 8] = [
    ("quorlock", "Quorlock"),
    ("quorlock again", "Quorlock again"),
    ("bare scripts", "bare scripts"),
    ("rslock", "`rslock`"),
    ("rlock", "`rlock`"),
    ("redsync", "`redsync`"),
    ("redisson", "Redisson"),
    ("node-redlock", "`node-redlock`"),
];

/// A column: the work, the figure of that work, and the title.
type Column<'a> = (&'a str, &'a str, &'a str);

/// Returns the rows of a report.
pub(crate) fn rows(report: &str) -> Vec<Value> {
    let rows = report.lines();
    rows.map(|row| serde_json::from_str(row).expect("a row is JSON"))
        .collect()
}

/// Returns one table for each group of works, and the table of bars.
pub(crate) fn figures(report: &str) -> Figures {
    let rows = rows(report);
    let callers = [
        ("callers-1", "pairs a second", "pairs a second, 1 server"),
        ("callers-1", "servers, us a pair", "servers, µs a pair"),
        ("callers-1", "client, us a pair", "client, µs a pair"),
        ("callers-5", "pairs a second", "pairs a second, 5 servers"),
        ("callers-5", "servers, us a pair", "servers, µs a pair"),
        ("callers-5", "client, us a pair", "client, µs a pair"),
        ("acquire-1", "acquire, us", "acquire, µs, 1 server"),
        ("acquire-5", "acquire, us", "5 servers"),
        ("acquire-5-1ms", "acquire, us", "5 servers, 1 ms away"),
    ];
    let kept = [
        ("keep-1", "servers, % of a core", "server, % of a core"),
        ("keep-1", "lost", "locks that were lost"),
    ];
    Figures::from(
        [
            ("callers", table(&rows, &callers)),
            ("holds-1", holds(&rows, ["two-1", "ten-1", "waiters-1"])),
            ("holds-5", holds(&rows, ["two-5", "ten-5", "waiters-5"])),
            ("kept", table(&rows, &kept)),
            ("bars", bars(&rows)),
        ]
        .map(|(key, table)| (key.to_owned(), table)),
    )
}

fn holds(rows: &[Value], [two, ten, waiters]: [&str; 3]) -> String {
    let columns = [
        (two, "in use", "two: in use"),
        (two, "idle p99, ms", "idle p99, ms"),
        (two, "least share / even", "least share"),
        (two, "commands a hold", "commands a hold"),
        (ten, "in use", "ten: in use"),
        (ten, "idle p99, ms", "idle p99, ms"),
        (ten, "least share / even", "least share"),
        (ten, "commands a hold", "commands a hold"),
        (waiters, "in use", "50: in use"),
        (waiters, "commands a hold", "commands a hold"),
    ];
    table(rows, &columns)
}

/// Returns a table with one line for each library that did any of the work.
fn table(rows: &[Value], columns: &[Column]) -> String {
    let titles: Vec<&str> = columns.iter().map(|(_, _, title)| *title).collect();
    let mut text = format!(
        "| | {} |\n|---|{}",
        titles.join(" | "),
        "---:|".repeat(columns.len())
    );
    for (peer, title) in PEERS {
        let cells: Vec<String> = columns
            .iter()
            .map(|(work, figure, _)| {
                let format = if *figure == "lost" { thousands } else { short };
                let value = row(rows, peer, work, figure).and_then(|row| row["value"].as_f64());
                value.map_or(String::new(), format)
            })
            .collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            text += &format!("\n| {title} | {} |", cells.join(" | "));
        }
    }
    text
}

/// Returns the row of a library's figure.
pub(crate) fn row<'a>(
    rows: &'a [Value],
    peer: &str,
    work: &str,
    figure: &str,
) -> Option<&'a Value> {
    let is_it =
        |row: &&Value| row["peer"] == peer && row["work"] == work && row["figure"] == figure;
    rows.iter().find(is_it)
}

fn bars(rows: &[Value]) -> String {
    let mut text = "| bar | value | bound | control | |\n|---|---:|---:|---:|---|".to_owned();
    for row in rows.iter().filter(|row| row["bar"].is_string()) {
        let bar = row["bar"]
            .as_str()
            .unwrap_or_default()
            .replace(", us", ", µs");
        let number = |key: &str| row[key].as_f64().map_or(String::new(), short);
        let [value, bound, control] = ["value", "bound", "control"].map(number);
        let is_met = row["met"].as_bool().expect("met or not");
        let met = if is_met { "met" } else { "**missed**" };
        text += &format!("\n| {bar} | {value} | {bound} | {control} | {met} |");
    }
    text
}

#[test]
fn rows_beside_other_libraries_become_tables() {
    let rows = r#"{"bar":"acquire-1: acquire, us / bare scripts","value":1.1,"bound":1.05,"control":1.0,"met":false}
{"peer":"rslock","work":"keep-1","figure":"servers, % of a core","value":0.59}
{"peer":"quorlock","work":"keep-1","figure":"servers, % of a core","value":0.41}
{"peer":"rslock","work":"keep-1","figure":"lost","value":5105.0}"#;
    let figures = figures(rows);
    assert_eq!(
        figures["kept"],
        "| | server, % of a core | locks that were lost |\n|---|---:|---:|\n\
         | Quorlock | 0.41 |  |\n| `rslock` | 0.59 | 5,105 |"
    );
    assert_eq!(
        figures["bars"],
        "| bar | value | bound | control | |\n|---|---:|---:|---:|---|\n\
         | acquire-1: acquire, µs / bare scripts | 1.10 | 1.05 | 1.00 | **missed** |"
    );
}
