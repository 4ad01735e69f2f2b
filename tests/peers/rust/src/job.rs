//! The job that the runner requests.

use serde::Deserialize;

/// One piece of work, as JSON in the first argument. All drivers read the same format.
#[derive(Clone, Deserialize)]
pub(crate) struct Job {
    /// Name of the library, for a program with several.
    pub(crate) peer: String,
    pub(crate) work: Work,
    /// Ports of the servers on the loopback interface: one, or the members of a majority.
    pub(crate) ports: Vec<u16>,
    /// Number of concurrent tasks.
    pub(crate) callers: usize,
    /// How long the work lasts after the start, in milliseconds.
    pub(crate) millis: u64,
    /// How long each hold lasts, in microseconds.
    pub(crate) hold_micros: u64,
    /// The pause after each release, in microseconds.
    pub(crate) pause_micros: u64,
    /// Number of locks that are kept.
    pub(crate) locks: usize,
    /// Prefix of the names.
    pub(crate) names: String,
    pub(crate) lease_millis: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Work {
    /// Each caller acquires and releases a separate name. The result is the number of pairs.
    Pairs,
    /// One caller acquires a free name. The result is how long each acquire takes.
    Acquire,
    /// All callers compete for one name without a pause. The result is when each hold begins and ends.
    Holds,
    /// Many locks are held and renewed.
    Keep,
}
