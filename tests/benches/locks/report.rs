//! Figures, and how they are printed.

use std::fs;

use serde_json::{Value, json};

use crate::options::Options;

/// The target of a figure.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
}

impl Target {
    fn is_met(self, value: f64) -> bool {
        match self {
            Target::AtMost(bound) => value <= bound,
            Target::AtLeast(bound) => bound <= value,
        }
    }

    fn shown(self) -> String {
        match self {
            Target::AtMost(bound) => format!("<= {}", number(bound)),
            Target::AtLeast(bound) => format!(">= {}", number(bound)),
        }
    }
}

/// The median and the 99th percentile of measured values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) p99: f64,
}

impl Spread {
    /// Computes the median and the percentile of at least one value.
    pub(crate) fn of(values: &[f64]) -> Spread {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let last = values.len() - 1;
            values[((last as f64) * share).round() as usize]
        };
        Spread {
            median: at(0.5),
            p99: at(0.99),
        }
    }
}

/// One line of the report.
#[derive(Default)]
pub(crate) struct Figure {
    pub(crate) case: &'static str,
    /// A description of the measurement and of its value.
    pub(crate) what: String,
    pub(crate) nodes: usize,
    pub(crate) value: f64,
    pub(crate) target: Option<Target>,
    /// The same ratio of two identical runs.
    pub(crate) noise: Option<f64>,
    /// The unit of the spreads.
    pub(crate) unit: &'static str,
    pub(crate) ours: Option<Spread>,
    pub(crate) bare: Option<Spread>,
    pub(crate) rslock: Option<Spread>,
    pub(crate) note: String,
}

pub(crate) struct Report {
    options: Options,
    figures: Vec<Figure>,
}

const HEAD: [&str; 10] = [
    "figure", "n", "value", "target", "", "noise", "ours", "bare", "rslock", "",
];

impl Report {
    pub(crate) fn new(options: &Options) -> Report {
        Report {
            options: options.clone(),
            figures: Vec::new(),
        }
    }

    pub(crate) fn extend(&mut self, figures: Vec<Figure>) {
        self.figures.extend(figures);
    }

    pub(crate) fn print(&self) {
        if self.options.prints_json() {
            return;
        }
        let rows: Vec<[String; 10]> = self.figures.iter().map(row).collect();
        let all = || std::iter::once(HEAD.map(String::from)).chain(rows.iter().cloned());
        let mut widths = [0; 10];
        for row in all() {
            for (width, cell) in widths.iter_mut().zip(&row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        println!();
        for row in all() {
            let cells = row.iter().zip(widths).enumerate();
            let line: Vec<String> = cells
                .map(|(column, (cell, width))| match column {
                    0 | 4 | 9 => format!("{cell:width$}"),
                    _ => format!("{cell:>width$}"),
                })
                .collect();
            println!("{}", line.join("  ").trim_end());
        }
        println!(
            "\nours, bare, rslock: median / 99th percentile. noise: the figure of two identical bare runs."
        );
    }

    /// Writes the figures to the file that the options name.
    pub(crate) fn write_json(&self) -> Result<(), String> {
        let Some(path) = &self.options.json else {
            return Ok(());
        };
        let figures: Vec<Value> = self.figures.iter().map(value).collect();
        let text = json!({ "quick": self.options.is_quick, "threads": self.options.threads, "figures": figures });
        let text = format!("{text:#}");
        if self.options.prints_json() {
            println!("{text}");
            return Ok(());
        }
        fs::write(path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))
    }
}

fn row(figure: &Figure) -> [String; 10] {
    let spread = |spread: Option<Spread>| match spread {
        Some(Spread { median, p99 }) => {
            format!("{} / {} {}", number(median), number(p99), figure.unit)
        }
        None => String::new(),
    };
    let met = figure.target.map(|t| t.is_met(figure.value));
    [
        format!("{}: {}", figure.case, figure.what),
        figure.nodes.to_string(),
        number(figure.value),
        figure.target.map_or(String::new(), Target::shown),
        met.map_or("", |met| if met { "met" } else { "MISSED" })
            .to_owned(),
        figure.noise.map_or(String::new(), number),
        spread(figure.ours),
        spread(figure.bare),
        spread(figure.rslock),
        figure.note.clone(),
    ]
}

fn value(figure: &Figure) -> Value {
    let spread =
        |spread: Option<Spread>| spread.map(|s| json!({ "median": s.median, "p99": s.p99 }));
    json!({
        "case": figure.case,
        "what": figure.what,
        "nodes": figure.nodes,
        "value": figure.value,
        "target": figure.target.map(Target::shown),
        "is_met": figure.target.map(|t| t.is_met(figure.value)),
        "noise": figure.noise,
        "unit": figure.unit,
        "ours": spread(figure.ours),
        "bare": spread(figure.bare),
        "rslock": spread(figure.rslock),
        "note": figure.note,
    })
}

/// Formats a number with its significant digits.
fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 1000.0 {
        format!("{value:.0}")
    } else if magnitude >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}
