//! Workloads: the work of the clients of a plan.

use serde::{Deserialize, Serialize};

use crate::time::SimTime;

/// The work of the clients of a plan, with its times.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// The kind of work.
    pub kind: WorkloadKind,
    /// The number of names.
    pub names: u16,
    /// The length of a lease.
    pub lease: SimTime,
    /// Whether the watchdog renews leases.
    pub watchdog: Watchdog,
    /// How long the watchdog renews a hold. If `None`, it renews the hold until it is released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_hold: Option<SimTime>,
    /// How many clients, counted from the last, have a lease that is three times as long. The other clients do not
    /// know this longer lease.
    #[serde(skip_serializing_if = "is_none")]
    pub longer: u16,
    /// The shortest stay in a section.
    pub hold_min: SimTime,
    /// The longest stay in a section.
    pub hold_max: SimTime,
    /// The shortest pause of a client between two sections.
    pub think_min: SimTime,
    /// The longest pause of a client between two sections.
    pub think_max: SimTime,
    /// The time after which a waiter tries again even without a wake-up.
    pub poll_cap: SimTime,
    /// The longest pause between two rounds.
    pub backoff_cap: SimTime,
    /// How many times a client in a section checks that the lock is still held. The check on entering is not counted.
    pub checks: u16,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
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
            hold_min: SimTime::millis(20),
            hold_max: SimTime::millis(20),
            think_min: SimTime::millis(7),
            think_max: SimTime::millis(13),
            poll_cap: SimTime::secs(5),
            backoff_cap: SimTime::secs(1),
            checks: 2,
        }
    }
}

/// Whether leases are renewed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Watchdog {
    /// Leases are not renewed.
    #[default]
    Off,
    /// Leases are renewed every third of their length.
    On,
    /// The leases of half of the holds are renewed. Which ones is drawn.
    Half,
}

/// The kind of work that clients repeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// Acquire, stay for a while, release.
    #[default]
    MutualExclusion,
    /// Re-enter a hold, through the guard and through its owner, and leave it step by step.
    Reentrant,
    /// Acquire overlapping sets of names, given in different orders.
    Overlapping,
    /// Write to a store that accepts every write.
    UnfencedWrites,
    /// Write to a store that rejects a token smaller than one that it has seen.
    FencedWrites,
    /// Work for longer than a lease under the watchdog. The work is cancelled if the lock is lost.
    LongWork,
    /// Try without waiting, with many clients at the same time.
    TryStorm,
    /// Wait in the queue of a fair lock, sometimes give up, and sometimes try without waiting.
    Fair,
    /// Read while other clients read, write alone, read during one's own write hold, and request to write while
    /// reading.
    ReadWrite,
    /// Extend a hold in one task and re-enter it in another, while the watchdog renews it.
    Extending,
    /// Read from a store, work, and write the result back. Only the write is fenced.
    FencedUpdates,
    /// Read from a store, work, and write the result back. The read also raises the largest token of the store.
    RaisedUpdates,
    /// Stand as a candidate, lead for some time, step down, resign or lose, and stand again.
    Leading,
    /// Compete for a lock from several tasks of one process, some of them as one owner. The tasks wait, give up, try
    /// without waiting, and drop guards.
    #[serde(alias = "crowd")]
    CompetingTasks,
    /// Acquire, stay for a while, release, and acquire again at once. A client that is faster than the others could
    /// keep the lock from them forever if it did not let them pass.
    Greedy,
    /// Acquire locks of several clients together, fair locks among them, and extend and re-enter one hold from several
    /// tasks at the same time. Each client has its own settings, age and clock.
    Together,
    /// Begin to write and to read as one owner at the same time, while other clients do the same.
    Sides,
    /// Acquire or adopt, stay for a while, and hand over or release. Every client sees every ticket, and tries old ones,
    /// too.
    HandingOver,
}

impl WorkloadKind {
    /// Every kind. **Append only**.
    pub const ALL: [WorkloadKind; 18] = [
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
        WorkloadKind::CompetingTasks,
        WorkloadKind::Greedy,
        WorkloadKind::Together,
        WorkloadKind::Sides,
        WorkloadKind::HandingOver,
    ];

    /// Returns the name of the kind on the command line.
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
            WorkloadKind::CompetingTasks => "competing-tasks",
            WorkloadKind::Greedy => "greedy",
            WorkloadKind::Together => "together",
            WorkloadKind::Sides => "sides",
            WorkloadKind::HandingOver => "handing-over",
        }
    }
}

/// Returns the text of the `index`-th name.
pub fn name_of(index: u16) -> String {
    format!("lock-{index}")
}
