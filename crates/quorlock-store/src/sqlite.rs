//! A store in a file of SQLite, for the programs of one machine.

mod check_in;

use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::marker::Process;
use quorlock_core::time::WallMillis;
use quorlock_core::transport::{Cause, TransportError};
use rusqlite::{
    Connection, ErrorCode, MAIN_DB, OpenFlags, OptionalExtension, Row, Transaction,
    TransactionBehavior, params,
};

use crate::address::{self, AddressError};
use crate::columns::{number_of, stored_number, stored_until};
use crate::store::{
    Draft, Key, KeysCall, ReadCall, SetUpCall, Snapshot, Stamp, Store, Stored, SweepCall, Version,
    VersionCall, WriteCall, Written,
};
use crate::sync::Mutex;

/// How long a call waits for a write of another program.
const BUSY: Duration = Duration::from_millis(500);

/// The clock of the machine, in milliseconds since 1970.
const NOW: &str = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";

/// A store in a file of SQLite. Clones are the same store.
///
/// The programs that lock by it run on one machine: the clock of the machine is that of the store, and the file systems of
/// networks do not keep the promises of SQLite. A commit is on the disk before it is acknowledged, so a restart of the
/// machine loses no claim. A copy of the file is the same store to a majority, and must not be used as another one.
///
/// Calls run on the threads that tokio keeps for blocking work. Waiters of other processes read their records again from
/// time to time.
#[derive(Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    address: String,
    /// The connection, once a call has opened the file.
    connection: Mutex<Option<Connection>>,
}

impl SqliteStore {
    /// The SQL that makes the tables, for those who make them by hand.
    pub const SCHEMA: &str = "\
CREATE TABLE IF NOT EXISTS quorlock (
  key BLOB PRIMARY KEY,
  version INTEGER NOT NULL,
  record BLOB NOT NULL,
  useful_until INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS quorlock_process (
  number INTEGER NOT NULL
);
INSERT INTO quorlock_process
  SELECT random() & 4503599627370495 WHERE NOT EXISTS (SELECT 1 FROM quorlock_process);
";

    /// Opens a file that has the tables.
    ///
    /// # Errors
    /// If the file is not there, is not a database, or has not the tables ([`SqliteStore::create`] makes them).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TransportError> {
        let store = Self::at(path.as_ref())?;
        store.shared.with(|connection| stamp(connection))?;
        Ok(store)
    }

    /// Opens a file, and makes it and the tables if they are not there.
    ///
    /// # Errors
    /// If the file cannot be made, or is not a database.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, TransportError> {
        let store = Self::at(path.as_ref())?;
        store.shared.create()?;
        Ok(store)
    }

    /// Returns the store at an address: `sqlite:/path/of/the/file`. The file is opened by the first call.
    ///
    /// # Errors
    /// If the address is not valid.
    pub(crate) fn at_address(address: &str) -> Result<Self, AddressError> {
        let wrong = |problem: &str| AddressError::new(address::SQLITE, problem);
        let path = address.split_once(':').map_or("", |(_, path)| path);
        let path = path.strip_prefix("//").unwrap_or(path);
        if let Some(at) = path.find(['?', '#']) {
            let name = path.get(at..).unwrap_or_default();
            let name = name.split(['=', '&']).next().unwrap_or_default();
            return Err(wrong(&format!("has {name}, which means nothing here")));
        }
        if path == ":memory:" {
            return Err(wrong(
                "names no file: a lock in memory has no address, but an embedded node",
            ));
        }
        if path.is_empty() || path.contains('\0') {
            return Err(wrong("names no file"));
        }
        Self::at(Path::new(path)).map_err(|error| wrong(&error.detail))
    }

    fn at(path: &Path) -> Result<Self, TransportError> {
        // All clients must agree on the order of addresses, also those that were started in another folder.
        let path = std::path::absolute(path);
        let path = path.map_err(|e| TransportError::definite(Cause::NoDatabase, e.to_string()))?;
        let shared = Shared {
            address: format!("sqlite:{}", path.display()),
            path,
            connection: Mutex::default(),
        };
        Ok(SqliteStore {
            shared: Arc::new(shared),
        })
    }

    /// Runs a call on a thread for blocking work.
    fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Run<T> {
        self.block(move |shared| shared.with(call))
    }

    fn block<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Shared) -> Result<T, TransportError> + Send + 'static,
    ) -> Run<T> {
        let shared = self.shared.clone();
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || call(&shared)).await {
                Ok(result) => result,
                Err(_) => Err(TransportError::indeterminate(
                    Cause::Closed,
                    "the runtime has ended",
                )),
            }
        })
    }
}

type Run<T> = Pin<Box<dyn Future<Output = Result<T, TransportError>> + Send>>;

impl Shared {
    /// Runs a call on the connection.
    fn with<T>(
        &self,
        call: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, TransportError> {
        let mut place = self.connection.lock();
        let connection = match &mut *place {
            Some(connection) => connection,
            none => none.insert(self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?),
        };
        let result = call(connection).map_err(failed);
        if result.as_ref().is_err_and(|e| e.cause == Cause::ReadOnly) {
            // Another file may have this path now, or this user more rights.
            *place = None;
        }
        result
    }

    fn connect(&self, flags: OpenFlags) -> Result<Connection, TransportError> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        let durable = connection.pragma_update(None, "synchronous", "FULL");
        durable.map_err(failed)?;
        // SQLite opens a file that must not be written for reading, without a word.
        match connection.is_readonly(MAIN_DB).map_err(failed)? {
            true => Err(TransportError::definite(
                Cause::NoPermission,
                "it was opened for reading alone",
            )
            .advised(READ_ONLY)),
            false => Ok(connection),
        }
    }

