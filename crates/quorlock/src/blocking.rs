//! Locks for code without `async`.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use quorlock::EmbeddedNode;
//! use quorlock::blocking::Locks;
//!
//! // With a server: Locks::connect("redis://127.0.0.1/")?, or Locks::quorum([a, b, c])? for RedLock.
//! let locks = Locks::start(async || quorlock::Locks::on_node(EmbeddedNode::new()))?;
//! let guard = locks.lock("orders/42").acquire()?;
//! let token = guard.fencing_token(); // a store that compares tokens rejects a stale holder
//! guard.check()?;                    // is it still held? between two steps of the work
//! guard.release()?;                  // dropping the guard releases too, and waits for it
//! # let _ = token;
//! # Ok(())
//! # }
//! ```
//!
//! **A thread of its own** renews what a client holds, whatever the threads of the program do. It is started with the client
//! and ends when the client and everything that was made of it are dropped.
//!
//! **Why not `block_on`?** A runtime of the flavour `current_thread` runs its tasks only inside `block_on`. A program that acquires
//! a lock in one `block_on`, works, and releases it in another one has no watchdog in between: a lease of 2 s is lost
//! after 2 s of work. This module has no such gap.
//!
//! **Nothing cancels a thread that waits.** [`Lock::wait`] bounds the wait, and so does
//! [`RetryPolicy::without_quorum`](crate::RetryPolicy::without_quorum) while no quorum answers. A holder is not interrupted either when it loses the lock:
//! call [`Guard::check`] between two steps, or [`Guard::on_lost`] to be told.
//!
//! The calls may be made on any thread. In an `async` task they block its thread: use the asynchronous types there.

mod candidacy;
mod driver;
mod guard;
mod lock;
mod locks;
mod semaphore;

pub use self::candidacy::Candidacy;
pub use self::guard::Guard;
pub use self::lock::Lock;
pub use self::locks::{Locks, Owner};
pub use self::semaphore::Semaphore;
