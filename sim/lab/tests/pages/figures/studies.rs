//! The figures of the page of studies, from the tables in `docs/results/studies` that `quorlock-sim study` writes.

use std::collections::BTreeMap;
use std::path::Path;

use crate::figures::long::thousands;
use crate::figures::results::Figures;

/// A line of a table, by the names of its columns.
type Line = BTreeMap<String, String>;

/// Returns the figures of all studies.
pub(crate) fn figures(folder: &Path) -> Figures {
    let read = |name: &str| {
        let text = std::fs::read_to_string(folder.join(format!("{name}.csv")));
        lines(&text.unwrap_or_else(|error| panic!("{name}.csv: {error}")))
    };
    let (drift, pauses) = (read("drift"), read("pauses"));
    let (restarts, own) = (read("restarts"), read("own-algorithm"));
    Figures::from([
        ("drift".to_owned(), drifts(&drift)),
        ("pauses".to_owned(), late_writes(&pauses)),
        ("servers".to_owned(), servers(&restarts)),
        ("common".to_owned(), common(&restarts)),
        ("locks".to_owned(), locks(&own)),
        ("pairs".to_owned(), pairs(&read("own-algorithm-pairs"))),
        ("drift-runs".to_owned(), runs(&drift)),
        ("pauses-runs".to_owned(), runs(&pauses)),
        ("restarts-runs".to_owned(), runs(&restarts)),
    ])
}

/// Returns the lines of a table in CSV.
fn lines(text: &str) -> Vec<Line> {
    let mut rows = text.lines().map(cells);
    let titles = rows.next().expect("titles");
    rows.map(|cells| titles.iter().cloned().zip(cells).collect())
        .collect()
}

/// Returns the cells of a line. A cell with a comma is quoted; none has a quotation mark.
fn cells(line: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut is_quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => all.push(String::new()),
            _ => all.last_mut().expect("a cell").push(letter),
        }
    }
    all
}

fn text<'a>(line: &'a Line, column: &str) -> &'a str {
    line.get(column)
        .unwrap_or_else(|| panic!("no column {column:?}: {line:?}"))
}

fn number(line: &Line, column: &str) -> f64 {
    text(line, column).parse().expect("a number")
}

