//! In which ways a name can be locked, and where a node says that it may be tried.

use std::fmt;

use crate::name::Name;
use crate::owner::OwnerId;

/// In which way a name is held.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mode {
    /// Reentrant exclusive lock.
    Plain,
    /// Reentrant exclusive lock that is granted in the order in which it was asked for.
    Fair,
    /// Shared by readers (a read-write lock).
    Read,
    /// Held by a writer (a read-write lock).
    Write,
}

/// How often one owner can enter a read lock.
///
/// Each entry has a lease of its own on the nodes, as Redisson keeps it, so a request about a reader costs as many
/// commands as it has entries, and holds up a server for as long.
pub const MOST_READ_ENTRIES: u32 = 1_000;

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Plain => "plain lock",
            Mode::Fair => "fair lock",
            Mode::Read => "read lock",
            Mode::Write => "write lock",
        })
    }
}

/// How a name is asked for: the mode, and what only this mode needs to know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// As a plain lock.
    Plain,
    /// As a fair lock.
    Fair(QueuePlace),
    /// To read.
    Read {
        /// The write claim of this owner is not in the way: a writer may read, and go on reading after it has stopped
        /// to write.
        under: Option<OwnerId>,
    },
    /// To write.
    Write,
}

impl Access {
    /// The mode.
    #[must_use]
    pub const fn mode(self) -> Mode {
        match self {
            Access::Plain => Mode::Plain,
            Access::Fair(_) => Mode::Fair,
            Access::Read { .. } => Mode::Read,
            Access::Write => Mode::Write,
        }
    }
}

/// What becomes of a request for a fair lock that cannot be granted now.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum QueuePlace {
    /// It is refused.
    None,
    /// It gets a place in the queue, or keeps the one that it has. A waiter that has not asked again for this time is
    /// taken for dead, and loses its place.
    Kept {
        /// How long a waiter keeps its place without asking again, by the node's clock.
        millis: u64,
    },
}

/// Where a node says that a name may be tried.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Channel {
    /// To everybody who waits for the plain lock.
    Lock(Name),
    /// To one waiter of the fair lock.
    Waiter(Name, OwnerId),
    /// To everybody who waits to read or to write.
    ReadWrite(Name),
}

impl Channel {
    /// Where an owner who waits for a name in this mode is to listen.
    #[must_use]
    pub fn of(name: &Name, mode: Mode, owner: OwnerId) -> Self {
        match mode {
            Mode::Plain => Channel::Lock(name.clone()),
            Mode::Fair => Channel::Waiter(name.clone(), owner),
            Mode::Read | Mode::Write => Channel::ReadWrite(name.clone()),
        }
    }

    /// The name that may be tried.
    #[must_use]
    pub fn name(&self) -> &Name {
        match self {
            Channel::Lock(name) | Channel::Waiter(name, _) | Channel::ReadWrite(name) => name,
        }
    }
}

impl From<Name> for Channel {
    /// The channel of a plain lock.
    fn from(name: Name) -> Self {
        Channel::Lock(name)
    }
}
