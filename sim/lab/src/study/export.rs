//! Histories as JSON lines for external checkers: a header, then all events in the order in which they began.

use std::path::{Path, PathBuf};

use quorlock::OwnerId;
use serde::Serialize;

use crate::study::failure::{self, FileError};
use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::property::Property;
use quorlock_sim_world::history::{
    Accepted, Access, Action, Grant, History, HoldId, NameId, Outcome, Process,
};

/// The version of the format. It is incremented when a key changes its meaning or is removed, but not when a key is
/// added.
const FORMAT: u32 = 2;

/// The first line of an export: the header.
#[derive(Debug, Serialize)]
struct HistoryHeader<'a> {
    format: &'static str,
    format_version: u32,
    quorlock: &'static str,
    seed: u64,
    trace: String,
    verdict: &'a Verdict,
    /// All properties that this history breaks, whether or not the plan demands them.
    violated: Vec<Property>,
    /// Whether two clients believed at the same time in holds that exclude each other.
    overlaps: bool,
    plan: &'a Plan,
}

/// Any other line of an export.
#[derive(Debug, Serialize)]
struct HistoryLine<'a> {
    operation: &'static str,
    names: Vec<&'a str>,
    process: Process,
    owner: Option<String>,
    hold: Option<u32>,
    access: Option<Access>,
    under: Option<u32>,
    invoke: u64,
    complete: Option<u64>,
    outcome: Outcome,
    token: Option<u64>,
    read_at: Option<u64>,
}

/// Returns the history of a run as text, one JSON object per line. Times are nanoseconds of true time.
#[must_use]
pub fn lines(run: &Run) -> String {
    let mut text = String::new();
    push(&mut text, &header(run));
    for line in sorted(&run.history) {
        push(&mut text, &line);
    }
    text
}

/// Writes the history of a run into a folder, as `redlock-seed-42.jsonl`.
pub(super) fn write(run: &Run, folder: &Path) -> Result<PathBuf, FileError> {
    let file = format!("{}.jsonl", failure::stem(&run.plan));
    failure::write_file(folder.join(file), &lines(run))
}

fn push(text: &mut String, line: &impl Serialize) {
    // All keys are strings and all numbers are finite, so serialization cannot fail.
    text.push_str(&serde_json::to_string(line).expect("BUG: a line of a history is JSON"));
    text.push('\n');
}

fn header(run: &Run) -> HistoryHeader<'_> {
    let history = &run.history;
    let is_violated = |property: &Property| run.violated.contains_key(property);
    HistoryHeader {
        format: "quorlock-history",
        format_version: FORMAT,
        quorlock: env!("CARGO_PKG_VERSION"),
        seed: run.plan.seed,
        trace: format!("{:016x}", run.trace),
        verdict: &run.verdict,
        violated: Property::ALL.into_iter().filter(is_violated).collect(),
        overlaps: quorlock_sim_check::overlaps(history),
        plan: &run.plan,
    }
}

/// Returns the events in the order in which they began. Writes to the store that began at the same time are in the
/// order in which they arrived.
fn sorted(history: &History) -> Vec<HistoryLine<'_>> {
    let mut lines: Vec<HistoryLine> = operations(history).collect();
    lines.extend(grants(history));
    lines.extend(uses(history));
    lines.extend(stored(history));
    lines.sort_by_key(|line| line.invoke);
    lines
}

fn operations(history: &History) -> impl Iterator<Item = HistoryLine<'_>> {
    history.operations.iter().map(|op| HistoryLine {
        operation: action(op.action),
        names: names(history, op.names),
        process: op.process,
        owner: owner(history, op.hold),
        hold: number(op.hold),
        access: grant(history, op.hold).map(|grant| grant.access),
        under: None,
        invoke: op.invoked,
        complete: (op.completed != u64::MAX).then_some(op.completed),
        outcome: op.outcome,
        token: (op.token != 0).then_some(op.token),
        read_at: None,
    })
}

