//! A timer of a process.

use std::task::Waker;

/// One timer of a process. It has at most one entry among the events that counts.
#[derive(Debug)]
pub(crate) struct Alarm {
    pub(crate) client: u16,
    /// On the monotonic clock of the process.
    pub(crate) deadline: u64,
    /// When the entry that counts is due; `u64::MAX` without one.
    pub(crate) entry_at: u64,
    pub(crate) entry: u32,
    pub(crate) waker: Waker,
}
