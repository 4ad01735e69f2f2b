//! Callbacks of a user at a given time: a request arrives at a resource, or its answer arrives at a client.

use std::fmt;

/// A callback that is due at a given time. It runs while the world is not borrowed.
pub struct Job(Box<dyn FnOnce()>);

impl Job {
    /// Creates a callback.
    pub fn new(job: impl FnOnce() + 'static) -> Self {
        Job(Box::new(job))
    }

    /// Runs the callback.
    pub fn now(self) {
        (self.0)();
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Job")
    }
}