/// Returns the different texts of a column, in their order.
fn distinct<'a>(lines: &'a [Line], column: &str) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    for line in lines {
        let text = text(line, column);
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// Returns how many runs each cell has, which is the same for all.
fn runs(lines: &[Line]) -> String {
    let all = distinct(lines, "runs");
    let [runs] = all.as_slice() else {
        return format!("{} to {}", all[0], all[all.len() - 1]);
    };
    (*runs).to_owned()
}

/// Returns the number of runs that broke, and of all, for the lines that fit.
fn broke(lines: &[Line], fits: impl Fn(&Line) -> bool) -> String {
    let of = |column: &str| -> f64 {
        let found = lines.iter().filter(|line| fits(line));
        found.map(|line| number(line, column)).sum()
    };
    let (broken, runs) = (of("broken"), of("runs"));
    assert!(0.0 < runs, "no line fits");
    format!("{} of {}", thousands(broken), thousands(runs))
}

/// Returns a table. A title may stand for several columns.
fn table(first: &str, locks: &[&str], rows: impl Iterator<Item = (String, Vec<String>)>) -> String {
    let titles = locks.join(" | ");
    let columns = titles.matches(" | ").count() + 1;
    let mut table = format!("| {first} | {titles} |\n|---|{}", "---:|".repeat(columns));
    for (title, cells) in rows {
        table += &format!("\n| {title} | {} |", cells.join(" | "));
    }
    table
}

/// Returns how many runs broke around the threshold of the drift.
fn drifts(lines: &[Line]) -> String {
    let drift = "drift (parts in a million)";
    let locks = distinct(lines, "lock");
    let rows = ["14000", "16000", "18000", "20000"].map(|ppm| {
        let of = |lock: &&str| {
            broke(lines, |line| {
                text(line, "lock") == *lock && text(line, drift) == ppm
            })
        };
        let title = thousands(ppm.parse().expect("a number"));
        (title, locks.iter().map(of).collect())
    });
    table(drift, &locks, rows.into_iter())
}

/// Returns how many runs had a late write, for pauses that are shorter than the lease, and for others.
fn late_writes(lines: &[Line]) -> String {
    let locks = distinct(lines, "lock");
    let is_long = |line: &Line| number(line, "lease_number") <= number(line, "pause_number");
    let rows = [
        ("shorter than the lease", false),
        ("as long as the lease, or longer", true),
    ];
    let rows = rows.map(|(title, long)| {
        let of = |lock: &&str| {
            broke(lines, |line| {
                text(line, "lock") == *lock && is_long(line) == long
            })
        };
        (title.to_owned(), locks.iter().map(of).collect())
    });
    table("pause", &locks, rows.into_iter())
}

/// Returns how many runs broke with each number of servers, and what a hold costs.
fn servers(lines: &[Line]) -> String {
    let locks = distinct(lines, "lock");
    let titles: Vec<String> = locks
        .iter()
        .map(|lock| format!("{lock}, broke | requests a hold"))
        .collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let rows = distinct(lines, "servers").into_iter().map(|servers| {
        let of = |lock: &&str| {
            let fits =
                |line: &&Line| text(line, "lock") == *lock && text(line, "servers") == servers;
            let sum = |column: &str| -> f64 {
                lines
                    .iter()
                    .filter(fits)
                    .map(|line| number(line, column))
                    .sum()
            };
            let broke = broke(lines, |line| fits(&line));
            format!("{broke} | {:.1}", sum("requests") / sum("holds"))
        };
        (servers.to_owned(), locks.iter().map(of).collect())
    });
    table("servers", &titles, rows)
}

/// Returns how many runs broke with each share of common restarts.
fn common(lines: &[Line]) -> String {
    let share = "share of restarts that are common";
    let locks = distinct(lines, "lock");
    let rows = distinct(lines, share).into_iter().map(|common| {
        let of = |lock: &&str| {
            broke(lines, |line| {
                text(line, "lock") == *lock && text(line, share) == common
            })
        };
        (common.to_owned(), locks.iter().map(of).collect())
    });
    table(share, &locks, rows)
}

/// Returns a line for each lock.
fn locks(lines: &[Line]) -> String {
    let mut table =
        "| lock | runs | broke | % (95 %) | requests a hold |\n|---|---:|---:|---:|---:|"
            .to_owned();
    for line in lines {
        let [share, least, most] =
            ["share", "least", "most"].map(|column| 100.0 * number(line, column));
        table += &format!(
            "\n| {} | {} | {} | {share:.2} ({least:.2} to {most:.2}) | {:.1} |",
            text(line, "lock"),
            thousands(number(line, "runs")),
            thousands(number(line, "broken")),
            number(line, "requests") / number(line, "holds"),
        );
    }
    table
}

/// Returns how many seeds broke only one of two locks, for the pairs that the page tells of.
fn pairs(lines: &[Line]) -> String {
    let without = "Quorlock without trust and margin";
    let mut table =
        "| locks | seeds that broke only the first | only the second | `p` |\n|---|---:|---:|---:|"
            .to_owned();
    for (one, other) in [("published", without), (without, "Quorlock")] {
        let mut found = lines.iter();
        let pair = found.find(|line| text(line, "one") == one && text(line, "other") == other);
        let pair = pair.unwrap_or_else(|| panic!("no pair of {one} and {other}"));
        table += &format!(
            "\n| {one}; {other} | {} | {} | {:.0e} |",
            text(pair, "only_one"),
            text(pair, "only_other"),
            number(pair, "p")
        );
    }
    table
}

#[test]
fn cells_with_commas_are_quoted() {
    assert_eq!(
        cells("4s,\"Quorlock, fenced\",,3"),
        ["4s", "Quorlock, fenced", "", "3"]
    );
    let all = lines("lock,broken,runs\nours,0,1000\n\"theirs, old\",12,1000\n");
    assert_eq!(distinct(&all, "lock"), ["ours", "theirs, old"]);
    assert_eq!(runs(&all), "1000");
    assert_eq!(
        broke(&all, |line| text(line, "lock") != "ours"),
        "12 of 1,000"
    );
}
