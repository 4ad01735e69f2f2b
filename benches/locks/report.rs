//! The figures, as tables or as rows of JSON.

use serde_json::json;

use crate::bar::{self, Outcome, Results};
use crate::work;

pub(crate) fn print(results: &Results, as_json: bool) {
    let outcomes: Vec<_> = bar::ALL
        .iter()
        .filter_map(|bar| bar.outcome(results))
        .collect();
    if as_json {
        rows(results, &outcomes);
    } else {
        tables(results, &outcomes);
    }
}

fn rows(results: &Results, outcomes: &[Outcome]) {
    for outcome in outcomes {
        println!("{}", outcome.json());
    }
    for (work, peers) in results {
        for (peer, figures) in peers {
            for (figure, value) in figures {
                let row = json!({
                    "peer": peer.to_string(), "work": work, "figure": figure, "value": value,
                });
                println!("{row}");
            }
        }
    }
}

fn tables(results: &Results, outcomes: &[Outcome]) {
    for work in work::ALL {
        let Some(peers) = results.get(work.name) else {
            continue;
        };
        println!("\n{}: {}\n", work.name, work.about);
        let names: Vec<_> = peers
            .values()
            .next()
            .map_or(Vec::new(), |all| all.keys().collect());
        let mut head = String::from("| |");
        let mut line = String::from("|---|");
        for name in &names {
            head += &format!(" {name} |");
            line += "---:|";
        }
        println!("{head}\n{line}");
        for (peer, figures) in peers {
            let cells = names
                .iter()
                .map(|name| figures.get(*name).map_or(String::new(), |v| number(*v)));
            println!("| {peer} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
    }
    if outcomes.is_empty() {
        return;
    }
    println!("\n| bar | value | bound | control | |\n|---|---:|---:|---:|---|");
    for outcome in outcomes {
        let met = if outcome.is_met { "met" } else { "missed" };
        let (value, bound) = (number(outcome.value), number(outcome.bound));
        println!(
            "| {} | {value} | {bound} | {:.2} | {met} |",
            outcome.bar, outcome.control
        );
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
