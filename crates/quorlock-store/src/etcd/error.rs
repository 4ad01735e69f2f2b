//! What an error of the server or the driver means for a call.

use std::error::Error as _;

use etcd_client::Error;
use quorlock_core::transport::{Cause, TransportError};
use tonic::{Code, ConnectError, Status};

use super::meaning::{CERTIFICATE, KNOWN, Meaning, UNREACHABLE, VERSION, elsewhere, open, refused};
use crate::database::Phase;

/// Why a call has failed.
pub(super) enum Failure {
    /// No reply came in time.
    Late,
    /// The server has this version, which is too old.
    Old(String),
    /// The server refused the call, or the driver could not carry it.
    Driver(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Driver(error)
    }
}

impl Failure {
    /// Returns whether another connection must be made, to this member or to another one.
    pub(super) fn ends_session(&self) -> bool {
        self.meaning().is_of_session
    }

    /// Returns whether a read was not served because there is an election.
    pub(super) fn is_of_election(&self) -> bool {
        let texts = ["etcdserver: no leader", "etcdserver: leader changed"];
        matches!(self, Failure::Driver(Error::GRpcStatus(status))
            if is_of_server(status) && texts.contains(&status.message()))
    }

    /// Returns whether the call was not executed, and may succeed on another connection.
    pub(super) fn may_move(&self) -> bool {
        let meaning = self.meaning();
        meaning.is_refused && meaning.is_of_session
    }

    pub(super) fn into_error(self, phase: Phase) -> TransportError {
        let meaning = self.meaning();
        let mut what = (meaning.cause, meaning.advice);
        let detail = self.to_text();
        if phase == Phase::Connect && !self.is_of_server() {
            // Nothing else is known of a server that does not speak as expected.
            what = match meaning.cause {
                _ if detail.contains("certificate") => (Cause::Tls, Some(CERTIFICATE)),
                Cause::Closed => (Cause::Unreachable, Some(UNREACHABLE)),
                cause => (cause, Some(UNREACHABLE)),
            };
        }
        phase.error(meaning.is_refused, what, detail)
    }

    /// Returns whether a server of etcd has answered.
    fn is_of_server(&self) -> bool {
        match self {
            Failure::Late => false,
            Failure::Old(_) => true,
            Failure::Driver(error) => {
                matches!(error, Error::GRpcStatus(status) if is_of_server(status))
            }
        }
    }

    fn meaning(&self) -> Meaning {
        let nothing_known = Meaning {
            advice: None,
            ..elsewhere(open(Cause::Closed, ""))
        };
        match self {
            Failure::Late => Meaning {
                cause: Cause::TimedOut,
                ..nothing_known
            },
            Failure::Old(_) => elsewhere(refused(Cause::Unsupported, VERSION)),
            Failure::Driver(Error::GRpcStatus(status)) if is_of_server(status) => of_server(status),
            // The driver connects by itself, and has not handed the call to a connection then.
            Failure::Driver(Error::GRpcStatus(status)) if was_not_sent(status) => {
                elsewhere(refused(Cause::Unreachable, UNREACHABLE))
            }
            Failure::Driver(_) => nothing_known,
        }
    }

    fn to_text(&self) -> String {
        match self {
            Failure::Late => "no answer in time".to_owned(),
            Failure::Old(version) => format!("its version is {version}"),
            Failure::Driver(Error::GRpcStatus(status)) => text(status),
            Failure::Driver(error) => error.to_string(),
        }
    }
}

/// Returns whether a status came from the server. One that the driver has made of an error has that error as its source.
fn is_of_server(status: &Status) -> bool {
    status.source().is_none()
}

fn of_server(status: &Status) -> Meaning {
    let text = status.message();
    if let Some((_, meaning)) = KNOWN.into_iter().find(|(known, _)| text.starts_with(known)) {
        return meaning;
    }
    match status.code() {
        // The driver says the same of a reply that it cannot read, in other words.
        Code::Unimplemented => Meaning {
            is_refused: text.starts_with("unknown "),
            ..elsewhere(refused(Cause::Unsupported, VERSION))
        },
        _ => Meaning {
            advice: None,
            ..elsewhere(open(Cause::Server, ""))
        },
    }
}

