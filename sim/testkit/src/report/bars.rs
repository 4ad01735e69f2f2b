//! Draws bars for everything that has a length: waits, holds, beliefs, claims on nodes, and times when a process was
//! paused or down.

use super::scene::{Owner, RowContent, Scene, Shape};
use quorlock_sim_check::run::Run;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_world::history::recording::{ProcessPlace, Recording, Status};
use quorlock_sim_world::history::{Action, Grant, Outcome};

/// Draws all bars, from the lowest layer to the highest.
pub(super) fn draw(scene: &mut Scene, run: &Run, recording: &Recording) {
    states(scene, run, recording);
    claims(scene, run, recording);
    waits(scene, run);
    holds(scene, run);
    beliefs(scene, run);
}

fn states(scene: &mut Scene, run: &Run, recording: &Recording) {
    for state in &recording.states {
        let Some(lane) = scene.lane(Owner::Place(state.place)) else {
            continue;
        };
        let (top, height) = (lane.top, lane.height);
        // A note in the lane says so.
        let is_noted = lane.rows.iter().any(|row| row.what == RowContent::Note(0));
        let until = state.until.min(scene.end);
        let who = match state.place {
            ProcessPlace::Client(client) => format!("client {client}"),
            ProcessPlace::Node(node) => run.plan.node_name(node),
        };
        let (class, label) = match state.status {
            Status::Paused => ("paused", "paused"),
            Status::Down => ("down", "down"),
            Status::Replica => ("replica", ""),
        };
        let what = match state.status {
            Status::Replica => "follows a primary",
            _ => label,
        };
        let title = format!("{who}: {what} {}", stretch(state.from, until));
        let shape = Shape::Bar {
            from: state.from,
            until,
            top: top + 1.0,
            height: height - 2.0,
            label: if is_noted {
                String::new()
            } else {
                label.to_owned()
            },
        };
        scene.push(shape, format!("state {class}"), title);
    }
}

fn claims(scene: &mut Scene, run: &Run, recording: &Recording) {
    for claim in &recording.claims {
        let who = Owner::Place(ProcessPlace::Node(claim.node));
        let Some(row) = scene.row(who, RowContent::Name(claim.name)) else {
            continue;
        };
        let (top, height) = (row.top + 2.0, row.height - 4.0);
        let until = claim.until.min(scene.end);
        let owner = claim.owner.map(|owner| owner.client);
        let label = owner.map_or("?".to_owned(), |client| format!("client {client}"));
        let name = run.history.text(claim.name);
        let node = run.plan.node_name(claim.node);
        let title = format!(
            "{node} has {name} locked for {label} {}",
            stretch(claim.from, until)
        );
        let shape = Shape::Bar {
            from: claim.from,
            until,
            top,
            height,
            label,
        };
        scene.push(shape, format!("claim {}", colour(owner)), title);
    }
}

fn waits(scene: &mut Scene, run: &Run) {
    for operation in &run.history.operations {
        if !matches!(operation.action, Action::Acquire | Action::Try) {
            continue;
        }
        let who = Owner::Place(ProcessPlace::Client(operation.process.client));
        let names = (0u16..64).filter(|bit| operation.names & (1 << bit) != 0);
        for name in names.map(quorlock_sim_world::history::NameId) {
            let Some(row) = scene.row(who, RowContent::Name(name)) else {
                continue;
            };
            let top = row.top + row.height / 2.0 - 1.5;
            let until = operation.completed.min(scene.end);
            let came = match operation.outcome {
                Outcome::Ok => "and gets it",
                Outcome::Fail => "in vain",
                Outcome::Indeterminate => "without an end",
            };
            let text = run.history.text(name);
            let title = format!(
                "{} asks for {text} {}, {came}",
                operation.process,
                stretch(operation.invoked, until)
            );
            let shape = Shape::Bar {
                from: operation.invoked,
                until,
                top,
                height: 3.0,
                label: String::new(),
            };
            scene.push(shape, "wait", title);
        }
    }
}

