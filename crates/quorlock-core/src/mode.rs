//! The modes in which a name can be locked, and the channels on which a node publishes that it is free.

use std::fmt;

use crate::name::Name;
use crate::owner::OwnerId;

/// The mode in which a name is locked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mode {
    /// A reentrant exclusive lock.
    Plain,
    /// A reentrant exclusive lock that is granted in the order of the requests.
    Fair,
    /// The shared mode of a read-write lock.
    Read,
    /// The exclusive mode of a read-write lock.
    Write,
}

/// How many times one owner can enter a read lock.
///
/// Each entry has its own lease on the nodes. A request about a reader therefore costs as many steps as it has entries,
/// and may block a node for that long.
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

/// The mode of an acquire, and what only this mode needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// Acquires a plain lock.
    Plain,
    /// Acquires a fair lock.
    Fair(QueuePlace),
    /// Acquires a read lock.
    Read {
        /// Owner whose write claim does not block the reader. A writer may read, and may keep reading after it has
        /// stopped writing.
        under: Option<OwnerId>,
    },
    /// Acquires a write lock.
    Write,
}

impl Access {
    /// Returns the mode.
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

/// What a node does with a request for a fair lock that it cannot grant now.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum QueuePlace {
    /// The request is refused.
    None,
    /// The waiter gets a place in the queue, or keeps its place. A waiter that does not repeat its request for this
    /// time is considered dead and loses its place.
    Kept {
        /// How long a waiter keeps its place without repeating its request, by the node's clock.
        millis: u64,
    },
}

/// The channel on which a node publishes that a name may be tried, or on which a transport tells that a claim may be gone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Channel {
    /// Reaches all waiters of the plain lock.
    Lock(Name),
    /// Reaches one waiter of the fair lock.
    Waiter(Name, OwnerId),
    /// Reaches all waiting readers and writers.
    ReadWrite(Name),
    /// Reaches an owner whose claim of a name in this mode may be gone, although it did not release it. No node
    /// publishes on it: a transport finds out, if it can, and tells also if the claim is not there when messages begin
    /// to flow.
    Claim(Name, Mode, OwnerId),
}

impl Channel {
    /// Returns the channel on which an owner that waits for a name in this mode listens.
    #[must_use]
    pub fn of(name: &Name, mode: Mode, owner: OwnerId) -> Self {
        match mode {
            Mode::Plain => Channel::Lock(name.clone()),
            Mode::Fair => Channel::Waiter(name.clone(), owner),
            Mode::Read | Mode::Write => Channel::ReadWrite(name.clone()),
        }
    }

    /// Returns the name that may be tried, or whose claim may be gone.
    #[must_use]
    pub fn name(&self) -> &Name {
        match self {
            Channel::Lock(name)
            | Channel::Waiter(name, _)
            | Channel::ReadWrite(name)
            | Channel::Claim(name, ..) => name,
        }
    }
}

impl From<Name> for Channel {
    /// Returns the channel of a plain lock.
    fn from(name: Name) -> Self {
        Channel::Lock(name)
    }
}
