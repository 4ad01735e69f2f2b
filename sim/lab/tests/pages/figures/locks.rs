//! The tables of the benchmark of locks, from the rows that it prints.

use serde_json::Value;

use crate::figures::long::{printed, short};
use crate::figures::peers;
use crate::figures::results::{Figures, Results};

const BENCH: &str = "cargo bench -p quorlock-bench --bench locks -- --json";

/// The cases that run with `--quick`. The herd runs in full, because fifty processes would otherwise end before they
/// reach a steady state.
const QUICK: &str = "--quick acquire callers handover waiters fair readers keep";

/// Runs the benchmark, which takes a few minutes.
pub(crate) fn figures(name: &'static str) -> Results {
    let commands = [QUICK, "herd"].map(|cases| format!("{BENCH} {cases}"));
    let mut rows: Vec<Value> = Vec::new();
    for command in &commands {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        rows.extend(peers::rows(&printed("cargo", &words, &[])));
    }
    let find = |peer: &str, case: &str, figure: &str| {
        let row = peers::row(&rows, peer, case, figure);
        let number = |key: &str| row.and_then(|row| row[key].as_f64());
        let spread = number("value").zip(number("p99"));
        spread.unwrap_or_else(|| panic!("no row of {peer}, {case}: {figure}"))
    };
    Results {
        name,
        command: commands.join("; "),
        figures: tables(&find),
    }
}

/// Returns the median and the 99th percentile of a contestant's figure in a case.
type Find<'a> = &'a dyn Fn(&str, &str, &str) -> (f64, f64);

/// The contestants of the columns.
const COLUMNS: [&str; 3] = ["quorlock", "bare scripts", "rslock"];

/// One line of a table.
#[derive(Default)]
struct Line {
    what: String,
    nodes: u64,
    value: f64,
    noise: Option<f64>,
    /// The figures of the contestants of [`COLUMNS`].
    spreads: [Option<(f64, f64)>; 3],
    besides: String,
}

/// Returns one table for each part of the page, and its summary.
fn tables(find: Find) -> Figures {
    let all = [
        ("uncontended", "µs", uncontended(find)),
        ("distance", "µs", distance(find)),
        ("callers", "/s", callers(find)),
        ("handover", "", handover(find)),
        ("waiters", "", waiters(find)),
        ("herd", "", herd(find)),
        ("fair", "", fair(find)),
        ("readers", "µs", readers(find)),
        ("keeping", "", keeping(find)),
    ];
    let table =
        |(key, unit, lines): &(&str, &str, Vec<Line>)| (key.to_string(), table(unit, lines));
    let mut figures: Figures = all.iter().map(table).collect();
    figures.insert("summary".to_owned(), summary(&all));
    figures
}

/// Returns the figure of Quorlock, divided by that of another contestant.
fn ratio(find: Find, case: &str, figure: &str, other: &str) -> Line {
    let own = |peer: &str| find(peer, case, figure);
    Line {
        value: own("quorlock").0 / own(other).0,
        noise: Some(own("quorlock again").0 / own("quorlock").0),
        spreads: COLUMNS.map(|peer| Some(own(peer))),
        ..Line::default()
    }
}

fn remedies(find: Find, case: &str, figure: &str) -> Line {
    let [on, off] = ["quorlock", "quorlock without remedies"].map(|peer| find(peer, case, figure));
    Line {
        what: format!("{}, remedies on / off", figure.trim_end_matches(", us")),
        value: on.0 / off.0,
        spreads: [Some(on), None, None],
        besides: format!("off: median {:.1} us, p99 {:.1} us", off.0, off.1),
        ..Line::default()
    }
}

fn uncontended(find: Find) -> Vec<Line> {
    let of = |nodes: u64| {
        let case = format!("acquire-{nodes}");
        let beside = |figure: &str, what: &str| Line {
            what: format!("{what}, ours / bare"),
            ..ratio(find, &case, figure, "bare scripts")
        };
        let lines = [
            remedies(find, &case, "acquire, us"),
            remedies(find, &case, "release, us"),
            beside("acquire, us", "acquire"),
            beside("release, us", "release"),
            beside("acquire and release, us", "acquire and release at once"),
        ];
        lines.map(|line| Line { nodes, ..line })
    };
    [1, 5].into_iter().flat_map(of).collect()
}

