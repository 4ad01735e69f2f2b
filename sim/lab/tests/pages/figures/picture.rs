//! The picture of the comparison with other libraries: what a pair of acquire and release costs, as bars.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::figures::long::short;
use crate::figures::peers::{PEERS, row};
use crate::figures::results::root;

/// The works of the columns, and their titles.
const COLUMNS: [(&str, &str); 2] = [("callers-1", "one server"), ("callers-5", "five servers")];

/// The figures of one bar, which stand one behind the other, and the colours of their classes.
type Bar = [(&'static str, &'static str)];

/// The blocks of bars, each with its title.
const BLOCKS: [(&str, &Bar); 2] = [
    (
        "pairs of acquire and release in a second, 64 callers",
        &[("pairs a second", "pairs")],
    ),
    (
        "processor time of one pair, µs: the client's, and behind it the servers'",
        &[
            ("client, us a pair", "client"),
            ("servers, us a pair", "servers"),
        ],
    ),
];

const STYLE: &str = "\
.pairs { font: 13px/1.3 system-ui, \"Segoe UI\", \"DejaVu Sans\", sans-serif; fill: #1c2430; }
.pairs .paper { fill: #fff; }
.pairs .title { font-weight: 600; }
.pairs .end { text-anchor: end; }
.pairs .pairs { fill: #2f6fb3; }
.pairs .client { fill: #2f6fb3; }
.pairs .servers { fill: #d98b2b; }
@media (prefers-color-scheme: dark) {
.pairs { fill: #e6eaf0; }
.pairs .paper { fill: #12161d; }
.pairs .pairs, .pairs .client { fill: #6ea8e6; }
.pairs .servers { fill: #e0a458; }
}
";

/// Where the names end, and the bars of each column begin.
const NAMES: u32 = 118;
const WIDEST: u32 = 270;
const COLUMN: u32 = 365;
const LINE: u32 = 22;

pub(crate) fn path() -> PathBuf {
    root().join("docs/src/pairs.svg")
}

/// Draws the bars of every library that did the work. The second turn of Quorlock and the bare scripts are no libraries.
pub(crate) fn draw(rows: &[Value]) -> String {
    let peers = PEERS
        .iter()
        .filter(|(name, _)| !matches!(*name, "quorlock again" | "bare scripts"));
    let peers: Vec<_> = peers.collect();
    // Rows of an older harness lack a figure.
    let is_measured = |bar: &Bar| {
        let mut all = bar.iter().map(|(figure, _)| figure);
        all.all(|figure| row(rows, "quorlock", COLUMNS[0].0, figure).is_some())
    };
    let blocks = BLOCKS.iter().filter(|(_, bar)| is_measured(bar));
    let blocks: Vec<_> = blocks.collect();
    let block_height = 52 + LINE * peers.len() as u32;
    let height = 12 + block_height * blocks.len() as u32;
    let (mut drawn, mut said) = (String::new(), String::new());
    for (index, (title, bar)) in blocks.into_iter().enumerate() {
        let top = 24 + block_height * index as u32;
        let _ = writeln!(
            drawn,
            "<text class=\"title\" x=\"12\" y=\"{top}\">{title}</text>"
        );
        for (column, (work, of)) in COLUMNS.iter().enumerate() {
            let left = NAMES + COLUMN * column as u32;
            let _ = writeln!(drawn, "<text x=\"{left}\" y=\"{}\">{of}</text>", top + 20);
            let parts = |peer: &str| -> Option<Vec<f64>> {
                let values = bar
                    .iter()
                    .map(|(figure, _)| row(rows, peer, work, figure)?["value"].as_f64());
                values.collect()
            };
            let sums = peers.iter().filter_map(|(peer, _)| parts(peer));
            let most = sums.map(|parts| parts.iter().sum()).fold(0.0, f64::max);
            for (line, (peer, name)) in peers.iter().enumerate() {
                let (name, base) = (name.trim_matches('`'), top + 42 + LINE * line as u32);
                if column == 0 {
                    let end = NAMES - 8;
                    let _ = writeln!(
                        drawn,
                        "<text class=\"end\" x=\"{end}\" y=\"{base}\">{name}</text>"
                    );
                }
                let Some(parts) = parts(peer) else {
                    continue;
                };
                let mut x = f64::from(left);
                for (value, (_, class)) in parts.iter().zip(*bar) {
                    let (width, y) = (f64::from(WIDEST) * value / most, base - 13);
                    let _ = writeln!(
                        drawn,
                        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"16\"/>"
                    );
                    x += width;
                }
                let text: Vec<String> = parts.iter().map(|value| short(*value)).collect();
                let text = text.join(" + ");
                let _ = writeln!(
                    drawn,
                    "<text x=\"{:.1}\" y=\"{base}\">{text}</text>",
                    x + 6.0
                );
                let _ = write!(said, " {name}, {of}: {text}.");
            }
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"pairs\" role=\"img\" aria-labelledby=\"pairs-title pairs-text\" viewBox=\"0 0 860 {height}\" \
         width=\"860\" height=\"{height}\">\n\
         <title id=\"pairs-title\">What a pair of acquire and release costs, by library</title>\n\
         <desc id=\"pairs-text\">Pairs a second, and microseconds of processor time of a pair where they were counted.{said}</desc>\n\
         <style>\n{STYLE}</style>\n<rect class=\"paper\" width=\"860\" height=\"{height}\"/>\n{drawn}</svg>\n"
    )
}
