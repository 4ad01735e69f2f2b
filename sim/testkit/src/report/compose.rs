//! Composes a whole scene from a run: first its lanes, then what happened in them.
//!
//! The constructors of [`Scene`] are in this module, because they use the modules that draw bars and marks.

use std::collections::BTreeSet;

use super::picture::Picture;
use super::scene::{AXIS, Owner, Row, RowContent, Scene, Swimlane, initial};
use super::slice::Slice;
use super::{bars, chance, expiry, marks, notes, own};
use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_check::story;
use quorlock_sim_world::history::recording::{ClockId, ProcessPlace, Recording};
use quorlock_sim_world::history::{NameId, Process};

/// The number of rows above which the rows of a picture are low.
const FEW_ROWS: usize = 10;
/// The height of the row of a clock, in pixels.
const CLOCK_ROW: f64 = 22.0;
/// The height of the curve, in pixels.
const CHANCE_ROW: f64 = 56.0;
/// The height of a row of faults, in pixels.
const FAULT_ROW: f64 = 17.0;
/// The height of a row of marks of a user's own clients, in pixels.
const WORDS_ROW: f64 = 16.0;
/// The height of a row of notes, in pixels.
const NOTE_ROW: f64 = 19.0;
/// The initial width of a figure and of the labels of its lanes, in pixels.
const WIDE: (f64, f64) = (1160.0, 150.0);
/// The same for a picture of a page of text.
const NARROW: (f64, f64) = (750.0, 96.0);
/// The space above the first row and below the last row of a lane, in pixels.
const PADDING: f64 = 7.0;
/// The number of messages above which the picture first shows only the part around the violation.
const MANY: usize = 160;

/// The heights of the parts of a picture, in pixels.
struct Heights {
    /// The height of a name in the lane of a client.
    name: f64,
    /// The height of a name on a node.
    key: f64,
    /// The gap between clients and nodes, in which messages are drawn.
    sea: f64,
}

impl Heights {
    fn of(run: &Run, names: usize) -> Self {
        let lanes = run.plan.clients + run.plan.nodes.count * (1 + run.plan.nodes.replicas);
        let (name, key, sea) = if usize::from(lanes) * names.max(1) <= FEW_ROWS {
            (34.0, 26.0, 110.0)
        } else {
            (24.0, 18.0, 64.0)
        };
        Heights { name, key, sea }
    }
}

impl Scene {
    pub(super) fn of(
        run: &Run,
        recording: &Recording,
        picture: Option<&Picture>,
        slice: Option<&Slice>,
    ) -> Self {
        let end = recording
            .messages
            .iter()
            .filter_map(|message| message.arrives)
            .max();
        let end = end.unwrap_or(0).max(run.lasted.as_nanos()).max(1);
        let (width, gutter) = if picture.is_some() { NARROW } else { WIDE };
        let mut scene = Scene {
            end,
            height: AXIS,
            width,
            gutter,
            picture: picture.cloned(),
            slice: slice.cloned(),
            summary: picture.map_or_else(|| story::summary(run), Picture::in_words),
            ..Scene::default()
        };
        scene.view = match (picture, slice) {
            (Some(picture), _) => (picture.from.as_nanos(), picture.until.as_nanos()),
            (None, Some(slice)) => slice.view(),
            (None, None) => scene.view(run, recording),
        };
        if slice.is_some() {
            // What happened after the violation is not shown.
            scene.end = scene.end.min(scene.view.1);
        }
        scene.lanes(run, recording);
        bars::draw(&mut scene, run, recording);
        own::draw(&mut scene, run, recording);
        marks::draw(&mut scene, run, recording);
        expiry::draw(&mut scene, run, recording);
        chance::draw(&mut scene);
        notes::draw(&mut scene);
        scene
    }

