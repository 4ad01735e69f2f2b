//! The tables of violations a year, from the rows that `sim/reproduce.sh` writes.

use serde_json::Value;

use crate::figures::long::thousands;
use crate::figures::results::Figures;

const DEPLOYMENTS: [(&str, &str); 3] = [
    ("zone", "one zone"),
    ("three-zones", "three zones"),
    ("rack", "one rack"),
];

/// Returns the tables of rates, and of their costs.
pub(crate) fn figures(rows: &str) -> Figures {
    let rows: Vec<Value> = rows
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let mut locks: Vec<&str> = rows.iter().filter_map(|row| row["lock"].as_str()).collect();
    let mut seen = Vec::new();
    locks.retain(|lock| {
        let is_new = !seen.contains(lock);
        seen.push(*lock);
        is_new
    });
    let of = |lock: &str, cell: fn(&Value) -> String| {
        let cells = DEPLOYMENTS.iter().map(|(deployment, _)| {
            let mut found = rows.iter();
            let row = found.find(|row| row["deployment"] == *deployment && row["lock"] == lock);
            row.map_or(String::new(), cell)
        });
        cells.collect::<Vec<_>>().join(" | ")
    };
    let titles = DEPLOYMENTS.map(|(_, title)| title).join(" | ");
    let mut table = format!("| lock | {titles} | requests for a hold |\n|---|---|---|---|---:|");
    let mut costs = format!("| lock | {titles} |\n|---|---:|---:|---:|");
    for lock in &locks {
        let one = rows.iter().find(|row| row["lock"] == **lock);
        let requests = one.and_then(|row| row["requests_per_hold"].as_f64());
        let requests = requests.unwrap_or(f64::NAN);
        table += &format!("\n| {lock} | {} | {requests:.1} |", of(lock, rate));
        costs += &format!("\n| {lock} | {} |", of(lock, cost));
    }
    let commit = rows.first().and_then(|row| row["commit"].as_str());
    Figures::from([
        ("table".to_owned(), table),
        ("costs".to_owned(), costs),
        ("commit".to_owned(), commit.unwrap_or_default().to_owned()),
    ])
}

/// Returns the table of what a crash costs.
pub(crate) fn outages(rows: &str) -> Figures {
    let rows: Vec<Value> = rows
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let mut table = "| lock | one crash | all at once | a year |\n|---|---:|---:|---:|".to_owned();
    for row in &rows {
        let of = |cut_set: &str| {
            let seconds = row["outages"][cut_set].as_f64();
            seconds.map_or(String::new(), |seconds| format!("{seconds:.2} s"))
        };
        let lock = row["lock"].as_str().unwrap_or_default();
        let year = number(row, "unavailable_seconds");
        let [one, all] = ["crash-node", "crash-node of all"].map(of);
        table += &format!("\n| {lock} | {one} | {all} | {year:.1} s |");
    }
    let commit = rows.first().and_then(|row| row["commit"].as_str());
    Figures::from([
        ("table".to_owned(), table),
        ("commit".to_owned(), commit.unwrap_or_default().to_owned()),
    ])
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or(f64::NAN)
}

fn rate(row: &Value) -> String {
    let [rate, lower, upper] = ["rate", "lower", "upper"].map(|key| digits(number(row, key)));
    match row["broken"].as_u64() {
        Some(0) => format!("0 found ({lower} to {upper})"),
        _ => format!("{rate} ({lower} to {upper})"),
    }
}

fn cost(row: &Value) -> String {
    let [runs, seconds] = ["runs", "seconds"].map(|key| thousands(number(row, key)));
    format!("{runs} in {seconds} s")
}

/// Formats a number with two digits.
fn digits(value: f64) -> String {
    if value <= 0.0 {
        return "0".to_owned();
    }
    let decimals = (1.0 - value.log10().floor()).clamp(0.0, 12.0) as usize;
    format!("{value:.decimals$}")
}

#[test]
fn rows_of_rates_become_tables() {
    let rows = r#"{"deployment":"zone","lock":"SET NX","rate":0.0212,"lower":0.0183,"upper":0.0244,"broken":9,"runs":65536,"requests_per_hold":2.04,"seconds":7.6,"commit":"eee23b77aa"}
{"deployment":"rack","lock":"SET NX","rate":0.0,"lower":0.0,"upper":0.00000231,"broken":0,"runs":128,"requests_per_hold":2.0,"seconds":1.2,"commit":"eee23b77aa"}"#;
    let figures = figures(rows);
    let line = "| SET NX | 0.021 (0.018 to 0.024) |  | 0 found (0 to 0.0000023) | 2.0 |";
    assert_eq!(figures["table"].lines().last(), Some(line));
    let line = "| SET NX | 65,536 in 8 s |  | 128 in 1 s |";
    assert_eq!(figures["costs"].lines().last(), Some(line));
}

#[test]
fn rows_of_outages_become_a_table() {
    let rows = r#"{"deployment":"zone","lock":"SET NX","outages":{"crash-node":0.311,"crash-node of all":0.35},"unavailable_seconds":1.04,"commit":"eee23b77aa"}
{"deployment":"zone","lock":"a group","outages":{"crash-node":2.5},"unavailable_seconds":8.0,"commit":"eee23b77aa"}"#;
    let table = &outages(rows)["table"];
    let lines: Vec<&str> = table.lines().skip(2).collect();
    let expected = [
        "| SET NX | 0.31 s | 0.35 s | 1.0 s |",
        "| a group | 2.50 s |  | 8.0 s |",
    ];
    assert_eq!(lines, expected);
}
