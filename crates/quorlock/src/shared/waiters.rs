//! The waiters of the process, as seen by the parts of a client below their queues.

use std::fmt;
use std::sync::Arc;

use crate::shared::hold::Hold;

/// All waiters for locks of one client.
pub(crate) trait Waiters: fmt::Debug + Send + Sync {
    /// Wakes every waiter, so that it sees that the client was closed, and ends the attempts that no waiter is
    /// polling. Otherwise a future that is never polled again would keep what nodes granted.
    fn close(&self);

    /// Reports that the lock with this key was refused to another acquisition of the client, or a lock of the same
    /// name in a mode that excludes it. The cause may be a first waiter that was granted it and is not polled, so its queue
    /// is watched from now on.
    fn in_the_way(&self, layout: &Arc<str>);

    /// Returns whether a waiter is in line for the lock of this hold, and for the same lease.
    fn awaits(&self, hold: &Hold) -> bool;

    /// Gives a hold to the first waiter in line for its lock, and wakes it. Returns whether there was one.
    fn give(&self, hold: &Arc<Hold>) -> bool;

    /// Returns whether waiters of the client wait for another lock than the one with this key.
    fn wait_for_others(&self, layout: &str) -> bool;
}

/// Waiters for one lock, the first of which sends requests on behalf of all.
pub(crate) trait FirstInLine: fmt::Debug + Send + Sync {
    /// Returns the turn for which the first waiter is due, if it is.
    fn due(&self) -> DueTurn;

    /// Passes over a first waiter that was due at an earlier look and has not been polled since.
    fn relieve(&self, before: DueTurn) -> Relief;
}

/// The turn for which a first waiter was woken, or `None`. If two looks show the same turn, the first waiter was not polled in
/// between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DueTurn(pub(crate) Option<u64>);

/// Whether the keeper must look at a first waiter again.
pub(crate) enum Relief {
    /// No, because no waiter depends on a first waiter that is not polled.
    Over,
    /// Yes, after a while. The value is what this look showed.
    On(DueTurn),
}
