//! What waiters of the process are to the parts of a client that stand below their queues.

use std::fmt;

/// All who wait for locks of one client.
pub(crate) trait Waiters: fmt::Debug + Send + Sync {
    /// Wakes every waiter, to see that the client was closed, and ends the attempts that no waiter polls just now:
    /// a future that is never polled again would keep what its nodes have granted.
    fn close(&self);

    /// The lock of this key was refused to another acquisition of the client, or one of the same name in a mode that
    /// excludes it: perhaps for the sake of a leader that was granted it and is not polled. From now on those are to
    /// come when they are woken.
    fn in_the_way(&self, layout: &str);
}

/// Waiters for one lock, of whom the first, the leader, talks to the nodes on behalf of all.
pub(crate) trait Led: fmt::Debug + Send + Sync {
    /// Whether the leader is to come.
    fn due(&self) -> LeaderDue;

    /// Passes over a leader that was due at an earlier look and has not come since.
    fn relieve(&self, before: LeaderDue) -> Relief;
}

/// What was seen of a leader: the turn that it was due for, if it was. It is the same turn, and so the same wake-up that it
/// has not followed, when it is due for it at the next look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LeaderDue(pub(crate) Option<u64>);

/// Whether a leader must be looked at again.
pub(crate) enum Relief {
    /// No waiter depends on a leader that does not come.
    Over,
    /// After a while, and this is what was seen.
    On(LeaderDue),
}
