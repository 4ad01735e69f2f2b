//! An identity whose locks are reentrant.

pub(crate) mod identity;
mod slots;
mod turns;

use std::sync::Arc;

use quorlock_core::message::Mode;

use crate::lock::Lock;
use crate::locks::source::LockSource;
use crate::semaphore::Semaphore;

/// An identity whose locks are reentrant: acquiring a held name again through it enters the hold instead of waiting.
///
/// Clones are the same identity. An owner whose hold was lost starts a new hold, with a new token; guards of the lost
/// hold stay lost. The constructors of locks do not fail, as [those of the client](crate::Locks#names). A re-entry keeps the lease and the watchdog of the hold and ignores those of the entering lock.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use quorlock::{EmbeddedNode, Locks};
/// # let locks = Locks::on_node(EmbeddedNode::new())?;
/// let owner = locks.owner();
/// let outer = owner.lock("orders/42").acquire().await?;
/// let inner = owner.lock("orders/42").acquire().await?; // enters the same hold
/// assert_eq!(inner.hold_count(), 2);
/// inner.release().await?;
/// outer.release().await?; // this one frees the name
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Owner {
    source: LockSource,
}

impl Owner {
    /// Creates an identity for the locks of this source.
    pub(crate) fn new(source: &LockSource) -> Self {
        Owner {
            source: source.of_owner(Arc::default()),
        }
    }

    /// Returns a lock of this name for this owner.
    pub fn lock(&self, name: impl AsRef<[u8]>) -> Lock {
        self.source.one(Mode::Plain, name)
    }

    /// Returns a fair lock of this name for this owner. See [`Locks::fair`](crate::Locks::fair).
    pub fn fair(&self, name: impl AsRef<[u8]>) -> Lock {
        self.source.one(Mode::Fair, name)
    }

    /// Returns a read lock of this name for this owner, which may also be its writer. See
    /// [`Locks::read`](crate::Locks::read).
    ///
    /// An owner that holds the write lock acquires it at once, and keeps reading when it releases the write lock.
    /// From then on others may read, and no other owner has written in between.
    pub fn read(&self, name: impl AsRef<[u8]>) -> Lock {
        self.source.one(Mode::Read, name)
    }

    /// Returns a write lock of this name for this owner. See [`Locks::write`](crate::Locks::write).
    ///
    /// An owner that reads cannot acquire it, because it would wait for itself. The acquisition fails
    /// immediately with [`AcquireError::Upgrade`](crate::AcquireError::Upgrade).
    ///
    /// Acquisitions of one owner that share a name run one after the other, each as if it had begun when the previous
    /// one ended. If the future of one is woken and not polled, it is passed over after 100 to 200 ms, and starts at
    /// the end of the line when it is polled again.
    pub fn write(&self, name: impl AsRef<[u8]>) -> Lock {
        self.source.one(Mode::Write, name)
    }

    /// Returns a lock of several names taken together, for this owner. See [`Locks::all`](crate::Locks::all).
    pub fn all<N: AsRef<[u8]>>(&self, names: impl IntoIterator<Item = N>) -> Lock {
        self.source.all(names)
    }

    /// Returns a semaphore of this name for this owner. See [`Locks::semaphore`](crate::Locks::semaphore).
    ///
    /// An owner holds one permit of it: another acquisition enters the same hold, also with another number of permits.
    pub fn semaphore(&self, name: impl AsRef<[u8]>, permits: usize) -> Semaphore {
        self.source.semaphore(name, permits)
    }
}
