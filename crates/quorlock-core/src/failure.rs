//! Failures of calls to a node, and whether the node may have executed the request.

use std::fmt;

/// The failure of a call: why no reply came.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TransportError {
    /// Whether the node may have executed the request.
    pub execution: Execution,
    /// What went wrong.
    pub cause: Cause,
    /// The message of the server or the operating system, without secrets.
    pub detail: String,
    /// What the reader of the error can do about it, if the transport knows. Only a transport knows which server it is
    /// that fails, and how that is mended.
    pub advice: Option<&'static str>,
}

impl TransportError {
    /// Returns an error without advice.
    #[must_use]
    pub fn new(execution: Execution, cause: Cause, detail: impl Into<String>) -> Self {
        TransportError {
            execution,
            cause,
            detail: detail.into(),
            advice: None,
        }
    }

    /// Returns an error for a request that was not executed and will not be.
    #[must_use]
    pub fn definite(cause: Cause, detail: impl Into<String>) -> Self {
        TransportError::new(Execution::Definite, cause, detail)
    }

    /// Returns an error for a request that may have been executed, or may still be.
    #[must_use]
    pub fn indeterminate(cause: Cause, detail: impl Into<String>) -> Self {
        TransportError::new(Execution::Indeterminate, cause, detail)
    }

    /// Returns the error of a request that a node refuses before it writes anything, as [`Node`](crate::node::Node)
    /// specifies.
    #[must_use]
    pub fn refused(cause: Cause) -> Self {
        let (detail, advice) = match cause {
            Cause::LongestLease => (
                "the lease is longer than the node grants at present",
                "wait until the longest_lease of the deployment is raised",
            ),
            _ => (
                "what is stored there is not a lock",
                "choose another name or a key prefix",
            ),
        };
        TransportError::definite(cause, detail).advised(advice)
    }

    /// Returns the same error with this advice.
    #[must_use]
    pub fn advised(self, advice: &'static str) -> Self {
        let advice = Some(advice);
        TransportError { advice, ..self }
    }

    /// Returns the same error with another value of `execution`.
    #[must_use]
    pub fn with_execution(self, execution: Execution) -> Self {
        TransportError { execution, ..self }
    }
}

/// Whether a request without a reply was executed.
///
/// This enum is exhaustive on purpose. Together with a reply, which means "executed", these are the only three
/// possibilities, and a transport that cannot tell returns [`Execution::Indeterminate`]. Each `match` in a round or a
/// release decides what follows from each variant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Execution {
    /// The request was not executed, and will not be.
    Definite,
    /// The request may have been executed, or may still be.
    Indeterminate,
}

/// The cause of a failed call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// No connection could be made.
    Unreachable,
    /// The server ended the connection before any request, with an error that states why: it has too many clients.
    TurnedAway,
    /// The server accepts only clients of its own machine.
    ProtectedMode,
    /// The clock of the tokio runtime is paused, so that a time-out ends before a server can answer.
    PausedClock,
    /// No reply came in time.
    TimedOut,
    /// The connection ended during the call.
    Closed,
    /// The reply could not be understood.
    Protocol,
    /// The server is a replica, which accepts no writes.
    ReadOnly,
    /// The server is still reading its data from disk.
    Loading,
    /// The server has reached its memory limit.
    OutOfMemory,
    /// The server is executing something that does not end.
    Busy,
    /// The server wants other credentials.
    NoAuth,
    /// The client's source of credentials has none.
    NoCredentials,
    /// The TLS handshake failed: certificates, names or versions do not match.
    Tls,
    /// The user has no permission for this command or key.
    NoPermission,
    /// The server has no database with the number in the address.
    NoDatabase,
    /// The server does not know a command, or lacks what the command needs.
    Unsupported,
    /// The key holds something other than a lock.
    WrongType,
    /// The server cannot save its data and refuses writes.
    Misconfigured,
    /// Too few replicas are connected, and the server refuses writes.
    NoReplicas,
    /// The request was executed, but too few replicas confirmed it.
    NotReplicated,
    /// The node is divided over several servers, and does not serve the request here.
    Cluster,
    /// No server of the group is a primary at the moment.
    NoPrimary,
    /// No group has the name in the address.
    UnknownGroup,
    /// The lease is longer than the node grants at present.
    LongestLease,
    /// The server replied with any other error.
    Server,
}

impl Cause {
    /// Returns whether a later attempt may succeed without action by an operator. Any other cause ends every wait
    /// immediately if no threshold is left without the failing members.
    #[must_use]
    pub const fn may_pass(self) -> bool {
        !matches!(
            self,
            Cause::NoAuth
                | Cause::ProtectedMode
                | Cause::PausedClock
                | Cause::Tls
                | Cause::NoPermission
                | Cause::NoDatabase
                | Cause::Unsupported
                | Cause::UnknownGroup
                | Cause::WrongType
        )
    }

    /// Returns whether a request about several names may have failed because of one of them. The server can answer
    /// requests about the others then, if each has a request of its own.
    #[must_use]
    pub const fn may_be_of_one_name(self) -> bool {
        matches!(
            self,
            // The user may have no permission for one of the keys.
            Cause::NoPermission
                | Cause::WrongType
                // A server without memory may refuse the first write of a call, and not the other writes.
                | Cause::OutOfMemory
                // The slot is being moved, and has some of the keys.
                | Cause::Cluster
                | Cause::Server
                // The reply about one name is not one that the script returns.
                | Cause::Protocol
        )
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = &self.detail;
        match (self.advice, self.cause) {
            (None, _) => f.write_str(detail),
            // What was said comes first, because no advice is as exact.
            (Some(advice), Cause::TurnedAway | Cause::ProtectedMode | Cause::PausedClock) => {
                write!(f, "{detail}: {advice}")
            }
            (Some(advice), _) => write!(f, "{advice}: {detail}"),
        }
    }
}

impl std::error::Error for TransportError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_that_of_the_transport_and_what_was_said_comes_first_where_it_is_more_exact() {
        let plain = TransportError::definite(Cause::Closed, "reset");
        assert_eq!(plain.to_string(), "reset");
        let advised = plain.advised("plug it in");
        assert_eq!(advised.to_string(), "plug it in: reset");
        let open = advised.with_execution(Execution::Indeterminate);
        assert_eq!(open.to_string(), "plug it in: reset");
        let away = TransportError::definite(Cause::TurnedAway, "too many").advised("go home");
        assert_eq!(away.to_string(), "too many: go home");
    }
}
