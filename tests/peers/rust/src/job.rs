//! What the runner asks for.

use serde::Deserialize;

/// One piece of work, as JSON in the first argument. All drivers read the same.
#[derive(Clone, Deserialize)]
pub(crate) struct Job {
    /// The library, for a program that knows several.
    pub(crate) peer: String,
    pub(crate) work: Work,
    /// The servers, on the loopback interface: one, or the members of a majority.
    pub(crate) ports: Vec<u16>,
    /// Tasks that work at once.
    pub(crate) callers: usize,
    /// For how long, after the start.
    pub(crate) millis: u64,
    /// How long each hold lasts.
    pub(crate) hold_micros: u64,
    /// The pause after each release.
    pub(crate) pause_micros: u64,
    /// Locks that are kept.
    pub(crate) locks: usize,
    /// What the names begin with.
    pub(crate) names: String,
    pub(crate) lease_millis: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Work {
    /// Each caller acquires and releases a name of its own: how many pairs.
    Pairs,
    /// One caller acquires a free name: how long each acquire takes.
    Acquire,
    /// All callers want one name, and ask again at once: from when until when each hold lasts.
    Holds,
    /// Many locks are held, and renewed.
    Keep,
}
