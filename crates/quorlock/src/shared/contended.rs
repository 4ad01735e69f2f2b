//! What a client remembers for a short time about contended locks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::acquisition::{Acquisition, Courtesy};
use quorlock_core::quorum::MemberId;
use quorlock_core::time::Time;

use crate::mutex::Mutex;
use crate::shared::wake_ups::{HeardBefore, WakeUps};
use crate::sync::atomic::{AtomicBool, Ordering};

/// How long subscriptions rest after the acquisition that made them. A client that acquires again within this time
/// saves five subscriptions and a round. Otherwise nodes send some useless messages.
const SPAN: Duration = Duration::from_secs(2);

/// The largest number of locks that are remembered.
const MOST: usize = 64;

/// The number of other listeners at which contention is expected. Of two contenders one gets a majority of the
/// votes; of three or more, possibly none does.
const CONTENTION: u32 = 2;

/// If the first member replies to a release within this time, it is near.
///
/// The other members do not matter: an acquisition that asks the first member first waits for its reply alone. Suppose
/// three of five nodes are in this data center, and the first one is in another: the majority confirms a release within
/// 1 ms, and the round trip to the first member is 20 ms.
///
/// When near nodes tell ten waiting clients of a release, clients that ask all of five nodes at once split the votes: 65
/// commands a hold were measured on one machine. If each asks the first member first, it is 35 commands, at the price of
/// a round trip that is short here. Over far nodes this round trip costs more than the split votes: at 1 to 5 ms one
/// way, three clients got the lock 0.8 times as often in the simulator.
const NEAR: Duration = Duration::from_millis(1);

/// Locks for which clients compete, by key: subscriptions that rest until the next acquisition of the same lock, and
/// what the last release showed.
///
/// Without it, two processes that alternate on a lock would each subscribe to five nodes and unsubscribe again for
/// every hold, and send two rounds before they can wait.
#[derive(Debug, Default)]
pub(crate) struct ContendedLocks {
    /// Whether anything is remembered. If not, which is usual, an uncontended acquisition locks no mutex.
    is_used: AtomicBool,
    all: Mutex<BTreeMap<Arc<str>, ContendedLock>>,
}

#[derive(Debug)]
struct ContendedLock {
    ears: Option<WakeUps>,
    courtesy: Courtesy,
    /// Members that released the lock, each with the number of messages received before the release was sent.
    released: Vec<(MemberId, u64)>,
    shown: Shown,
    passes_until: Option<Time>,
    /// Whether tries of this client collided with those of others.
    has_collided: bool,
    until: Time,
}

/// What a release showed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// How many other clients were listening.
    pub(crate) told: u32,
    /// The members that had answered the acquire.
    pub(crate) answers: Answers,
    /// How long the first member took to reply; `None` if the release ended earlier.
    pub(crate) first_took: Option<Duration>,
}

impl Shown {
    /// What is assumed before the first release.
    const NOTHING: Shown = Shown {
        told: 0,
        answers: Answers::All,
        first_took: None,
    };

    /// Whether a client that acquires the lock now asks the first member before the rest.
    fn has_collisions(self) -> bool {
        let is_near = self.first_took.is_some_and(|took| took < NEAR);
        CONTENTION <= self.told && (self.answers == Answers::Some || is_near)
    }
}

/// The members that had answered the acquire by the release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answers {
    /// Every member.
    All,
    /// A threshold, but not every member. The others may be unreachable.
    Some,
}

/// What an acquisition starts with.
pub(crate) struct Remembered {
    /// Subscriptions that are live.
    ears: Option<WakeUps>,
    /// Members that released the lock, each with the number of messages received before the release was sent.
    released: Vec<(MemberId, u64)>,
    /// What the last release showed.
    shown: Shown,
    /// Until when the acquisition lets other clients pass.
    passes_until: Option<Time>,
}

impl Remembered {
    /// Configures an acquisition that begins now. Returns the live subscriptions.
    pub(crate) fn begin(self, machine: &mut Acquisition, now: Time) -> Option<WakeUps> {
        let ears = self.ears.map(|mut ears| {
            // Ignore earlier messages, because the acquisition sends a request first. Also ignore the message of
            // this client's own release: A lets B pass, and would mistake its own message, which arrives late, for
            // B's release.
            ears.forget(&self.released);
            machine.handle_listening();
            ears
        });
        if CONTENTION <= self.shown.told {
            machine.expect_crowd(self.shown.told);
        }
        if self.shown.has_collisions() {
            machine.expect_collision();
        }
        if let Some(until) = self.passes_until.filter(|until| now < *until) {
            machine.let_pass(until);
        }
        ears
    }
}