fn distance(find: Find) -> Vec<Line> {
    let of = |case: &str| {
        let line = remedies(find, case, "acquire, us");
        let round_trip = find("PING", case, "acquire, us").0;
        Line {
            nodes: 5,
            besides: format!("round trip of a PING {round_trip:.0} us; {}", line.besides),
            ..line
        }
    };
    ["acquire-5-0.5ms", "acquire-5-1ms"].map(of).into()
}

fn callers(find: Find) -> Vec<Line> {
    let of = |nodes: u64| {
        let case = format!("callers-{nodes}");
        let [ours, bare, rslock] = COLUMNS.map(|peer| find(peer, &case, "servers, us a pair").0);
        let pairs = |peer: &str| find(peer, &case, "pairs a second").0;
        Line {
            what: "pairs per second, ours / bare".to_owned(),
            nodes,
            besides: format!(
                "rslock / bare {:.2}; the servers' processors, us a pair: ours {ours:.1}, bare {bare:.1}, rslock {rslock:.1}",
                pairs("rslock") / pairs("bare scripts")
            ),
            ..ratio(find, &case, "pairs a second", "bare scripts")
        }
    };
    [1, 5].map(of).into()
}

fn handover(find: Find) -> Vec<Line> {
    let of = |nodes: u64| {
        let case = format!("handover-{nodes}");
        let in_use = |peer: &str| find(peer, &case, "in use");
        let rate = |peer: &str| find(peer, &case, "holds a second").0;
        Line {
            what: "sum of the holds / time".to_owned(),
            nodes,
            value: in_use("quorlock").0,
            spreads: COLUMNS.map(|peer| Some(in_use(peer))),
            besides: format!(
                "without remedies {:.3}; hand-overs a second: ours {:.0}, rslock {:.1}",
                in_use("quorlock without remedies").0,
                rate("quorlock"),
                rate("rslock")
            ),
            ..Line::default()
        }
    };
    [1, 5].map(of).into()
}

/// Returns the requests of a hand-over, and of each kind.
fn requests(find: Find, peer: &str, case: &str, what: &str) -> Line {
    let of = |figure: &str| find(peer, case, figure).0;
    let kinds = ["acquires", "releases", "renewals", "subscriptions"];
    let kinds = kinds.map(|kind| format!("{:.2} {kind}", of(&format!("{kind} a hold"))));
    let every = 1000.0 / of("holds a second");
    Line {
        what: what.to_owned(),
        nodes: if case.ends_with("-5") { 5 } else { 1 },
        value: of("requests a hold"),
        besides: format!("{}; a hand-over every {every:.2} ms", kinds.join(", ")),
        ..Line::default()
    }
}

fn waiters(find: Find) -> Vec<Line> {
    let what = "50 in one process, commands a hand-over";
    let of = |case| requests(find, "quorlock", case, what);
    ["waiters-1", "waiters-5"].map(of).into()
}

fn herd(find: Find) -> Vec<Line> {
    let of = |nodes: u64| {
        let case = format!("herd-{nodes}");
        let of = |figure: &str| find("quorlock", &case, figure).0;
        let between = (1.0 - of("in use")) * 1000.0 / of("holds a second");
        let line = |what: &str, value| Line {
            what: format!("50 processes, {what}"),
            nodes,
            value,
            ..Line::default()
        };
        [
            line("ms between holds", between),
            line("commands a hand-over", of("commands a hold")),
        ]
    };
    [1, 5].into_iter().flat_map(of).collect()
}

fn fair(find: Find) -> Vec<Line> {
    let of = |clients: u64| {
        let what = format!("{clients} clients want it, commands a hand-over");
        requests(find, "quorlock fair", &format!("fair-{clients}"), &what)
    };
    let [few, some, many] = [2, 10, 50].map(of);
    let growth = Line {
        what: "commands a hand-over, 50 waiting / 2 waiting".to_owned(),
        nodes: 1,
        value: many.value / few.value,
        ..Line::default()
    };
    vec![few, some, many, growth]
}

fn readers(find: Find) -> Vec<Line> {
    let of = |what: &str| {
        let of = |peer: &str| find(peer, "readers-1", &format!("{what}, us"));
        let (alone, many) = (of("quorlock reader"), of("quorlock reader beside 1,000"));
        Line {
            what: format!("{what} beside 1,000 readers / beside 1"),
            nodes: 1,
            value: many.0 / alone.0,
            noise: Some(of("quorlock reader again").0 / alone.0),
            spreads: [Some(many), None, None],
            besides: format!("beside 1: median {:.1} us, p99 {:.1} us", alone.0, alone.1),
        }
    };
    ["acquire", "release"].map(of).into()
}

