//! Draws the notes of a picture, each in the lane that it is about, so that no line crosses a text.

use quorlock_sim_world::history::recording::ProcessPlace;

use super::picture::NotePlace;
use super::scene::{Owner, RowContent, Scene, Shape};

/// The width of a letter of a note, in pixels: that of a wide font.
const LETTER: f64 = 6.9;

/// A note with its place from left to right.
struct Placed {
    at: u64,
    number: usize,
    text: String,
    /// Where its line is.
    line: f64,
    left: f64,
    right: f64,
}

impl Placed {
    /// Returns whether the note is written in a lower row than another one, so that no line crosses a text.
    fn is_below(&self, other: &Placed) -> bool {
        let crosses = |a: &Placed, b: &Placed| b.left < a.line && a.line < b.right;
        match (crosses(other, self), crosses(self, other)) {
            (true, false) => true,
            (false, true) => false,
            // The two texts extend towards each other, so the order does not matter.
            _ => {
                let overlap = self.left < other.right && other.left < self.right;
                overlap && self.number < other.number
            }
        }
    }
}

fn owner(place: NotePlace) -> Owner {
    match place {
        NotePlace::Client(client) => Owner::Place(ProcessPlace::Client(client)),
        NotePlace::Node(node) => Owner::Place(ProcessPlace::Node(node)),
        NotePlace::Faults => Owner::Faults,
    }
}

/// Returns from where to where the text of a note extends. A note without room on its right ends at its moment.
pub(super) fn extent(scene: &Scene, line: f64, text: &str) -> (f64, f64) {
    let width = LETTER * text.chars().count() as f64 + 12.0;
    if scene.width < line + width {
        (line - width, line)
    } else {
        (line, line + width)
    }
}

/// Returns the notes of a lane, each with its row.
fn placed(scene: &Scene, who: Owner) -> Vec<(Placed, usize)> {
    let picture = scene.picture.iter();
    let numbered = picture.flat_map(|picture| &picture.notes).zip(1..);
    let its = numbered.filter(|(note, _)| owner(note.of) == who);
    let placed = its.map(|(note, number)| {
        let (at, text) = (note.at.as_nanos(), format!("{number}. {}", note.text));
        let line = scene.x(at);
        let (left, right) = extent(scene, line, &text);
        Placed {
            at,
            number,
            text,
            line,
            left,
            right,
        }
    });
    let placed: Vec<Placed> = placed.collect();
    let mut rows = vec![0; placed.len()];
    // Each pass moves a note below those that it must be below. The longest chain has all of them.
    for _ in 0..placed.len() {
        let row = |note: &Placed| {
            let upper = placed.iter().zip(&rows);
            let upper = upper.filter(|(other, _)| note.is_below(other));
            upper.map(|(_, row)| row + 1).max().unwrap_or(0)
        };
        rows = placed.iter().map(row).collect();
    }
    placed.into_iter().zip(rows).collect()
}

/// Returns how many rows the notes of a lane need.
pub(super) fn rows(scene: &Scene, who: Owner) -> usize {
    let placed = placed(scene, who).into_iter();
    placed.map(|(_, row)| row + 1).max().unwrap_or(0)
}

/// Draws each note in its row, with a line down from the bars of its lane.
pub(super) fn draw(scene: &mut Scene) {
    for who in scene.lanes.iter().map(|lane| lane.who).collect::<Vec<_>>() {
        for (Placed { at, text, .. }, row) in placed(scene, who) {
            let row = scene.row(who, RowContent::Note(row));
            let Some((row, lane)) = row.zip(scene.lane(who)) else {
                continue;
            };
            let (top, height) = (row.top, row.height);
            // The line begins at the lower edge of the bars, below their labels.
            let bars = lane.rows.first().filter(|bars| bars.top < top);
            let line = Shape::Moment {
                at,
                top: bars.map_or(lane.top, |bars| bars.top + bars.height / 2.0 + 8.0),
                bottom: top + height - 1.0,
            };
            let words = Shape::Bar {
                from: at,
                until: at,
                top,
                height,
                label: text,
            };
            scene.push(line, "note", String::new());
            scene.push(words, "note", String::new());
        }
    }
}
