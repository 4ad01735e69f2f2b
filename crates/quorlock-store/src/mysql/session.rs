//! Connections to the server.

use std::io;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts, Row, Value};
use quorlock_core::marker::Process;
use quorlock_core::transport::{Cause, TransportError};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::error::{self, failed};
use super::take;
use crate::database::{Phase, accepted, process_of, read_only};
use crate::links::{self, Links};
use crate::sync::atomic::{AtomicBool, Ordering};

/// How long a server may take for one call. After that, it is taken for one that has vanished: the driver
/// would wait for many minutes. A statement waits for a locked row for half of it.
const LONGEST: Duration = Duration::from_secs(10);

/// Names and records are bytes; each statement is a transaction, which reads what is committed, and cuts no value off.
/// `READ COMMITTED` locks no gaps between the keys.
const SETTINGS: &str = "SET NAMES binary; \
    SET SESSION autocommit = 1, sql_mode = 'STRICT_ALL_TABLES', innodb_lock_wait_timeout = 5; \
    SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

/// What a server says about itself and the table. It has written to its disk what it acknowledges if each commit waits for the log of
/// the engine, and for the binary log if there is one, by which a crashed server decides what was committed.
const STATE: &str = "SELECT q.version, @@global.server_id, @@global.read_only, \
    @@global.innodb_flush_log_at_trx_commit IN (1, 3) AND (NOT @@global.log_bin OR @@global.sync_binlog = 1), \
    (SELECT engine FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'quorlock') \
    FROM (SELECT 1 AS one) AS one LEFT JOIN quorlock AS q ON q.`key` = ''";

/// A connection, which executes one call after another.
pub(super) struct Session {
    conn: Mutex<Used>,
    process: Process,
    has_ended: AtomicBool,
}

struct Used {
    conn: Conn,
    /// Whether it has carried a call.
    is_used: bool,
}

/// The result of a statement.
#[derive(Default)]
pub(super) struct Done {
    pub(super) rows: Vec<Row>,
    /// The number of rows that were changed.
    pub(super) rows_changed: u64,
    pub(super) last_id: Option<u64>,
    pub(super) process: Process,
}

impl links::Session for Session {
    type Target = Opts;

    async fn open(options: Opts) -> Result<Session, TransportError> {
        let mut conn = connect(options).await?;
        let row = in_time(conn.query_first::<Row, _>(STATE)).await;
        let row = row.map_err(|error| failed(&error, Phase::Connect))?;
        let mut row = row.ok_or_else(error::strange)?;
        if is_set(take(&mut row, 2)?) {
            return Err(read_only(error::READ_ONLY));
        }
        let unsuitable = |detail, advice| {
            Err(TransportError::definite(Cause::Unsupported, detail).advised(advice))
        };
        if !take::<bool>(&mut row, 3)? {
            return unsuitable("it acknowledges what is not on its disk", error::HASTY);
        }
        let engine: Option<String> = take(&mut row, 4)?;
        if engine.as_deref() != Some("InnoDB") {
            return unsuitable("its table is not one of InnoDB", error::STRANGE);
        }
        let Some(number) = take::<Option<i64>>(&mut row, 0)? else {
            return unsuitable("its table lacks the first row", error::NO_TABLE);
        };
        Ok(Session {
            process: process_of(number.unsigned_abs(), take(&mut row, 1)?),
            conn: Mutex::new(Used {
                conn,
                is_used: false,
            }),
            has_ended: AtomicBool::new(false),
        })
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}

async fn connect(options: Opts) -> Result<Conn, TransportError> {
    let failed = |error: Error| failed(&error, Phase::Connect);
    let connecting = async { Conn::new(options).await.map_err(failed) };
    let mut conn = accepted("MySQL", connecting).await?;
    let set = in_time(conn.query_drop(SETTINGS)).await;
    set.map_err(failed)?;
    Ok(conn)
}

/// Waits for a call, but not for ever.
#[expect(
    clippy::disallowed_methods,
    reason = "the driver has no time-outs, and no caller waits as long as that"
)]
async fn in_time<T>(call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let late = |_| Err(io::Error::from(io::ErrorKind::TimedOut).into());
    timeout(LONGEST, call).await.unwrap_or_else(late)
}

/// Whether a setting is on. Later versions have words for what were numbers.
pub(super) fn is_set(value: Value) -> bool {
    match value {
        Value::Int(number) => number != 0,
        Value::UInt(number) => number != 0,
        Value::Bytes(word) => word != b"0" && word != b"OFF",
        _ => true,
    }
}

/// Executes statements on a connection of their own.
pub(super) async fn execute(options: Opts, sql: &str) -> Result<(), TransportError> {
    let mut conn = connect(options).await?;
    let executed = conn.query_drop(sql).await;
    executed.map_err(|error| failed(&error, Phase::Write))
}

/// Executes a statement.
pub(super) async fn call(
    links: &Links<Session>,
    phase: Phase,
    sql: &'static str,
    named: Vec<Value>,
) -> Result<Done, TransportError> {
    loop {
        let session = links.session().await?;
        let mut used = session.conn.lock().await;
        if links::Session::has_ended(&*session) {
            // The call before has ended it.
            continue;
        }
        let was_used = std::mem::replace(&mut used.is_used, true);
        let conn = &mut used.conn;
        match in_time(conn.exec::<Row, _, _>(sql, named.clone())).await {
            Ok(rows) => {
                return Ok(Done {
                    rows,
                    rows_changed: conn.affected_rows(),
                    last_id: conn.last_insert_id(),
                    process: session.process,
                });
            }
            Err(error) if phase == Phase::Write && error::is_conflict(&error) => {
                return Ok(Done::default());
            }
            Err(error) => {
                let has_ended = error::ends_connection(&error);
                session.has_ended.store(has_ended, Ordering::Relaxed);
                // A server that was started again has closed the connections that were idle, which shows only now. A write
                // may have been executed, so its caller looks for it.
                let may_repeat = was_used && phase == Phase::Read && !error::is_late(&error);
                if !(has_ended && may_repeat) {
                    return Err(failed(&error, phase));
                }
            }
        }
    }
}
