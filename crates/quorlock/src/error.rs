//! The errors of the crate: one enum per operation, with messages that say what to do.

mod config;
mod connect;
mod hand_over;

use std::fmt;
use std::time::Duration;

use quorlock_core::message::Mode;
use quorlock_core::renewal::Lost;
use quorlock_core::transport::TransportError;
use quorlock_core::trust::Why;

pub use self::config::{ConfigError, LeaseSource};
pub use self::connect::{ConnectError, NodeProblem};
pub use self::hand_over::{HandOverError, HandOverProblem, TicketError};

/// What went wrong with one node.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NodeReport {
    /// The node's address, without credentials.
    pub address: String,
    /// Its error, or `None` if it did not answer in time or is quarantined.
    pub error: Option<TransportError>,
    /// Why its vote was not counted, if it is quarantined.
    pub quarantine: Option<Quarantine>,
}

impl fmt::Display for NodeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.error, &self.quarantine) {
            (Some(error), _) => write!(f, "{}: {error}", self.address),
            (None, Some(quarantine)) => write!(f, "{}: {quarantine}", self.address),
            (None, None) => write!(f, "{}: no answer in time", self.address),
        }
    }
}

/// Why the votes of a node are not counted, and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Quarantine {
    /// The reason.
    pub why: Why,
    /// The remaining time, if it is known. It ends early when a client that has watched the node for longer declares
    /// it trusted.
    pub left: Option<Duration>,
}

impl Quarantine {
    /// The quarantine of a node that counts from now on.
    pub(crate) const ENDED: Quarantine = Quarantine {
        why: Why::Watched,
        left: Some(Duration::ZERO),
    };
}

impl fmt::Display for Quarantine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "quarantined, {}", self.why)?;
        match self.left {
            Some(left) => write!(f, " ({:.1} s more)", left.as_secs_f64()),
            None => Ok(()),
        }
    }
}

/// Names the lock that is in the way, as far as a client that requested this mode can tell: a held fair lock is
/// stored like a plain one.
fn standing(asked: Mode, found: Mode) -> String {
    match (asked, found) {
        (Mode::Read | Mode::Write, Mode::Plain) => "plain or fair lock".to_owned(),
        _ => found.to_string(),
    }
}

/// Formats how long something was tried, rounded for people and after these words. Nothing if it was refused at once: "in less
/// than 1ms" would look like a time-out.
fn for_people(words: &str, span: Duration) -> String {
    let millis = span.as_millis();
    if millis == 0 {
        return String::new();
    }
    let step = if millis < 1_000 { 1 } else { 100 };
    let millis = u64::try_from(millis / step * step).unwrap_or(u64::MAX);
    format!("{words}{:?}", Duration::from_millis(millis))
}

fn list(reports: &[NodeReport]) -> String {
    let lines: Vec<_> = reports.iter().map(ToString::to_string).collect();
    lines.join("; ")
}

/// The error of an acquisition. No claim stays behind: what nodes granted is released.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// Others held the lock throughout the wait.
    #[error(
        "{names}: {holder}{}{}; {}",
        in_parentheses(.clients),
        for_people(", tried for ", *.tried),
        advice(*.holder)
    )]
    Contended {
        /// The names that were requested.
        names: String,
        /// How long the acquisition tried.
        tried: Duration,
        /// Whether other clients or this client held it.
        holder: Holder,
        /// The label and the address of each client that held it, of those that are known. Empty unless this client has a
        /// [label](crate::LocksBuilder::label) too, waited, and may look.
        clients: Vec<String>,
    },
    /// Too few nodes answered, or too few of those that answered are trusted.
    #[error("{names}: {}{}: {}", too_few(*.of), for_people(" in ", *.tried), list(.nodes))]
    NoQuorum {
        /// The names that were requested.
        names: String,
        /// How long the acquisition tried.
        tried: Duration,
        /// The number of nodes per name.
        of: usize,
        /// The nodes that failed to answer, answered with an error, or are quarantined.
        nodes: Vec<NodeReport>,
    },
    /// Nodes refused in a way that waiting does not cure, and too few others are left for a quorum. Examples are a
    /// refused login, missing permissions, a key that is not a lock, and a database or command that the server does
    /// not have.
    #[error("{names}: refused, and waiting does not help: {}", list(.nodes))]
    Refused {
        /// The names that were requested.
        names: String,
        /// The nodes that refused or failed to answer, each with its error and what to do.
        nodes: Vec<NodeReport>,
    },
    /// The nodes answered, but so slowly that nothing was left of the lease.
    #[error(
        "{names}: the nodes were too slow for a lease of {lease:?}{}; ask for a longer one",
        for_people(", tried for ", *.tried)
    )]
    TooSlow {
        /// The names that were requested.
        names: String,
        /// How long the acquisition tried.
        tried: Duration,
        /// The lease that was requested.
        lease: Duration,
    },
    /// The name is locked in another mode.
    #[error(
        "{names}: asked for a {asked}, but the name has a {}; use one mode per name",
        standing(*asked, *found)
    )]
    OtherMode {
        /// The names that were requested.
        names: String,
        /// The mode that was requested.
        asked: Mode,
        /// The mode of the lock that the name has.
        found: Mode,
    },
    /// The owner already holds some of the names through another lock, and would wait for itself.
    #[error(
        "{names}: the owner holds {held} already and would wait for itself; release that first"
    )]
    Overlap {
        /// The names that were requested.
        names: String,
        /// The names that the owner holds.
        held: String,
    },
    /// The owner holds the read lock and cannot become the writer, because it would wait for itself.
    #[error(
        "{names}: the owner holds the read lock and would wait for itself; release it before you ask for the write lock"
    )]
    Upgrade {
        /// The names that were requested.
        names: String,
    },
    /// The owner has reached the limit of entries of a read lock.
    #[error("{names}: entered {most} times, the limit of a read lock: release a guard first")]
    TooManyEntries {
        /// The names that were requested.
        names: String,
        /// The largest number of entries.
        most: u32,
    },
    /// The lease or a name is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The client was closed, or the runtime that it was made on has ended.
    #[error("the client was closed, or the runtime that it was made on has ended: make a new one")]
    Closed,
}

