//! Atomics and the mutex below `mutex.rs`: those of the standard library, or of `shuttle` under `--cfg shuttle`.
//!
//! Under `shuttle` each use of them is a step of a schedule, and tests choose which thread has the next one
//! (`tests/threads`). Nothing else in this crate may take its place: what threads share without one of these is shared in
//! one step there. `Arc`, `Weak`, `OnceLock` and `Waker` stay those of the standard library, as no step of a schedule lies
//! within a use of them.

#[cfg(not(shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};

#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic};

pub(crate) use self::counter::Counter;

/// Numbers for the things of one process.
#[cfg(not(shuttle))]
mod counter {
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Numbers that no two things of the process share, from 1 on.
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

/// Numbers for the things of one schedule: the next one is that of another process, or a schedule could not be replayed
/// alone.
#[cfg(shuttle)]
mod counter {
    use std::sync::atomic::{AtomicU64, Ordering};

    use shuttle::lazy_static::Lazy;

    /// Numbers that no two things of the schedule share, from 1 on.
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
