//! Draws marks for what happens at one moment or between lanes: messages, faults, clocks, writes, and the violation.

use super::bars::{hold_end, moment, stretch};
use super::scene::{Owner, RowContent, Scene, Shape, initial};
use quorlock_sim_check::Violation;
use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_plan::fault::{ClientFault, ClientTarget, Fault, FaultKind, NodeFault};
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::time::ClockStep;
use quorlock_sim_world::history::recording::{
    Absence, ClockId, MessageSort, ProcessPlace, Recording, Status,
};
use quorlock_sim_world::history::{Accepted, History, HoldId, Section};

pub(super) fn draw(scene: &mut Scene, run: &Run, recording: &Recording) {
    clocks(scene, recording);
    messages(scene, recording);
    faults(scene, run, recording);
    writes(scene, run);
    if let Verdict::Violated(violation) = &run.verdict {
        violated(scene, run, violation);
    }
}

/// Returns the row of each fault, so that no two faults overlap. Faults after the violation have no row.
pub(super) fn stack(run: &Run, recording: &Recording, view: (u64, u64)) -> Vec<Option<usize>> {
    // The gap leaves room for the name of the fault.
    let gap = view.1.saturating_sub(view.0) / 8;
    let mut free: Vec<u64> = Vec::new();
    let mut place = |fault: &Fault| {
        let from = strikes(fault, recording);
        let until = from + fault.lasts.as_nanos().max(gap);
        let row = free.iter().position(|free| *free <= from);
        match row.and_then(|row| Some((row, free.get_mut(row)?))) {
            Some((row, free)) => {
                *free = until;
                row
            }
            None => {
                free.push(until);
                free.len() - 1
            }
        }
    };
    let mattered = match &run.verdict {
        Verdict::Violated(violation) if !violation.property.is_liveness() => violation.at,
        _ => run.lasted,
    };
    let faults = (0..run.plan.faults.len()).map(|index| run.happened(index));
    faults
        .map(|fault| {
            let fault = fault.filter(|fault| fault.begins() <= mattered)?;
            Some(place(&fault))
        })
        .collect()
}

/// Returns when a fault takes effect. One that waits for a use or a request strikes after it began.
fn strikes(fault: &Fault, recording: &Recording) -> u64 {
    let begins = fault.begins().as_nanos();
    let place = match &fault.what {
        FaultKind::Client {
            client: ClientTarget::Client(client),
            fault: ClientFault::PauseInside { .. } | ClientFault::StopInside { .. },
        } => ProcessPlace::Client(*client),
        FaultKind::Node {
            node,
            fault: NodeFault::Stall { .. },
            ..
        } => ProcessPlace::Node(*node),
        _ => return begins,
    };
    let mut states = recording.states.iter();
    let is_its = |state: &&Absence| {
        state.place == place && state.status == Status::Paused && begins <= state.from
    };
    states.find(is_its).map_or(begins, |state| state.from)
}

fn faults(scene: &mut Scene, run: &Run, recording: &Recording) {
    let rows = stack(run, recording, scene.view);
    for ((index, effects), row) in run.effects.iter().enumerate().zip(rows) {
        let row = row.and_then(|row| scene.row(Owner::Faults, RowContent::Nth(row)));
        let Some((row, fault)) = row.zip(run.happened(index)) else {
            continue;
        };
        let (top, height) = (row.top + 1.5, row.height - 3.0);
        let from = strikes(&fault, recording);
        let until = from + fault.lasts.as_nanos();
        let effect = match effects {
            0 => "it had no effect".to_owned(),
            1 => "it had an effect once".to_owned(),
            n => format!("it had an effect {n} times"),
        };
        let title = format!("fault at {}: {fault}; {effect}", moment(from));
        let class = if *effects == 0 { "fault idle" } else { "fault" };
        let slice = scene.slice.as_ref();
        let outside = slice.map_or("", |slice| slice.of_fault(index));
        let class = format!("{class}{outside}");
        let shape = Shape::Bar {
            from,
            until,
            top,
            height,
            label: fault.kind().name().to_owned(),
        };
        scene.push(shape, class, title);
    }
}

