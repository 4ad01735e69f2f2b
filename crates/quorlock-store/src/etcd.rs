//! A store in keys of etcd.

mod error;
mod listen;
mod meaning;
mod session;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use etcd_client::{
    Compare, CompareOp, ConnectOptions, Error, GetOptions, KvClient, ResponseHeader, Txn, TxnOp,
};
use futures_util::future::FutureExt;
use quorlock_core::transport::{Cause, Execution, Subscription, TransportError};

use self::listen::Listening;
use self::session::{Dial, Link};
use crate::address::{AddressError, ETCD};
use crate::cluster::{self, Kind, Login};
use crate::database::{Phase, process_of};
use crate::store::{
    Draft, Key, KeysCall, ReadCall, Snapshot, Stamp, Store, Stored, Version, Watcher, WriteCall,
    Written,
};

/// How an address is written.
const KIND: Kind = Kind {
    scheme: "etcd://",
    form: ETCD,
    port: 2379,
};

/// The number of keys of one list.
const PAGE: i64 = 1000;

/// A store in keys of etcd 3.4 or later, one for each record. Clones are the same store.
///
/// The cluster executes all calls in one order, and forgets no acknowledged write while a majority of its members keeps its
/// data. It has no clock that clients may read, so dead claims end by what clients have observed, and no record is ever deleted:
/// each name that was ever locked keeps its token counter. Waiters are told of each change by one stream.
///
/// The process is made of the id of the cluster. etcd derives that from the peer addresses of the first members and
/// from `--initial-cluster-token`. So give each cluster of a majority a token of its own, and each cluster that is restored from
/// a snapshot a new one: otherwise it is the same store to a majority, which does not notice that claims are missing.
///
/// A connection is made when it is needed, to the member of the address that answers first, on the tokio runtime in whose context
/// the store is used. A member that does not answer is left for another one.
#[derive(Clone)]
pub struct EtcdStore {
    shared: Arc<Shared>,
}

struct Shared {
    address: String,
    prefix: Vec<u8>,
    link: Arc<Link>,
    listening: Arc<Listening>,
}

impl EtcdStore {
    /// Returns a store at an address such as `etcd://host` or `etcd://user:password@host:port,host:port/prefix`, without
    /// TLS. The hosts are members of one cluster. The port is 2379, and the keys begin with `quorlock/`, if the address
    /// does not say otherwise. Nothing is sent.
    ///
    /// # Errors
    /// If the address is not valid.
    pub fn new(address: &str) -> Result<Self, AddressError> {
        Self::with_options(address, ConnectOptions::new())
    }

    /// Returns a store at an address, with the options of the driver, such as those for TLS, which need a feature of the
    /// driver (`etcd-client/tls`). All connections are under TLS then.
    ///
    /// The store sets the time-out for a connection, the keep-alive, and what happens without a leader and with a token that has ended. A
    /// user of the address takes the place of theirs.
    ///
    /// # Errors
    /// If the address is not valid.
    pub fn with_options(address: &str, options: ConnectOptions) -> Result<Self, AddressError> {
        let (place, login) = cluster::parse(address, KIND)?;
        let prefix = [&*place.folder, b"/"].concat();
        let options = session::fit(options);
        let options = match login {
            Some(Login { user, password }) => options.with_user(user, password),
            None => options,
        };
        let link = Arc::new(Link::new(Arc::new(Dial {
            members: place.members,
            options,
            first_read: [&*prefix, Key::MARKER].concat(),
        })));
        let shared = Shared {
            address: place.shown,
            listening: Arc::new(Listening::new(link.clone(), prefix.clone())),
            prefix,
            link,
        };
        Ok(EtcdStore {
            shared: Arc::new(shared),
        })
    }

    /// Connects, and checks that a majority of the cluster answers and that the user may read below the prefix.
    ///
    /// # Errors
    /// What the next call would fail with.
    pub async fn check(&self) -> Result<(), TransportError> {
        self.read(&Key::new(Key::MARKER)).await.map(|_| ())
    }

    /// Makes a call. It goes on when its caller has stopped waiting, as its outcome may show that the member must be left.
    fn execute<T, F>(
        &self,
        phase: Phase,
        send: impl Fn(KvClient) -> F + Send + Sync + 'static,
    ) -> Execute<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let link = self.shared.link.clone();
        Box::pin(async move {
            #[expect(clippy::disallowed_methods, reason = "a call outlives its caller")]
            let task = tokio::spawn(async move { session::call(&link, phase, send).await });
            match task.await {
                Ok(done) => done,
                Err(_) => Err(TransportError::indeterminate(
                    Cause::Closed,
                    "the runtime has ended",
                )),
            }
        })
    }

    /// Finds out what became of a write that was answered by *database space exceeded*. It was executed before that answer, or never.
    async fn settle(
        &self,
        key: &Key,
        version: Option<&Version>,
        record: &[u8],
        error: TransportError,
    ) -> Result<Written, TransportError> {
        let Ok(Snapshot { stored, stamp }) = self.read(key).await else {
            return Err(error);
        };
        match stored {
            Some(stored) if stored.record == record => Ok(Written::Stored {
                version: stored.version,
                stamp,
            }),
            stored if stored.as_ref().map(|stored| &stored.version) == version => {
                Err(error.with_execution(Execution::Definite))
            }
            // Another client has written since.
            _ => Err(error),
        }
    }

    /// Returns the key of a record as etcd has it.
    fn name(&self, key: &Key) -> Vec<u8> {
        [&*self.shared.prefix, key.as_bytes()].concat()
    }
}

