//! The report: the figures of each case and the bars, as tables or as rows of JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::bar::{self, Outcome};
use crate::case;
use crate::contestant::Contestant;
use crate::results::Results;
use crate::turn::{Figures, quantile};

/// Prints the figures of each case and the bars.
pub(crate) fn print(results: &Results, as_json: bool) {
    let outcomes: Vec<_> = bar::ALL
        .iter()
        .filter_map(|bar| bar.outcome(results))
        .collect();
    if as_json {
        let bars = outcomes.iter().map(Outcome::row);
        bars.chain(results.rows()).for_each(|row| println!("{row}"));
        return;
    }
    for case in case::ALL {
        if let Some(contestants) = results.0.get(case.name).filter(|all| !all.is_empty()) {
            println!("\n{}: {}\n", case.name, case.about);
            print_table(&figures(contestants));
        }
    }
    if !outcomes.is_empty() {
        println!();
        let head = ["bar", "value", "bound", "control", ""].map(String::from);
        let bars = outcomes.iter().map(Outcome::cells);
        print_table(
            &std::iter::once(head.to_vec())
                .chain(bars)
                .collect::<Vec<_>>(),
        );
    }
    println!(
        "\nTwo numbers are a median and a 99th percentile. control: the figure of an identical contestant, divided by \
         that of the first one; it widens the bound."
    );
}

/// Returns a table with a line for each figure and a column for each contestant.
fn figures(contestants: &BTreeMap<Contestant, Figures>) -> Vec<Vec<String>> {
    let names = contestants.keys().map(|who| who.name().to_owned());
    let head = std::iter::once(String::new()).chain(names).collect();
    let mut figures: Vec<&String> = contestants.values().flat_map(BTreeMap::keys).collect();
    figures.sort();
    figures.dedup();
    let lines = figures.into_iter().map(|figure| {
        let cell = |figures: &Figures| match figures.get(figure).map(Vec::as_slice) {
            None => String::new(),
            Some([one]) => number(*one),
            Some(values) => {
                let [median, p99] = [0.5, 0.99].map(|share| number(quantile(values, share)));
                format!("{median} / {p99}")
            }
        };
        let cells = contestants.values().map(cell);
        std::iter::once(figure.clone()).chain(cells).collect()
    });
    std::iter::once(head).chain(lines).collect()
}

/// Prints lines of cells, the first one as titles, in Markdown with aligned columns.
fn print_table(lines: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
            .max(3)
    };
    for (index, line) in lines.iter().enumerate() {
        let cells = line.iter().enumerate().map(|(column, cell)| match column {
            0 => format!("{cell:0$}", width(column)),
            _ => format!("{cell:>0$}", width(column)),
        });
        println!("| {} |", cells.collect::<Vec<_>>().join(" | "));
        if index == 0 {
            let rules = (0..line.len()).map(|column| match column {
                0 => "-".repeat(width(column) + 2),
                _ => "-".repeat(width(column) + 1) + ":",
            });
            println!("|{}|", rules.collect::<Vec<_>>().join("|"));
        }
    }
}

impl Outcome {
    fn row(&self) -> Value {
        json!({
            "bar": self.bar,
            "value": self.value,
            "bound": self.bound,
            "control": self.control,
            "met": self.is_met,
        })
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.bar.clone(),
            number(self.value),
            number(self.bound),
            self.control.map_or(String::new(), number),
            if self.is_met { "met" } else { "MISSED" }.to_owned(),
        ]
    }
}

/// Formats a number with its significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        1000.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
