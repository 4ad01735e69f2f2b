//! An identity that can enter its own locks again.

pub(crate) mod identity;
mod slots;
mod turns;

use std::sync::Arc;

use quorlock_core::message::Mode;

use crate::error::ConfigError;
use crate::lock::Lock;
use crate::locks::source::LockSource;

/// An identity: acquiring a name again through it re-enters the hold it has, instead of waiting for itself.
///
/// Clones are the same identity. An owner whose hold was lost starts a new hold, with a new token; guards of the lost
/// one stay lost. Entering again keeps the lease and the watchdog of the hold, whatever the lock says that is entered.
#[derive(Clone, Debug)]
pub struct Owner {
    source: LockSource,
}

impl Owner {
    /// A new identity for locks of this source.
    pub(crate) fn new(source: &LockSource) -> Self {
        Owner {
            source: source.of_owner(Arc::default()),
        }
    }

    /// A lock of this name, to be acquired by this owner.
    pub fn lock(&self, name: impl AsRef<[u8]>) -> Lock {
        self.source.one(Mode::Plain, name)
    }

    /// A fair lock of this name, to be acquired by this owner. See [`Locks::fair`](crate::Locks::fair).
    pub fn fair(&self, name: impl AsRef<[u8]>) -> Lock {
        self.source.one(Mode::Fair, name)
    }

    /// The lock of this name for a reader, to be acquired by this owner, who may be its writer. See [`Locks::read`](crate::Locks::read).
    ///
    /// An owner that writes reads at once, and goes on reading when the guard of its write lock is released: others
    /// may read from then on, and no other owner has written in between.
    pub fn read(&self, name: impl AsRef<[u8]>) -> Lock {
        self.source.one(Mode::Read, name)
    }

    /// The lock of this name for a writer, to be acquired by this owner. See [`Locks::write`](crate::Locks::write).
    ///
    /// An owner that reads cannot acquire it, it would wait for itself: that is an error at once
    /// ([`AcquireError::Upgrade`](crate::AcquireError::Upgrade)). What an owner begins on one name while another acquisition of that name is under
    /// way waits for that one first, and is then answered as if it had begun after it. One whose future is woken and not
    /// polled is passed over after 100 to 200 ms, and begins at the end of the line when it is polled again.
    pub fn write(&self, name: impl AsRef<[u8]>) -> Lock {
        self.source.one(Mode::Write, name)
    }

    /// Several locks taken together, to be acquired by this owner.
    ///
    /// # Errors
    /// As [`Locks::all`](crate::Locks::all).
    pub fn all<N: AsRef<[u8]>>(
        &self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Lock, ConfigError> {
        self.source.all(names)
    }
}