fn holds(scene: &mut Scene, run: &Run) {
    for grant in &run.history.grants {
        let client = grant.process.client;
        let who = Owner::Place(ProcessPlace::Client(client));
        let Some(row) = scene.row(who, RowContent::Name(grant.name)) else {
            continue;
        };
        let (top, height) = (row.top + 2.0, row.height - 4.0);
        let until = hold_end(run, grant).min(scene.end);
        let name = run.history.text(grant.name);
        let title = format!(
            "{} has won {name} with token {}: its hold {}",
            grant.process,
            grant.token,
            stretch(grant.won, until)
        );
        let shape = Shape::Bar {
            from: grant.won,
            until,
            top,
            height,
            label: String::new(),
        };
        scene.push(shape, format!("hold {}", colour(Some(client))), title);
    }
}

/// Returns when a hold was released, or when its work ended.
pub(super) fn hold_end(run: &Run, grant: &Grant) -> u64 {
    let operations = run.history.operations.iter();
    let released = operations
        .filter(|op| op.hold == grant.hold && op.action == Action::Release)
        .map(|op| op.invoked)
        .max();
    let left = run
        .history
        .stays()
        .filter(|section| section.hold == grant.hold && section.name == grant.name)
        .map(|section| section.left)
        .max();
    released.or(left).unwrap_or(u64::MAX).max(grant.won)
}

fn beliefs(scene: &mut Scene, run: &Run) {
    for section in run.history.stays() {
        let client = section.process.client;
        let who = Owner::Place(ProcessPlace::Client(client));
        let Some(row) = scene.row(who, RowContent::Name(section.name)) else {
            continue;
        };
        let (top, height) = (row.top + 4.0, row.height - 8.0);
        let name = run.history.text(section.name);
        let left = section.left.min(scene.end);
        let believed = section.believed.unwrap_or(section.won);
        if believed < left {
            let title = format!(
                "{} is still in {name} {}, without having looked whether it holds the lock",
                section.process,
                stretch(believed, left)
            );
            let shape = Shape::Bar {
                from: believed,
                until: left,
                top,
                height,
                label: String::new(),
            };
            scene.push(shape, "beyond", title);
        }
        let token = run
            .history
            .grants
            .iter()
            .find(|g| g.hold == section.hold && g.name == section.name);
        let label = match token {
            Some(_) if scene.picture.is_some() => "holds the lock".to_owned(),
            Some(grant) => token_label(grant.token),
            None => String::new(),
        };
        let title = format!(
            "{} believes to hold {name} {}",
            section.process,
            stretch(section.won, believed)
        );
        let shape = Shape::Bar {
            from: section.won,
            until: believed,
            top,
            height,
            label,
        };
        scene.push(shape, format!("belief {}", colour(Some(client))), title);
    }
}

/// Formats a token. Only the last digits of a long token are shown, because they differ most.
fn token_label(token: u64) -> String {
    match token {
        ..=999_999 => format!("token {token}"),
        _ => format!("token …{:05}", token % 100_000),
    }
}

/// Returns the colour class of a client.
pub(super) fn colour(client: Option<u16>) -> String {
    client.map_or("other".to_owned(), |client| format!("c{}", client % 8))
}

/// Formats a period, as `from 12.345 ms to 20 ms (7.655 ms)`.
pub(super) fn stretch(from: u64, until: u64) -> String {
    let length = SimTime::nanos(until.saturating_sub(from) / 1_000 * 1_000);
    format!("from {} to {} ({length})", moment(from), moment(until))
}

/// Formats a time, to the microsecond.
pub(super) fn moment(at: u64) -> String {
    let (millis, rest) = (at / 1_000_000, at % 1_000_000 / 1_000);
    format!("{millis}.{rest:03} ms")
}
