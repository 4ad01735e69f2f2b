//! A store in a table of MySQL or MariaDB.

mod check_in;
mod error;
mod session;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt;
use mysql_async::{Opts, OptsBuilder, Row, UrlError, Value};
use quorlock_core::time::WallMillis;
use quorlock_core::transport::{Cause, TransportError};

use self::session::{Done, Session};
use crate::address::{self, AddressError};
use crate::columns::{number_of, stored_number, stored_until};
use crate::database::{ENCODE, Phase, check_address, read_only};
use crate::links::Links;
use crate::store::{
    Draft, Key, KeysCall, ReadCall, SetUpCall, Snapshot, Stamp, Store, Stored, SweepCall, Version,
    VersionCall, WriteCall, Written,
};

/// The clock of the server when the statement began, in milliseconds since 1970. No time zone and no step of summer time is in
/// it, and it goes on after 2038.
macro_rules! now {
    () => {
        "TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000"
    };
}
use now;

const READ: &str = concat!(
    "SELECT q.version, q.record, ",
    now!(),
    ", @@global.read_only FROM (SELECT 1 AS one) AS one LEFT JOIN quorlock AS q ON q.`key` = ?"
);

/// A write has no rows to return. What `LAST_INSERT_ID` is given is in the reply that acknowledges it.
const INSERT: &str = concat!(
    "INSERT INTO quorlock (version, record, useful_until, `key`, written) VALUES (?, ?, ?, ?, LAST_INSERT_ID(",
    now!(),
    "))"
);

const UPDATE: &str = concat!(
    "UPDATE quorlock SET version = ?, record = ?, useful_until = ?, written = LAST_INSERT_ID(",
    now!(),
    ") WHERE `key` = ? AND version = ?"
);

/// Locks no rows, where a `DELETE` would wait for each that another transaction has locked.
const USELESS: &str = concat!(
    "SELECT `key` FROM quorlock WHERE useful_until < ",
    now!(),
    " LIMIT 200"
);

const DELETE: &str = concat!(
    "DELETE FROM quorlock WHERE `key` = ? AND useful_until < ",
    now!()
);

/// The keys after one, in the order of their bytes. The empty one is no key of a record.
const KEYS: &str = "SELECT `key` FROM quorlock WHERE `key` > ? ORDER BY `key` LIMIT 1000";

/// A store in the table `quorlock` of a database of MySQL 8 or MariaDB 10.6, or later. Clones are the same store.
///
/// The clock of the server is that of the store. A commit is on the server's disk before it is acknowledged: a server whose
/// settings do not say so is refused. The process is made of a number in the table and of the `server_id`, so a replica that is promoted
/// is another one: with asynchronous replication it may have forgotten claims, and a majority watches it. Waiters of other processes read
/// their records again from time to time. A proxy that sends the statements of one connection to several servers cannot be used.
///
/// Connections are made when they are needed, at most eight, on the tokio runtime in whose context the store is used.
#[derive(Clone)]
pub struct MysqlStore {
    shared: Arc<Shared>,
}

struct Shared {
    options: Opts,
    address: String,
    links: Links<Session>,
}

impl MysqlStore {
    /// The SQL that makes the table, for those who make it by hand. The row whose key is empty tells this store from others.
    pub const SCHEMA: &str = "\
CREATE TABLE IF NOT EXISTS quorlock (
  `key` VARBINARY(512) PRIMARY KEY,
  version BIGINT NOT NULL,
  record LONGBLOB NOT NULL,
  useful_until BIGINT,
  written BIGINT UNSIGNED NOT NULL
) ENGINE=InnoDB;
INSERT IGNORE INTO quorlock
  SELECT '', CONV(LEFT(SHA2(UUID(), 256), 15), 16, 10), '', NULL, 0;
