//! What a client remembers for a moment of locks that others want, too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::acquisition::{Acquisition, Courtesy};
use quorlock_core::quorum::MemberId;
use quorlock_core::time::Time;

use crate::mutex::Mutex;
use crate::shared::wake_ups::{HeardBefore, WakeUps};
use crate::sync::atomic::{AtomicBool, Ordering};

/// How long a subscription rests after the acquisition that made it. One that asks again within this time saves five
/// subscriptions and a round; for one that does not, nodes send it some messages for nothing.
const SPAN: Duration = Duration::from_secs(2);

/// So many locks at most are remembered.
const MOST: usize = 64;

/// Of two that ask a majority at once one has more votes. Of three or more it may be that none has enough.
const CROWD: u32 = 2;

/// Locks for which clients compete, by their keys: subscriptions that rest until the next acquisition of the same lock, and
/// what the last release has found.
///
/// Of two processes that hand a lock to and fro each would subscribe to five nodes and end that again for every hold, and
/// ask twice before it can wait.
#[derive(Debug, Default)]
pub(crate) struct Rests {
    /// Mostly nothing is remembered: an acquisition that is alone locks no mutex for it.
    is_used: AtomicBool,
    all: Mutex<BTreeMap<Arc<str>, Rest>>,
}

#[derive(Debug)]
struct Rest {
    ears: Option<WakeUps>,
    courtesy: Courtesy,
    /// Members that have released, and how many messages had come from each before they were asked to.
    released: Vec<(MemberId, u64)>,
    /// How many other clients listened when the lock was released last.
    told: u32,
    passes_until: Option<Time>,
    until: Time,
}

/// What an acquisition begins with.
pub(crate) struct Remembered {
    /// Subscriptions that are live.
    ears: Option<WakeUps>,
    /// Members that have released, and how many messages had come from each before they were asked to.
    released: Vec<(MemberId, u64)>,
    /// How many other clients listened when the lock was released last.
    told: u32,
    /// Until when they are let pass.
    passes_until: Option<Time>,
}

impl Remembered {
    /// Tells an acquisition that begins now; returns the subscriptions, which are live.
    pub(crate) fn begin(self, machine: &mut Acquisition, now: Time) -> Option<WakeUps> {
        let ears = self.ears.map(|mut ears| {
            // Messages that came while no acquisition waited are none to this one, which asks first. Its own release is none
            // either: A lets B pass, and would take its own message, which comes late, for B's.
            ears.forget(&self.released);
            machine.handle_listening();
            ears
        });
        if CROWD <= self.told {
            machine.expect_crowd(self.told);
        }
        if let Some(until) = self.passes_until.filter(|until| now < *until) {
            machine.let_pass(until);
        }
        ears
    }
}

impl Rests {
    /// These subscriptions rest from now on; the keeper looks at them at the time that is returned.
    pub(crate) fn put(&self, now: Time, key: &Arc<str>, mut ears: WakeUps) -> Time {
        ears.rest();
        let until = now + SPAN;
        let before = self.change(now, key, |rest| {
            // What was counted before a release, the ears before these have counted: A's first task releases, and its second,
            // which has listened for less long, wins and rests. Held against these, the next message of another client would be
            // taken for the own one, which they will never hear.
            rest.released.clear();
            rest.ears.replace(ears)
        });
        drop(before);
        until
    }

    /// A release of the lock begins. What has been heard is read before anything is sent: a message may come before the reply.
    pub(crate) fn releasing(&self, key: &str) -> Option<HeardBefore> {
        if !self.is_used.load(Ordering::Acquire) {
            return None;
        }
        let all = self.all.lock();
        let ears = all.get(key)?.ears.as_ref()?;
        Some(ears.heard())
    }

    /// This member has released the lock.
    ///
    /// It is remembered by the reply, and not when the release begins: A's first task begins to release, its second asks before that is
    /// sent, and is refused for the sake of the first. The message of that release is what the second waits for.
    pub(crate) fn freed(&self, key: &str, member: MemberId, before: &HeardBefore) {
        if let Some(rest) = self.all.lock().get_mut(key)
            && let Some(ears) = &rest.ears
            && let Some(count) = ears.count(before, member)
        {
            rest.released.push((member, count));
        }
    }

    /// The lock was released now, in this time, and so many others were told.
    pub(crate) fn released(&self, now: Time, key: &Arc<str>, took: Duration, told: u32) {
        if told == 0 && !self.is_used.load(Ordering::Acquire) {
            return;
        }
        self.change(now, key, |rest| {
            rest.told = told;
            rest.passes_until = match told {
                0 => None,
                _ => rest.courtesy.handle_release(now, took),
            };
        });
    }

    fn change<T>(&self, now: Time, key: &Arc<str>, change: impl FnOnce(&mut Rest) -> T) -> T {
        let mut all = self.all.lock();
        // Dropped outside of the mutex, as an end of a subscription runs code of the transport's.
        let mut ended = None;
        if MOST <= all.len() && !all.contains_key(key) {
            let oldest = all.iter().min_by_key(|(_, rest)| rest.until);
            let oldest = oldest.map(|(key, _)| key.clone());
            ended = oldest.and_then(|oldest| all.remove(&oldest));
        }
        let rest = all.entry(key.clone()).or_insert_with(|| Rest {
            ears: None,
            courtesy: Courtesy::default(),
            released: Vec::new(),
            told: 0,
            passes_until: None,
            until: now,
        });
        rest.until = now + SPAN;
        let changed = change(rest);
        self.is_used.store(true, Ordering::Release);
        drop(all);
        drop(ended);
        changed
    }

    /// What is remembered of this lock.
    pub(crate) fn take(&self, key: &str) -> Option<Remembered> {
        if !self.is_used.load(Ordering::Acquire) {
            return None;
        }
        let mut all = self.all.lock();
        let rest = all.get_mut(key)?;
        Some(Remembered {
            ears: rest.ears.take(),
            released: std::mem::take(&mut rest.released),
            told: rest.told,
            passes_until: rest.passes_until.take(),
        })
    }

    /// Others were let pass, and one of them was there or none.
    pub(crate) fn passed(&self, key: &str, was_there: bool) {
        if let Some(rest) = self.all.lock().get_mut(key) {
            match was_there {
                true => rest.courtesy.handle_taken(),
                false => rest.courtesy.handle_vain(),
            }
        }
    }

    /// Forgets what has rested for long enough.
    pub(crate) fn end_due(&self, now: Time) {
        self.end(|rest| rest.until <= now);
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.end(|_| true);
    }

    fn end(&self, is_over: impl Fn(&Rest) -> bool) {
        if !self.is_used.load(Ordering::Acquire) {
            return;
        }
        let mut all = self.all.lock();
        let (over, rest): (BTreeMap<_, _>, _) = std::mem::take(&mut *all)
            .into_iter()
            .partition(|(_, rest)| is_over(rest));
        *all = rest;
        self.is_used.store(!all.is_empty(), Ordering::Release);
        drop(all);
        drop(over);
    }

    /// When to call [`Rests::end_due`].
    pub(crate) fn poll_timeout(&self) -> Time {
        if !self.is_used.load(Ordering::Acquire) {
            return Time::NEVER;
        }
        let all = self.all.lock();
        let until = all.values().map(|rest| rest.until);
        until.min().unwrap_or(Time::NEVER)
    }
}
