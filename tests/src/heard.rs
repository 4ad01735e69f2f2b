//! A listener that remembers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use quorlock_core::message::Wake;
use quorlock_core::transport::Listener;

/// What a subscription has heard so far.
#[derive(Debug, Default)]
pub struct Heard {
    lives: AtomicUsize,
    wakes: Mutex<Vec<Wake>>,
}

impl Heard {
    /// Nothing yet.
    #[must_use]
    pub fn nothing() -> Arc<Heard> {
        Arc::default()
    }

    /// How often messages began to flow.
    #[must_use]
    pub fn lives(&self) -> usize {
        self.lives.load(Ordering::SeqCst)
    }

    /// The wake-ups, in order.
    #[must_use]
    pub fn wakes(&self) -> Vec<Wake> {
        self.wakes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Listener for Heard {
    fn live(&self) {
        self.lives.fetch_add(1, Ordering::SeqCst);
    }

    fn wake(&self, message: Wake) {
        self.wakes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(message);
    }
}
