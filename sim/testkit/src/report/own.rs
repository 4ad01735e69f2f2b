//! Draws what a user's own clients mark, send to resources, and hold.

use std::collections::BTreeMap;

use quorlock::OwnerId;

use super::bars::{colour, moment, stretch};
use super::scene::{Owner, RowContent, Scene, Shape};
use quorlock_sim_check::run::Run;
use quorlock_sim_plan::LockKind;
use quorlock_sim_world::history::NameId;
use quorlock_sim_world::history::own::ResourceCall;
use quorlock_sim_world::history::recording::{Claim, ProcessPlace, Recording};

/// The number of last marks and calls that are shown at first.
const LAST: usize = 14;

pub(super) fn draw(scene: &mut Scene, run: &Run, recording: &Recording) {
    holds(scene, run, recording);
    outages(scene, run);
    calls(scene, run);
    words(scene, run);
}

/// Returns when the last few marks and calls before a time began.
pub(super) fn begun(run: &Run, at: u64) -> Option<u64> {
    let history = &run.history;
    let said = history.marks.iter().map(|mark| mark.at);
    let asked = history.asked.iter().map(|asked| asked.sent);
    let mut steps: Vec<u64> = said.chain(asked).filter(|step| *step <= at).collect();
    steps.sort_unstable();
    steps.get(steps.len().saturating_sub(LAST)).copied()
}

/// Returns the row of each mark of a client, by the index of the mark, so that no texts overlap.
pub(super) fn stack(run: &Run, client: u16, view: (u64, u64)) -> Vec<(usize, usize)> {
    let shown = view.1.saturating_sub(view.0);
    let mut free: Vec<u64> = Vec::new();
    let is_its = |mark: &quorlock_sim_world::history::own::Mark| {
        mark.process.is_some_and(|process| process.client == client)
    };
    let marks = run.history.marks.iter().enumerate();
    let marks = marks.filter(|(_, mark)| is_its(mark));
    marks
        .map(|(place, mark)| {
            // The text of a mark needs room: about 160 letters fill the width of a picture.
            let letters = u64::try_from(mark.text.len()).unwrap_or(0) + 2;
            let until = mark.at + shown / 160 * letters;
            let row = free.iter().position(|free| *free <= mark.at);
            // With more rows, the picture would be higher than a screen. The last row takes the rest.
            let row = row.unwrap_or(free.len().min(3));
            match free.get_mut(row) {
                Some(free) => *free = until,
                None => free.push(until),
            }
            (row, place)
        })
        .collect()
}

fn words(scene: &mut Scene, run: &Run) {
    for client in 0..run.plan.clients {
        for (row, place) in stack(run, client, scene.view) {
            let who = Owner::Place(ProcessPlace::Client(client));
            let row = scene.row(who, RowContent::Nth(row));
            let Some((row, mark)) = row.zip(run.history.marks.get(place)) else {
                continue;
            };
            let (top, height) = (row.top + 2.0, row.height - 4.0);
            let title = format!("client {client} at {}: {}", moment(mark.at), mark.text);
            let shape = Shape::Bar {
                from: mark.at,
                until: mark.at,
                top,
                height,
                label: mark.text.clone(),
            };
            scene.push(shape, format!("note {}", colour(Some(client))), title);
        }
    }
}

fn outages(scene: &mut Scene, run: &Run) {
    let count = u16::try_from(run.history.resources.len()).unwrap_or(u16::MAX);
    for outage in &run.plan.outages {
        let Some(resource) = outage.resource.checked_rem(count) else {
            continue;
        };
        let Some(lane) = scene.lane(Owner::Resource(resource)) else {
            continue;
        };
        let shape = Shape::Bar {
            from: outage.at.as_nanos(),
            until: outage.ends().as_nanos(),
            top: lane.top + 2.0,
            height: lane.height - 5.0,
            label: outage.what.name().to_owned(),
        };
        scene.push(shape, "fault", outage.to_string());
    }
}

