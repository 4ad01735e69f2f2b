//! Prints a study as Markdown and as CSV.

use std::fmt::Write as _;

use super::file::Experiment;
use super::outcome::Outcome;
use super::paired::Paired;

/// Returns the table of cells as Markdown, and the comparisons of locks over all points.
#[must_use]
pub fn markdown(study: &Experiment, outcomes: &[Outcome], pairs: &[Paired]) -> String {
    let mut text = String::new();
    let mut head: Vec<&str> = study.axes.iter().map(|axis| axis.name.as_str()).collect();
    head.extend(["lock", "runs", "broke", "% (95 %)", "requests a hold"]);
    let _ = writeln!(text, "| {} |", head.join(" | "));
    let right = "---:|".repeat(4);
    let _ = writeln!(text, "|{}---|{right}", "---|".repeat(study.axes.len()));
    for outcome in outcomes {
        let bounds = outcome.bounds(study);
        let mut cells = words(study, outcome);
        cells.push(outcome.tally.runs.to_string());
        cells.push(outcome.broken.len().to_string());
        let [share, least, most] = [bounds.share, bounds.least, bounds.most].map(percent);
        cells.push(format!("{share} ({least} to {most})"));
        let cost = outcome.requests_per_hold();
        cells.push(cost.map_or("no hold".to_owned(), |cost| format!("{cost:.1}")));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    let is_whole = |pair: &&Paired| pair.point.is_none() || study.points.len() == 1;
    let whole: Vec<&Paired> = pairs.iter().filter(is_whole).collect();
    if whole.is_empty() {
        return text;
    }
    text.push_str("\n| on the same seeds | seeds | broke only the first | only the second | p (McNemar) |\n|---|---:|---:|---:|---:|\n");
    for pair in whole {
        let names = [pair.one, pair.other].map(|lock| name(study, lock));
        let [one, other] = names;
        let (seeds, first, second) = (pair.seeds, pair.only_one, pair.only_other);
        let p = probability(pair.p);
        let _ = writeln!(
            text,
            "| {one}, {other} | {seeds} | {first} | {second} | {p} |"
        );
    }
    text
}

/// Returns the cells as CSV: the settings, the counts, the share with the bounds of Clopper and Pearson and of Wilson, and what a hold
/// costs. Settings are as in the file, with a column of the number in seconds or without a unit.
#[must_use]
pub fn csv(study: &Experiment, outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for axis in &study.axes {
        let _ = write!(text, "{},{}_number,", axis.name, axis.name);
    }
    text.push_str(
        "lock,runs,vacuous,broken,share,least,most,wilson_least,wilson_most,holds,requests,refused,effects,first_seed\n",
    );
    for outcome in outcomes {
        for setting in study.points.get(outcome.point).into_iter().flatten() {
            let number = setting.number.map_or(String::new(), |n| n.to_string());
            let _ = write!(text, "{},{number},", quoted(&setting.text));
        }
        let bounds = outcome.bounds(study);
        let tally = &outcome.tally;
        let first = outcome.broken.iter().map(|(seed, _)| *seed).min();
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            quoted(name(study, outcome.lock)),
            tally.runs,
            tally.vacuous,
            outcome.broken.len(),
            bounds.share,
            bounds.least,
            bounds.most,
            bounds.wilson_least,
            bounds.wilson_most,
            tally.holds,
            tally.commands,
            tally.refused,
            tally.effects(),
            first.map_or(String::new(), |seed| seed.to_string()),
        );
    }
    text
}

/// Returns the comparisons of locks as CSV. A line without settings is of all points together.
#[must_use]
pub fn pairs_csv(study: &Experiment, pairs: &[Paired]) -> String {
    let mut text = String::new();
    for axis in &study.axes {
        let _ = write!(text, "{},", axis.name);
    }
    text.push_str("one,other,seeds,only_one,only_other,p\n");
    for pair in pairs {
        let point = pair.point.and_then(|point| study.points.get(point));
        for axis in 0..study.axes.len() {
            let setting = point.and_then(|point| point.get(axis));
            let setting = setting.map_or(String::new(), |setting| quoted(&setting.text));
            let _ = write!(text, "{setting},");
        }
        let [one, other] = [pair.one, pair.other].map(|lock| quoted(name(study, lock)));
        let (seeds, first, second, p) = (pair.seeds, pair.only_one, pair.only_other, pair.p);
        let _ = writeln!(text, "{one},{other},{seeds},{first},{second},{p}");
    }
    text
}

fn words(study: &Experiment, outcome: &Outcome) -> Vec<String> {
    let settings = study.points.get(outcome.point).into_iter().flatten();
    let mut words: Vec<String> = settings.map(|setting| setting.text.clone()).collect();
    words.push(name(study, outcome.lock).to_owned());
    words
}

pub(super) fn name(study: &Experiment, lock: usize) -> &str {
    study.locks.get(lock).map_or("", |lock| lock.name.as_str())
}

/// Formats a share in percent, with enough digits to tell small ones apart.
pub(super) fn percent(share: f64) -> String {
    match 100.0 * share {
        0.0 => "0".to_owned(),
        percent if percent < 0.1 => format!("{percent:.3}"),
        percent => format!("{percent:.2}"),
    }
}

fn probability(p: f64) -> String {
    match p {
        0.001.. => format!("{p:.3}"),
        _ => format!("{p:.0e}"),
    }
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
