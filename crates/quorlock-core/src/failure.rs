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
}

impl TransportError {
    /// Returns an error from its three parts.
    #[must_use]
    pub fn new(execution: Execution, cause: Cause, detail: impl Into<String>) -> Self {
        TransportError {
            execution,
            cause,
            detail: detail.into(),
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
    /// `DENIED`: the server is in protected mode, and accepts only clients of its own machine.
    ProtectedMode,
    /// The clock of the tokio runtime is paused, so that a time-out ends before a server can answer.
    PausedClock,
    /// No reply came in time.
    TimedOut,
    /// The connection ended during the call.
    Closed,
    /// The reply could not be understood.
    Protocol,
    /// `READONLY`: the server is a replica.
    ReadOnly,
    /// `LOADING`: the server is still reading its data from disk.
    Loading,
    /// `OOM`: the server has reached its memory limit.
    OutOfMemory,
    /// `BUSY`: the server is running a script that does not end.
    Busy,
    /// `NOAUTH` or `WRONGPASS`: the server wants other credentials.
    NoAuth,
    /// The client's source of credentials has none.
    NoCredentials,
    /// The TLS handshake failed: certificates, names or versions do not match.
    Tls,
    /// `NOPERM`: the user has no permission for this command or key.
    NoPermission,
    /// The server has no database with the number in the address.
    NoDatabase,
    /// The server does not know a command, or lacks what the command needs (`WAITAOF` without an append-only file).
    Unsupported,
    /// `WRONGTYPE`: the key holds something other than a lock.
    WrongType,
    /// `MISCONF`: the server cannot save its data and refuses writes.
    Misconfigured,
    /// `NOREPLICAS`: too few replicas are connected, and the server refuses writes.
    NoReplicas,
    /// The request was executed, but too few replicas confirmed it.
    NotReplicated,
    /// `CLUSTERDOWN`, `MOVED`, `ASK`, `TRYAGAIN` or `CROSSSLOT`: a cluster does not serve the request here.
    Cluster,
    /// The sentinels of a group name no server that is a primary at the moment.
    NoPrimary,
    /// The sentinels do not know the group name in the address.
    UnknownGroup,
    /// Another client of the deployment has set another longest lease, or the lease exceeds the longest lease.
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
                | Cause::LongestLease
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

    /// Returns what the reader of the error can do about it.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Cause::Unreachable => "check that the node runs, and that its address is right",
            Cause::TurnedAway => {
                "it ended the connection before any request: raise its maxclients, or end connections that are not needed"
            }
            Cause::ProtectedMode => {
                "it accepts only clients of its own machine: give it a password (requirepass) or users, and log in"
            }
            Cause::PausedClock => {
                "let the clock run (no start_paused), or use embedded nodes, whose time is that of the clock"
            }
            Cause::TimedOut => "the server or the network is slow or stopped",
            Cause::Closed => {
                "the server or the network ended the connection, the next call makes another"
            }
            Cause::Protocol => "is this a Redis server?",
            Cause::ReadOnly => "this server is a replica: give the address of its primary",
            Cause::Loading => "the server is starting: try again when it has loaded its data",
            Cause::OutOfMemory => "raise the server's maxmemory or free memory on it",
            Cause::Busy => "a script blocks the server: SCRIPT KILL ends it",
            Cause::NoAuth => "check the user and the password",
            Cause::NoCredentials => {
                "no credentials were found: check where this client gets its credentials"
            }
            Cause::Tls => "no TLS connection: check the certificates and names",
            Cause::NoPermission => {
                "grant the user the commands and keys that locks need (see the docs)"
            }
            Cause::NoDatabase => "the address names a database that the server does not have",
            Cause::Unsupported => {
                "the server lacks what locks or the settings need: see its version and its settings"
            }
            Cause::WrongType => {
                "the key holds something that is not a lock: choose another name or a key prefix"
            }
            Cause::Misconfigured => "the server cannot save its data: see its log",
            Cause::NoReplicas => "the server waits for its replicas (min-replicas-to-write)",
            Cause::NotReplicated => "replicas are slow, stopped or gone: see INFO replication",
            Cause::Cluster => "a cluster does not serve this key here: check CLUSTER INFO",
            Cause::NoPrimary => {
                "no server of the group is a primary at the moment: see the sentinels' logs"
            }
            Cause::UnknownGroup => {
                "write the name in the address as `sentinel monitor` has it in the sentinels' configuration"
            }
            Cause::LongestLease => "set the same longest_lease in every client of the deployment",
            Cause::Server => "see the server's message",
        }
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (advice, detail) = (self.cause.advice(), &self.detail);
        match self.cause {
            // What was said comes first, because no advice is as exact.
            Cause::TurnedAway | Cause::ProtectedMode | Cause::PausedClock => {
                write!(f, "{detail}: {advice}")
            }
            _ => write!(f, "{advice}: {detail}"),
        }
    }
}

impl std::error::Error for TransportError {}
