//! A store in a table of PostgreSQL.

mod check_in;
mod error;
mod listen;
mod quiet;
mod session;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::time::WallMillis;
use quorlock_core::transport::{Subscription, TransportError};
use tokio_postgres::config::Host;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, NoTls, Row, Socket};

use self::error::failed;
use self::listen::Listening;
use self::session::{Dial, Session, dial};
use crate::address::{self, AddressError};
use crate::columns::{number_of, stored_number, stored_until};
use crate::database::{Phase, check_address, process_of};
use crate::links::Links;
use crate::store::{
    Draft, Key, KeysCall, ReadCall, SetUpCall, Snapshot, Stamp, Store, Stored, SweepCall, Version,
    VersionCall, Watcher, WriteCall, Written,
};

/// The longest text of a notification is 8,000 bytes.
const LONGEST_NOTICE: usize = 7_900;

/// A store in the table `quorlock` of a PostgreSQL database, version 12 or later. Clones are the same store.
///
/// The clock of the server is that of the store. A commit is on the server's disk before it is acknowledged, also where
/// `synchronous_commit` is off by default. The process is made of the server's system identifier and timeline, so a
/// replica that is promoted is another one: with asynchronous replication it may have forgotten claims, and a majority
/// watches it. Waiters are woken by `LISTEN`. A pooler that gives a connection to several clients in turn cannot be used.
///
/// Connections are made when they are needed, at most eight for calls and one for wake-ups, on the tokio runtime in whose context
/// the store is used.
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
}

struct Shared {
    dial: Arc<Dial>,
    address: String,
    links: Links<Session>,
    listening: Arc<Listening>,
}

impl PostgresStore {
    /// The SQL that makes the table, for those who make it by hand.
    pub const SCHEMA: &str = "\
CREATE TABLE IF NOT EXISTS quorlock (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  record bytea NOT NULL,
  useful_until bigint
) WITH (fillfactor = 50);
";

    /// Returns a store at an address such as `postgres://user:password@host/database`, without TLS. Nothing is sent.
    ///
    /// The text is that of the driver's [`Config`]: `options=-csearch_path%3Dlocks` chooses the schema of the table.
    ///
    /// # Errors
    /// If the address is not valid. One that asks for TLS (`sslmode=require`) fails when it is connected to.
    pub fn new(address: &str) -> Result<Self, AddressError> {
        Self::with_tls(address, NoTls)
    }

    /// Returns a store whose connections are encrypted by `tls`, such as the one of `tokio-postgres-rustls`.
    ///
    /// # Errors
    /// If the address is not valid.
    pub fn with_tls<T>(address: &str, tls: T) -> Result<Self, AddressError>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let mut config = parse(address)?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(5));
        }
        // A connection whose server has vanished ends, instead of reporting nothing for hours.
        config.keepalives_idle(Duration::from_secs(10));
        config.tcp_user_timeout(Duration::from_secs(10));
        let address = shown(&config);
        let dial = dial(config, tls);
        let shared = Shared {
            listening: Arc::new(Listening::new(dial.clone())),
            links: Links::new(dial.clone()),
            dial,
            address,
        };
        Ok(PostgresStore {
            shared: Arc::new(shared),
        })
    }

    /// Makes the table if it is not there.
    ///
    /// # Errors
    /// If the server cannot be reached, or the user may not make tables.
    pub async fn create_table(&self) -> Result<(), TransportError> {
        // Two clients that make a table at once: one would fail.
        let sql = format!(
            "SELECT pg_advisory_xact_lock(5772156649);\n{}",
            Self::SCHEMA
        );
        session::execute(&*self.shared.dial, &sql).await
    }

    /// Connects, and checks that the table is there and that the server takes writes.
    ///
    /// # Errors
    /// What the next call would fail with.
    pub async fn check(&self) -> Result<(), TransportError> {
        self.read(&Key::new(Key::MARKER)).await.map(|_| ())
    }
}

impl Store for PostgresStore {
    fn read(&self, key: &Key) -> ReadCall {
        let (shared, key) = (self.shared.clone(), key.clone());
        Box::pin(async move {
            let session = shared.links.session().await?;
            let key = key.as_bytes();
            let named: [&(dyn ToSql + Sync); 1] = [&key];
            let row = session.client.query_one(&session.read, &named).await;
            let row = row.map_err(|e| failed(&e, Phase::Read))?;
            let version: Option<i64> = row.try_get(0).map_err(|e| failed(&e, Phase::Read))?;
            let record: Option<Vec<u8>> = row.try_get(1).map_err(|e| failed(&e, Phase::Read))?;
            let stored = version.zip(record).map(|(version, record)| Stored {
                version: Version::from(version.unsigned_abs()),
                record,
            });
            let stamp = stamp(&row, 2, session.system);
            let stamp = stamp.map_err(|e| failed(&e, Phase::Read))?;
            Ok(Snapshot { stored, stamp })
        })
    }

