//! Histories as JSON lines, for outside checkers.

use serde::Serialize;

use crate::history::{Action, History, Outcome, Process};

/// One line: an operation, or a stay in a section (`use`).
#[derive(Debug, Serialize)]
struct Line<'a> {
    operation: &'a str,
    names: Vec<&'a str>,
    process: Process,
    hold: Option<u32>,
    invoke: u64,
    complete: Option<u64>,
    outcome: Outcome,
    token: Option<u64>,
}

/// One JSON object a line, in the order in which they began; times are nanoseconds of true time.
#[must_use]
pub fn lines(history: &History) -> String {
    let operations = history.operations.iter().map(|op| Line {
        operation: action(op.action),
        names: names(history, op.names),
        process: op.process,
        hold: (op.hold.0 != u32::MAX).then_some(op.hold.0),
        invoke: op.invoked,
        complete: (op.completed != u64::MAX).then_some(op.completed),
        outcome: op.outcome,
        token: (op.token != 0).then_some(op.token),
    });
    let uses = history.sections.iter().map(|section| Line {
        operation: "use",
        names: vec![history.text(section.name)],
        process: section.process,
        hold: (section.hold.0 != u32::MAX).then_some(section.hold.0),
        invoke: section.entered,
        complete: section.believed,
        outcome: if section.believed.is_some() {
            Outcome::Ok
        } else {
            Outcome::Fail
        },
        token: None,
    });
    let mut lines: Vec<Line> = operations.chain(uses).collect();
    lines.sort_by_key(|line| line.invoke);
    let mut text = String::new();
    for line in lines {
        if let Ok(line) = serde_json::to_string(&line) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
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