";

    /// Returns a store at an address such as `mysql://user:password@host/database`, without TLS. Nothing is sent.
    ///
    /// With `?socket=/path/of/the/socket`, the connections are made there, and not to the host.
    ///
    /// # Errors
    /// If the address is not valid, or asks for TLS ([`MysqlStore::with_options`]).
    pub fn new(address: &str) -> Result<Self, AddressError> {
        parse(address).map(Self::with_options)
    }

    /// Returns a store with the options of the driver, such as those for TLS, which need a feature of the driver
    /// (`mysql_async/rustls-tls`, and `mysql_async/ring` or `mysql_async/aws-lc-rs`).
    #[must_use]
    pub fn with_options(options: OptsBuilder) -> Self {
        // A row that is written as it was counts as written.
        let options = options.client_found_rows(true);
        let options = Opts::from(options.tcp_keepalive(Some(Duration::from_secs(10))));
        let shared = Shared {
            address: shown(&options),
            links: Links::new(options.clone()),
            options,
        };
        MysqlStore {
            shared: Arc::new(shared),
        }
    }

    /// Makes the table if it is not there.
    ///
    /// # Errors
    /// If the server cannot be reached, or the user may not make tables.
    pub async fn create_table(&self) -> Result<(), TransportError> {
        session::execute(self.shared.options.clone(), Self::SCHEMA).await
    }

    /// Connects, and checks that the table is there and that the server takes writes.
    ///
    /// # Errors
    /// What the next call would fail with.
    pub async fn check(&self) -> Result<(), TransportError> {
        self.read(&Key::new(Key::MARKER)).await.map(|_| ())
    }

    /// Executes a statement. It goes on when its caller has stopped waiting: otherwise each call that takes too long would cost a
    /// connection.
    fn execute(&self, phase: Phase, sql: &'static str, named: Vec<Value>) -> Execute {
        let shared = self.shared.clone();
        Box::pin(async move {
            #[expect(clippy::disallowed_methods, reason = "a call outlives its caller")]
            let task =
                tokio::spawn(async move { session::call(&shared.links, phase, sql, named).await });
            match task.await {
                Ok(done) => done,
                Err(_) => Err(TransportError::indeterminate(
                    Cause::Closed,
                    "the runtime has ended",
                )),
            }
        })
    }
}

type Execute = Pin<Box<dyn Future<Output = Result<Done, TransportError>> + Send>>;

impl Store for MysqlStore {
    fn read(&self, key: &Key) -> ReadCall {
        let read = self.execute(Phase::Read, READ, vec![key.as_bytes().into()]);
        Box::pin(read.map(|done| {
            let done = done?;
            let mut rows = done.rows.into_iter();
            let mut row = rows.next().ok_or_else(error::strange)?;
            if session::is_set(take(&mut row, 3)?) {
                return Err(read_only(error::READ_ONLY));
            }
            let version: Option<i64> = take(&mut row, 0)?;
            let record: Option<Vec<u8>> = take(&mut row, 1)?;
            let stored = version.zip(record).map(|(version, record)| Stored {
                version: Version::from(version.unsigned_abs()),
                record,
            });
            let now = Some(WallMillis(take(&mut row, 2)?));
            let process = done.process;
            Ok(Snapshot {
                stored,
                stamp: Stamp { now, process },
            })
        }))
    }

    fn write_if(&self, key: &Key, version: Option<&Version>, draft: Draft) -> WriteCall {
        let number = stored_number(draft.number);
        let until = stored_until(&draft);
        let mut named = vec![number.into(), draft.record.into(), until.into()];
        named.push(key.as_bytes().into());
        named.extend(version.map(|version| number_of(version).into()));
        let sql = match version {
            None => INSERT,
            Some(_) => UPDATE,
        };
        let write = self.execute(Phase::Write, sql, named);
        Box::pin(write.map(move |done| {
            let done = done?;
            if done.rows_changed == 0 {
                return Ok(Written::Conflict);
            }
            let Some(now) = done.last_id.map(WallMillis) else {
                let detail = "a write was acknowledged without its time";
                return Err(TransportError::indeterminate(Cause::Server, detail));
            };
            Ok(Written::Stored {
                version: Version::from(number.unsigned_abs()),
                stamp: Stamp {
                    now: Some(now),
                    process: done.process,
                },
            })
        }))
    }

    fn sweep(&self) -> SweepCall {
        let store = self.clone();
        Box::pin(async move {
            let mut swept = 0;
            for key in keys_of(store.execute(Phase::Read, USELESS, Vec::new()).await?)? {
                let key = vec![key.as_bytes().into()];
                swept += store.execute(Phase::Write, DELETE, key).await?.rows_changed;
            }
            Ok(swept)
        })
    }

