//! What a picture for a page of text shows: one period of a run, with a note for each step.

use quorlock_sim_plan::time::SimTime;
use serde::Deserialize;

/// What a picture shows of a run. It is as wide as a page of text, so that its words are readable there.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// When the shown period begins.
    pub from: SimTime,
    /// When the shown period ends.
    pub until: SimTime,
    /// The notes, in the order of time. They are numbered from 1.
    #[serde(default)]
    pub notes: Vec<Note>,
}

impl Picture {
    /// Returns all notes, for readers who do not see the picture.
    pub(super) fn in_words(&self) -> String {
        let words = self.notes.iter().map(|note| match note.of {
            NotePlace::Client(client) => format!("client {client}: {}", note.text),
            NotePlace::Node(node) => format!("node {node}: {}", note.text),
            NotePlace::Faults => note.text.clone(),
        });
        words.collect::<Vec<_>>().join("; ")
    }
}

/// A sentence about one step of a run.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// When the step happens.
    pub at: SimTime,
    /// The lane in which the note is written.
    pub of: NotePlace,
    /// The sentence.
    pub text: String,
}

/// The lane of a note. Written as `{ client = 0 }`, `{ node = 2 }` or `"faults"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotePlace {
    /// The lane of the client with this number.
    Client(u16),
    /// The lane of the node with this number.
    Node(u16),
    /// The lane of the faults.
    Faults,
}