    fn write_if(&self, key: &Key, version: Option<&Version>, draft: Draft) -> WriteCall {
        let (shared, key) = (self.shared.clone(), key.clone());
        let version = version.map(number_of);
        Box::pin(async move {
            let session = shared.links.session().await?;
            let until = stored_until(&draft);
            let notice = draft.has_news.then(|| notice(&key, &draft.record));
            let bucket = quiet::bucket(&key);
            let (key, record) = (key.as_bytes(), &*draft.record);
            let number = stored_number(draft.number);
            let mut named: Vec<&(dyn ToSql + Sync)> =
                vec![&key, &record, &until, &notice, &bucket, &number];
            let statement = match &version {
                None => &session.insert,
                Some(version) => {
                    named.push(version);
                    &session.update
                }
            };
            let row = session.client.query_opt(statement, &named).await;
            let row = match row {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(Written::Conflict),
                // With another isolation level than the default, the server reports the conflict.
                Err(error) if error::is_conflict(&error) => return Ok(Written::Conflict),
                Err(error) => return Err(failed(&error, Phase::Write)),
            };
            let number: i64 = row.try_get(0).map_err(|e| failed(&e, Phase::Write))?;
            let stamp = stamp(&row, 1, session.system);
            let stamp = stamp.map_err(|e| failed(&e, Phase::Write))?;
            let version = Version::from(number.unsigned_abs());
            Ok(Written::Stored { version, stamp })
        })
    }

    fn watch(&self, key: &Key, watcher: Arc<dyn Watcher>) -> Option<Subscription> {
        Some(self.shared.listening.add(key, watcher))
    }

    fn sweep(&self) -> SweepCall {
        let shared = self.shared.clone();
        Box::pin(async move {
            let session = shared.links.session().await?;
            let swept = session.client.execute(&session.sweep, &[]).await;
            swept.map_err(|e| failed(&e, Phase::Write))
        })
    }

    fn keys(&self, after: Option<&Key>) -> KeysCall {
        let shared = self.shared.clone();
        let after = after.map_or(Vec::new(), |key| key.as_bytes().to_vec());
        Box::pin(async move {
            let session = shared.links.session().await?;
            let rows = session.client.query(&session.keys, &[&after]).await;
            let rows = rows.map_err(|e| failed(&e, Phase::Read))?;
            let keys = rows
                .iter()
                .map(|row| row.try_get(0).map(|key: &[u8]| Key::new(key)));
            let keys = keys.collect::<Result<_, _>>();
            keys.map_err(|e| failed(&e, Phase::Read))
        })
    }

    fn set_up(&self) -> SetUpCall {
        let store = self.clone();
        Box::pin(async move { store.create_table().await })
    }

    fn schema(&self) -> Option<&'static str> {
        Some(Self::SCHEMA)
    }

    fn version(&self) -> VersionCall {
        let shared = self.shared.clone();
        Box::pin(async move {
            let session = shared.links.session().await?;
            let row = session.client.query_one("SHOW server_version", &[]).await;
            let row = row.map_err(|e| failed(&e, Phase::Read))?;
            let version: String = row.try_get(0).map_err(|e| failed(&e, Phase::Read))?;
            Ok(Some(format!("PostgreSQL {version}")))
        })
    }

    fn address(&self) -> &str {
        &self.shared.address
    }
}

fn parse(address: &str) -> Result<Config, AddressError> {
    let wrong = |problem: &str| AddressError::new(address::POSTGRES, problem);
    check_address(
        address,
        &["postgres://", "postgresql://"],
        address::POSTGRES,
    )?;
    let config: Config = address.parse().map_err(|error: tokio_postgres::Error| {
        let why = std::error::Error::source(&error).map(ToString::to_string);
        wrong(&format!("is not valid ({})", why.unwrap_or_default()))
    })?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(wrong("names no host"));
    }
    Ok(config)
}

/// Reads the clock and the timeline from two columns.
fn stamp(row: &Row, at: usize, system: u64) -> Result<Stamp, tokio_postgres::Error> {
    let now: i64 = row.try_get(at)?;
    let timeline: i64 = row.try_get(at + 1)?;
    // The first bits of a system's identifier are a time.
    Ok(Stamp {
        now: Some(WallMillis(now.unsigned_abs())),
        process: process_of(system, timeline.unsigned_abs()),
    })
}

/// Returns the text of a notification: the key, and the record if there is room.
fn notice(key: &Key, record: &[u8]) -> String {
    let mut text = String::new();
    for byte in key.as_bytes() {
        text.push_str(&format!("{byte:02x}"));
    }
    match std::str::from_utf8(record) {
        // A text of the server cannot have a NUL.
        Ok(record) if text.len() + record.len() < LONGEST_NOTICE && !record.contains('\0') => {
            text.push(' ');
            text.push_str(record);
        }
        _ => {}
    }
    text
}

/// Returns the address without secrets.
fn shown(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(at, host)| {
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            #[cfg(unix)]
            Host::Unix(path) => format!("{}:{port}", path.display()),
        }
    });
    let hosts: Vec<_> = hosts.collect();
    let database = config
        .get_dbname()
        .or(config.get_user())
        .unwrap_or_default();
    format!("postgres://{}/{database}", hosts.join(","))
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresStore")
            .field(&self.shared.address)
            .finish()
    }
}
