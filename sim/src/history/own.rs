//! What a user's own clients do beside locking: marks, stated properties, and calls to resources.

use std::fmt;

use crate::serial::{Deserialize, Serialize};

use super::Process;

/// A text that a client recorded, with its time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Mark {
    /// When it was recorded, in nanoseconds of true time.
    pub at: u64,
    /// The process that recorded it; `None` if no client was running.
    pub process: Option<Process>,
    /// The text.
    pub text: String,
}

/// When a property that a test states must be true.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Modality {
    /// Each time it is evaluated.
    Always,
    /// At least once in all runs of a test together.
    Sometimes,
    /// At least once in each run in which it is evaluated, after the first evaluation.
    Eventually,
}

impl Modality {
    /// Returns the name of the macro that states such a property.
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

/// A property that a test states, with its results in one run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StatedProperty {
    /// When it must be true.
    pub modality: Modality,
    /// Its name, which is unique among the properties of a test.
    pub name: String,
    /// When it was first evaluated, in nanoseconds of true time.
    pub begun: u64,
    /// How many times it was evaluated.
    pub checks: u64,
    /// How many times it was true.
    pub holds: u64,
    /// The first evaluation in which it was false.
    pub broken: Option<Breach>,
}

/// An evaluation in which a property was false.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Breach {
    /// When it was evaluated, in nanoseconds of true time.
    pub at: u64,
    /// The process that evaluated it; `None` if no client was running.
    pub process: Option<Process>,
    /// What the property's message says, and where in the source it is stated.
    pub story: String,
}

/// A call of a client to a resource beside the lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ResourceCall {
    /// The resource, as an index into [`History::resources`](super::History::resources).
    pub resource: u16,
    /// The process that made the call.
    pub process: Process,
    /// The text of the request.
    pub question: String,
    /// When the request left the client, in nanoseconds of true time.
    pub sent: u64,
    /// When the resource executed it, and its answer; `None` for a request that never arrived.
    pub done: Option<(u64, String)>,
    /// When the client received the answer; `None` for an answer that never arrived.
    pub heard: Option<u64>,
}
