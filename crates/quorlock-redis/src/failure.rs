//! Failures of calls, each with what the reader can do about it on a Redis server.

use quorlock_core::transport::{Cause, Execution, TransportError};

/// Returns an error of this transport, with its advice.
pub(crate) fn of(execution: Execution, cause: Cause, detail: impl Into<String>) -> TransportError {
    TransportError::new(execution, cause, detail).advised(advice(cause))
}

/// Returns an error for a request that was not executed and will not be.
pub(crate) fn definite(cause: Cause, detail: impl Into<String>) -> TransportError {
    of(Execution::Definite, cause, detail)
}

/// Returns an error for a request that may have been executed, or may still be.
pub(crate) fn indeterminate(cause: Cause, detail: impl Into<String>) -> TransportError {
    of(Execution::Indeterminate, cause, detail)
}

/// Returns what the reader of an error of this transport can do about it.
#[must_use]
pub const fn advice(cause: Cause) -> &'static str {
    match cause {
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
        Cause::Busy => {
            "a script or a function blocks the server, whose words name the commands that end it"
        }
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
        Cause::LongestLease => "wait until the longest_lease of the deployment is raised",
        // `Cause::Server`, and causes that this transport does not return.
        _ => "see the server's message",
    }
}
