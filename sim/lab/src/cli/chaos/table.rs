//! The observations as a table.

use std::fmt::Write as _;

use crate::chaos::network::Network;
use crate::chaos::run::Observed;

/// The observation of one lock under one class.
pub(super) struct CellRow {
    pub(super) class: String,
    pub(super) lock: String,
    pub(super) observed: Observed,
}

/// Formats a line for each lock, and below it the faults that were not available and what went wrong.
pub(super) fn table(lines: &[CellRow]) -> String {
    let width = |of: fn(&CellRow) -> &str, least: usize| {
        let widths = lines.iter().map(|line| of(line).len());
        widths.max().unwrap_or(0).max(least)
    };
    let (class, lock) = (width(|line| &line.class, 24), width(|line| &line.lock, 18));
    let mut text = format!(
        "{:<class$} {:<lock$} {:>5} {:>6} {:>6} {:>6} {:>6}  {:<22} {}",
        "class", "lock", "s", "holds", "passed", "faults", "inside", "exclusion", "tokens"
    );
    for line in lines {
        let observed = &line.observed;
        let exclusion = match &observed.exclusion {
            Some(broke) => format!("{}, after {:.1} s", observed.how_often(), broke.after),
            None => "held".to_owned(),
        };
        let tokens = match &observed.fencing {
            Some(broke) => format!("broke after {:.1} s", broke.after),
            None => "in order".to_owned(),
        };
        let _ = write!(
            text,
            "\n{:<class$} {:<lock$} {:>5} {:>6} {:>6} {:>6} {:>6}  {:<22} {}",
            line.class,
            line.lock,
            observed.seconds,
            observed.holds,
            observed.hand_overs,
            observed.faults,
            observed.during_holds,
            exclusion,
            tokens
        );
        for note in notes(observed) {
            let _ = write!(text, "\n    {note}");
        }
    }
    text.push_str(
        "\n\npassed: hand-overs from one process to another; inside: faults while a lock was held; \
         disturbed: the client was stopped or its clock set",
    );
    text
}

fn notes(observed: &Observed) -> Vec<String> {
    let broke = [
        &observed.exclusion,
        &observed.fencing,
        &observed.usage,
        &observed.orphans,
        &observed.overrun,
        &observed.fairness,
        &observed.delayed,
    ];
    let mut notes: Vec<String> = broke
        .into_iter()
        .flatten()
        .map(|broke| broke.story.clone())
        .collect();
    if let Some(waits) = observed.waits {
        let (judged, ran_out, latest) = (waits.judged, waits.ran_out, waits.latest_ms);
        notes.push(format!(
            "{judged} waits with a bound: {ran_out} ran out, the latest client returned {latest} ms after its bound; {} more were \
             disturbed",
            waits.excused
        ));
    }
    if let Some(queued) = observed.queued {
        notes.push(format!(
            "{queued} grants of a fair lock while others waited in the queue"
        ));
    }
    let lacking = observed.lacking.iter();
    notes.extend(
        observed
            .beside
            .map(|beside| beside.sentence(observed.holds)),
    );
    notes.extend(lacking.map(|(what, times)| format!("{times} faults were not available: {what}")));
    if let Some(Network::Shared(why)) = &observed.network {
        notes.push(format!("no network namespace: {why}"));
    }
    let complaints = observed.complaints.iter();
    notes.extend(complaints.map(|said| format!("unexpected: {said}")));
    notes
}
