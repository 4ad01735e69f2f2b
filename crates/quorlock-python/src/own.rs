//! A value that only the process that made it may use.

use std::{mem, process};

use pyo3::PyResult;

use crate::failure;

/// A value of the process that made it.
///
/// A child has a copy of the value, but not the thread of the engine. If it used the copy, it would wait for ever for a mutex that
/// the thread held at the moment of the fork. If it dropped a guard, it would release the hold of its parent. So a child gets an
/// error, and its copy is leaked.
pub(crate) struct Own<T> {
    /// The id, because not every fork is reported to Python: uWSGI forks without that by default.
    process: u32,
    /// `None` once it is dropped.
    value: Option<T>,
}

impl<T> Own<T> {
    pub(crate) fn new(value: T) -> Self {
        Own {
            process: process::id(),
            value: Some(value),
        }
    }

    /// Returns the value.
    ///
    /// # Errors
    /// `ForkedError` in another process.
    pub(crate) fn get(&self) -> PyResult<&T> {
        match &self.value {
            Some(value) if self.is_ours() => Ok(value),
            _ => Err(failure::forked()),
        }
    }

    fn is_ours(&self) -> bool {
        self.process == process::id()
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        if !self.is_ours() {
            mem::forget(self.value.take());
        }
    }
}
