//! What can go wrong, one enum an operation, each saying what to do.

mod config;
mod connect;

use std::fmt;
use std::time::Duration;

use quorlock_core::message::Mode;
use quorlock_core::renewal::Lost;
use quorlock_core::transport::TransportError;
use quorlock_core::trust::Why;

pub use self::config::{ConfigError, LeaseSource};
pub use self::connect::ConnectError;

/// What one node had to say.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NodeReport {
    /// Which node, without credentials.
    pub address: String,
    /// Its error, or `None` if it did not answer in time or is quarantined.
    pub error: Option<TransportError>,
    /// Why its vote was not counted, if that is what was wrong with it.
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
    /// Why.
    pub why: Why,
    /// For how much longer, if that is known: until this client, or one that has watched the node for longer, declares
    /// it trusted.
    pub left: Option<Duration>,
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

/// What stands in the way, as far as a client that asks in this mode can tell: a fair lock that is held has the layout of
/// a plain one.
fn standing(asked: Mode, found: Mode) -> String {
    match (asked, found) {
        (Mode::Read | Mode::Write, Mode::Plain) => "plain or fair lock".to_owned(),
        _ => found.to_string(),
    }
}

/// How long something was tried, as people say it.
fn for_people(span: Duration) -> String {
    let millis = span.as_millis();
    if millis == 0 {
        // A try against a server that refuses at once: "0ns" would read as a fault of the message.
        return "less than 1ms".to_owned();
    }
    let step = if millis < 1_000 { 1 } else { 100 };
    let millis = u64::try_from(millis / step * step).unwrap_or(u64::MAX);
    format!("{:?}", Duration::from_millis(millis))
}

fn list(reports: &[NodeReport]) -> String {
    let lines: Vec<_> = reports.iter().map(ToString::to_string).collect();
    lines.join("; ")
}

/// Why a lock was not acquired. Nothing stays behind: what nodes granted is given back.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// Others held it all the time.
    #[error(
        "{names}: {holder}, tried for {}; {}",
        for_people(*.tried),
        advice(*.holder)
    )]
    Contended {
        /// What was to be locked.
        names: String,
        /// How long it was tried.
        tried: Duration,
        /// Who holds it.
        holder: Holder,
    },
    /// Too few nodes answered, or too few of those that did are trusted yet.
    #[error("{names}: {} in {}: {}", too_few(*.of), for_people(*.tried), list(.nodes))]
    NoQuorum {
        /// What was to be locked.
        names: String,
        /// How long it was tried.
        tried: Duration,
        /// How many nodes a name of the lock has.
        of: usize,
        /// The nodes that did not answer, or with an error, or are quarantined.
        nodes: Vec<NodeReport>,
    },
    /// So many nodes refuse in a way that waiting does not cure that no quorum is left: a login, rights, a key that is no
    /// lock, a database or a command that the server does not have.
    #[error("{names}: refused, and waiting does not help: {}", list(.nodes))]
    Refused {
        /// What was to be locked.
        names: String,
        /// The nodes that refused or did not answer, each with what it said and what to do.
        nodes: Vec<NodeReport>,
    },
    /// The nodes answered, but so slowly that nothing was left of the lease.
    #[error(
        "{names}: the nodes were too slow for a lease of {lease:?}, tried for {}; ask for a longer one",
        for_people(*.tried)
    )]
    TooSlow {
        /// What was to be locked.
        names: String,
        /// How long it was tried.
        tried: Duration,
        /// The lease that was asked for.
        lease: Duration,
    },
    /// A lock of another mode stands under the name.
    #[error(
        "{names}: asked for a {asked}, but a {} stands under the name; use one mode per name",
        standing(*asked, *found)
    )]
    OtherMode {
        /// What was to be locked.
        names: String,
        /// What was asked for.
        asked: Mode,
        /// What is there.
        found: Mode,
    },
    /// The owner holds some of the names already, by another lock, and would wait for itself.
    #[error(
        "{names}: the owner holds {held} already and would wait for itself; release that first"
    )]
    Overlap {
        /// What was to be locked.
        names: String,
        /// What is held.
        held: String,
    },
    /// The owner reads, and cannot become the writer: it would wait for itself.
    #[error(
        "{names}: the owner holds the read lock and would wait for itself; release it before you ask for the write lock"
    )]
    Upgrade {
        /// What was to be locked.
        names: String,
    },
    /// The owner has entered the read lock as often as it can be entered.
    #[error("{names}: entered {most} times, and a read lock can be no more: release a guard first")]
    TooManyEntries {
        /// What was to be locked.
        names: String,
        /// How often it can be entered.
        most: u32,
    },
    /// The lease cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The client was closed, or the runtime that it was made on has ended.
    #[error("the client was closed, or the runtime that it was made on has ended: make a new one")]
    Closed,
}

/// Why a release did not end as it should.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The nodes say that it was not ours any more: the work under it may have overlapped with another owner's. After
    /// a release whose answer got lost it may also mean that the release was executed.
    #[error(
        "{names}: was not held any more when it was released; the work may have overlapped with another holder's"
    )]
    NotHeld {
        /// What was locked.
        names: String,
    },
    /// Too few nodes answered. The release goes on in the background; the lease ends what it cannot reach.
    #[error("{names}: the release is not confirmed: {}", list(.nodes))]
    Unconfirmed {
        /// What was locked.
        names: String,
        /// The nodes that did not answer, or with an error.
        nodes: Vec<NodeReport>,
    },
}

/// Why a hold was not extended or entered again.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfirmError {
    /// The lock is lost.
    #[error("{names}: {lost}")]
    Lost {
        /// What was locked.
        names: String,
        /// How it was lost.
        lost: Lost,
    },
    /// Too few nodes answered. The lock is held as before, for as long as it was.
    #[error("{names}: not confirmed: {}", list(.nodes))]
    Unconfirmed {
        /// What is locked.
        names: String,
        /// The nodes that did not answer, or with an error.
        nodes: Vec<NodeReport>,
    },
    /// The owner has entered the read lock as often as it can be entered.
    #[error("{names}: entered {most} times, and a read lock can be no more: release a guard first")]
    TooManyEntries {
        /// What is locked.
        names: String,
        /// How often it can be entered.
        most: u32,
    },
    /// The lease cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Who holds what was to be locked, as far as the client knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Holder {
    /// Other clients.
    Others,
    /// This very client: a guard of its own is out, or its owner is acquiring it.
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

/// What helps against contention.
fn advice(holder: Holder) -> &'static str {
    match holder {
        Holder::Others => "wait longer, or do something else",
        Holder::ThisClient => {
            "a task that waits for what it holds itself waits in vain: release it first, or enter it again by its guard (reenter) or an Owner"
        }
    }
}

/// Of one node there is no quorum.
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
            (0, "less than 1ms"),
            (411, "less than 1ms"),
            (62_900, "62ms"),
            (2_450_000, "2.4s"),
            (30_099_000, "30s"),
        ] {
            assert_eq!(for_people(Duration::from_micros(micros)), told);
        }
    }
}
