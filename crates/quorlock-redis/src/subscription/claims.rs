//! The claims on a server whose loss is told at once.
//!
//! The session asks for the field of each claim, and the server tracks the key: it reports the next change of it, by any
//! client. Then the session asks again. So each change costs one question, and only the answer "it is not there" is told.
//!
//! Readers of a name share a key, and any program may change a key again and again, so questions about one claim are paced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::transport::Listener;

use crate::timer::Instant;

/// The shortest pause between two questions about a claim, on average.
const PAUSE: Duration = Duration::from_millis(500);

/// How many pauses may be saved up: this many questions are asked at once.
const SAVED: u32 = 8;

/// A claim: the key, and the field of its owner.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct WatchedClaim {
    pub(crate) key: Arc<[u8]>,
    pub(crate) field: Arc<[u8]>,
}

/// The claims, and those that the server must still be asked about.
#[derive(Default)]
pub(super) struct Claims {
    watched: BTreeMap<WatchedClaim, Watched>,
    unasked: BTreeSet<WatchedClaim>,
}

struct Watched {
    listeners: BTreeMap<u64, Arc<dyn Listener>>,
    /// The end of the pauses after all questions so far, if they had followed one another.
    paused_until: Instant,
}

impl Watched {
    /// When the next question may be asked.
    fn due(&self) -> Instant {
        let saved = PAUSE * (SAVED - 1);
        self.paused_until
            .checked_sub(saved)
            .unwrap_or(self.paused_until)
    }

    fn asked(&mut self, now: Instant) {
        self.paused_until = self.paused_until.max(now) + PAUSE;
    }
}

impl Claims {
    pub(super) fn add(
        &mut self,
        now: Instant,
        claim: &WatchedClaim,
        number: u64,
        listener: &Arc<dyn Listener>,
    ) {
        let watched = self.watched.entry(claim.clone());
        let watched = watched.or_insert_with(|| Watched {
            listeners: BTreeMap::new(),
            paused_until: now,
        });
        watched.listeners.insert(number, Arc::clone(listener));
        self.unasked.insert(claim.clone());
    }

    pub(super) fn remove(
        &mut self,
        claim: &WatchedClaim,
        number: u64,
    ) -> Option<Arc<dyn Listener>> {
        let watched = self.watched.get_mut(claim)?;
        let removed = watched.listeners.remove(&number);
        if watched.listeners.is_empty() {
            self.watched.remove(claim);
            self.unasked.remove(claim);
        }
        removed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    /// Returns up to `most` claims that the server must be asked about now, and counts them as asked.
    pub(super) fn take_unasked(&mut self, now: Instant, most: usize) -> Vec<WatchedClaim> {
        let is_due = |claim: &&WatchedClaim| {
            let watched = self.watched.get(*claim);
            watched.is_some_and(|watched| watched.due() <= now)
        };
        let due: Vec<_> = self
            .unasked
            .iter()
            .filter(is_due)
            .take(most)
            .cloned()
            .collect();
        for claim in &due {
            self.unasked.remove(claim);
            if let Some(watched) = self.watched.get_mut(claim) {
                watched.asked(now);
            }
        }
        due
    }

    /// When the server must next be asked.
    pub(super) fn next_look(&self) -> Option<Instant> {
        let unasked = self.unasked.iter();
        unasked
            .filter_map(|claim| self.watched.get(claim))
            .map(Watched::due)
            .min()
    }

    /// Asks about a claim again, after a pause: the server has given no answer.
    pub(super) fn put_off(&mut self, now: Instant, claim: &WatchedClaim) {
        if let Some(watched) = self.watched.get_mut(claim) {
            watched.paused_until = now + PAUSE * SAVED;
            self.unasked.insert(claim.clone());
        }
    }

    /// Records that a key has changed. Returns whether it is that of a claim.
    pub(super) fn changed(&mut self, key: &[u8]) -> bool {
        let first = WatchedClaim {
            key: key.into(),
            field: Arc::default(),
        };
        let claims = self.watched.range(first..).map(|(claim, _)| claim);
        let claims = claims.take_while(|claim| *claim.key == *key);
        let before = self.unasked.len();
        self.unasked.extend(claims.cloned());
        before < self.unasked.len()
    }

    /// Records that the server does not report changes of keys any more, or that all keys have changed.
    pub(super) fn ask_again(&mut self) {
        self.unasked = self.watched.keys().cloned().collect();
    }

    pub(super) fn listeners(&self, claim: &WatchedClaim) -> Vec<Arc<dyn Listener>> {
        let watched = self.watched.get(claim);
        watched.map_or_else(Vec::new, |watched| {
            watched.listeners.values().cloned().collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timer;
    use quorlock_core::message::Wake;

    struct Deaf;

    impl Listener for Deaf {
        fn live(&self) {}

        fn wake(&self, _: Wake) {}
    }

    fn claim(key: &str, field: &str) -> WatchedClaim {
        WatchedClaim {
            key: key.as_bytes().into(),
            field: field.as_bytes().into(),
        }
    }

    fn with(claims: &[WatchedClaim], now: Instant) -> Claims {
        let mut all = Claims::default();
        let deaf: Arc<dyn Listener> = Arc::new(Deaf);
        for (number, claim) in (1..).zip(claims) {
            all.add(now, claim, number, &deaf);
        }
        all
    }

    #[test]
    fn a_change_of_a_key_asks_for_its_claims_and_no_others() {
        let now = timer::now();
        let (one, other, third) = (claim("a", "1"), claim("a", "2"), claim("ab", "1"));
        let mut claims = with(&[one.clone(), other.clone(), third.clone()], now);
        assert_eq!(claims.take_unasked(now, 9).len(), 3);
        assert_eq!(claims.next_look(), None);
        assert!(claims.changed(b"a") && !claims.changed(b"b"));
        assert_eq!(claims.take_unasked(now, 9), [one, other]);
        claims.ask_again();
        assert_eq!(claims.take_unasked(now, 9).len(), 3);
    }

    #[test]
    fn a_key_that_changes_all_the_time_costs_two_questions_a_second() {
        let began = timer::now();
        let mut claims = with(&[claim("a", "1")], began);
        let mut asked = 0;
        for millis in 0..10_000 {
            let now = began + Duration::from_millis(millis);
            claims.changed(b"a");
            asked += claims.take_unasked(now, 9).len();
        }
        assert!((26..=28).contains(&asked), "{asked}");
        assert!(claims.next_look().is_some());
    }

    #[test]
    fn a_question_without_an_answer_is_asked_again_after_a_pause() {
        let began = timer::now();
        let one = claim("a", "1");
        let mut claims = with(std::slice::from_ref(&one), began);
        claims.take_unasked(began, 9);
        claims.put_off(began, &one);
        assert_eq!(claims.take_unasked(began, 9), []);
        assert_eq!(claims.next_look(), Some(began + PAUSE));
        assert_eq!(claims.take_unasked(began + PAUSE, 9), [one]);
    }
}
