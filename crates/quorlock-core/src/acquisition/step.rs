//! What an acquisition does next.

use crate::message::Mode;
use crate::round::Order;
use crate::time::Time;

/// Whether an acquisition waits after a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Patience {
    /// The acquisition ends after one round, won or lost.
    Try,
    /// The acquisition continues until it wins or reaches its limit.
    Wait,
}

/// What the driver of an acquisition does now.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Run a round in this order and report how it was won or lost.
    Ask(Order),
    /// Subscribe to every member and report when all subscriptions are live. At this time, continue without those that
    /// are not.
    Listen(Time),
    /// Wait until this time or a wake-up.
    Sleep(Time),
    /// Wait until this time. Wake-ups do not end the pause: the clean-up after every lost round would wake all
    /// competitors, which would collide again, and none of them would ever win. While rounds fail, a member that can be
    /// reached again shortens the pause.
    BackOff(Time),
    /// End without the lock, for this reason.
    GiveUp(GiveUp),
}

/// Why an acquisition ends without the lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GiveUp {
    /// Other owners hold the lock.
    Contended,
    /// Too many members did not answer, or answered with an error.
    NoQuorum,
    /// Too many members refuse for a reason that waiting does not remove, so no threshold is left.
    Denied,
    /// The members answered too slowly for the lease.
    TooSlow,
    /// The name is locked in this other mode.
    OtherMode(Mode),
}
