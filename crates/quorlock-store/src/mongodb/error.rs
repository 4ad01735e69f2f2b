//! What an error of the server or the driver means for a call.

use ::mongodb::error::{Error, ErrorKind, WriteFailure};
use quorlock_core::transport::{Cause, TransportError};

use crate::database::{Phase, UNREACHABLE};

const LOGIN: &str = "the server does not accept this user or password: see the address, its authSource, and the users of the server";

const RIGHTS: &str = "the user needs the role readWrite on the database";

const STRANGE: &str = "the document is not of this library, or was changed by hand: look at it, and delete it while no client relies on it";

const PRIMARY: &str = "name all members of the replica set, and its name as ?replicaSet";

const FERRET: &str = "of several clients that change a document from the same version, more than one succeeds there: use MongoDB, or another store";

const TLS: &str = "see tls, tlsCAFile and tlsCertificateKeyFile of the address: paths of files in PEM, whose slashes are written %2F";

/// Why a call has failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server or the driver has refused the call, or what was sent has got no answer.
    Driver(Error),
    /// No reply came in time.
    Late,
    /// The record has another version.
    Conflict,
    /// The document with this id is none of this library.
    Strange(String),
    /// The server is a replica.
    NoPrimary,
    /// The server is one of FerretDB.
    Ferret,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match code(&error) {
            // A document with this id is there already.
            Some(11000) => Failure::Conflict,
            _ => Failure::Driver(error),
        }
    }
}

impl Failure {
    pub(super) fn into_error(self, phase: Phase) -> TransportError {
        let (is_refused, cause, advice) = self.meaning(phase);
        phase.error(is_refused, (cause, advice), self.to_text())
    }

    /// Returns whether the call was not executed, the cause, and what to do.
    fn meaning(&self, phase: Phase) -> (bool, Cause, Option<&'static str>) {
        match self {
            Failure::Late => (false, Cause::TimedOut, None),
            Failure::Conflict => (true, Cause::Busy, None),
            Failure::Strange(_) => (true, Cause::WrongType, Some(STRANGE)),
            Failure::NoPrimary => (true, Cause::ReadOnly, Some(PRIMARY)),
            Failure::Ferret => (true, Cause::Unsupported, Some(FERRET)),
            Failure::Driver(error) => meaning(error, phase),
        }
    }

    fn to_text(&self) -> String {
        match self {
            Failure::Late => "no answer in time".to_owned(),
            Failure::Conflict => "another client has written".to_owned(),
            Failure::Strange(id) => format!("the document {id} has no record"),
            Failure::NoPrimary => "the server is a replica, which takes no writes".to_owned(),
            Failure::Ferret => "the server is FerretDB".to_owned(),
            // The whole has the answer of the server, byte for byte.
            Failure::Driver(error) => match &*error.kind {
                ErrorKind::ConnectionPoolCleared { .. } => "another call has failed".to_owned(),
                kind => kind.to_string(),
            },
        }
    }
}

/// Returns whether the call was not executed, the cause, and what to do.
fn meaning(error: &Error, phase: Phase) -> (bool, Cause, Option<&'static str>) {
    match (code(error), &*error.kind) {
        (Some(18), _) | (_, ErrorKind::Authentication { .. }) => (true, Cause::NoAuth, Some(LOGIN)),
        (Some(13), _) => (true, Cause::NoPermission, Some(RIGHTS)),
        (Some(10107 | 13435), _) => (true, Cause::ReadOnly, Some(PRIMARY)),
        // A member that steps down or ends may have executed it.
        (Some(91 | 189 | 11600 | 11602), _) => (false, Cause::NoPrimary, None),
        (_, ErrorKind::InvalidTlsConfig { .. }) => (true, Cause::Tls, Some(TLS)),
        (_, ErrorKind::ServerSelection { message, .. }) => match message.contains("certificate") {
            true => (true, Cause::Tls, Some(TLS)),
            false => (true, Cause::Unreachable, Some(UNREACHABLE)),
        },
        (_, ErrorKind::DnsResolve { .. }) => (true, Cause::Unreachable, Some(UNREACHABLE)),
        _ if phase == Phase::Connect => (true, Cause::Unreachable, Some(UNREACHABLE)),
        (_, ErrorKind::Io(_) | ErrorKind::ConnectionPoolCleared { .. }) => {
            (false, Cause::Closed, None)
        }
        (_, ErrorKind::InvalidResponse { .. } | ErrorKind::BsonDeserialization(_)) => {
            (false, Cause::Protocol, None)
        }
        _ => (false, Cause::Server, None),
    }
}

fn code(error: &Error) -> Option<i32> {
    match &*error.kind {
        ErrorKind::Command(error) => Some(error.code),
        ErrorKind::Write(WriteFailure::WriteError(error)) => Some(error.code),
        _ => None,
    }
}