impl ContendedLocks {
    /// Keeps these subscriptions. Returns the time at which the keeper must call [`ContendedLocks::end_due`].
    pub(crate) fn put(&self, now: Time, key: &Arc<str>, mut ears: WakeUps) -> Time {
        ears.rest();
        let until = now + SPAN;
        let before = self.change(now, key, |rest| {
            // The counts in `released` belong to the previous subscriptions. Suppose A's first task releases, and
            // A's second task, whose subscriptions are younger, wins and puts them here. Compared with the old
            // counts, B's next release would be taken for A's own, which these subscriptions never receive, and A
            // would not wake up.
            rest.released.clear();
            rest.ears.replace(ears)
        });
        drop(before);
        until
    }

    /// Begins a release: counts the messages before anything is sent, because the message may arrive before the reply.
    pub(crate) fn releasing(&self, key: &str) -> Option<HeardBefore> {
        if !self.is_used.load(Ordering::Acquire) {
            return None;
        }
        let all = self.all.lock();
        let ears = all.get(key)?.ears.as_ref()?;
        Some(ears.heard())
    }

    /// Records that this member has released the lock.
    ///
    /// It is recorded when the reply arrives and not when the release begins. Suppose A's first task begins to
    /// release, and A's second task requests the lock before the release is sent. The second task is refused
    /// because of the first, and waits for the message of that very release, which it would ignore.
    pub(crate) fn freed(&self, key: &str, member: MemberId, before: &HeardBefore) {
        if let Some(rest) = self.all.lock().get_mut(key)
            && let Some(ears) = &rest.ears
            && let Some(count) = ears.count(before, member)
        {
            rest.released.push((member, count));
        }
    }

    /// Records a release that took this long, and what it showed.
    pub(crate) fn released(&self, now: Time, key: &Arc<str>, took: Duration, shown: Shown) {
        if shown.told == 0 && !self.is_used.load(Ordering::Acquire) {
            return;
        }
        self.change(now, key, |rest| {
            // A release that ends sooner than the first member replies does not show whether that is near.
            let before = rest.shown.first_took.filter(|_| took < NEAR);
            rest.shown = shown;
            rest.shown.first_took = shown.first_took.or(before);
            rest.passes_until = match shown.told {
                0 => None,
                _ => rest.courtesy.handle_release(now, took),
            };
        });
    }

    /// Returns how many other clients were listening at the last release, as far as it is remembered.
    pub(crate) fn told(&self, key: &str) -> u32 {
        if !self.is_used.load(Ordering::Acquire) {
            return 0;
        }
        self.all.lock().get(key).map_or(0, |rest| rest.shown.told)
    }

    /// Records that a try collided with those of others.
    pub(crate) fn collided(&self, now: Time, key: &Arc<str>) {
        self.change(now, key, |rest| rest.has_collided = true);
    }

    /// Returns whether a try collided with those of others a short time ago.
    pub(crate) fn has_collided(&self, now: Time, key: &str) -> bool {
        self.is_used.load(Ordering::Acquire)
            && self
                .all
                .lock()
                .get(key)
                .is_some_and(|rest| rest.has_collided && now < rest.until)
    }

    fn change<T>(
        &self,
        now: Time,
        key: &Arc<str>,
        change: impl FnOnce(&mut ContendedLock) -> T,
    ) -> T {
        let mut all = self.all.lock();
        // Drop it without the mutex: ending a subscription runs code of the transport, which may call back.
        let mut ended = None;
        if MOST <= all.len() && !all.contains_key(key) {
            let oldest = all.iter().min_by_key(|(_, rest)| rest.until);
            let oldest = oldest.map(|(key, _)| key.clone());
            ended = oldest.and_then(|oldest| all.remove(&oldest));
        }
        let rest = all.entry(key.clone()).or_insert_with(|| ContendedLock {
            ears: None,
            courtesy: Courtesy::default(),
            released: Vec::new(),
            shown: Shown::NOTHING,
            passes_until: None,
            has_collided: false,
            until: now,
        });
        rest.until = now + SPAN;
        let changed = change(rest);
        self.is_used.store(true, Ordering::Release);
        drop(all);
        drop(ended);
        changed
    }