fn messages(scene: &mut Scene, recording: &Recording) {
    for (index, message) in recording.messages.iter().enumerate() {
        let client = scene.lane(Owner::Place(ProcessPlace::Client(message.client)));
        let node = scene.lane(Owner::Place(ProcessPlace::Node(message.node)));
        let Some((client, node)) = client.zip(node) else {
            continue;
        };
        let (mut top, mut bottom) = (client.top + client.height - 3.0, node.top + 3.0);
        let (class, from, to) = match message.sort {
            MessageSort::Request => ("request", "client", "node"),
            MessageSort::Yes => ("yes", "node", "client"),
            MessageSort::No => ("no", "node", "client"),
            MessageSort::Wake => ("wake", "node", "client"),
        };
        let (a, b) = match message.sort {
            MessageSort::Request => (message.client, message.node),
            _ => {
                (top, bottom) = (bottom, top);
                (message.node, message.client)
            }
        };
        let passage = match message.arrives {
            Some(at) => format!("sent at {}, there at {}", moment(message.sent), moment(at)),
            None => format!("sent at {}, lost", moment(message.sent)),
        };
        let title = format!("{from} {a} to {to} {b}: {}; {passage}", message.text);
        // The arrow of a lost message ends half-way.
        let until = message.arrives.unwrap_or(message.sent + 2_000_000);
        let shape = Shape::Arrow {
            from: message.sent,
            until,
            top,
            bottom,
            is_lost: message.arrives.is_none(),
        };
        let slice = scene.slice.as_ref();
        let outside = slice.map_or("", |slice| slice.of_message(index));
        scene.push(shape, format!("message {class}{outside}"), title);
    }
}

/// Draws how far each clock is off, upwards if the clock is ahead.
fn clocks(scene: &mut Scene, recording: &Recording) {
    for (clock, points) in &recording.clocks {
        let (who, whose) = match clock {
            ClockId::Monotonic(client) => {
                (ProcessPlace::Client(*client), format!("client {client}"))
            }
            ClockId::Wall(client) => (
                ProcessPlace::Client(*client),
                format!("client {client}'s wall clock"),
            ),
            ClockId::Node(node) => (ProcessPlace::Node(*node), format!("node {node}")),
        };
        let Some(row) = scene.row(Owner::Place(who), RowContent::Clock(*clock)) else {
            continue;
        };
        let first = initial(points);
        let off = |ahead: i64| ahead.saturating_sub(first);
        let largest = points.iter().map(|(_, a)| off(*a).unsigned_abs()).max();
        let largest = largest.unwrap_or(1).max(1) as f64;
        let (middle, reach) = (row.top + row.height / 2.0, row.height / 2.0 - 3.0);
        let y = |ahead: i64| middle - off(ahead) as f64 / largest * reach;
        let mut steps = vec![(0, middle)];
        let mut turns = Vec::new();
        let mut before = first;
        for (at, ahead) in points.iter().filter(|(at, _)| 0 < *at) {
            steps.push((*at, y(*ahead)));
            // A step gets its own description; a drift does not.
            if 5_000_000 <= before.abs_diff(*ahead) {
                turns.push((*at, y(*ahead), off(*ahead)));
            }
            before = *ahead;
        }
        let end = points.last().map_or(0, |(_, ahead)| off(*ahead));
        steps.push((scene.end, y(before)));
        let zero = vec![(0, middle), (scene.end, middle)];
        scene.push(Shape::Steps { points: zero }, "zero", String::new());
        let by = ClockStep::nanos(end / 1_000 * 1_000);
        let title = format!("the clock of {whose}: {by} off at the end");
        scene.push(Shape::Steps { points: steps }, "clock", title);
        for (at, y, off) in turns {
            let by = ClockStep::nanos(off / 1_000 * 1_000);
            let title = format!("at {} the clock of {whose} is {by} off", moment(at));
            scene.push(
                Shape::Mark {
                    at, y, glyph: "●"
                },
                "turn",
                title,
            );
        }
    }
}

fn writes(scene: &mut Scene, run: &Run) {
    for write in &run.history.writes {
        let Some(row) = scene.row(Owner::Store, RowContent::Name(write.name)) else {
            continue;
        };
        let y = row.top + row.height / 2.0;
        let (glyph, class, did) = match write.accepted {
            Accepted::Yes => ("▼", "write", "takes"),
            Accepted::No => ("✕", "write rejected", "rejects"),
        };
        let token = write
            .token
            .map_or(String::new(), |t| format!(" with token {t}"));
        let title = format!(
            "the store {did} a write of {} to {}{token} at {}",
            write.process,
            run.history.text(write.name),
            moment(write.at)
        );
        let at = write.at;
        let class = format!(
            "{class} {}",
            super::bars::colour(Some(write.process.client))
        );
        scene.push(Shape::Mark { at, y, glyph }, class, title);
    }
}

