//! Atomics and the mutex under `mutex.rs`: those of the standard library, or of `shuttle` under `--cfg shuttle`.
//!
//! Under `shuttle` each use of them is a step of a schedule, and tests choose which thread takes the next step
//! (`tests/threads`). Threads of this crate must not share state in any other way, because no schedule could switch
//! threads there. `Arc`, `Weak`, `OnceLock` and `Waker` remain those of the standard library: no schedule switches
//! threads within their operations.

#[cfg(not(shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};

#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic};

pub(crate) use self::counter::Counter;

/// A counter for ids that are unique in the process.
#[cfg(not(shuttle))]
mod counter {
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A counter that starts at 1 and never returns a value twice in one process.
    pub(crate) struct Counter(AtomicU64);

    impl Counter {
        pub(crate) const fn new() -> Self {
            Counter(AtomicU64::new(1))
        }

        pub(crate) fn next(&self) -> u64 {
            self.0.fetch_add(1, Ordering::Relaxed)
        }
    }
}

/// A counter for ids that are unique in one schedule. It restarts with each schedule, so that a schedule can be
/// replayed alone.
#[cfg(shuttle)]
mod counter {
    use std::sync::atomic::{AtomicU64, Ordering};

    use shuttle::lazy_static::Lazy;

    /// A counter that starts at 1 and never returns a value twice in one schedule.
    pub(crate) struct Counter(Lazy<AtomicU64>);

    impl Counter {
        pub(crate) const fn new() -> Self {
            Counter(Lazy::new(|| AtomicU64::new(1)))
        }

        pub(crate) fn next(&'static self) -> u64 {
            self.0.get().fetch_add(1, Ordering::Relaxed)
        }
    }
}