type Execute<T> = Pin<Box<dyn Future<Output = Result<T, TransportError>> + Send>>;

impl Store for EtcdStore {
    fn read(&self, key: &Key) -> ReadCall {
        let name = self.name(key);
        // A read of etcd is linearizable unless it asks for less.
        let read = self.execute(Phase::Read, move |mut kv| {
            let name = name.clone();
            async move { kv.get(name, None).await }
        });
        Box::pin(read.map(|found| {
            let mut found = found?;
            let stamp = stamp(found.header())?;
            let stored = found.take_kvs().into_iter().next().map(|found| {
                let revision = found.mod_revision();
                let (_, record) = found.into_key_value();
                let version = version_of(revision, &record);
                Stored { record, version }
            });
            Ok(Snapshot { stored, stamp })
        }))
    }

    fn write_if(&self, key: &Key, version: Option<&Version>, draft: Draft) -> WriteCall {
        let (store, key, version) = (self.clone(), key.clone(), version.cloned());
        let name = self.name(&key);
        let record = draft.record;
        let put = TxnOp::put(&*name, &*record, None);
        let write = Txn::new()
            .when(is_still(&name, version.as_ref()))
            .and_then([put]);
        let write = self.execute(Phase::Write, move |mut kv| {
            let write = write.clone();
            async move { kv.txn(write).await }
        });
        Box::pin(async move {
            let done = match write.await {
                Ok(done) => done,
                Err(error) if error.cause == Cause::OutOfMemory => {
                    return store.settle(&key, version.as_ref(), &record, error).await;
                }
                Err(error) => return Err(error),
            };
            if !done.succeeded() {
                return Ok(Written::Conflict);
            }
            let revision = done.header().map_or(0, ResponseHeader::revision);
            Ok(Written::Stored {
                version: version_of(revision, &record),
                stamp: stamp(done.header())?,
            })
        })
    }

    fn watch(&self, key: &Key, watcher: Arc<dyn Watcher>) -> Option<Subscription> {
        Some(self.shared.listening.add(key, watcher))
    }

    fn keys(&self, after: Option<&Key>) -> KeysCall {
        let prefix = &self.shared.prefix;
        let after = after.map_or(&[][..], Key::as_bytes);
        // The first key that is greater. The prefix itself is no key of a record.
        let from = [&**prefix, after, b"\0"].concat();
        let end = end_of(prefix);
        let keys = self.execute(Phase::Read, move |mut kv| {
            let options = GetOptions::new().with_range(&*end).with_limit(PAGE);
            let (from, options) = (from.clone(), options.with_keys_only());
            async move { kv.get(from, Some(options)).await }
        });
        let length = prefix.len();
        Box::pin(keys.map(move |found| {
            let found = found?;
            let keys = found.kvs().iter();
            let keys = keys.filter_map(|found| found.key().get(length..));
            Ok(keys.map(Key::new).collect())
        }))
    }

    fn address(&self) -> &str {
        &self.shared.address
    }
}

/// Returns the version of a record: the revision of its write, and its text.
///
/// The text has the number that its writer has drawn. The revision alone is a counter of the store: where a snapshot is restored, B
/// would remember a free record by the revision that A's claim has then, and overwrite the claim. The text alone would do for
/// records of locks, but it would come back with a text that has no such number.
fn version_of(revision: i64, record: &[u8]) -> Version {
    Version::new([&revision.to_be_bytes(), record].concat())
}

/// Returns what a conditional write asks for.
fn is_still(name: &[u8], version: Option<&Version>) -> Vec<Compare> {
    let Some(version) = version else {
        return vec![Compare::create_revision(name, CompareOp::Equal, 0)];
    };
    let parts = version.as_bytes().split_first_chunk();
    // A version that is none of this store is one that no record has.
    let (revision, record) = parts.map_or((-1, &[][..]), |(revision, record)| {
        (i64::from_be_bytes(*revision), record)
    });
    vec![
        Compare::mod_revision(name, CompareOp::Equal, revision),
        Compare::value(name, CompareOp::Equal, record),
    ]
}

/// Returns the first key after all that begin with a prefix, which ends with a slash.
fn end_of(prefix: &[u8]) -> Vec<u8> {
    let folder = prefix.strip_suffix(b"/").unwrap_or(prefix);
    [folder, &[b'/' + 1]].concat()
}

fn stamp(header: Option<&ResponseHeader>) -> Result<Stamp, TransportError> {
    let header = header.ok_or_else(|| {
        TransportError::indeterminate(
            Cause::Protocol,
            "a reply does not say of which cluster it is",
        )
    })?;
    Ok(Stamp {
        now: None,
        process: process_of(header.cluster_id(), 0),
    })
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EtcdStore")
            .field(&self.shared.address)
            .finish()
    }
}
