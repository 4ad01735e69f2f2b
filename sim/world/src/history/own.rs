//! Records of a user's own clients, apart from locks: marks, stated properties, and calls to resources.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Process;

/// A text that a client recorded, with the time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Mark {
    /// When the text was recorded, in nanoseconds of true time.
    pub at: u64,
    /// The process that recorded the text, or `None` if no client was running.
    pub process: Option<Process>,
    /// The recorded text.
    pub text: String,
}

/// How often a property that a test states must be true.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Modality {
    /// Each time that it is evaluated.
    Always,
    /// At least once in all runs of a test together.
    Sometimes,
    /// In each run in which it is evaluated, at least once after the first evaluation.
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
    /// How often the property must be true.
    pub modality: Modality,
    /// The name of the property, which is unique among the properties of a test.
    pub name: String,
    /// When the property was first evaluated, in nanoseconds of true time.
    pub begun: u64,
    /// How many times the property was evaluated.
    pub checks: u64,
    /// How many times the property was true.
    pub holds: u64,
    /// The first evaluation in which the property was false.
    pub broken: Option<Breach>,
}

/// An evaluation in which a property was false.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Breach {
    /// When the property was evaluated, in nanoseconds of true time.
    pub at: u64,
    /// The process that evaluated the property, or `None` if no client was running.
    pub process: Option<Process>,
    /// The message of the property, and where in the source it is stated.
    pub story: String,
}

/// A call of a client to a resource.
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
    /// When the resource executed the request, and its answer. `None` if the request never arrived.
    pub done: Option<(u64, String)>,
    /// When the client received the answer, or `None` if the answer never arrived.
    pub heard: Option<u64>,
}
