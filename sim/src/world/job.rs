//! What a user wrote, called at a time: a request comes to a resource beside the lock, or its answer to a client.

use std::fmt;

/// Something to do at a time. It is done while the world is not borrowed.
pub(crate) struct Job(Box<dyn FnOnce()>);

impl Job {
    pub(crate) fn new(job: impl FnOnce() + 'static) -> Self {
        Job(Box::new(job))
    }

    /// Does it.
    pub(crate) fn now(self) {
        (self.0)();
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Job")
    }
}
