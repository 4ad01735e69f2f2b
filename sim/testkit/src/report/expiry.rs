//! When each claim would expire, and what changed that.

use super::bars::{colour, moment};
use super::scene::{Owner, RowContent, Scene, Shape};
use super::slice::Slice;
use quorlock_sim_check::run::Run;
use quorlock_sim_plan::fault::{Fault, FaultKind};
use quorlock_sim_world::history::recording::{
    Claim, ClockId, Message, MessageSort, ProcessPlace, Recording,
};

/// A change of the time at which a claim would expire.
pub(super) struct Change {
    /// When it changed, in nanoseconds of true time.
    pub(super) at: u64,
    /// What changed, and why, in words.
    pub(super) text: String,
    /// The claim, by its index in the recording.
    claim: usize,
    is_end: bool,
}

/// A claim that ends earlier than this before its time was ended by something else, in nanoseconds.
const EARLY: u64 = 2_000_000;

/// Draws a mark at each change of the claims of a slice, and for each claim that ended before its time a line until then.
pub(super) fn draw(scene: &mut Scene, run: &Run, recording: &Recording) {
    let Some(slice) = scene.slice.clone() else {
        return;
    };
    for change in changes(run, recording, &slice) {
        let Some(claim) = recording.claims.get(change.claim) else {
            continue;
        };
        let who = Owner::Place(ProcessPlace::Node(claim.node));
        let Some(row) = scene.row(who, RowContent::Name(claim.name)) else {
            continue;
        };
        let (top, bottom) = (row.top, row.top + row.height);
        if change.is_end {
            let shape = Shape::Bar {
                from: claim.until,
                until: claim.expires(),
                top: bottom - 4.0,
                height: 2.0,
                label: String::new(),
            };
            let whose = colour(claim.owner.map(|owner| owner.client));
            scene.push(shape, format!("due {whose}"), change.text);
        } else if claim.from < change.at {
            let shape = Shape::Mark {
                at: change.at,
                y: top + 5.0,
                glyph: "▾",
            };
            scene.push(shape, "due", change.text);
        }
    }
}

/// Returns the changes of the claims that nodes had during a slice, in the order of time.
pub(super) fn changes(run: &Run, recording: &Recording, slice: &Slice) -> Vec<Change> {
    let inside = slice.since..=slice.until;
    let all = recording.claims.iter().enumerate();
    let there = all.filter(|(_, claim)| claim.from <= slice.until && slice.since <= claim.until);
    let mut changes = Vec::new();
    for (index, claim) in there {
        let text = |what: String, at| {
            let why =
                cause(run, recording, claim, at).map_or(String::new(), |why| format!(": {why}"));
            format!("{}{what}{why}", subject(run, claim))
        };
        for expiry in &claim.expiries {
            if inside.contains(&expiry.since) {
                changes.push(Change {
                    at: expiry.since,
                    text: text(
                        format!(" would expire at {}", time(expiry.expires)),
                        expiry.since,
                    ),
                    claim: index,
                    is_end: false,
                });
            }
        }
        if inside.contains(&claim.until) && claim.until.saturating_add(EARLY) < claim.expires() {
            let what = format!(" is gone before its time, {}", time(claim.expires()));
            changes.push(Change {
                at: claim.until,
                text: text(what, claim.until),
                claim: index,
                is_end: true,
            });
        }
    }
    changes.sort_by_key(|change| change.at);
    changes
}

fn subject(run: &Run, claim: &Claim) -> String {
    let (node, name) = (run.plan.node_name(claim.node), run.history.text(claim.name));
    let owner = claim.owner.map(|owner| format!("client {}", owner.client));
    let owner = owner.unwrap_or_else(|| "another client".to_owned());
    format!("on {node}, the claim of {owner} on {name}")
}

fn time(at: u64) -> String {
    match at {
        u64::MAX => "no time".to_owned(),
        at => moment(at),
    }
}

/// Returns what happened to the node of a claim at an instant: a request that came, preferably from the owner, or else a fault, or a
/// step of its clock.
fn cause(run: &Run, recording: &Recording, claim: &Claim, at: u64) -> Option<String> {
    let came = recording.messages.iter().filter(|message| {
        message.sort == MessageSort::Request
            && message.node == claim.node
            && message.arrives == Some(at)
    });
    let is_owner = |message: &&Message| claim.owner.is_some_and(|o| o.client == message.client);
    let came: Vec<&Message> = came.collect();
    let request = came
        .iter()
        .copied()
        .find(is_owner)
        .or_else(|| came.first().copied());
    if let Some(message) = request {
        return Some(format!("client {}: {}", message.client, message.text));
    }
    let is_now = |fault: &Fault| {
        let begins = fault.begins().as_nanos();
        let is_of_link = matches!(fault.what, FaultKind::Link { .. });
        let is_here = !is_of_link && fault.nodes().contains(&claim.node);
        is_here && [begins, begins + fault.lasts.as_nanos()].contains(&at)
    };
    let mut faults = (0..run.plan.faults.len()).filter_map(|index| run.happened(index));
    if let Some(fault) = faults.find(is_now) {
        return Some(fault.to_string());
    }
    let points = recording.clocks.get(&ClockId::Node(claim.node))?;
    let is_step = points.iter().any(|(point, _)| *point == at);
    is_step.then(|| "its clock changes".to_owned())
}
