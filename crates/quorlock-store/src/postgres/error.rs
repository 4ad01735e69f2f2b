//! What an error of the server or the driver means for a call.

use quorlock_core::transport::{Cause, TransportError};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

use crate::database::{Phase, RIGHTS, UNREACHABLE};

const STRANGE: &str = "the table quorlock is another program's, not that of `quorlock init --print ADDRESS`: choose a schema by options=-csearch_path%3DNAME in the address";

pub(super) const REPLICA: &str = "the server is a read-only replica: name the primary, or add target_session_attrs=read-write to the address";

pub(super) const READ_ONLY: &str =
    "the database or the user is read-only (default_transaction_read_only): a lock is written";

/// Returns whether the server has refused a write because of another one.
pub(super) fn is_conflict(error: &Error) -> bool {
    let conflicts = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    error.code().is_some_and(|code| conflicts.contains(code))
}

pub(super) fn failed(error: &Error, phase: Phase) -> TransportError {
    let what = match error.as_db_error() {
        Some(error) => of_server(error),
        None => of_driver(error, phase),
    };
    // A statement that fails with an error is rolled back. What ends the connection may come after the commit.
    let severity = error.as_db_error().map(DbError::severity);
    phase.error(severity == Some("ERROR"), what, text(error))
}

fn of_driver(error: &Error, phase: Phase) -> (Cause, Option<&'static str>) {
    if error.is_closed() {
        return (Cause::Closed, None);
    }
    match phase {
        Phase::Connect if error.to_string().contains("TLS") => (
            Cause::Tls,
            Some(
                "this connection needs TLS, which an address alone does not have: use that of the driver, a tunnel, or sslmode=disable in the address",
            ),
        ),
        Phase::Connect => (Cause::Unreachable, Some(UNREACHABLE)),
        Phase::Read | Phase::Write if error.to_string().contains("column") => {
            (Cause::Unsupported, Some(STRANGE))
        }
        Phase::Read | Phase::Write => (Cause::Closed, None),
    }
}

fn of_server(error: &DbError) -> (Cause, Option<&'static str>) {
    let code = error.code();
    let is = |codes: &[&SqlState]| codes.contains(&code);
    if is(&[
        &SqlState::INVALID_PASSWORD,
        &SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
    ]) {
        let advice = "the server does not accept this user or password: see the address, and pg_hba.conf of the server";
        return (Cause::NoAuth, Some(advice));
    }
    if is(&[&SqlState::UNDEFINED_TABLE]) {
        let advice = "the database has no table for locks: `quorlock init ADDRESS` or the function `init` of a client makes it, or the SQL of `quorlock init --print ADDRESS`";
        return (Cause::Unsupported, Some(advice));
    }
    if is(&[
        &SqlState::DATATYPE_MISMATCH,
        &SqlState::UNDEFINED_COLUMN,
        &SqlState::UNDEFINED_FUNCTION,
    ]) {
        return (Cause::Unsupported, Some(STRANGE));
    }
    // A server in recovery cannot state its timeline, and takes no writes.
    if is(&[&SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE]) {
        return (Cause::ReadOnly, Some(REPLICA));
    }
    if is(&[&SqlState::READ_ONLY_SQL_TRANSACTION]) {
        return (Cause::ReadOnly, Some(READ_ONLY));
    }
    if is(&[&SqlState::INSUFFICIENT_PRIVILEGE]) {
        return (Cause::NoPermission, Some(RIGHTS));
    }
    if is(&[&SqlState::INVALID_CATALOG_NAME]) {
        return (Cause::NoDatabase, Some("the server has no such database"));
    }
    if is(&[&SqlState::TOO_MANY_CONNECTIONS]) {
        let advice = "raise max_connections, a store uses nine";
        return (Cause::TurnedAway, Some(advice));
    }
    if is(&[&SqlState::CANNOT_CONNECT_NOW]) {
        return (Cause::Loading, None);
    }
    if is(&[&SqlState::ADMIN_SHUTDOWN, &SqlState::CRASH_SHUTDOWN]) {
        return (Cause::Closed, None);
    }
    if is(&[&SqlState::DISK_FULL, &SqlState::OUT_OF_MEMORY]) {
        return (Cause::OutOfMemory, None);
    }
    (Cause::Server, None)
}

/// Returns the whole text. The driver's own is only its first part.
fn text(error: &Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(error), _) => format!("{} ({})", error.message(), error.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}