impl AcquireError {
    /// Returns what a caller can do about the error.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, ErrorKind, Locks};
    /// # use std::time::Duration;
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let lock = locks.lock("orders/42").wait(Duration::from_secs(3));
    /// match lock.acquire().await {
    ///     Ok(guard) => guard.release().await?, // after the work
    ///     Err(error) => match error.kind() {
    ///         ErrorKind::Busy => println!("others work on it: {error}"),
    ///         ErrorKind::Unavailable => println!("later again: {error}"),
    ///         _ => return Err(error.into()),
    ///     },
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            AcquireError::Contended { .. } => ErrorKind::Busy,
            AcquireError::NoQuorum { .. } | AcquireError::TooSlow { .. } => ErrorKind::Unavailable,
            AcquireError::Refused { .. }
            | AcquireError::OtherMode { .. }
            | AcquireError::Overlap { .. }
            | AcquireError::Upgrade { .. }
            | AcquireError::TooManyEntries { .. }
            | AcquireError::Config(_) => ErrorKind::Misconfigured,
            AcquireError::Closed => ErrorKind::Closed,
        }
    }
}

/// What a caller can do about a failed acquisition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Others hold the lock: wait longer, or do something else.
    Busy,
    /// The nodes do not answer, or not in time, or do not count yet: try again later.
    Unavailable,
    /// Trying again does not help: the program, its settings or those of the servers must change.
    Misconfigured,
    /// The client was closed: the program is about to end.
    Closed,
}

impl ErrorKind {
    /// Returns the status with which an HTTP service answers a request that it cannot execute without the lock.
    ///
    /// | kind | status | |
    /// |---|---|---|
    /// | busy | 409 | Conflict: what is locked is being changed |
    /// | unavailable, closed | 503 | Service Unavailable: the same request may succeed later |
    /// | misconfigured | 500 | Internal Server Error |
    #[must_use]
    pub fn to_http_status(self) -> u16 {
        match self {
            ErrorKind::Busy => 409,
            ErrorKind::Unavailable | ErrorKind::Closed => 503,
            ErrorKind::Misconfigured => 500,
        }
    }
}

/// The error of a release.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The nodes report that this owner no longer held the lock: the work may have overlapped with another
    /// owner's. If an earlier reply to the release was lost, it may also mean that the release was executed.
    #[error(
        "{names}: was not held any more when it was released; the work may have overlapped with another holder's"
    )]
    NotHeld {
        /// The names that were locked.
        names: String,
    },
    /// Too few nodes answered. The release continues in the background; claims that it cannot reach end with their
    /// lease.
    #[error("{names}: the release is not confirmed: {}", list(.nodes))]
    Unconfirmed {
        /// The names that were locked.
        names: String,
        /// The nodes that failed to answer, or answered with an error.
        nodes: Vec<NodeReport>,
    },
}

/// The error of an extension or a re-entry.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfirmError {
    /// The lock is lost.
    #[error("{names}: {lost}")]
    Lost {
        /// The names that were locked.
        names: String,
        /// How the lock was lost.
        lost: Lost,
    },
    /// Too few nodes answered. The lock is still held, and its validity is unchanged.
    #[error("{names}: not confirmed: {}", list(.nodes))]
    Unconfirmed {
        /// The names that are locked.
        names: String,
        /// The nodes that failed to answer, or answered with an error.
        nodes: Vec<NodeReport>,
    },
    /// The owner has reached the limit of entries of a read lock.
    #[error("{names}: entered {most} times, the limit of a read lock: release a guard first")]
    TooManyEntries {
        /// The names that are locked.
        names: String,
        /// The largest number of entries.
        most: u32,
    },
    /// The lease is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Names those who hold the lock, if any are known.
fn in_parentheses(clients: &[String]) -> String {
    match clients {
        [] => String::new(),
        clients => format!(" ({})", clients.join(", ")),
    }
}

/// Who holds the lock that was requested, as far as the client knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Holder {
    /// Other clients.
    Others,
    /// This client: it holds the lock through another guard, or its owner is acquiring it.
    ThisClient,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Holder::Others => "held by others",
            Holder::ThisClient => "held by this very client",
        })
    }
}

/// Advice for the caller of a contended acquisition.
fn advice(holder: Holder) -> &'static str {
    match holder {
        Holder::Others => "wait longer, or do something else",
        Holder::ThisClient => {
            "a task that waits for a lock it holds itself never gets it: release it first, or enter it again through its guard (reenter) or an Owner"
        }
    }
}

/// The name of the failure, because a single node has no quorum.
fn too_few(of: usize) -> &'static str {
    match of {
        1 => "no usable answer",
        _ => "no quorum",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_told_in_units_that_a_reader_can_use() {
        for (micros, told) in [
            (0, ""),
            (411, ""),
            (62_900, " in 62ms"),
            (2_450_000, " in 2.4s"),
            (30_099_000, " in 30s"),
        ] {
            assert_eq!(for_people(" in ", Duration::from_micros(micros)), told);
        }
    }
}
