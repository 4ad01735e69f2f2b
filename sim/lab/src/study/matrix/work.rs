//! The work of the clients in a storm.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::contender::Candidate;
use quorlock_sim_plan::variant::Variant;
use quorlock_sim_plan::{LockKind, Workload, WorkloadKind};

/// The work of the clients in a storm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StormWork {
    /// Plain locks, under which a store is updated.
    #[default]
    Plain,
    /// Fair locks. Locks without a queue do the plain work.
    Fair,
    /// Read and write locks.
    ReadWrite,
    /// Several of three names together, listed in any order.
    Several,
    /// The leadership of a name.
    Leading,
}

impl StormWork {
    /// Every kind of work.
    #[cfg(test)]
    pub(crate) const ALL: [StormWork; 5] = [
        StormWork::Plain,
        StormWork::Fair,
        StormWork::ReadWrite,
        StormWork::Several,
        StormWork::Leading,
    ];

    /// Returns the name of a class with this work in tables.
    pub(crate) fn label(self, class: &str) -> String {
        match self {
            StormWork::Plain => class.to_owned(),
            _ => format!("{class}; {self}"),
        }
    }
}

impl fmt::Display for StormWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StormWork::Plain => "plain",
            StormWork::Fair => "fair",
            StormWork::ReadWrite => "read-write",
            StormWork::Several => "several",
            StormWork::Leading => "leading",
        })
    }
}

impl Candidate {
    /// Returns whether a storm can have this lock do this work.
    pub(crate) fn does(&self, work: StormWork) -> bool {
        match work {
            // The queues of several nodes have no common order. The simple locks have no queue at all, and only
            // exclusion is demanded of them.
            StormWork::Fair => self.lock == LockKind::Single && !self.is_beside_readers(),
            StormWork::ReadWrite => self.variant.has_product_clients(),
            StormWork::Plain | StormWork::Several => !self.is_beside_readers(),
            // A leader holds one name.
            StormWork::Leading => self.lock != LockKind::Multi && !self.is_beside_readers(),
        }
    }

    fn is_beside_readers(&self) -> bool {
        self.variant == Variant::WriterBesideReaders
    }

    /// Gives the clients of a storm their work.
    pub(super) fn put_to(&self, work: StormWork, workload: &mut Workload) {
        workload.kind = match work {
            StormWork::Fair if self.variant.has_product_clients() => WorkloadKind::Fair,
            StormWork::Plain | StormWork::Fair => WorkloadKind::RaisedUpdates,
            StormWork::ReadWrite => WorkloadKind::ReadWrite,
            StormWork::Several => WorkloadKind::Overlapping,
            StormWork::Leading => WorkloadKind::Leading,
        };
        if work == StormWork::Several {
            // With two names, no set overlaps another one in part only.
            workload.names = 3;
        }
    }
}
