//! A store in znodes of ZooKeeper.

mod error;
mod listen;
mod session;
mod znode;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::join;
use quorlock_core::transport::{Subscription, TransportError};
use zookeeper_client::{Client, CreateMode, Error, MultiWriteError};

use self::error::Failure;
use self::session::{Dial, Link};
use self::znode::{Folder, Found};
use crate::address::{AddressError, ZOOKEEPER};
use crate::cluster::{self, Kind};
use crate::database::Phase;
use crate::numbered;
use crate::store::{
    Draft, Key, KeysCall, ReadCall, Snapshot, Stamp, Store, Stored, Version, Watcher, WriteCall,
    Written,
};

/// How an address is written.
const KIND: Kind = Kind {
    scheme: "zk://",
    form: ZOOKEEPER,
    port: 2181,
};

/// The number of keys of one list.
const PAGE: usize = 1000;

/// A store in znodes of ZooKeeper 3.5 or later, one for each record. Clones are the same store.
///
/// The ensemble executes all writes in one order, and forgets no acknowledged write while a majority of its members keeps its
/// data. It has no clock that clients may read, so dead claims end by what clients have observed, and no record is ever deleted:
/// each name that was ever locked keeps its token counter. Waiters are told of each change by a watch.
///
/// A znode has a version, which is a counter, and begins anew where a znode is deleted and made again, or an old copy of the data
/// returns. So a record has a child beside its data whose name is the number of the last write. A write deletes that child, makes its
/// own, and sets the data, all in one transaction, which fails if the child is not there.
///
/// The process is a number in the znode `/quorlock.id`, which the first client draws. Delete that znode after data were restored from
/// a copy: otherwise a majority does not notice that claims are missing.
///
/// One session carries all calls. A connection is made when it is needed, on the tokio runtime in whose context the store is used. A
/// member that is silent for 3 s is left for another one.
#[derive(Clone)]
pub struct ZookeeperStore {
    shared: Arc<Shared>,
}

struct Shared {
    address: String,
    folder: Folder,
    link: Arc<Link>,
}

impl ZookeeperStore {
    /// Returns a store at an address such as `zk://host` or `zk://user:password@host:port,host:port/prefix`, without TLS. The hosts
    /// are members of one ensemble. The port is 2181, and the znodes are below `/quorlock`, if the address does not say otherwise.
    /// Nothing is sent.
    ///
    /// A user is one of the scheme `digest`. Only this user, with this password, can use the znodes that the store makes then. Without a
    /// user, all clients of the ensemble can.
    ///
    /// # Errors
    /// If the address is not valid.
    pub fn new(address: &str) -> Result<Self, AddressError> {
        let (place, login) = cluster::parse(address, KIND)?;
        let folder = Folder::new(&place.folder, login.is_some());
        let folder = folder.map_err(|problem| AddressError::new(KIND.form, problem))?;
        let dial = Dial {
            members: place.members.join(","),
            login,
            folder: folder.clone(),
        };
        let shared = Shared {
            address: place.shown,
            folder,
            link: Arc::new(Link::new(Arc::new(dial))),
        };
        Ok(ZookeeperStore {
            shared: Arc::new(shared),
        })
    }

    /// Connects, and checks that a majority of the ensemble answers and that the user may read below the prefix.
    ///
    /// # Errors
    /// What the next call would fail with.
    pub async fn check(&self) -> Result<(), TransportError> {
        self.read(&Key::new(Key::MARKER)).await.map(|_| ())
    }

    /// Makes a call, in another session if the present one has ended without it.
    async fn call<T, F>(
        &self,
        phase: Phase,
        send: impl Fn(Client) -> F,
    ) -> Result<(T, Stamp), TransportError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let link = &self.shared.link;
        session::call(link, phase, send).await
    }
}

/// What a write has done.
enum Done {
    Stored,
    Conflict,
}

