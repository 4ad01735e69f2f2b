//! What an error of the server or the driver means for a call.

use quorlock_core::transport::{Cause, TransportError};
use zookeeper_client::Error;

use crate::database::Phase;

const UNREACHABLE: &str = "check that a majority of the members runs and reaches each other, and that their addresses are right; \
    a member answers no client without a majority, or once it has as many as its maxClientCnxns";

const RIGHTS: &str = "the znodes belong to another user or password of the scheme digest, or to one where the address has none: see \
    `getAcl` of zkCli. For a new prefix, the user needs `create` on its parent, and the first client of an ensemble needs it on /, for \
    the znode /quorlock.id";

const STRANGE: &str = "the znode is not of this library, or was changed by hand: look at it with `get` and `ls` of zkCli, and remove \
    it with `deleteall` while no client relies on it";

/// Why a call has failed.
pub(super) enum Failure {
    /// The server or the driver has refused the call, or the session has ended, or what was sent has got no answer.
    Driver(Error),
    /// The server has refused one of the writes of a transaction, and so all of them.
    Refused(Error),
    /// The folder of the records is not there.
    NoFolder,
    /// The znode at this path is none of this library.
    Strange(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Driver(error)
    }
}

impl Failure {
    /// Returns whether a new session must be made.
    pub(super) fn ends_session(&self) -> bool {
        match self {
            // The folder is made with a session.
            Failure::NoFolder => true,
            Failure::Strange(_) => false,
            Failure::Driver(error) | Failure::Refused(error) => matches!(
                error,
                Error::SessionExpired
                    | Error::SessionMoved
                    | Error::ClientClosed
                    | Error::AuthFailed
                    | Error::RuntimeInconsistent
            ),
        }
    }

    /// Returns whether a read may succeed if it is sent again.
    pub(super) fn may_pass(&self) -> bool {
        self.ends_session() || self.is_lost()
    }

    /// Returns whether the call was not executed, and may succeed in another session.
    pub(super) fn may_move(&self) -> bool {
        self.ends_session() && self.is_refused()
    }

    pub(super) fn into_error(self, phase: Phase) -> TransportError {
        let (cause, advice) = self.meaning(phase);
        phase.error(self.is_refused(), (cause, advice), self.to_text())
    }

    /// Returns whether the connection was lost, or another error that says nothing about the call came.
    fn is_lost(&self) -> bool {
        // The driver tells what went wrong with a socket by an error of its own kind.
        matches!(
            self,
            Failure::Driver(Error::ConnectionLoss | Error::Custom(_) | Error::Timeout)
        )
    }

    /// Returns whether the server has refused the call. A session that ends leaves open what became of the calls on their way.
    fn is_refused(&self) -> bool {
        match self {
            Failure::Refused(_) | Failure::NoFolder | Failure::Strange(_) => true,
            Failure::Driver(error) => matches!(
                error,
                Error::NoNode
                    | Error::NoAuth
                    | Error::NodeExists
                    | Error::InvalidAcl
                    | Error::NotReadOnly
                    | Error::QuotaExceeded
                    | Error::Throttled
                    | Error::Unimplemented
                    | Error::BadArguments(_)
                    | Error::SessionMoved
            ),
        }
    }

    fn meaning(&self, phase: Phase) -> (Cause, Option<&'static str>) {
        let error = match self {
            Failure::NoFolder => return (Cause::Closed, None),
            Failure::Strange(_) => return (Cause::WrongType, Some(STRANGE)),
            Failure::Driver(error) | Failure::Refused(error) => error,
        };
        match error {
            Error::NoAuth | Error::InvalidAcl => (Cause::NoPermission, Some(RIGHTS)),
            Error::AuthFailed => (
                Cause::NoAuth,
                Some(
                    "the server takes no user of the scheme digest, or asks for one of another scheme",
                ),
            ),
            Error::NotReadOnly => (
                Cause::ReadOnly,
                Some("the member is cut off from the others"),
            ),
            Error::QuotaExceeded => (
                Cause::OutOfMemory,
                Some("raise the quota of the prefix: `setquota` of zkCli"),
            ),
            Error::Throttled => (Cause::Busy, Some("the server is overloaded")),
            Error::Unimplemented => (
                Cause::Unsupported,
                Some("the server is not ZooKeeper 3.5 or later"),
            ),
            Error::NoHosts | Error::Timeout => (Cause::Unreachable, Some(UNREACHABLE)),
            _ if phase == Phase::Connect => (Cause::Unreachable, Some(UNREACHABLE)),
            Error::ConnectionLoss
            | Error::Custom(_)
            | Error::SessionExpired
            | Error::SessionMoved
            | Error::ClientClosed => (Cause::Closed, None),
            Error::UnmarshalError { .. } => (Cause::Protocol, None),
            _ => (Cause::Server, None),
        }
    }

    fn to_text(&self) -> String {
        match self {
            Failure::NoFolder => "the znode of the prefix was deleted".to_owned(),
            Failure::Strange(path) => format!("{path} has no record"),
            Failure::Driver(error) | Failure::Refused(error) => error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use quorlock_core::transport::Execution;

    use super::*;

    #[test]
    fn only_what_the_server_has_refused_is_definite() {
        for error in [Error::NoAuth, Error::QuotaExceeded, Error::Throttled] {
            let error = Failure::Driver(error).into_error(Phase::Write);
            assert_eq!(error.execution, Execution::Definite, "{error:?}");
        }
        // The session of a call that is on its way may end before or after its execution.
        for error in [
            Error::ConnectionLoss,
            Error::SessionExpired,
            Error::ClientClosed,
            Error::UnexpectedErrorCode(-1),
        ] {
            assert!(!Failure::Driver(error.clone()).may_move());
            let error = Failure::Driver(error).into_error(Phase::Write);
            assert_eq!(error.execution, Execution::Indeterminate, "{error:?}");
        }
        let error = Failure::Refused(Error::UnexpectedErrorCode(-1)).into_error(Phase::Write);
        assert_eq!(error.execution, Execution::Definite);
        let error = Failure::Driver(Error::NoHosts).into_error(Phase::Connect);
        assert_eq!(
            (error.execution, error.cause),
            (Execution::Definite, Cause::Unreachable)
        );
    }
}
