//! The contestants: libraries, and the programs that work with them.
//!
//! Each contestant has processes of its own, which live through all turns of a case. A library of another language needs
//! one in any case, and then all of them pay the same for it: one thread for the client's tasks, one connection pool, no
//! other client's timers beside it. Turns of a fraction of a second make the contestants of one turn comparable, as they
//! would be in one process.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;

use crate::driver::DRIVER;

/// A library with its settings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub(crate) enum Contestant {
    Quorlock,
    /// Quorlock again: the difference between its figures and the first ones is the noise of the machine.
    Control,
    /// Quorlock without trust in nodes and clock margin: published Redlock, with tokens.
    Plain,
    /// Fair locks of Quorlock.
    Fair,
    /// A semaphore of Quorlock with ten permits.
    Permits,
    /// Ten locks of Quorlock, each for a tenth of the callers.
    TenLocks,
    /// A reader of Quorlock beside one other.
    Reader,
    /// The same again.
    ReaderAgain,
    /// A reader of Quorlock beside a thousand others.
    ReaderOfMany,
    /// The scripts of Quorlock without a client.
    Bare,
    /// Rows of a table without a client.
    Rows,
    /// No lock: the round trip of a PING.
    Ping,
    Rslock,
    Rlock,
    Redsync,
    Redisson,
    NodeRedlock,
}

use Contestant::{
    Bare, Control, Fair, NodeRedlock, Permits, Ping, Plain, Quorlock, Reader, ReaderAgain,
    ReaderOfMany, Redisson, Redsync, Rlock, Rows, Rslock, TenLocks,
};

impl Contestant {
    /// Returns whether this program can work with the library. run.sh builds the programs of the others.
    pub(crate) fn is_built_in(self) -> bool {
        !matches!(self, Rlock | Redsync | Redisson | NodeRedlock)
    }

    /// Returns the name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Control => "quorlock again",
            ReaderAgain => "quorlock reader again",
            ReaderOfMany => "quorlock reader beside 1,000",
            contestant => contestant.library(),
        }
    }

    /// Returns the name of the library in a job.
    pub(crate) fn library(self) -> &'static str {
        match self {
            Quorlock | Control => "quorlock",
            Plain => "quorlock without remedies",
            Fair => "quorlock fair",
            Permits => "quorlock semaphore",
            TenLocks => "quorlock ten locks",
            Reader | ReaderAgain | ReaderOfMany => "quorlock reader",
            Bare => "bare scripts",
            Rows => "rows by hand",
            Ping => "PING",
            Rslock => "rslock",
            Rlock => "rlock",
            Redsync => "redsync",
            Redisson => "redisson",
            NodeRedlock => "node-redlock",
        }
    }

    /// Returns how many other readers have the name.
    pub(crate) fn other_readers(self) -> usize {
        match self {
            ReaderOfMany => 1_000,
            _ => 1,
        }
    }

    /// Returns the program, without its job.
    pub(crate) fn program(self) -> std::io::Result<Command> {
        let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        Ok(match self {
            Rlock => Command::new(built().join("release/peers-rlock")),
            Redsync => Command::new(built().join("redsync")),
            Redisson => {
                let target = peers.join("redisson/target");
                let path = std::fs::read_to_string(target.join("classpath"))?;
                let path = format!("{}:{}", target.join("classes").display(), path.trim());
                let mut java = Command::new("java");
                java.args(["-cp", &path, "Driver"]);
                java
            }
            NodeRedlock => {
                let mut node = Command::new("node");
                node.arg(peers.join("node-redlock/main.js"));
                node
            }
            _ => {
                let mut this = Command::new(std::env::current_exe()?);
                this.arg(DRIVER);
                this
            }
        })
    }
}

/// Returns the folder in which run.sh builds.
fn built() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/peers")
}
