//! Tasks that wait for a change of a hold.

use std::task::{Context, Waker};

/// Tasks that wait for one kind of change of one hold, each under its own key.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    wakers: Vec<(u64, Waker)>,
    last_key: u64,
}

impl Watchers {
    /// Registers the task's waker. Returns its key: `key` if it is registered, otherwise a new one.
    pub(super) fn register(&mut self, cx: &Context<'_>, key: u64) -> u64 {
        if let Some((_, waker)) = self.wakers.iter_mut().find(|(k, _)| *k == key) {
            waker.clone_from(cx.waker());
            return key;
        }
        self.last_key += 1;
        self.wakers.push((self.last_key, cx.waker().clone()));
        self.last_key
    }

    pub(super) fn is_empty(&self) -> bool {
        self.wakers.is_empty()
    }

    pub(super) fn remove(&mut self, key: u64) {
        self.wakers.retain(|(k, _)| *k != key);
    }

    /// Removes and returns all wakers. The caller wakes them outside the hold's mutex.
    pub(super) fn take(&mut self) -> Vec<Waker> {
        let wakers = std::mem::take(&mut self.wakers);
        wakers.into_iter().map(|(_, waker)| waker).collect()
    }
}
