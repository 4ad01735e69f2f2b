//! What an error of the server or the driver means for a call.

use std::io;

use mysql_async::{DriverError, Error, IoError, ServerError};
use quorlock_core::transport::{Cause, TransportError};

use crate::database::{Phase, RIGHTS, UNREACHABLE};

pub(super) const NO_TABLE: &str = "the database has no table for locks: `quorlock init ADDRESS` or the function `init` of a client makes it, or the SQL of `quorlock init --print ADDRESS`";

pub(super) const STRANGE: &str = "the table quorlock is another program's, not that of `quorlock init --print ADDRESS`: choose another database";

pub(super) const READ_ONLY: &str = "the server is a replica or set to read_only: name the primary";

pub(super) const HASTY: &str = "a crash would lose claims: set innodb_flush_log_at_trx_commit and, with a binary log, sync_binlog to 1";

const CERTIFICATE: &str =
    "the client was not told to trust the certificate of the server, or it is for another host";

/// Returns the error of a table that is not ours.
pub(super) fn strange() -> TransportError {
    TransportError::definite(Cause::Unsupported, "its columns have other types").advised(STRANGE)
}

/// Returns whether a call got no reply in its time.
pub(super) fn is_late(error: &Error) -> bool {
    matches!(error, Error::Io(IoError::Io(error)) if error.kind() == io::ErrorKind::TimedOut)
}

/// Returns whether the server has refused a write because of another one: the record is there already, there is a deadlock, or the row is
/// another one than the transaction has read.
pub(super) fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::Server(error) if matches!(error.code, 1020 | 1062 | 1213))
}

/// Returns whether the connection carries no more calls.
pub(super) fn ends_connection(error: &Error) -> bool {
    match error {
        Error::Server(error) => of_server(error).is_some_and(|(cause, _)| cause == Cause::Closed),
        _ => true,
    }
}

pub(super) fn failed(error: &Error, phase: Phase) -> TransportError {
    let (detail, known) = match error {
        Error::Server(error) => {
            let text = format!("{} ({})", error.message, error.code);
            (text, of_server(error))
        }
        _ => (error.to_string(), Some(of_driver(error, phase))),
    };
    // The statement of an error that is known was refused. Others may come after the commit.
    let is_refused = known.is_some_and(|(cause, _)| cause != Cause::Closed);
    phase.error(is_refused, known.unwrap_or((Cause::Server, None)), detail)
}

fn of_driver(error: &Error, phase: Phase) -> (Cause, Option<&'static str>) {
    match (error, phase) {
        (Error::Driver(DriverError::NoClientSslFlagFromServer), _) => (Cause::Tls, None),
        (Error::Driver(DriverError::UnknownAuthPlugin { .. }), _) => (Cause::NoAuth, None),
        (Error::Io(IoError::Io(error)), Phase::Connect)
            if error.kind() == io::ErrorKind::InvalidData =>
        {
            (Cause::Tls, Some(CERTIFICATE))
        }
        (Error::Io(_), Phase::Connect) => (Cause::Unreachable, Some(UNREACHABLE)),
        _ => (Cause::Closed, None),
    }
}

/// Returns what an error means, if it is known.
fn of_server(error: &ServerError) -> Option<(Cause, Option<&'static str>)> {
    let cause = match error.code {
        // The user, the password, the client's host, an account that is locked.
        1045 | 1130 | 1698 | 1820 | 1862 | 3118 | 4151 => (
            Cause::NoAuth,
            Some(
                "the server does not accept this user or password from this host, or under TLS alone: see the address, and the users of the server",
            ),
        ),
        1044 | 1142 | 1143 | 1227 | 1370 => (Cause::NoPermission, Some(RIGHTS)),
        1049 => (Cause::NoDatabase, Some("the server has no such database")),
        1146 => (Cause::Unsupported, Some(NO_TABLE)),
        // A column is missing, has another type, or there are more.
        1048 | 1054 | 1136 | 1264 | 1265 | 1364 | 1366 | 1406 => {
            (Cause::Unsupported, Some(STRANGE))
        }
        1665 => (
            Cause::Unsupported,
            Some("set binlog_format to ROW or MIXED"),
        ),
        1290 | 1792 | 1836 => (Cause::ReadOnly, Some(READ_ONLY)),
        1040 | 1203 | 1226 => (
            Cause::TurnedAway,
            Some("raise max_connections, a store uses eight"),
        ),
        1205 => (
            Cause::Busy,
            Some("another transaction has locked the record for too long"),
        ),
        1021 | 1041 | 1114 => (Cause::OutOfMemory, None),
        3159 => (
            Cause::Tls,
            Some(
                "this connection needs TLS, which an address alone does not have: use the options of the driver, or a tunnel",
            ),
        ),
        // The server ends, or has ended the connection.
        1053 | 1077 | 1079 | 1080 | 1927 | 4031 => (Cause::Closed, None),
        _ => return None,
    };
    Some(cause)
}
