//! The layout of the picture: lanes from top to bottom, with what happened in them from left to right.

use super::picture::Picture;
use super::slice::Slice;
use quorlock_sim_world::history::NameId;
use quorlock_sim_world::history::recording::{ClockId, ProcessPlace};

/// The picture. Times are in nanoseconds and run from left to right; lengths are in pixels and run downwards.
#[derive(Debug, Default)]
pub(super) struct Scene {
    pub(super) lanes: Vec<Swimlane>,
    pub(super) items: Vec<Item>,
    pub(super) height: f64,
    pub(super) width: f64,
    /// The width of the labels of the lanes.
    pub(super) gutter: f64,
    /// The length of the run, in nanoseconds.
    pub(super) end: u64,
    /// The period that is shown at first.
    pub(super) view: (u64, u64),
    /// When a property was violated.
    pub(super) violated: Option<u64>,
    /// What is shown on a page of text, if the picture is for one.
    pub(super) picture: Option<Picture>,
    /// What can have led to the violation, if the picture shows that.
    pub(super) slice: Option<Slice>,
    /// A sentence that describes the picture.
    pub(super) summary: String,
}

/// A lane: one client, one node, the faults, or the store.
#[derive(Debug)]
pub(super) struct Swimlane {
    pub(super) who: Owner,
    pub(super) label: String,
    pub(super) top: f64,
    pub(super) height: f64,
    pub(super) rows: Vec<Row>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// How likely the violation was.
    Chance,
    Faults,
    Store,
    /// One of a user's own resources, by its index in the history.
    Resource(u16),
    Place(ProcessPlace),
}

/// A row of a lane.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) what: RowContent,
    pub(super) label: String,
    pub(super) top: f64,
    pub(super) height: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RowContent {
    Name(NameId),
    Clock(ClockId),
    Chance,
    /// A row for faults that overlap in time, or for texts that would overlap.
    Nth(usize),
    /// A row for notes that would overlap otherwise.
    Note(usize),
}

/// One element of the picture.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) shape: Shape,
    /// The class in the style sheet.
    pub(super) class: String,
    /// A description in words.
    pub(super) title: String,
}

#[derive(Debug)]
pub(super) enum Shape {
    Bar {
        from: u64,
        until: u64,
        top: f64,
        height: f64,
        label: String,
    },
    /// A message. If it has no arrival, it is lost half-way.
    Arrow {
        from: u64,
        until: u64,
        top: f64,
        bottom: f64,
        is_lost: bool,
    },
    /// A vertical line at a time, from `top` to `bottom`.
    Moment { at: u64, top: f64, bottom: f64 },
    Mark {
        at: u64,
        y: f64,
        glyph: &'static str,
    },
    /// A step curve.
    Steps { points: Vec<(u64, f64)> },
}

/// The height of the axis, in pixels.
pub(super) const AXIS: f64 = 30.0;
/// The width of the right margin, in pixels.
pub(super) const EDGE: f64 = 34.0;

impl Scene {
    pub(super) fn push(&mut self, shape: Shape, class: impl Into<String>, title: String) {
        self.items.push(Item {
            shape,
            class: class.into(),
            title,
        });
    }

    /// Returns where a time is, in pixels from the left.
    pub(super) fn x(&self, at: u64) -> f64 {
        let (from, until) = self.view;
        let share = (at as f64 - from as f64) / (until.saturating_sub(from).max(1) as f64);
        // Far outside the view, the exact position does not matter.
        self.gutter + share.clamp(-2.0, 3.0) * (self.width - self.gutter - EDGE)
    }

    pub(super) fn lane(&self, who: Owner) -> Option<&Swimlane> {
        self.lanes.iter().find(|lane| lane.who == who)
    }

    pub(super) fn row(&self, who: Owner, what: RowContent) -> Option<&Row> {
        self.lane(who)?.rows.iter().find(|row| row.what == what)
    }
}

/// Returns how far a clock was ahead at the beginning, in nanoseconds.
pub(super) fn initial(points: &[(u64, i64)]) -> i64 {
    let at_first = points.iter().take_while(|(at, _)| *at == 0).last();
    at_first.map_or(0, |(_, ahead)| *ahead)
}
