//! A store with conditional writes.

use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use quorlock_core::marker::Process;
use quorlock_core::node::record::{Record, RecordError};
use quorlock_core::time::WallMillis;
use quorlock_core::transport::{Cause, Subscription, TransportError};

/// A read under way.
pub type ReadCall = Pin<Box<dyn Future<Output = Result<Snapshot, TransportError>> + Send>>;

/// A write under way.
pub type WriteCall = Pin<Box<dyn Future<Output = Result<Written, TransportError>> + Send>>;

/// A sweep under way. Its result is the number of records that it has deleted.
pub type SweepCall = Pin<Box<dyn Future<Output = Result<u64, TransportError>> + Send>>;

/// A list of keys under way.
pub type KeysCall = Pin<Box<dyn Future<Output = Result<Vec<Key>, TransportError>> + Send>>;

/// The making of a table under way.
pub type SetUpCall = Pin<Box<dyn Future<Output = Result<(), TransportError>> + Send>>;

/// The question for a version under way.
pub type VersionCall = Pin<Box<dyn Future<Output = Result<Option<String>, TransportError>> + Send>>;

/// A store with conditional writes: a table, a collection, a tree of keys, a bucket.
///
/// Exclusion rests on one property: **of several writes that name the same version of a key, the store executes at most
/// one.** [`conformance::check`](crate::conformance::check) tests it.
///
/// Each call may be sent when it is made or when it is first polled, and dropping it does not cancel it. The transport
/// stops waiting for it after half of its call time-out. A failure is a [`TransportError`]: *definite* if the store did
/// not execute the call and never will, otherwise *indeterminate*.
pub trait Store: Send + Sync + fmt::Debug + 'static {
    /// Reads the record of a key.
    ///
    /// The snapshot is not older than the call: it contains every write that was acknowledged before the call began. A
    /// store that reads from replicas breaks exclusion.
    fn read(&self, key: &Key) -> ReadCall;

    /// Stores a record if the key still has this version; `None` if there must be no record.
    fn write_if(&self, key: &Key, version: Option<&Version>, draft: Draft) -> WriteCall;

    /// Reports each change of the record of a key to `watcher`, until the subscription is dropped. Returns at once.
    ///
    /// Several changes may be reported as one. [`Watcher::live`] is called when changes begin to be reported, and again
    /// after every gap.
    ///
    /// `None`, which is the default, is for a store that cannot notify its clients. The transport then reads the record
    /// again from time to time ([`StoreTransport::poll_every`](crate::StoreTransport::poll_every)).
    fn watch(&self, key: &Key, watcher: Arc<dyn Watcher>) -> Option<Subscription> {
        let _ = (key, watcher);
        None
    }

    /// Deletes some of the records whose [`Draft::useful_until`] is over by the clock of the store. Called from time to
    /// time. The default deletes nothing.
    fn sweep(&self) -> SweepCall {
        Box::pin(ready(Ok(0)))
    }

    /// Returns the keys of some records, in the order of their bytes, beginning after `after`, or with the first key for
    /// `None`. There are none if the list is empty.
    ///
    /// Only operators ask for it, to list what is locked. The default is for a store that cannot list its keys.
    fn keys(&self, after: Option<&Key>) -> KeysCall {
        let _ = after;
        let detail = "this store does not list its records: name what to inspect";
        Box::pin(ready(Err(TransportError::definite(
            Cause::Unsupported,
            detail,
        ))))
    }

    /// Makes what the store needs before it is used, such as a table, if it is not there. The default makes nothing.
    fn set_up(&self) -> SetUpCall {
        Box::pin(ready(Ok(())))
    }

    /// Returns the SQL that [`Store::set_up`] executes; `None` if there is none.
    fn schema(&self) -> Option<&'static str> {
        None
    }

    /// Returns the version of the server, in its own words. Only operators ask for it. The default is for a store that does
    /// not tell.
    fn version(&self) -> VersionCall {
        Box::pin(ready(Ok(None)))
    }

    /// Returns the address of the store, without secrets. It is used for the canonical order, errors and logs.
    fn address(&self) -> &str;
}

/// A shared store.
impl<S: Store + ?Sized> Store for Arc<S> {
    fn read(&self, key: &Key) -> ReadCall {
        S::read(self, key)
    }

    fn write_if(&self, key: &Key, version: Option<&Version>, draft: Draft) -> WriteCall {
        S::write_if(self, key, version, draft)
    }

