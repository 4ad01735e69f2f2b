//! What an acquisition does next.

use crate::message::Mode;
use crate::round::Order;
use crate::time::Time;

/// Whether a refusal is waited out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Patience {
    /// One round, whatever comes of it.
    Try,
    /// Until won.
    Wait,
}

/// What to do now.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Run a round in this order and report how it was lost.
    Ask(Order),
    /// Subscribe to every member, report when all are live, go on at this time without those that are not.
    Listen(Time),
    /// Do nothing until this time or a wake-up.
    Sleep(Time),
    /// Do nothing until this time. Wake-ups do not end it: every lost round's clean-up would wake everyone, and
    /// none of them would ever win. Where rounds fail, a member that can be reached again brings its end nearer.
    BackOff(Time),
    /// Give up.
    GiveUp(GiveUp),
}

/// Why an acquisition ends without the lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GiveUp {
    /// Others hold it.
    Contended,
    /// Too many members did not answer, or with an error.
    NoQuorum,
    /// So many members refuse in a way that waiting does not cure that no threshold is left.
    Denied,
    /// The members answered too slowly for the lease.
    TooSlow,
    /// A lock of another mode stands under the name.
    OtherMode(Mode),
}
