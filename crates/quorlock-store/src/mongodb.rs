//! A store in documents of MongoDB.

mod error;
mod place;
mod server;
mod session;

use std::fmt;
use std::sync::Arc;

use ::mongodb::bson::{Binary, Document, doc, spec::BinarySubtype};
use futures_util::TryStreamExt;

use self::error::Failure;
use self::place::Place;
use self::session::{Database, Link, in_time};
use crate::address::AddressError;
use crate::database::Phase;
use crate::numbered;
use crate::store::{
    Draft, Key, KeysCall, ReadCall, Snapshot, Store, Stored, Version, VersionCall, WriteCall,
    Written,
};

/// A store in documents of MongoDB 4.4 or later, one for each record, in the collection `quorlock` of a database. Clones are the same store.
///
/// A write is acknowledged when a majority of the voting members has it in its journal, so a failover forgets no acknowledged write.
/// Each primary has a clock of its own, which may be behind that of the one before. So no clock is asked: dead claims end by what
/// clients have observed, and no record is ever deleted. Waiters read their record again from time to time
/// ([`StoreTransport::poll_every`](crate::StoreTransport::poll_every)).
///
/// The process is a number in the document `quorlock.id` of the collection, which the first client draws and each reads again after a
/// minute. Delete that document after data were restored from a copy: otherwise a majority does not notice that claims are missing.
///
/// Connections are made when they are needed, on the tokio runtime in whose context the store is first used.
#[derive(Clone)]
pub struct MongodbStore {
    shared: Arc<Shared>,
}

struct Shared {
    address: String,
    database: Arc<Database>,
    link: Link,
}

impl MongodbStore {
    /// Returns a store at an address such as `mongodb://user:password@host/database`, with the hosts of one replica set, separated by
    /// commas. The port is 27017, if the address does not say otherwise. Nothing is sent.
    ///
    /// Of the parameters of the driver, those are taken that say how the database is reached: `authSource`, `authMechanism`,
    /// `replicaSet`, `directConnection`, `tls`, `tlsCAFile`, `tlsCertificateKeyFile`, `connectTimeoutMS`, `maxPoolSize` and `appName`.
    ///
    /// # Errors
    /// If the address is not valid.
    pub fn new(address: &str) -> Result<Self, AddressError> {
        let place = Place::parse(address)?;
        let database = Arc::new(Database::new(place.connection, place.database));
        let shared = Shared {
            address: place.shown,
            link: Link::new(database.clone()),
            database,
        };
        Ok(MongodbStore {
            shared: Arc::new(shared),
        })
    }
}

impl Store for MongodbStore {
    fn read(&self, key: &Key) -> ReadCall {
        let (shared, name) = (self.shared.clone(), numbered::name(key));
        Box::pin(async move {
            let stamp = shared.link.session().await?.stamp;
            let stored = in_time(shared.read(&name)).await;
            let stored = stored.map_err(|failure| failure.into_error(Phase::Read))?;
            Ok(Snapshot { stored, stamp })
        })
    }

    fn write_if(&self, key: &Key, version: Option<&Version>, draft: Draft) -> WriteCall {
        let (shared, name) = (self.shared.clone(), numbered::name(key));
        let version = version.map(Version::to_number);
        Box::pin(async move {
            let before = match version {
                // A version that is none of this store is one that no record has.
                Some(None) => return Ok(Written::Conflict),
                Some(number) => number,
                None => None,
            };
            let stamp = shared.link.session().await?.stamp;
            match in_time(shared.write(&name, before, &draft)).await {
                Ok(()) => Ok(Written::Stored {
                    version: Version::from(draft.number),
                    stamp,
                }),
                Err(Failure::Conflict) => Ok(Written::Conflict),
                Err(failure) => Err(failure.into_error(Phase::Write)),
            }
        })
    }

    /// All keys are in one list: the order of the names is not that of the bytes of the keys.
    fn keys(&self, after: Option<&Key>) -> KeysCall {
        let (shared, after) = (self.shared.clone(), after.cloned());
        Box::pin(async move {
            shared.link.session().await?;
            let keys = in_time(shared.keys(after.as_ref())).await;
            keys.map_err(|failure| failure.into_error(Phase::Read))
        })
    }

    fn version(&self) -> VersionCall {
        let shared = self.shared.clone();
        Box::pin(async move {
            let version = in_time(shared.database.version()).await;
            let version = version.map_err(|failure| failure.into_error(Phase::Read))?;
            Ok(Some(version))
        })
    }

    fn address(&self) -> &str {
        &self.shared.address
    }
}

impl Shared {
    async fn read(&self, name: &str) -> Result<Option<Stored>, Failure> {
        let records = self.database.records().await?;
        let found = records.find_one(doc! { "_id": name }).await?;
        found.map(|found| stored(name, &found)).transpose()
    }

    /// Writes a record, if the number of the last write is `before`.
    async fn write(&self, name: &str, before: Option<u64>, draft: &Draft) -> Result<(), Failure> {
        let record = Binary {
            subtype: BinarySubtype::Generic,
            bytes: draft.record.clone(),
        };
        let document =
            doc! { "_id": name, "version": draft.number.cast_signed(), "record": record };
        let records = self.database.records().await?;
        let Some(before) = before else {
            // One that is there has this id, which is a conflict.
            records.insert_one(document).await?;
            return Ok(());
        };
        let unchanged = doc! { "_id": name, "version": before.cast_signed() };
        let done = records.replace_one(unchanged, document).await?;
        match done.matched_count {
            0 => Err(Failure::Conflict),
            _ => Ok(()),
        }
    }

    async fn keys(&self, after: Option<&Key>) -> Result<Vec<Key>, Failure> {
        let records = self.database.records().await?;
        let found = records.find(doc! {}).projection(doc! { "_id": 1 }).await?;
        let found: Vec<Document> = found.try_collect().await?;
        let names = found.iter().filter_map(|found| found.get_str("_id").ok());
        let mut keys: Vec<Key> = names.filter_map(numbered::key).collect();
        keys.retain(|key| after.is_none_or(|after| after < key));
        keys.sort_unstable();
        Ok(keys)
    }
}

fn stored(name: &str, found: &Document) -> Result<Stored, Failure> {
    let strange = |_| Failure::Strange(name.to_owned());
    let version = found.get_i64("version").map_err(strange)?;
    let record = found.get_binary_generic("record").map_err(strange)?;
    Ok(Stored {
        version: Version::from(version.cast_unsigned()),
        record: record.clone(),
    })
}

impl fmt::Debug for MongodbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MongodbStore")
            .field(&self.shared.address)
            .finish()
    }
}