    fn watch(&self, key: &Key, watcher: Arc<dyn Watcher>) -> Option<Subscription> {
        S::watch(self, key, watcher)
    }

    fn sweep(&self) -> SweepCall {
        S::sweep(self)
    }

    fn keys(&self, after: Option<&Key>) -> KeysCall {
        S::keys(self, after)
    }

    fn set_up(&self) -> SetUpCall {
        S::set_up(self)
    }

    fn schema(&self) -> Option<&'static str> {
        S::schema(self)
    }

    fn version(&self) -> VersionCall {
        S::version(self)
    }

    fn address(&self) -> &str {
        S::address(self)
    }
}

/// Receives the changes of a record. Its methods must not block.
pub trait Watcher: Send + Sync + 'static {
    /// Called when changes begin to be reported. Earlier ones may have been missed.
    fn live(&self);

    /// Called with the record after a change; `None` if it was deleted, or if the store does not tell what it is. It is then read.
    fn changed(&self, record: Option<&[u8]>);
}

/// The key of a record: 1 to 512 bytes, none of them zero.
///
/// It is the [stem](quorlock_core::name::Name::stem) of the names that the record is about, or [`Key::MARKER`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<[u8]>);

impl Key {
    /// The bytes of the key of the marker. They cannot be locked as a name.
    pub const MARKER: &[u8] = b"quorlock_marker";

    /// Returns the key with these bytes.
    #[must_use]
    pub fn new(bytes: impl AsRef<[u8]>) -> Self {
        Key(bytes.as_ref().into())
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

/// The version of a record, as the store states it. No two records that a key ever has share one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Version(Vec<u8>);

impl Version {
    /// Returns the version with these bytes, which only the store interprets.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Version(bytes.into())
    }

    /// Returns the bytes that the store has given.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the number that the version was made of; `None` if it was made of something else.
    #[must_use]
    pub fn to_number(&self) -> Option<u64> {
        Some(u64::from_be_bytes(self.0.as_slice().try_into().ok()?))
    }
}

impl From<u64> for Version {
    fn from(number: u64) -> Self {
        Version::new(number.to_be_bytes())
    }
}

/// What a write stores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Draft {
    /// The record. It is ASCII text, see the page "Records in a store".
    pub record: Vec<u8>,
    /// The number of this write, which its writer has drawn at random. A store that gives its records no versions takes it as
    /// the version. A counter in the store would go back where a replica without the last writes takes over, or an old copy
    /// is restored: B would remember a free record by the version that A's claim has then, and overwrite the claim.
    pub number: u64,
    /// Whether the record has messages that the one before had not. A store with a clock may leave other changes unreported:
    /// no client waits for them. Without a clock, clients must know since when they have known a record.
    pub has_news: bool,
    /// When the record is of no more use and may be deleted, by the clock of the store; `None` for never, and on a store
    /// without a clock.
    pub useful_until: Option<WallMillis>,
}

/// The result of a read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The record, if there is one.
    pub stored: Option<Stored>,
    /// Who answered, and when.
    pub stamp: Stamp,
}

/// Which server executed a call, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// The time of the store's own clock, which is the same for all its clients, while it executed the call. `None` for a
    /// store without such a clock: the clock of a client must not take its place.
    pub now: Option<WallMillis>,
    /// The process that executed the call. A store that never forgets an acknowledged write is one process for ever. A
    /// store that may forget writes when another server takes over is another process from then on. A number below 2^52
    /// that no other store has: two stores of a majority with the same number are one store.
    pub process: Process,
}

/// A record and its version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The record, byte for byte as it was written.
    pub record: Vec<u8>,
    /// Its version.
    pub version: Version,
}

/// The result of a write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Written {
    /// The record is stored.
    Stored {
        /// Its version.
        version: Version,
        /// Who stored it, and when.
        stamp: Stamp,
    },
    /// The key has another version, so nothing was stored.
    Conflict,
}

/// Reads a record, and the number of its write.
pub(crate) fn decode(key: &Key, record: &[u8]) -> Result<(Record, u64), TransportError> {
    Record::decode(record).map_err(|error| {
        let cause = match error {
            RecordError::Newer { .. } => Cause::Unsupported,
            _ => Cause::WrongType,
        };
        TransportError::definite(cause, format!("{key:?}: {error}"))
    })
}