/// Draws each call: the request, what happened to it, and the answer.
fn calls(scene: &mut Scene, run: &Run) {
    for asked in &run.history.asked {
        let client = asked.process.client;
        let from = scene.lane(Owner::Place(ProcessPlace::Client(client)));
        let to = scene.lane(Owner::Resource(asked.resource));
        let Some((from, to)) = from.zip(to) else {
            continue;
        };
        let (below, above) = (from.top + 3.0, to.top + to.height - 4.0);
        let y = to.top + to.height / 2.0;
        let ResourceCall { sent, heard, .. } = *asked;
        let (process, question) = (asked.process, &asked.question);
        let title = format!("{process}: {question}; sent at {}", moment(sent));
        let done = asked.done.as_ref().map(|(at, _)| *at);
        let there = done.or(heard);
        let question_way = Shape::Arrow {
            from: sent,
            until: there.unwrap_or(sent + 2_000_000),
            top: below,
            bottom: above,
            is_lost: there.is_none(),
        };
        scene.push(question_way, "message request", title);
        let Some(there) = there else { continue };
        let (class, said) = match &asked.done {
            Some((_, answer)) => ("yes", answer.as_str()),
            None => ("no", "refused: it is down"),
        };
        let answer_way = Shape::Arrow {
            from: there,
            until: heard.unwrap_or(there + 2_000_000),
            top: above,
            bottom: below,
            is_lost: heard.is_none(),
        };
        scene.push(
            answer_way,
            format!("message {class}"),
            format!("{said}, to {process}"),
        );
        if done.is_some() {
            let title = format!("{process}: {question} -> {said}, at {}", moment(there));
            let class = format!("write {}", colour(Some(client)));
            let (at, glyph) = (there, "▼");
            scene.push(Shape::Mark { at, y, glyph }, class, title);
        }
    }
}

/// Draws what clients hold. A user's own clients do not report it, so it is taken from the claims on nodes.
fn holds(scene: &mut Scene, run: &Run, recording: &Recording) {
    if !run.history.grants.is_empty() {
        return;
    }
    let threshold = match run.plan.lock {
        LockKind::Single | LockKind::Multi => 1,
        LockKind::Redlock => usize::from(run.plan.nodes.count / 2 + 1),
    };
    let mut rounds: BTreeMap<(NameId, OwnerId), Vec<&Claim>> = BTreeMap::new();
    for claim in &recording.claims {
        if let Some(identity) = claim.identity {
            rounds
                .entry((claim.name, identity))
                .or_default()
                .push(claim);
        }
    }
    for ((name, _), claims) in rounds {
        let Some(process) = claims.iter().find_map(|claim| claim.owner) else {
            continue;
        };
        let mut begin: Vec<u64> = claims.iter().map(|claim| claim.from).collect();
        let mut end: Vec<u64> = claims.iter().map(|claim| claim.until).collect();
        begin.sort_unstable();
        end.sort_unstable_by(|a, b| b.cmp(a));
        let span = begin.get(threshold - 1).zip(end.get(threshold - 1));
        let Some((from, until)) = span.filter(|(from, until)| from < until) else {
            continue;
        };
        let who = Owner::Place(ProcessPlace::Client(process.client));
        let Some(row) = scene.row(who, RowContent::Name(name)) else {
            continue;
        };
        let (from, until) = (*from, (*until).min(scene.end));
        let (top, height) = (row.top + 2.0, row.height - 4.0);
        let text = run.history.text(name);
        let title = format!(
            "nodes have {text} locked for {process} {}",
            stretch(from, until)
        );
        let shape = Shape::Bar {
            from,
            until,
            top,
            height,
            label: "locked".to_owned(),
        };
        scene.push(
            shape,
            format!("hold {}", colour(Some(process.client))),
            title,
        );
    }
}
