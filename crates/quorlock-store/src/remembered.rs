//! What a client remembers of a store: the last record of each key, and the store's clock.

use std::collections::BTreeMap;
use std::time::Duration;

use quorlock_core::marker::Process;
use quorlock_core::node::record::Record;
use quorlock_core::time::{Time, WallMillis, millis_of};

use crate::store::{Key, Stamp, Version};

/// The largest number of records that are remembered.
const MOST_RECORDS: usize = 4_096;

/// How long a reading of the store's clock is used. After this time, what is written by it is kept 600 ms too long.
const MOST_AGE: Duration = Duration::from_secs(60);

/// A record as it was read or written.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) record: Record,
    pub(crate) version: Version,
    pub(crate) process: Process,
    /// When the client first knew this version, by its own clock.
    pub(crate) since: Time,
    /// Whether the store has no clock, so that the record's own time counts.
    pub(crate) is_observed: bool,
}

impl Seen {
    /// Returns the time of the record of a store without a clock.
    pub(crate) fn observed(&self, now: Time) -> WallMillis {
        // A wrote this version before B received it. Since then B's clock has shown `elapsed`, which is at most
        // 1 % too much, so at least the rest has passed for A, too. If B counted from an earlier moment, or by a clock
        // that A does not share, it would end a claim that A relies on.
        let elapsed = now.since(self.since);
        let least = (elapsed - elapsed / 100).as_millis();
        let least = u64::try_from(least).unwrap_or(u64::MAX);
        self.record.clock().plus(least)
    }
}

/// A reading of the store's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// What the clock showed.
    now: WallMillis,
    /// When the call that read it was sent, by the client's clock.
    sent: Time,
    process: Process,
}

impl Reading {
    /// Returns a time that the store's clock has certainly shown.
    pub(crate) fn shown(self) -> WallMillis {
        self.now
    }

    /// Returns the latest time that the store's clock can show now, unless it was set.
    pub(crate) fn at_most(self, now: Time) -> WallMillis {
        let elapsed = now.since(self.sent);
        self.now.plus(millis_of(elapsed + elapsed / 100))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Remembered {
    seen: BTreeMap<Key, (u64, Seen)>,
    /// The same keys, by when they were last used.
    order: BTreeMap<u64, Key>,
    last: u64,
    reading: Option<Reading>,
}

impl Remembered {
    /// Returns the last known record of a key.
    pub(crate) fn get(&self, key: &Key) -> Option<&Seen> {
        self.seen.get(key).map(|(_, seen)| seen)
    }

    /// Remembers a record. Returns what is known about it, which includes earlier observations of the same version.
    pub(crate) fn put(&mut self, key: &Key, mut seen: Seen) -> Seen {
        if let Some(before) = self.forget(key)
            && before.version == seen.version
            && before.process == seen.process
        {
            seen.since = before.since.min(seen.since);
        }
        self.last += 1;
        self.order.insert(self.last, key.clone());
        self.seen.insert(key.clone(), (self.last, seen.clone()));
        if MOST_RECORDS < self.seen.len()
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.seen.remove(&oldest);
        }
        seen
    }

    pub(crate) fn forget(&mut self, key: &Key) -> Option<Seen> {
        let (order, seen) = self.seen.remove(key)?;
        self.order.remove(&order);
        Some(seen)
    }

    /// Notes what the store's clock showed to a call that was sent at `sent`.
    pub(crate) fn read_clock(&mut self, sent: Time, stamp: Stamp) {
        let Some(now) = stamp.now else { return };
        let process = stamp.process;
        if self.reading.is_none_or(|before| before.sent <= sent) {
            self.reading = Some(Reading { now, sent, process });
        }
    }

    /// Forgets what the store's clock showed: it was set.
    pub(crate) fn forget_clock(&mut self) {
        self.reading = None;
    }

    /// Returns a reading of this process's clock, if it is not too old.
    pub(crate) fn reading(&self, now: Time, process: Process) -> Option<Reading> {
        let is_usable =
            |reading: &Reading| reading.process == process && now.since(reading.sent) <= MOST_AGE;
        self.reading.filter(is_usable)
    }
}