    /// Makes the file and the tables, and uses them from now on.
    fn create(&self) -> Result<(), TransportError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut connection = self.connect(flags)?;
        // In one transaction: two programs that make the tables at once must agree on the number of the process.
        let change = begin(&mut connection).map_err(failed)?;
        change.execute_batch(SqliteStore::SCHEMA).map_err(failed)?;
        change.commit().map_err(failed)?;
        stamp(&connection).map_err(failed)?;
        *self.connection.lock() = Some(connection);
        Ok(())
    }
}

impl Store for SqliteStore {
    fn read(&self, key: &Key) -> ReadCall {
        let key = key.clone();
        self.run(move |connection| {
            // One transaction: the record and the process are of one moment.
            let change = connection.transaction()?;
            let mut find = change.prepare("SELECT version, record FROM quorlock WHERE key = ?1")?;
            let stored = find.query_row([key.as_bytes()], |row| {
                Ok(Stored {
                    version: Version::from(number(row, 0)?),
                    record: row.get(1)?,
                })
            });
            let stored = stored.optional()?;
            drop(find);
            let stamp = stamp(&change)?;
            Ok(Snapshot { stored, stamp })
        })
    }

    fn write_if(&self, key: &Key, version: Option<&Version>, draft: Draft) -> WriteCall {
        let (key, version) = (key.clone(), version.cloned());
        self.run(move |connection| {
            let change = begin(connection)?;
            let next = stored_number(draft.number);
            let until = stored_until(&draft);
            let changed = match version {
                None => change
                    .prepare("INSERT INTO quorlock VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")?
                    .execute(params![key.as_bytes(), next, draft.record, until])?,
                Some(version) => {
                    let version = number_of(&version);
                    change
                        .prepare(
                            "UPDATE quorlock SET version = ?2, record = ?3, useful_until = ?4 \
                             WHERE key = ?1 AND version = ?5",
                        )?
                        .execute(params![key.as_bytes(), next, draft.record, until, version])?
                }
            };
            if changed == 0 {
                return Ok(Written::Conflict);
            }
            let stamp = stamp(&change)?;
            change.commit()?;
            let version = Version::from(next.unsigned_abs());
            Ok(Written::Stored { version, stamp })
        })
    }

    fn sweep(&self) -> SweepCall {
        self.run(|connection| {
            let sweep = format!("DELETE FROM quorlock WHERE useful_until < {NOW}");
            let deleted = connection.execute(&sweep, [])?;
            Ok(u64::try_from(deleted).unwrap_or(u64::MAX))
        })
    }

    fn keys(&self, after: Option<&Key>) -> KeysCall {
        let after = after.map_or(Vec::new(), |key| key.as_bytes().to_vec());
        self.run(move |connection| {
            let mut find = connection
                .prepare("SELECT key FROM quorlock WHERE key > ?1 ORDER BY key LIMIT 1000")?;
            let keys =
                find.query_map([after], |row| row.get(0).map(|key: Vec<u8>| Key::new(key)))?;
            keys.collect()
        })
    }

    fn set_up(&self) -> SetUpCall {
        self.block(Shared::create)
    }

    fn schema(&self) -> Option<&'static str> {
        Some(Self::SCHEMA)
    }

    fn version(&self) -> VersionCall {
        let version = format!("SQLite {}", rusqlite::version());
        Box::pin(std::future::ready(Ok(Some(version))))
    }

    fn address(&self) -> &str {
        &self.shared.address
    }
}

fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

fn stamp(connection: &Connection) -> rusqlite::Result<Stamp> {
    let sql = format!("SELECT {NOW}, number FROM quorlock_process");
    connection.prepare(&sql)?.query_row([], |row| {
        Ok(Stamp {
            now: Some(WallMillis(number(row, 0)?)),
            process: Process(number(row, 1)?),
        })
    })
}

/// Reads a number, which is not negative.
fn number(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(at)?.unsigned_abs())
}

const READ_ONLY: &str = "the file or its folder cannot be written by this user";

const STRANGE: &str = "the table quorlock is another program's, not that of `quorlock init --print ADDRESS`: choose another file";

/// A statement that fails is rolled back with its transaction. Only a failure of the disk leaves open what is on it.
fn failed(error: rusqlite::Error) -> TransportError {
    let detail = error.to_string();
    let definite = |cause, advice| TransportError::definite(cause, &*detail).advised(advice);
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => definite(
            Cause::Busy,
            "another program has held the database for too long",
        ),
        Some(ErrorCode::CannotOpen) => definite(
            Cause::NoDatabase,
            "the file cannot be opened: `quorlock init ADDRESS` or the function `init` of a client makes it, in a folder that is there",
        ),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            definite(Cause::NoDatabase, "the file is not a database of SQLite")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            definite(Cause::ReadOnly, READ_ONLY)
        }
        Some(ErrorCode::DiskFull) => definite(Cause::OutOfMemory, "the disk is full"),
        _ if detail.contains("no such table") => definite(
            Cause::Unsupported,
            "the database has no tables for locks: `quorlock init ADDRESS` or the function `init` of a client makes them, or the SQL of `quorlock init --print ADDRESS`",
        ),
        // What is read has another type, a column is missing, or there are more.
        None => definite(Cause::Unsupported, STRANGE),
        _ if detail.contains("column") => definite(Cause::Unsupported, STRANGE),
        _ => TransportError::indeterminate(Cause::Server, detail),
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SqliteStore")
            .field(&self.shared.address)
            .finish()
    }
}
