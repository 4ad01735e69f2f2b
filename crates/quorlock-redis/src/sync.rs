//! Mutexes, atomics and tasks: those of the standard library and of tokio, or of `shuttle` under `--cfg shuttle`.
//!
//! Under `shuttle` each use of them is a step of a schedule, and tests choose which thread has the next one
//! (`tests/threads`). `Arc`, `OnceLock` and `Waker` stay those of the standard library, as no step of a schedule lies
//! within a use of them; timers, `Notify` and `watch` stay those of tokio, and are used in one step each.

#[cfg(not(shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};
#[cfg(not(shuttle))]
pub(crate) use tokio::task;

#[cfg(shuttle)]
pub(crate) use shuttle::future as task;
#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic};
