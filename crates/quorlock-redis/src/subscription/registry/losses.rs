//! The claims in the registry: which the server must be asked about, and who is told of their loss.

use std::sync::Arc;
use std::time::Duration;

use quorlock_core::message::Wake;
use quorlock_core::transport::Listener;

use super::{Added, Registry};
use crate::subscription::claims::WatchedClaim;
use crate::timer::{self, Instant};

impl Registry {
    pub(super) fn watch(&self, claim: &WatchedClaim, listener: &Arc<dyn Listener>) -> Added {
        let mut book = self.lock();
        let number = book.draw();
        book.claims.add(timer::now(), claim, number, listener);
        self.changed.notify_one();
        let new_session = match book.is_unreported() {
            true => None,
            false => book.begin_session(),
        };
        Added {
            number,
            is_live: false,
            new_session,
        }
    }

    /// Records whether the server reports changes of keys. One that does not is asked again after this span.
    pub(crate) fn has_reports(&self, has: bool, again: Duration) {
        self.lock().unreported_until = (!has).then(|| timer::now() + again);
    }

    /// Returns up to `most` claims that the server must be asked about.
    pub(crate) fn next_claims(&self, most: usize) -> Vec<WatchedClaim> {
        self.lock().claims.take_unasked(timer::now(), most)
    }

    /// When the server must next be asked about a claim.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        self.lock().claims.next_look()
    }

    /// Asks about a claim again, after a pause.
    pub(crate) fn look_later(&self, claim: &WatchedClaim) {
        self.lock().claims.put_off(timer::now(), claim);
    }

    /// Records that these keys have changed, or all keys.
    pub(crate) fn have_changed(&self, keys: Option<&[Vec<u8>]>) {
        let mut book = self.lock();
        let is_news = match keys {
            Some(keys) => keys.iter().filter(|key| book.claims.changed(key)).count() != 0,
            None => {
                book.claims.ask_again();
                true
            }
        };
        drop(book);
        if is_news {
            self.changed.notify_one();
        }
    }

    /// Tells the listeners of a claim that is not there.
    pub(crate) fn is_gone(&self, claim: &WatchedClaim) {
        let listeners = self.lock().claims.listeners(claim);
        // Outside the mutex, because a listener's code may call this registry again.
        for listener in listeners {
            listener.wake(Wake::Unlocked);
        }
    }
}