    /// Takes what is remembered of this lock.
    pub(crate) fn take(&self, key: &str) -> Option<Remembered> {
        if !self.is_used.load(Ordering::Acquire) {
            return None;
        }
        let mut all = self.all.lock();
        let rest = all.get_mut(key)?;
        Some(Remembered {
            ears: rest.ears.take(),
            released: std::mem::take(&mut rest.released),
            shown: rest.shown,
            passes_until: rest.passes_until.take(),
        })
    }

    /// Whether this client lets others pass at one of these locks.
    pub(crate) fn is_letting_pass<'a>(
        &self,
        now: Time,
        mut keys: impl Iterator<Item = &'a Arc<str>>,
    ) -> bool {
        if !self.is_used.load(Ordering::Acquire) {
            return false;
        }
        let all = self.all.lock();
        let until = |key| all.get(key)?.passes_until;
        keys.any(|key| until(key).is_some_and(|until| now < until))
    }

    /// Records whether another client took the lock while others were let pass.
    pub(crate) fn passed(&self, key: &str, was_there: bool) {
        if let Some(rest) = self.all.lock().get_mut(key) {
            match was_there {
                true => rest.courtesy.handle_taken(),
                false => rest.courtesy.handle_vain(),
            }
        }
    }

    /// Ends the subscriptions that have rested for [`SPAN`].
    pub(crate) fn end_due(&self, now: Time) {
        self.end(|rest| rest.until <= now);
    }

    /// Ends all subscriptions.
    pub(crate) fn clear(&self) {
        self.end(|_| true);
    }

    fn end(&self, is_over: impl Fn(&ContendedLock) -> bool) {
        if !self.is_used.load(Ordering::Acquire) {
            return;
        }
        let mut all = self.all.lock();
        let (over, rest): (BTreeMap<_, _>, _) = std::mem::take(&mut *all)
            .into_iter()
            .partition(|(_, rest)| is_over(rest));
        *all = rest;
        self.is_used.store(!all.is_empty(), Ordering::Release);
        // Drop the subscriptions without the mutex, as in `change`.
        drop(all);
        drop(over);
    }

    /// When to call [`ContendedLocks::end_due`].
    pub(crate) fn poll_timeout(&self) -> Time {
        if !self.is_used.load(Ordering::Acquire) {
            return Time::NEVER;
        }
        let all = self.all.lock();
        let until = all.values().map(|rest| rest.until);
        until.min().unwrap_or(Time::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(told: u32, answers: Answers, first_took: Option<u64>) -> Shown {
        Shown {
            told,
            answers,
            first_took: first_took.map(Duration::from_micros),
        }
    }

    #[test]
    fn a_release_that_ends_before_the_first_member_replies_does_not_make_it_near() {
        let (contended, key) = (ContendedLocks::default(), Arc::from("a"));
        let near = |took, first_took| {
            let took = Duration::from_micros(took);
            contended.released(Time::ZERO, &key, took, shown(2, Answers::All, first_took));
            contended.take(&key).unwrap().shown.has_collisions()
        };
        assert!(!near(300, None), "it has never replied");
        assert!(near(300, Some(200)));
        assert!(near(300, None), "it was near before");
        assert!(!near(1_000, None), "it took at least as long");
        assert!(!near(300, None));
    }

    #[test]
    fn a_collision_is_remembered_for_a_short_time() {
        let (contended, key) = (ContendedLocks::default(), Arc::from("a"));
        let began = Time::from_millis(5);
        assert!(!contended.has_collided(began, &key));
        contended.collided(began, &key);
        let last = began + SPAN - Duration::from_millis(1);
        assert!(contended.has_collided(last, &key));
        assert!(!contended.has_collided(began + SPAN, &key));
        assert!(!contended.has_collided(last, "b"));
    }

    #[test]
    fn the_first_member_is_asked_first_if_it_is_near_itself_or_others_are_silent() {
        assert!(shown(2, Answers::All, Some(999)).has_collisions());
        // A majority of near nodes confirmed the release, and the first member is far.
        assert!(!shown(2, Answers::All, Some(1_000)).has_collisions());
        assert!(!shown(2, Answers::All, None).has_collisions());
        assert!(shown(2, Answers::Some, None).has_collisions());
        assert!(!shown(1, Answers::Some, Some(0)).has_collisions());
        assert!(!Shown::NOTHING.has_collisions());
    }
}