    fn keys(&self, after: Option<&Key>) -> KeysCall {
        let after = after.map_or(&[][..], Key::as_bytes);
        let keys = self.execute(Phase::Read, KEYS, vec![after.into()]);
        Box::pin(keys.map(|done| keys_of(done?)))
    }

    fn set_up(&self) -> SetUpCall {
        let store = self.clone();
        Box::pin(async move { store.create_table().await })
    }

    fn schema(&self) -> Option<&'static str> {
        Some(Self::SCHEMA)
    }

    fn version(&self) -> VersionCall {
        let asked = self.execute(Phase::Read, "SELECT VERSION()", Vec::new());
        Box::pin(asked.map(|done| {
            let mut rows = done?.rows.into_iter();
            let mut row = rows.next().ok_or_else(error::strange)?;
            let version: String = take(&mut row, 0)?;
            let name = if version.contains("MariaDB") {
                ""
            } else {
                "MySQL "
            };
            Ok(Some(format!("{name}{version}")))
        }))
    }

    fn address(&self) -> &str {
        &self.shared.address
    }
}

fn keys_of(done: Done) -> Result<Vec<Key>, TransportError> {
    let rows = done.rows.into_iter();
    let keys = rows.map(|mut row| take::<Vec<u8>>(&mut row, 0).map(Key::new));
    keys.collect()
}

/// Takes the value of a column, which has the type of our table if the table is ours.
fn take<T: mysql_async::prelude::FromValue>(row: &mut Row, at: usize) -> Result<T, TransportError> {
    let value = row.take_opt(at).and_then(Result::ok);
    value.ok_or_else(error::strange)
}

/// Parses an address, and nothing that would mean nothing.
fn parse(address: &str) -> Result<OptsBuilder, AddressError> {
    let wrong = |problem: &str| AddressError::new(address::MYSQL, problem);
    check_address(address, &["mysql://"], address::MYSQL)?;
    let after_scheme = address.trim_start_matches("mysql://");
    let user = after_scheme.split_once('@').map(|(user, _)| user);
    if user.is_some_and(|user| user.contains(['/', '?', '#'])) {
        return Err(wrong(ENCODE));
    }
    let (place, query) = address.split_once('?').unwrap_or((address, ""));
    for parameter in query.split('&').filter(|it| !it.is_empty()) {
        let name = parameter.split('=').next().unwrap_or_default();
        match name {
            "socket" => {}
            "require_ssl" | "verify_ca" | "verify_identity" | "built_in_roots" => {
                return Err(wrong(&format!(
                    "has ?{name}, but a connection by an address alone is not encrypted: use the options of the driver, or a tunnel"
                )));
            }
            _ => return Err(wrong(&format!("has ?{name}, which means nothing here"))),
        }
    }
    let options = Opts::from_url(address).map_err(|error| match error {
        UrlError::Parse(error) => wrong(&format!("is not valid ({error})")),
        _ => wrong("names no host"),
    })?;
    if options.db_name().is_none() {
        return Err(wrong("names no database"));
    }
    if place.matches('/').count() != 3 || address.contains('#') {
        return Err(wrong("has a part after the database"));
    }
    // An address in brackets is one of version 6. As a part of a URL, a name would be looked up by a call that blocks.
    let host = options.ip_or_hostname().trim_matches(['[', ']']).to_owned();
    let options = OptsBuilder::from_opts(options).ip_or_hostname(host);
    // Otherwise the driver leaves the host for a socket that the server names.
    Ok(options.prefer_socket(false))
}

/// Returns the address without secrets.
fn shown(options: &Opts) -> String {
    let host = options.ip_or_hostname();
    let place = match options.socket() {
        Some(socket) => socket.to_owned(),
        None if host.contains(':') => format!("[{host}]:{}", options.tcp_port()),
        None => format!("{host}:{}", options.tcp_port()),
    };
    format!("mysql://{place}/{}", options.db_name().unwrap_or_default())
}

impl fmt::Debug for MysqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MysqlStore")
            .field(&self.shared.address)
            .finish()
    }
}