fn was_not_sent(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(error) = source {
        if error.is::<ConnectError>() {
            return true;
        }
        source = error.source();
    }
    false
}

/// Returns the whole text. The status has only a part of it.
fn text(status: &Status) -> String {
    let mut text = status.message().to_owned();
    let mut source = status.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) && more != "transport error" {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use quorlock_core::transport::Execution;

    use super::*;

    fn write(status: Status) -> TransportError {
        Failure::Driver(Error::GRpcStatus(status)).into_error(Phase::Write)
    }

    /// Errors of writes that the server has not proposed, and never will.
    #[rustfmt::skip]
    const NOT_PROPOSED: [(Code, &str, Cause); 8] = [
        (Code::PermissionDenied, "etcdserver: permission denied", Cause::NoPermission),
        (Code::Unauthenticated, "etcdserver: invalid auth token", Cause::NoAuth),
        (Code::InvalidArgument, "etcdserver: request is too large", Cause::Server),
        (Code::ResourceExhausted, "etcdserver: too many requests", Cause::Busy),
        (Code::Unavailable, "etcdserver: no leader", Cause::NoPrimary),
        (Code::Unimplemented, "unknown service etcdserverpb.KV", Cause::Unsupported),
        (Code::FailedPrecondition, "etcdserver: not capable", Cause::Unsupported),
        (Code::FailedPrecondition, "etcdserver: rpc not supported for learner", Cause::ReadOnly),
    ];

    /// Errors of writes that may have been executed.
    #[rustfmt::skip]
    const IN_DOUBT: [(Code, &str, Cause); 8] = [
        (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded", Cause::OutOfMemory),
        (Code::Unavailable, "etcdserver: request timed out", Cause::TimedOut),
        (Code::Unavailable, "etcdserver: request timed out, possibly due to previous leader failure", Cause::TimedOut),
        (Code::Unavailable, "etcdserver: leader changed", Cause::NoPrimary),
        (Code::Unavailable, "etcdserver: server stopped", Cause::Closed),
        (Code::DataLoss, "etcdserver: corrupt cluster", Cause::Misconfigured),
        (Code::Unavailable, "no healthy upstream", Cause::Server),
        (Code::PermissionDenied, "of a proxy", Cause::Server),
    ];

    #[test]
    fn only_what_the_server_has_not_proposed_is_definite() {
        let definite = NOT_PROPOSED.map(|row| (row, Execution::Definite));
        let in_doubt = IN_DOUBT.map(|row| (row, Execution::Indeterminate));
        for ((code, text, cause), execution) in definite.into_iter().chain(in_doubt) {
            let error = write(Status::new(code, text));
            assert_eq!((error.execution, error.cause), (execution, cause), "{text}");
            assert!(error.to_string().ends_with(text), "{error}");
        }
    }

    #[test]
    fn what_the_driver_says_is_definite_only_where_there_was_no_connection() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let error = write(Status::from_error(Box::new(ConnectError(refused.into()))));
        assert_eq!(error.execution, Execution::Definite);
        assert_eq!(error.cause, Cause::Unreachable);
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        let error = write(Status::from_error(reset.into()));
        assert_eq!(error.execution, Execution::Indeterminate);
        assert_eq!(error.cause, Cause::Closed);
        let untrusted = io::Error::other("invalid peer certificate: UnknownIssuer");
        let untrusted = Status::from_error(Box::new(ConnectError(untrusted.into())));
        let error = Failure::Driver(Error::GRpcStatus(untrusted)).into_error(Phase::Connect);
        assert_eq!(error.cause, Cause::Tls);
        let late = Failure::Late.into_error(Phase::Write);
        assert_eq!(late.execution, Execution::Indeterminate);
    }
}