impl Store for ZookeeperStore {
    fn read(&self, key: &Key) -> ReadCall {
        let (store, path) = (self.clone(), self.shared.folder.path(key));
        Box::pin(async move {
            let read = |client: Client| read(client, path.clone());
            let (found, stamp) = store.call(Phase::Read, read).await?;
            let stored = found.map(|found| Stored {
                version: Version::from(found.number),
                record: found.record,
            });
            Ok(Snapshot { stored, stamp })
        })
    }

    fn write_if(&self, key: &Key, version: Option<&Version>, draft: Draft) -> WriteCall {
        let (store, path) = (self.clone(), self.shared.folder.path(key));
        // A version that is none of this store is one that no record has.
        let before = version.map(|version| version.to_number());
        Box::pin(async move {
            let before = match before {
                Some(None) => return Ok(Written::Conflict),
                Some(number) => number,
                None => None,
            };
            let write = |client: Client| write(client, &store.shared.folder, &path, before, &draft);
            let (done, stamp) = store.call(Phase::Write, write).await?;
            Ok(match done {
                Done::Conflict => Written::Conflict,
                Done::Stored => Written::Stored {
                    version: Version::from(draft.number),
                    stamp,
                },
            })
        })
    }

    fn watch(&self, key: &Key, watcher: Arc<dyn Watcher>) -> Option<Subscription> {
        let path = self.shared.folder.path(key);
        Some(listen::watch(self.shared.link.clone(), path, watcher))
    }

    fn keys(&self, after: Option<&Key>) -> KeysCall {
        let (store, after) = (self.clone(), after.cloned());
        Box::pin(async move {
            let path = &store.shared.folder.path;
            let list = async |client: Client| Ok(client.list_children(path).await?);
            let (names, _) = store.call(Phase::Read, list).await?;
            let mut keys: Vec<Key> = names
                .iter()
                .filter_map(|name| numbered::key(name))
                .collect();
            keys.retain(|key| after.as_ref().is_none_or(|after| after < key));
            keys.sort_unstable();
            keys.truncate(PAGE);
            Ok(keys)
        })
    }

    fn address(&self) -> &str {
        &self.shared.address
    }
}

/// Reads a record from the member of the session, after that has caught up with the leader.
async fn read(client: Client, path: String) -> Result<Option<Found>, Failure> {
    // Both are sent at once. A member executes the requests of a session in their order.
    let (caught_up, read) = join(client.sync(&path), client.get_data(&path)).await;
    caught_up?;
    match read {
        Ok((data, stat)) => Found::parse(&path, data, &stat).map(Some),
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Writes a record in one transaction, if the number of the last write is `before`.
async fn write(
    client: Client,
    folder: &Folder,
    path: &str,
    before: Option<u64>,
    draft: &Draft,
) -> Result<Done, Failure> {
    let data = numbered::data(draft);
    let options = CreateMode::Persistent.with_acls(folder.acls());
    let mut writer = client.new_multi_writer();
    match before {
        None => writer.add_create(path, &data, &options)?,
        Some(before) => writer.add_delete(&znode::mark(path, before), None)?,
    }
    writer.add_create(&znode::mark(path, draft.number), b"", &options)?;
    if before.is_some() {
        writer.add_set_data(path, &data, None)?;
    }
    match writer.commit().await {
        Ok(_) => Ok(Done::Stored),
        Err(MultiWriteError::OperationFailed { source, .. }) => match (before, source) {
            (None, Error::NodeExists) | (Some(_), Error::NoNode) => Ok(Done::Conflict),
            // The folder was deleted.
            (None, Error::NoNode) => Err(Failure::NoFolder),
            (_, error) => Err(Failure::Refused(error)),
        },
        Err(MultiWriteError::RequestFailed { source }) => Err(source.into()),
    }
}

impl fmt::Debug for ZookeeperStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ZookeeperStore")
            .field(&self.shared.address)
            .finish()
    }
}
