//! A store in a file of SQLite, for the programs of one machine.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::marker::Process;
use quorlock_core::time::WallMillis;
use quorlock_core::transport::{Cause, TransportError};
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior,
    params,
};

use crate::store::{
    Draft, Key, ReadCall, Snapshot, Stamp, Store, Stored, SweepCall, Version, WriteCall, Written,
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
    connection: Arc<Mutex<Connection>>,
    address: String,
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
CREATE TABLE IF NOT EXISTS quorlock_numbers (
  process INTEGER NOT NULL,
  version INTEGER NOT NULL
);
INSERT INTO quorlock_numbers
  SELECT random() & 4503599627370495, 0 WHERE NOT EXISTS (SELECT 1 FROM quorlock_numbers);
";

    /// Opens a file that has the tables.
    ///
    /// # Errors
    /// If the file is not there, is not a database, or has not the tables ([`SqliteStore::create`] makes them).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TransportError> {
        let store = Self::connect(path.as_ref(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let connection = store.connection.lock();
        stamp(&connection).map_err(failed)?;
        drop(connection);
        Ok(store)
    }

    /// Opens a file, and makes it and the tables if they are not there.
    ///
    /// # Errors
    /// If the file cannot be made, or is not a database.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, TransportError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let store = Self::connect(path.as_ref(), flags)?;
        {
            let mut connection = store.connection.lock();
            // In one transaction: two programs that make the tables at once must agree on the number of the process.
            let change = begin(&mut connection).map_err(failed)?;
            change.execute_batch(Self::SCHEMA).map_err(failed)?;
            change.commit().map_err(failed)?;
        }
        Ok(store)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, TransportError> {
        let address = format!("sqlite:{}", path.display());
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        let durable = connection.pragma_update(None, "synchronous", "FULL");
        durable.map_err(failed)?;
        Ok(SqliteStore {
            connection: Arc::new(Mutex::new(connection)),
            address,
        })
    }

    /// Runs a call on a thread for blocking work.
    fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<T, TransportError>> + Send>> {
        let connection = self.connection.clone();
        Box::pin(async move {
            let task = tokio::task::spawn_blocking(move || call(&mut connection.lock()));
            match task.await {
                Ok(result) => result.map_err(failed),
                Err(_) => Err(TransportError::indeterminate(
                    Cause::Closed,
                    "the runtime has ended",
                )),
            }
        })
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
            // A number that grows with each write of the store: no version comes back, also if a record is deleted.
            change.execute("UPDATE quorlock_numbers SET version = version + 1", [])?;
            let next = "SELECT version FROM quorlock_numbers";
            let next: i64 = change.query_row(next, [], |row| row.get(0))?;
            let until = draft.useful_until.map(|until| until.0);
            let until = until.map(|until| i64::try_from(until).unwrap_or(i64::MAX));
            let changed = match version {
                None => change
                    .prepare("INSERT INTO quorlock VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")?
                    .execute(params![key.as_bytes(), next, draft.record, until])?,
                Some(version) => {
                    // A version that is no number is none of this store.
                    let version = version.to_number().and_then(|it| i64::try_from(it).ok());
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

    fn address(&self) -> &str {
        &self.address
    }
}

fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

fn stamp(connection: &Connection) -> rusqlite::Result<Stamp> {
    let sql = format!("SELECT {NOW}, process FROM quorlock_numbers");
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
            "the file cannot be opened: SqliteStore::create makes it",
        ),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            definite(Cause::NoDatabase, "the file is not a database of SQLite")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => definite(
            Cause::ReadOnly,
            "this user may not write the file or its folder",
        ),
        Some(ErrorCode::DiskFull) => definite(Cause::OutOfMemory, "the disk is full"),
        _ if detail.contains("no such table") => definite(
            Cause::Unsupported,
            "the database has no tables for locks: SqliteStore::create makes them, or the SQL of SqliteStore::SCHEMA",
        ),
        _ => TransportError::indeterminate(Cause::Server, detail),
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SqliteStore").field(&self.address).finish()
    }
}
