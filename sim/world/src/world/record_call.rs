//! Calls of stores, and their results.

use quorlock_store::{CheckInError, Claims, Draft, Key, Snapshot, Version, Written};

/// A call of a store.
#[derive(Debug)]
pub enum RecordCall {
    /// Read the record of a key.
    Read(Key),
    /// Write a record if its key still has a version; `None` if there must be no record.
    Write {
        /// The key.
        key: Key,
        /// The version that the record must have.
        version: Option<Version>,
        /// What is written.
        draft: Draft,
    },
    /// Write a record of a user in a transaction that checks the claims of a lock, if it has any to check.
    Commit {
        /// The key.
        key: Key,
        /// The claims; `None` for a transaction that checks nothing.
        claims: Option<Claims>,
        /// What is written.
        record: Vec<u8>,
    },
}

impl RecordCall {
    /// Returns the key of the record.
    pub fn key(&self) -> &Key {
        match self {
            RecordCall::Read(key)
            | RecordCall::Write { key, .. }
            | RecordCall::Commit { key, .. } => key,
        }
    }
}

/// The result of a call of a store.
#[derive(Debug)]
pub enum Found {
    /// The result of a read.
    Snapshot(Snapshot),
    /// The result of a write.
    Written(Written),
    /// The result of a transaction.
    Committed(Result<(), CheckInError>),
}