fn grants(history: &History) -> impl Iterator<Item = HistoryLine<'_>> {
    history.grants.iter().map(|grant| HistoryLine {
        operation: "grant",
        names: vec![history.text(grant.name)],
        process: grant.process,
        owner: Some(grant.owner.to_string()),
        hold: number(grant.hold),
        access: Some(grant.access),
        under: None,
        invoke: grant.invoked,
        complete: Some(grant.won),
        outcome: Outcome::Ok,
        token: Some(grant.token),
        read_at: None,
    })
}

/// Returns the visits to critical sections, and the terms of leaders.
fn uses(history: &History) -> impl Iterator<Item = HistoryLine<'_>> {
    let sections = history.sections.iter().map(|section| HistoryLine {
        operation: "use",
        names: vec![history.text(section.name)],
        process: section.process,
        owner: owner(history, section.hold),
        hold: number(section.hold),
        access: Some(section.access),
        under: number(section.under),
        invoke: section.won,
        complete: section.believed,
        outcome: outcome(section.believed),
        token: token(history, section.hold, section.name),
        read_at: None,
    });
    let terms = history.reigns.iter().map(|reign| HistoryLine {
        operation: "lead",
        names: vec![history.text(reign.name)],
        process: reign.process,
        owner: owner(history, reign.hold),
        hold: number(reign.hold),
        access: Some(Access::Alone),
        under: None,
        invoke: reign.elected,
        complete: reign.believed,
        outcome: outcome(reign.believed),
        token: Some(reign.term),
        read_at: None,
    });
    sections.chain(terms)
}

fn stored(history: &History) -> impl Iterator<Item = HistoryLine<'_>> {
    history.writes.iter().map(|write| HistoryLine {
        operation: "store",
        names: vec![history.text(write.name)],
        process: write.process,
        owner: owner(history, write.hold),
        hold: number(write.hold),
        access: None,
        under: None,
        invoke: write.at,
        complete: Some(write.at),
        outcome: match write.accepted {
            Accepted::Yes => Outcome::Ok,
            Accepted::No => Outcome::Fail,
        },
        token: write.token,
        read_at: write.read_at,
    })
}

fn outcome(believed: Option<u64>) -> Outcome {
    believed.map_or(Outcome::Fail, |_| Outcome::Ok)
}

fn number(hold: HoldId) -> Option<u32> {
    (hold != HoldId::NONE).then_some(hold.0)
}

/// Returns the grants of a hold. The grants of a history are sorted by hold, because holds are numbered in the order
/// in which they are won.
fn grants_of(history: &History, hold: HoldId) -> impl Iterator<Item = &Grant> {
    let from = history.grants.partition_point(|grant| grant.hold < hold);
    let grants = history.grants.iter().skip(from);
    grants.take_while(move |grant| grant.hold == hold)
}

fn grant(history: &History, hold: HoldId) -> Option<&Grant> {
    grants_of(history, hold).next()
}

fn owner(history: &History, hold: HoldId) -> Option<String> {
    let owner: OwnerId = grant(history, hold)?.owner;
    Some(owner.to_string())
}

fn token(history: &History, hold: HoldId, name: NameId) -> Option<u64> {
    let mut grants = grants_of(history, hold);
    Some(grants.find(|grant| grant.name == name)?.token)
}

fn action(action: Action) -> &'static str {
    match action {
        Action::Acquire => "acquire",
        Action::Try => "try",
        Action::Reenter => "reenter",
        Action::Extend => "extend",
        Action::Release => "release",
        Action::Write => "write",
    }
}

fn names(history: &History, mask: u64) -> Vec<&str> {
    let named = history.names.iter().enumerate();
    named
        .filter(|(bit, _)| mask & 1u64.checked_shl(*bit as u32).unwrap_or(0) != 0)
        .map(|(_, name)| name.as_str())
        .collect()
}