fn violated(scene: &mut Scene, run: &Run, violation: &Violation) {
    let at = violation.at.as_nanos();
    scene.violated = Some(at);
    let whole = (super::scene::AXIS, scene.height);
    match violation.property {
        Property::Exclusion | Property::ReadWrite | Property::Leadership => {
            both_inside(scene, &run.history, violation);
        }
        Property::Always => {}
        Property::Progress | Property::Orphans | Property::Expiry | Property::Eventually => {
            let from = run.history.healed.min(scene.end);
            let shape = Shape::Bar {
                from,
                until: at.min(scene.end),
                top: whole.0,
                height: whole.1 - whole.0,
                label: match violation.property {
                    Property::Eventually => "it never comes".to_owned(),
                    _ => "no client gets it".to_owned(),
                },
            };
            let title = format!("{}: {}", violation, stretch(from, at));
            scene.push(shape, "wrong waiting", title);
        }
        Property::Fencing
        | Property::Usage
        | Property::HoldCount
        | Property::Ownership
        | Property::Statements
        | Property::Validity
        | Property::Terms
        | Property::Termination
        | Property::Fairness => {
            involved(scene, run, violation);
        }
    }
    let shape = Shape::Moment {
        at: at.min(scene.end),
        top: whole.0,
        bottom: whole.1,
    };
    scene.push(shape, "wrong", violation.to_string());
}

/// Marks the last holds of the processes involved.
fn involved(scene: &mut Scene, run: &Run, violation: &Violation) {
    let at = violation.at.as_nanos();
    let named = violation.name.as_deref();
    let mut taken: Vec<HoldId> = Vec::new();
    for process in violation.processes.iter().rev() {
        let mut grants = run.history.grants.iter().rev();
        let last = grants.find(|g| {
            let is_its = g.process == *process && named == Some(run.history.text(g.name));
            is_its && g.won <= at && !taken.contains(&g.hold)
        });
        let Some(grant) = last else { continue };
        taken.push(grant.hold);
        let who = Owner::Place(ProcessPlace::Client(process.client));
        let Some(row) = scene.row(who, RowContent::Name(grant.name)) else {
            continue;
        };
        let (top, height) = (row.top + 1.0, row.height - 2.0);
        let until = hold_end(run, grant).min(scene.end);
        let title = format!("{process} held it {}", stretch(grant.won, until));
        let shape = Shape::Bar {
            from: grant.won,
            until,
            top,
            height,
            label: String::new(),
        };
        scene.push(shape, "wrong stay", title);
    }
}

/// Marks the two sections that overlap, and the period in which they do.
fn both_inside(scene: &mut Scene, history: &History, violation: &Violation) {
    let at = violation.at.as_nanos();
    let named = violation.name.as_deref();
    let stays: Vec<(Section, u64)> = history
        .stays()
        .filter_map(|section| {
            let believed = section.believed?;
            Some((section, believed))
        })
        .filter(|(section, believed)| {
            violation.processes.contains(&section.process)
                && named == Some(history.text(section.name))
                && section.won <= at
                && at <= *believed
        })
        .collect();
    let mut edges: Vec<(f64, f64)> = Vec::new();
    for (section, believed) in &stays {
        let who = Owner::Place(ProcessPlace::Client(section.process.client));
        let Some(row) = scene.row(who, RowContent::Name(section.name)) else {
            continue;
        };
        let (top, height) = (row.top + 1.0, row.height - 2.0);
        edges.push((row.top, row.top + row.height));
        let shape = Shape::Bar {
            from: section.won,
            until: *believed,
            top,
            height,
            label: String::new(),
        };
        let title = format!(
            "{} believes to hold the lock {}, and so does another",
            section.process,
            stretch(section.won, *believed)
        );
        scene.push(shape, "wrong stay", title);
    }
    let from = stays.iter().map(|(section, _)| section.won).max();
    let until = stays.iter().map(|(_, believed)| *believed).min();
    let top = edges.iter().map(|(top, _)| *top).reduce(f64::min);
    let bottom = edges.iter().map(|(_, bottom)| *bottom).reduce(f64::max);
    if let (Some((from, until)), Some((top, bottom))) = (from.zip(until), top.zip(bottom)) {
        let title = format!("two clients inside {}", stretch(from, until));
        let shape = Shape::Bar {
            from,
            until,
            top,
            height: bottom - top,
            label: String::new(),
        };
        scene.push(shape, "wrong both", title);
    }
}
