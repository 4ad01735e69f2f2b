//! The table and the advice as text.

use std::fmt::Write as _;

use super::advice::Advice;
use super::table::{DEPLOYMENTS, Deployment, Evidence, Expected};

/// The rules of the page `deployments.md`.
pub(super) const RULES: [&str; 4] = [
    "What the lock protects is in one SQL database: a row of that database, checked in the transaction that writes.",
    "A double run now and then costs little (a cache, a nightly job): one Redis server, or the database that is there already.",
    "Two holders at once do damage, and no single failure may stop the lock: a majority of three independent servers or stores, of unlike \
     kinds if you have them.",
    "In each case, let the resource compare fencing tokens if it can: no lock stops a process that is suspended in the middle of a write.",
];

/// Where the pages are.
const BOOK: &str = "docs/src/";

/// Width of a line of text.
const WIDTH: usize = 110;

/// Returns the table of all deployments.
pub(super) fn table() -> String {
    let mut text = String::from("Which one do you take?\n\n");
    for rule in RULES {
        push_wrapped(&mut text, "- ", rule);
    }
    let _ = writeln!(
        text,
        "\n{:<44} {:<36} TWO HOLDERS AFTER",
        "DEPLOYMENT", "ADDRESS"
    );
    for deployment in &DEPLOYMENTS {
        let _ = writeln!(
            text,
            "{:<44} {:<36} {}",
            deployment.title,
            deployment.address,
            dangers(deployment)
        );
    }
    text.push_str(
        "\nThe names in parentheses are scenarios: quorlock-sim run S5. More about one: quorlock advise --servers 3, or with the options of --help.\n",
    );
    text
}

/// What gives a lock of this deployment to two holders.
fn dangers(deployment: &Deployment) -> String {
    let evidence = deployment.evidence.iter().copied().flatten();
    let dangers = evidence.filter(|evidence| evidence.expected == Expected::TwoHolders);
    let dangers = dangers.map(|evidence| format!("{} ({})", evidence.what, evidence.scenario));
    let dangers: Vec<String> = dangers.collect();
    match dangers.is_empty() {
        true => "nothing that a scenario shows".to_owned(),
        false => dangers.join("; "),
    }
}

/// Returns the advice.
pub(super) fn advice(advice: &Advice) -> String {
    let Deployment {
        title,
        address,
        promise,
        down,
        ..
    } = advice.deployment;
    let mut text = format!("{title}: {address}\n\n");
    section(&mut text, "promises", [(*promise).to_owned()]);
    section(&mut text, "when it is down", [(*down).to_owned()]);
    section(
        &mut text,
        "breaks it",
        advice.breaks.iter().map(|evidence| shown(evidence)),
    );
    section(
        &mut text,
        "does not break it",
        advice.holds.iter().map(|evidence| shown(evidence)),
    );
    section(&mut text, "nodes", [advice.nodes.clone()]);
    section(&mut text, "lease", [advice.lease.clone()]);
    section(&mut text, "fencing", [advice.fencing.to_owned()]);
    block(
        &mut text,
        "settings of all clients (--config)",
        advice.settings.iter().map(String::as_str),
    );
    block(
        &mut text,
        "settings of each Redis server (redis.conf)",
        advice.servers.iter().copied(),
    );
    let pages = advice.pages.iter().map(|page| format!("{BOOK}{page}"));
    let pages: Vec<String> = pages.collect();
    block(&mut text, "read", pages.iter().map(String::as_str));
    text
}

fn shown(evidence: &Evidence) -> String {
    let what = match evidence.expected {
        Expected::Stands => "no lock is granted: ",
        _ => "",
    };
    let case = match evidence.case.strip_prefix("product, ") {
        Some(case) => format!(": {case}"),
        None => String::new(),
    };
    format!("{what}{} ({}{case})", evidence.text, evidence.scenario)
}

/// Prints a subject with its sentences, as a list if there are several; nothing without any.
fn section(text: &mut String, subject: &str, sentences: impl IntoIterator<Item = String>) {
    let sentences: Vec<String> = sentences.into_iter().collect();
    let bullet = if sentences.len() < 2 { "" } else { "- " };
    let mut subject = format!("{subject:<19}");
    for sentence in &sentences {
        push_wrapped(text, &format!("{subject}{bullet}"), sentence);
        subject = " ".repeat(subject.len());
    }
}

/// Prints lines to copy.
fn block<'a>(text: &mut String, subject: &str, lines: impl Iterator<Item = &'a str>) {
    let lines: Vec<&str> = lines.collect();
    if !lines.is_empty() {
        let _ = write!(text, "\n{subject}:\n  {}\n", lines.join("\n  "));
    }
}

/// Prints a sentence behind a first word, in lines of a fixed width.
fn push_wrapped(text: &mut String, first: &str, sentence: &str) {
    let indent = " ".repeat(first.chars().count());
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in sentence.split_whitespace() {
        if !is_empty && WIDTH < line.chars().count() + 1 + word.chars().count() {
            let _ = writeln!(text, "{}", line.trim_end());
            line.clone_from(&indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    let _ = writeln!(text, "{}", line.trim_end());
}
