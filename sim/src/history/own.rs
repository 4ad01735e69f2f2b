//! What users' own clients do beside the locks: what they say, the properties that they state, and what they ask of resources.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Process;

/// A word of a client, at a time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Mark {
    /// When, in nanoseconds of true time.
    pub at: u64,
    /// Which client said it; `None` for what is said while no client is at work.
    pub process: Option<Process>,
    /// What it said.
    pub text: String,
}

/// When a property that a test states must be true.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Modality {
    /// Each time at which it is looked at.
    Always,
    /// At least once in all runs of a test.
    Sometimes,
    /// At least once in each run, from the first time at which it is looked at.
    Eventually,
}

impl Modality {
    /// The macro that states it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Modality::Always => "always!",
            Modality::Sometimes => "sometimes!",
            Modality::Eventually => "eventually!",
        }
    }
}

impl fmt::Display for Modality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A property that a test states, and what became of it in one run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StatedProperty {
    /// When it must be true.
    pub modality: Modality,
    /// Its name, which is unique among the properties of a test.
    pub name: String,
    /// When it was first looked at, in nanoseconds of true time.
    pub begun: u64,
    /// How often it was looked at.
    pub looks: u64,
    /// How often it was true.
    pub holds: u64,
    /// The first time at which it was false.
    pub broken: Option<Breach>,
}

/// A look at a property that was false.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Breach {
    /// When, in nanoseconds of true time.
    pub at: u64,
    /// Which client looked; `None` for a look while no client is at work.
    pub process: Option<Process>,
    /// What it saw, and where in the source that is written.
    pub story: String,
}

/// Something that a client asked of a resource beside the lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ResourceCall {
    /// Which resource, by its place in [`History::resources`](super::History::resources).
    pub resource: u16,
    /// Which client asked.
    pub process: Process,
    /// What it asked.
    pub question: String,
    /// When that left the client, in nanoseconds of true time.
    pub sent: u64,
    /// When the resource did it, and what it answered; `None` for a call that never came to it.
    pub done: Option<(u64, String)>,
    /// When the client heard of it; `None` for an answer that never came.
    pub heard: Option<u64>,
}
