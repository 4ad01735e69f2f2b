//! A run in words, in the order of true time.

use crate::history::{Action, Operation, Outcome};
use crate::simulation::{Run, Verdict};
use crate::span::Span;

/// The lines of the story.
#[must_use]
pub fn tell(run: &Run) -> Vec<String> {
    let mut lines: Vec<(u64, String)> = Vec::new();
    for (fault, effects) in run.plan.faults.iter().zip(&run.effects) {
        let line = format!("!! {fault:?} (did something {effects} times)");
        lines.push((fault.at().as_nanos(), line));
    }
    for operation in &run.history.operations {
        if operation.completed != u64::MAX {
            lines.push((operation.completed, ended(run, operation)));
        }
    }
    for section in &run.history.sections {
        let name = run.history.text(section.name);
        let believed = match section.believed {
            Some(at) => format!("believed until {}", Span::nanos(at)),
            None => "never believed".to_owned(),
        };
        let line = format!("{} enters {name} ({believed})", section.process);
        lines.push((section.entered, line));
        if section.left != u64::MAX {
            lines.push((section.left, format!("{} leaves {name}", section.process)));
        }
    }
    for write in &run.history.writes {
        let token = write
            .token
            .map_or(String::new(), |t| format!(" with token {t}"));
        let name = run.history.text(write.name);
        let line = format!(
            "the store: {} writes {name}{token}: {:?}",
            write.process, write.accepted
        );
        lines.push((write.at, line));
    }
    if let Verdict::Violated(violation) = &run.verdict {
        lines.push((violation.at.as_nanos(), format!(">> {violation}")));
    }
    lines.sort_by_key(|(at, _)| *at);
    let mut told: Vec<String> = lines
        .into_iter()
        .map(|(at, line)| format!("{:>12} {line}", Span::nanos(at).to_string()))
        .collect();
    let counters = run.counters;
    told.push(format!(
        "{} holds, {} commands, {} refusals in {}; trace {:016x}",
        run.history.holds, counters.commands, counters.refused, run.lasted, run.trace
    ));
    told.push(match &run.verdict {
        Verdict::Holds => "every property holds".to_owned(),
        Verdict::Vacuous => "vacuous: nobody acquired anything".to_owned(),
        Verdict::Violated(violation) => violation.to_string(),
    });
    told
}

fn ended(run: &Run, operation: &Operation) -> String {
    let names: Vec<&str> = run
        .history
        .names
        .iter()
        .enumerate()
        .filter(|(bit, _)| operation.names & (1 << bit) != 0)
        .map(|(_, name)| name.as_str())
        .collect();
    let verb = match operation.action {
        Action::Acquire => "acquires",
        Action::Try => "tries",
        Action::Reenter => "enters again",
        Action::Extend => "extends",
        Action::Release => "releases",
        Action::Write => "has written",
    };
    let outcome = match operation.outcome {
        Outcome::Ok => format!("token {}", operation.token),
        Outcome::Fail => "failed".to_owned(),
        Outcome::Indeterminate => "perhaps".to_owned(),
    };
    format!(
        "{} {verb} {} ({outcome}; asked at {})",
        operation.process,
        names.join("+"),
        Span::nanos(operation.invoked)
    )
}
