//! A listener that records its notifications.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use quorlock_core::message::Wake;
use quorlock_core::transport::Listener;

/// The notifications of a subscription so far.
#[derive(Debug, Default)]
pub struct Heard {
    lives: AtomicUsize,
    wakes: Mutex<Vec<Wake>>,
}

impl Heard {
    /// Returns an empty record.
    #[must_use]
    pub fn nothing() -> Arc<Heard> {
        Arc::default()
    }

    /// Returns how often the subscription went live.
    #[must_use]
    pub fn lives(&self) -> usize {
        self.lives.load(Ordering::SeqCst)
    }

    /// Returns the wake-ups, in order.
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
