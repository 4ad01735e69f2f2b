//! What threads share: atomics, and a mutex that ignores poisoning, because no code leaves the data under it half-changed.
//!
//! They are those of the standard library, or of `shuttle` under `--cfg shuttle`: each use of them is a step of a schedule
//! there, and tests choose which thread takes the next step (`tests/threads`). Channels are always those of tokio, and each
//! use of one is a single step.

#[cfg(not(shuttle))]
use std::sync::Mutex as Inner;
use std::sync::PoisonError;
#[cfg(not(shuttle))]
pub(crate) use std::sync::{MutexGuard, atomic};

#[cfg(shuttle)]
use shuttle::sync::Mutex as Inner;
#[cfg(shuttle)]
pub(crate) use shuttle::sync::{MutexGuard, atomic};

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(Inner<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Mutex(Inner::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
