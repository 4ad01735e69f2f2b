//! Why a call brought no reply, and whether the node may have executed it all the same.

use std::fmt;

/// Why a call brought no reply, and what that says about its execution.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TransportError {
    /// Whether the node may have executed the request.
    pub execution: Execution,
    /// What went wrong.
    pub cause: Cause,
    /// The words of the server or the operating system, without secrets.
    pub detail: String,
}

impl TransportError {
    /// What went wrong with a request of which this is known.
    #[must_use]
    pub fn new(execution: Execution, cause: Cause, detail: impl Into<String>) -> Self {
        TransportError {
            execution,
            cause,
            detail: detail.into(),
        }
    }

    /// The request was not executed, and will not be.
    #[must_use]
    pub fn definite(cause: Cause, detail: impl Into<String>) -> Self {
        TransportError::new(Execution::Definite, cause, detail)
    }

    /// The request may have been executed, or may yet be.
    #[must_use]
    pub fn indeterminate(cause: Cause, detail: impl Into<String>) -> Self {
        TransportError::new(Execution::Indeterminate, cause, detail)
    }

    /// The same with another answer to whether the request was executed.
    #[must_use]
    pub fn with_execution(self, execution: Execution) -> Self {
        TransportError { execution, ..self }
    }
}

/// Whether a request that brought no reply was executed.
///
/// It does not grow: with the reply, which says "yes", these are the three answers that there are, and a transport that does not
/// know says [`Execution::Indeterminate`]. What a round or a release does with each is decided where it is matched, and a third
/// value would have to be decided there, too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Execution {
    /// It was not, and will not be.
    Definite,
    /// It may have been, or may yet be.
    Indeterminate,
}

/// What went wrong with a call, by name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// No connection could be made.
    Unreachable,
    /// No reply in time.
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
    /// What the client was told to ask for its credentials has none.
    NoCredentials,
    /// The two ends do not agree on TLS: certificates, names, versions.
    Tls,
    /// `NOPERM`: the user may not do this.
    NoPermission,
    /// The server has no database of the number that the address names.
    NoDatabase,
    /// The server does not know a command, or cannot do what it is for (`WAITAOF` without an append-only file).
    Unsupported,
    /// `WRONGTYPE`: the key is not a lock but something else.
    WrongType,
    /// `MISCONF`: the server cannot save its data and refuses writes.
    Misconfigured,
    /// `NOREPLICAS`: too few replicas are in touch, the server refuses writes.
    NoReplicas,
    /// It was executed, and too few replicas confirmed that they have it.
    NotReplicated,
    /// `CLUSTERDOWN`, `MOVED`, `ASK`, `TRYAGAIN` or `CROSSSLOT`: a cluster says no.
    Cluster,
    /// The sentinels of a group name no server that is a primary at the moment.
    NoPrimary,
    /// The sentinels of a group do not know the name that the address has.
    UnknownGroup,
    /// Another client of the deployment states another longest lease, or the lease is longer than that.
    LongestLease,
    /// Any other error reply.
    Server,
}

impl Cause {
    /// Whether asking again later may help without an operator's doing: what has to be mended by one ends every wait at
    /// once, where no threshold is left without it.
    #[must_use]
    pub const fn may_pass(self) -> bool {
        !matches!(
            self,
            Cause::NoAuth
                | Cause::Tls
                | Cause::NoPermission
                | Cause::NoDatabase
                | Cause::Unsupported
                | Cause::UnknownGroup
                | Cause::WrongType
                | Cause::LongestLease
        )
    }

    /// What a reader of the error can do about it.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Cause::Unreachable => "check that the node runs, and that its address is right",
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
                "there is nothing to log in with: check where the credentials come from"
            }
            Cause::Tls => "no encrypted connection",
            Cause::NoPermission => {
                "grant the user the commands and keys that locks need (see the docs)"
            }
            Cause::NoDatabase => "the address names a database that the server does not have",
            Cause::Unsupported => "the server cannot do what the settings ask for: see its version",
            Cause::WrongType => {
                "the key holds something that is not a lock: choose another name or a key prefix"
            }
            Cause::Misconfigured => "the server cannot save its data: see its log",
            Cause::NoReplicas => "the server waits for its replicas (min-replicas-to-write)",
            Cause::NotReplicated => "replicas are slow, stopped or gone: see INFO replication",
            Cause::Cluster => "a cluster does not serve this key here",
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
        write!(f, "{}: {}", self.cause.advice(), self.detail)
    }
}

impl std::error::Error for TransportError {}
