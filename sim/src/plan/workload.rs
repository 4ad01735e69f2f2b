//! What the clients of a plan do.

use serde::{Deserialize, Serialize};

use crate::plan::time::SimTime;

/// What the clients do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// Which work.
    pub kind: WorkloadKind,
    /// How many names there are.
    pub names: u16,
    /// How long a lease is.
    pub lease: SimTime,
    /// Whether the watchdog renews it.
    pub watchdog: Watchdog,
    /// For how long the watchdog renews a hold at most; without, for as long as it is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_hold: Option<SimTime>,
    /// How many clients, the last ones, are set up with leases that are three times as long, which the others do not know of.
    #[serde(skip_serializing_if = "is_none")]
    pub longer: u16,
    /// A section lasts at least
    pub hold_least: SimTime,
    /// and at most for this time.
    pub hold_most: SimTime,
    /// Between two a client waits at least
    pub think_least: SimTime,
    /// and at most for this time.
    pub think_most: SimTime,
    /// A waiter looks again after this, even if nothing wakes it.
    pub poll_cap: SimTime,
    /// No pause between two rounds is longer.
    pub backoff_cap: SimTime,
    /// How often a section looks whether the lock is still held, besides when it begins.
    pub looks: u16,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_none(many: &u16) -> bool {
    *many == 0
}

impl Default for Workload {
    fn default() -> Self {
        Workload {
            kind: WorkloadKind::MutualExclusion,
            names: 1,
            lease: SimTime::secs(10),
            watchdog: Watchdog::Off,
            max_hold: None,
            longer: 0,
            hold_least: SimTime::millis(20),
            hold_most: SimTime::millis(20),
            think_least: SimTime::millis(7),
            think_most: SimTime::millis(13),
            poll_cap: SimTime::secs(5),
            backoff_cap: SimTime::secs(1),
            looks: 2,
        }
    }
}

/// Whether leases are renewed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Watchdog {
    /// They end by themselves.
    #[default]
    Off,
    /// They are renewed every third of their length.
    On,
}

/// What clients do, again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// Acquire, stay a while, release.
    #[default]
    MutualExclusion,
    /// Enter a hold again, through the guard and through its owner, and leave it step by step.
    Reentrant,
    /// Overlapping sets of names, named in different orders.
    Overlapping,
    /// Write to a store that takes every write.
    UnfencedWrites,
    /// Write to a store that rejects smaller tokens than it has seen.
    FencedWrites,
    /// Work for longer than a lease, under the watchdog, which is cancelled when the lock is lost.
    LongWork,
    /// Try without waiting, many at once.
    TryStorm,
    /// Wait for one's turn at a fair lock, give up at times, and try without waiting.
    Fair,
    /// Read beside others, write alone, read beside one's own writing, and ask to write while reading.
    ReadWrite,
    /// Extend a hold in one task and enter it again in another, beside the watchdog.
    Extending,
    /// Read from a store, work, and write back what came of it: the write alone is fenced.
    FencedUpdates,
    /// The same, but the read raises the largest token of the store, too.
    RaisedUpdates,
    /// Be a candidate, lead for some time, step down, resign or lose, and be a candidate again.
    Leading,
    /// Several tasks of one process want the same, some of them as one owner: they wait, give up, try, and drop guards.
    Crowd,
    /// Acquire, stay a while, release, and ask again at once: a client that is quicker than the others takes the lock from
    /// them for ever, unless it lets them pass.
    Greedy,
    /// Take locks of several clients together, fair ones among them, each client with settings, an age and a clock of its own,
    /// and extend and enter one hold in several tasks at once.
    Together,
    /// Begin to write and to read as one owner at once, beside others who do.
    Sides,
}

impl WorkloadKind {
    /// Every kind. **Append only**.
    pub const ALL: [WorkloadKind; 17] = [
        WorkloadKind::MutualExclusion,
        WorkloadKind::Reentrant,
        WorkloadKind::Overlapping,
        WorkloadKind::UnfencedWrites,
        WorkloadKind::FencedWrites,
        WorkloadKind::LongWork,
        WorkloadKind::TryStorm,
        WorkloadKind::Fair,
        WorkloadKind::ReadWrite,
        WorkloadKind::Extending,
        WorkloadKind::FencedUpdates,
        WorkloadKind::RaisedUpdates,
        WorkloadKind::Leading,
        WorkloadKind::Crowd,
        WorkloadKind::Greedy,
        WorkloadKind::Together,
        WorkloadKind::Sides,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            WorkloadKind::MutualExclusion => "mutual-exclusion",
            WorkloadKind::Reentrant => "reentrant",
            WorkloadKind::Overlapping => "overlapping",
            WorkloadKind::UnfencedWrites => "unfenced-writes",
            WorkloadKind::FencedWrites => "fenced-writes",
            WorkloadKind::LongWork => "long-work",
            WorkloadKind::TryStorm => "try-storm",
            WorkloadKind::Fair => "fair",
            WorkloadKind::ReadWrite => "read-write",
            WorkloadKind::Extending => "extending",
            WorkloadKind::FencedUpdates => "fenced-updates",
            WorkloadKind::RaisedUpdates => "raised-updates",
            WorkloadKind::Leading => "leading",
            WorkloadKind::Crowd => "crowd",
            WorkloadKind::Greedy => "greedy",
            WorkloadKind::Together => "together",
            WorkloadKind::Sides => "sides",
        }
    }
}

/// The text of the `index`-th name.
pub(crate) fn name_of(index: u16) -> String {
    format!("lock-{index}")
}
