//! Commands that take seconds.

use std::path::Path;
use std::process::Command;

use quorlock_sim_lab::study::interval::Interval;
use quorlock_sim_lab::study::matrix::{CLASSES, CONTENDERS};
use quorlock_sim_lab::study::scenario::built_in;
use quorlock_sim_plan::variant::Variant;
use serde_json::Value;

use crate::figures::results::{Figures, Results};

pub(crate) fn all() -> Vec<Results> {
    vec![catalog(), tutorial(), published(), readme()]
}

/// Returns what a command of the simulator prints.
pub(crate) fn sim(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_quorlock-sim"))
        .args(arguments)
        .output()
        .expect("it starts");
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the numbers of scenarios and variants, and their ids as ranges.
fn catalog() -> Results {
    let ids: Vec<String> = built_in()
        .expect("it works")
        .into_iter()
        .map(|s| s.id)
        .collect();
    let mut figures = Figures::new();
    for prefix in ["S", "R", "M", "Q", "F", "L", "E", "D"] {
        let numbers = ids
            .iter()
            .filter_map(|id| id.strip_prefix(prefix)?.parse().ok());
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        figures.insert(prefix.to_owned(), ranges(prefix, &numbers));
    }
    let models: Vec<&str> = ids.iter().filter_map(|id| id.strip_prefix("V-")).collect();
    let ends = models.iter().min().zip(models.iter().max());
    let (first, last) = ends.expect("models");
    figures.insert("V".to_owned(), format!("V-{first} to V-{last}"));
    figures.insert("scenarios".to_owned(), ids.len().to_string());
    let cases: usize = built_in()
        .expect("it works")
        .iter()
        .map(|s| s.cases.len())
        .sum();
    figures.insert("cases".to_owned(), cases.to_string());
    let wrong = Variant::ALL
        .iter()
        .filter(|variant| !variant.flaws().is_empty());
    let (of_product, own): (Vec<&Variant>, Vec<&Variant>) =
        wrong.partition(|v| v.has_product_clients());
    figures.insert("own-variants".to_owned(), own.len().to_string());
    figures.insert("product-variants".to_owned(), of_product.len().to_string());
    figures.insert("locks".to_owned(), CONTENDERS.len().to_string());
    figures.insert("classes".to_owned(), CLASSES.len().to_string());
    Results {
        name: "catalog",
        command: "quorlock-sim scenarios --list".to_owned(),
        figures,
    }
}

/// Formats numbers as ranges: `S1 to S3, S5`.
fn ranges(prefix: &str, numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let shown = runs.iter().map(|(first, last)| match last - first {
        0 => format!("{prefix}{first}"),
        1 => format!("{prefix}{first}, {prefix}{last}"),
        _ => format!("{prefix}{first} to {prefix}{last}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Returns the results of the scenario that the documentation builds step by step.
fn tutorial() -> Results {
    let page = include_str!("../../../../../docs/src/scenarios.md");
    let blocks = page.split("```toml\n").skip(1);
    let blocks: Vec<&str> = blocks.filter_map(|b| b.split("```").next()).collect();
    let [plan, header, case, cut, other] = blocks.as_slice() else {
        panic!("{} blocks", blocks.len())
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tutorial");
    std::fs::create_dir_all(&folder).expect("it works");
    let file = folder.join("restart.toml");
    let run = |parts: &[&str], flags: &[&str]| {
        std::fs::write(&file, parts.join("\n")).expect("it works");
        let arguments = ["scenarios", file.to_str().expect("it works")];
        sim(&[&arguments[..], flags].concat())
    };
    let mut figures = Figures::new();
    let first = run(&[header, plan, case], &["--rates"]);
    let command = "$ quorlock-sim scenarios restart.toml --rates";
    let block = |text: &str| format!("```console\n{command}\n{}\n```", text.trim_end());
    figures.insert("first".to_owned(), block(&first));
    let steered = run(&[header, plan, cut, case], &["--rates"]);
    let rate = steered.lines().find(|line| line.contains("breaks in"));
    let rate = rate.expect("a rate").trim_end();
    figures.insert("steered".to_owned(), format!("```text\n{rate}\n```"));
    let both = run(&[header, plan, cut, case, other], &[]);
    let rows = both.lines().filter(|line| line.ends_with("as expected"));
    let rows: Vec<&str> = rows.collect();
    assert_eq!(rows.len(), 2, "{both}");
    figures.insert(
        "both".to_owned(),
        format!("```text\n{}\n```", rows.join("\n")),
    );
    let json = run(&[header, plan, case], &["--rates", "--json"]);
    let json: Value = serde_json::from_str(&json).expect("it works");
    figures.insert("seed".to_owned(), json["cells"][0]["first"].to_string());
    Results {
        name: "tutorial",
        command: "quorlock-sim scenarios restart.toml --rates".to_owned(),
        figures,
    }
}

/// Returns the figures that others have published.
fn published() -> Results {
    let rows = sim(&["scenarios", "F", "--json"]);
    let rows: Value = serde_json::from_str(&rows).expect("JSON");
    let mut figures = Figures::new();
    for row in rows["cells"].as_array().expect("rows") {
        let measured = &row["measured"];
        let count = |what: &str| measured[what].as_u64();
        let Some((lost, all)) = count("lost").zip(count("acknowledged")) else {
            continue;
        };
        let share = Interval::of(lost, all);
        let percent = |share: f64| format!("{:.1}", share * 100.0);
        let (min, max) = (percent(share.min), percent(share.max));
        let id = row["id"].as_str().expect("an id").to_owned();
        figures
            .entry(id)
            .or_insert(format!("{} % ({min} to {max} %)", percent(share.share)));
    }
    Results {
        name: "published",
        command: "quorlock-sim scenarios F".to_owned(),
        figures,
    }
}

/// Returns the scenario that the README shows.
fn readme() -> Results {
    let printed = sim(&["scenarios", "Q5"]);
    let printed = printed.trim_end();
    let block = format!("```text\n{printed}\n```");
    Results {
        name: "readme",
        command: "quorlock-sim scenarios Q5".to_owned(),
        figures: Figures::from([("scenario".to_owned(), block)]),
    }
}
