//! The keys of one database, and when they expire.

use std::collections::{BTreeMap, BTreeSet};

use crate::value::Value;

/// A value and its expiry.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    /// Expiry in milliseconds of the node's wall clock since 1970. At this time the key still exists.
    pub(crate) expires: Option<i64>,
}

impl Entry {
    pub(crate) fn is_over(&self, now_millis: i64) -> bool {
        self.expires.is_some_and(|expires| expires < now_millis)
    }
}

/// The keys of one database.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Keyspace {
    entries: BTreeMap<Vec<u8>, Entry>,
    /// Expiry times and their keys, in order.
    deadlines: BTreeSet<(i64, Vec<u8>)>,
}

impl Keyspace {
    /// Returns the entry of a key, even if it has expired.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Returns the value of a key for changes. Its expiry stays.
    pub(crate) fn value_mut(&mut self, key: &[u8]) -> Option<&mut Value> {
        self.entries.get_mut(key).map(|entry| &mut entry.value)
    }

    pub(crate) fn put(&mut self, key: Vec<u8>, entry: Entry) {
        let (old, new) = (self.get(&key).and_then(|old| old.expires), entry.expires);
        if old != new {
            self.remove_deadline(&key, old);
            if let Some(new) = new {
                self.deadlines.insert((new, key.clone()));
            }
        }
        self.entries.insert(key, entry);
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        let old = self.entries.remove(key)?;
        self.remove_deadline(key, old.expires);
        Some(old)
    }

    /// Sets the expiry of a key. Returns whether the key exists.
    pub(crate) fn set_expiry(&mut self, key: &[u8], expires: Option<i64>) -> bool {
        let Some(entry) = self.entries.get_mut(key) else {
            return false;
        };
        let old = std::mem::replace(&mut entry.expires, expires);
        self.remove_deadline(key, old);
        if let Some(expires) = expires {
            self.deadlines.insert((expires, key.to_vec()));
        }
        true
    }

    fn remove_deadline(&mut self, key: &[u8], expires: Option<i64>) {
        if let Some(expires) = expires {
            self.deadlines.remove(&(expires, key.to_vec()));
        }
    }

    /// Returns an expired key, if there is one.
    pub(crate) fn first_over(&self, now_millis: i64) -> Option<Vec<u8>> {
        let (expires, key) = self.deadlines.first()?;
        (*expires < now_millis).then(|| key.clone())
    }

    /// Returns all entries, in the order of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Vec<u8>, &Entry)> {
        self.entries.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
