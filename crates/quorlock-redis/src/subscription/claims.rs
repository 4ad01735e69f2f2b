//! The claims on a server whose loss is told at once.
//!
//! The session asks for the field of each claim, and the server tracks the key: it reports the next change of it, by any
//! client. Then the session asks again. So each change costs one question, and only the answer "it is not there" is told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quorlock_core::transport::Listener;

/// A claim: the key, and the field of its owner.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct WatchedClaim {
    pub(crate) key: Arc<[u8]>,
    pub(crate) field: Arc<[u8]>,
}

/// The claims, and those that the server must still be asked about.
#[derive(Default)]
pub(super) struct Claims {
    listeners: BTreeMap<WatchedClaim, BTreeMap<u64, Arc<dyn Listener>>>,
    unasked: BTreeSet<WatchedClaim>,
}

impl Claims {
    pub(super) fn add(&mut self, claim: &WatchedClaim, number: u64, listener: &Arc<dyn Listener>) {
        let listeners = self.listeners.entry(claim.clone()).or_default();
        listeners.insert(number, Arc::clone(listener));
        self.unasked.insert(claim.clone());
    }

    pub(super) fn remove(
        &mut self,
        claim: &WatchedClaim,
        number: u64,
    ) -> Option<Arc<dyn Listener>> {
        let listeners = self.listeners.get_mut(claim)?;
        let removed = listeners.remove(&number);
        if listeners.is_empty() {
            self.listeners.remove(claim);
            self.unasked.remove(claim);
        }
        removed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.listeners.is_empty()
    }

    /// Returns up to `most` claims that the server must be asked about, and counts them as asked.
    pub(super) fn take_unasked(&mut self, most: usize) -> Vec<WatchedClaim> {
        let unasked = std::iter::from_fn(|| self.unasked.pop_first());
        unasked.take(most).collect()
    }

    /// Records that a key has changed. Returns whether it is that of a claim.
    pub(super) fn changed(&mut self, key: &[u8]) -> bool {
        let first = WatchedClaim {
            key: key.into(),
            field: Arc::default(),
        };
        let claims = self.listeners.range(first..).map(|(claim, _)| claim);
        let claims = claims.take_while(|claim| *claim.key == *key);
        let before = self.unasked.len();
        self.unasked.extend(claims.cloned());
        before < self.unasked.len()
    }

    /// Records that the server does not report changes of keys any more, or that all keys have changed.
    pub(super) fn ask_again(&mut self) {
        self.unasked = self.listeners.keys().cloned().collect();
    }

    pub(super) fn listeners(&self, claim: &WatchedClaim) -> Vec<Arc<dyn Listener>> {
        let listeners = self.listeners.get(claim);
        listeners.map_or_else(Vec::new, |of| of.values().cloned().collect())
    }
}