    fn lanes(&mut self, run: &Run, recording: &Recording) {
        let all: BTreeSet<NameId> = recording.claims.iter().map(|claim| claim.name).collect();
        let heights = Heights::of(run, all.len());
        if self
            .slice
            .as_ref()
            .is_some_and(|slice| !slice.curve.is_empty())
        {
            let row = (RowContent::Chance, String::new(), CHANCE_ROW);
            self.add(Owner::Chance, "how likely", vec![row]);
        }
        let stacked = marks::stack(run, recording, self.view)
            .into_iter()
            .flatten()
            .max();
        let stacked = stacked.map_or(0, |row| row + 1);
        if 0 < stacked {
            let rows = (0..stacked).map(|nth| (RowContent::Nth(nth), String::new(), FAULT_ROW));
            self.add(Owner::Faults, "faults", rows.collect());
        }
        let names = |ids: BTreeSet<NameId>, height: f64| -> Vec<(RowContent, String, f64)> {
            let named = |id| {
                (
                    RowContent::Name(id),
                    run.history.text(id).to_owned(),
                    height,
                )
            };
            ids.into_iter().map(named).collect()
        };
        if !run.history.writes.is_empty() {
            let written = run.history.writes.iter().map(|write| write.name).collect();
            self.add(Owner::Store, "store", names(written, heights.key));
        }
        for (name, id) in run.history.resources.iter().zip(0..) {
            let row = (RowContent::Nth(0), String::new(), heights.key);
            self.add(Owner::Resource(id), name, vec![row]);
        }
        for client in 0..run.plan.clients {
            let of_client = |clock: &ClockId| matches!(clock, ClockId::Monotonic(c) | ClockId::Wall(c) if *c == client);
            let mut rows = names(all.clone(), heights.name);
            let said = own::stack(run, client, self.view);
            let said = said.into_iter().map(|(row, _)| row + 1).max();
            let words =
                (0..said.unwrap_or(0)).map(|nth| (RowContent::Nth(nth), String::new(), WORDS_ROW));
            rows.extend(words);
            rows.extend(clocks(recording, of_client));
            let label = format!("client {client}");
            self.add(Owner::Place(ProcessPlace::Client(client)), &label, rows);
        }
        self.height += heights.sea;
        let nodes = run.plan.nodes.count * (1 + run.plan.nodes.replicas);
        for node in 0..nodes {
            let on_node = recording.claims.iter().filter(|claim| claim.node == node);
            let mut rows = names(on_node.map(|claim| claim.name).collect(), heights.key);
            rows.extend(clocks(recording, |clock| *clock == ClockId::Node(node)));
            let label = run.plan.node_name(node);
            self.add(Owner::Place(ProcessPlace::Node(node)), &label, rows);
        }
    }

    fn add(&mut self, who: Owner, label: &str, mut rows: Vec<(RowContent, String, f64)>) {
        let notes = 0..notes::rows(self, who);
        rows.extend(notes.map(|nth| (RowContent::Note(nth), String::new(), NOTE_ROW)));
        let top = self.height;
        let mut y = top + PADDING;
        let mut placed = Vec::new();
        for (what, label, height) in rows {
            placed.push(Row {
                what,
                label,
                top: y,
                height,
            });
            y += height;
        }
        let height = (y + PADDING - top).max(24.0 + PADDING);
        self.height = top + height;
        self.lanes.push(Swimlane {
            who,
            label: label.to_owned(),
            top,
            height,
            rows: placed,
        });
    }

    /// Returns the period that is shown first: the whole run if it is small enough, otherwise the part that led to the
    /// violation.
    fn view(&self, run: &Run, recording: &Recording) -> (u64, u64) {
        let Verdict::Violated(violation) = &run.verdict else {
            return (0, self.end);
        };
        let at = violation.at.as_nanos();
        let seen = recording.messages.iter().filter(|m| m.sent <= at).count();
        let involved = |process: &Process| violation.processes.contains(process);
        let last = run
            .history
            .stays()
            .filter(|s| involved(&s.process) && s.won <= at)
            .filter_map(|s| s.believed)
            .fold(at, u64::max);
        let until = last + (last / 8).max(1_000_000);
        if seen <= MANY {
            return (0, until.min(self.end));
        }
        // The view begins before the processes involved requested the locks that they believe they hold.
        let asked = |process| {
            let grants = run.history.grants.iter();
            let mut theirs = grants.filter(|g| g.process == process && g.won <= at);
            theirs.next_back().map(|grant| grant.invoked)
        };
        let begun = violation.processes.iter().filter_map(|p| asked(*p)).min();
        let begun = begun.or_else(|| own::begun(run, at));
        let begun = begun.unwrap_or(at.saturating_sub(self.end / 10)).min(at);
        let margin = ((last - begun) / 8).max(2_000_000);
        (
            begun.saturating_sub(margin),
            last.saturating_add(margin).min(self.end),
        )
    }
}

/// Returns a row for each clock whose offset changed during the run.
fn clocks(
    recording: &Recording,
    is_of: impl Fn(&ClockId) -> bool,
) -> Vec<(RowContent, String, f64)> {
    let strips = recording.clocks.iter().filter(|(clock, points)| {
        let first = initial(points);
        is_of(clock) && points.iter().any(|(at, ahead)| 0 < *at && *ahead != first)
    });
    strips
        .map(|(clock, _)| {
            let label = match clock {
                ClockId::Monotonic(_) => "its clock",
                ClockId::Wall(_) => "wall clock",
                ClockId::Node(_) => "its clock",
            };
            (RowContent::Clock(*clock), label.to_owned(), CLOCK_ROW)
        })
        .collect()
}