fn keeping(find: Find) -> Vec<Line> {
    let of = |figure: &str| find("quorlock", "keep-1", figure).0;
    let line = |what: &str, value, besides| Line {
        what: format!("2000 locks for 20 s, {what}"),
        nodes: 1,
        value,
        besides,
        ..Line::default()
    };
    let servers = of("servers, % of a core");
    let acquired = of("resident bytes a lock, when acquired");
    vec![
        line("lost", of("lost"), "lease 30 s, in real time".to_owned()),
        line(
            "% of a core",
            of("client, % of a core"),
            format!("the server: {servers:.2} %"),
        ),
        line(
            "resident bytes a lock",
            of("resident bytes a lock"),
            format!("when acquired: {acquired:.0}"),
        ),
    ]
}

/// Returns a table. Columns without any value are omitted.
fn table(unit: &str, lines: &[Line]) -> String {
    const TITLES: [&str; 8] = [
        "", "nodes", "value", "noise", "ours", "bare", "rslock", "besides",
    ];
    let rows: Vec<[String; 8]> = lines.iter().map(row).collect();
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

fn row(line: &Line) -> [String; 8] {
    let [ours, bare, rslock] = line.spreads.map(|spread| {
        let both = spread.map(|(median, p99)| format!("{} / {}", short(median), short(p99)));
        both.unwrap_or_default()
    });
    [
        line.what.clone(),
        line.nodes.to_string(),
        format!("**{}**", short(line.value)),
        line.noise.map_or(String::new(), short),
        ours,
        bare,
        rslock,
        line.besides.clone(),
    ]
}

/// Returns the table at the head of the page. Each row has a title, and the table and line that it shows.
fn summary(all: &[(&str, &str, Vec<Line>)]) -> String {
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
    for (title, key, what) in ROWS {
        let (_, _, lines) = all
            .iter()
            .find(|(table, ..)| *table == key)
            .expect("a table");
        let is_of_peer = what == "rslock";
        let value = |nodes: u64| {
            let mut lines = lines.iter().filter(|line| line.nodes == nodes);
            let line = lines.find(|line| is_of_peer || line.what.ends_with(what))?;
            match line.spreads {
                [.., rslock] if is_of_peer => rslock.map(|(median, _)| median),
                _ => Some(line.value),
            }
        };
        let [one, five] = [1, 5].map(|nodes| value(nodes).map_or(String::new(), short));
        text += &format!("\n| {title} | {one} | {five} |");
    }
    text
}

#[test]
fn rows_of_the_benchmark_become_tables() {
    let find = |peer: &str, case: &str, figure: &str| {
        let median = match (peer, case, figure) {
            (_, _, "in use") => 0.9,
            ("bare scripts", ..) => 25.0,
            ("rslock", ..) => 1234.0,
            _ => 50.0,
        };
        (median, 2.0 * median)
    };
    let figures = tables(&find);
    assert_eq!(
        figures["callers"],
        "|  | nodes | value | noise | ours, /s | bare, /s | rslock, /s | besides |\n\
         |---|---:|---:|---:|---:|---:|---:|---|\n\
         | pairs per second, ours / bare | 1 | **2.00** | 1.00 | 50.0 / 100.0 | 25.0 / 50.0 | 1,234 / 2,468 | rslock / bare \
         49.36; the servers' processors, us a pair: ours 50.0, bare 25.0, rslock 1234.0 |\n\
         | pairs per second, ours / bare | 5 | **2.00** | 1.00 | 50.0 / 100.0 | 25.0 / 50.0 | 1,234 / 2,468 | rslock / bare \
         49.36; the servers' processors, us a pair: ours 50.0, bare 25.0, rslock 1234.0 |"
    );
    assert_eq!(
        figures["herd"].lines().nth(2),
        Some("| 50 processes, ms between holds | 1 | **2.00** |")
    );
    assert!(
        figures["summary"].contains("bare script's round trip | 2.00 | 2.00 |"),
        "{}",
        figures["summary"]
    );
}
