//! Mutexes, atomics and tasks: those of the standard library and of tokio, or those of `shuttle` under `--cfg shuttle`.
//!
//! Under `shuttle`, each use of them is a step of a schedule, and tests choose the thread that runs next
//! (`tests/threads`). `Arc`, `OnceLock` and `Waker` are always those of the standard library, because no schedule
//! switches threads within a use of them. Timers, `Notify` and `watch` are always those of tokio, and each use of them
//! is one step.

#[cfg(not(shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};
#[cfg(not(shuttle))]
pub(crate) use tokio::task;

#[cfg(shuttle)]
pub(crate) use shuttle::future as task;
#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic};
