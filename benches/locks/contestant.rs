//! The libraries that are measured.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;

/// A library, and the program that works with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub(crate) enum Peer {
    Quorlock,
    /// Quorlock again: the difference between its figures and the first ones is the noise of the machine.
    Control,
    /// The scripts of Quorlock without a client.
    Bare,
    Rslock,
    Rlock,
    Redsync,
    Redisson,
    NodeRedlock,
}

impl Peer {
    pub(crate) const ALL: [Peer; 8] = [
        Peer::Quorlock,
        Peer::Control,
        Peer::Bare,
        Peer::Rslock,
        Peer::Rlock,
        Peer::Redsync,
        Peer::Redisson,
        Peer::NodeRedlock,
    ];

    /// Returns whether the library works on this many servers, in this many processes.
    pub(crate) fn works_on(self, nodes: usize, processes: usize) -> bool {
        let is_small = !matches!(self, Peer::Redisson | Peer::NodeRedlock);
        // Ten virtual machines next to five servers would measure the machine.
        let knows_majorities = !matches!(self, Peer::Rlock | Peer::Bare);
        (nodes == 1 || knows_majorities) && (processes <= 2 || is_small)
    }

    /// Returns the program, without its job.
    pub(crate) fn program(self, folder: &Path) -> Command {
        match self {
            Peer::Quorlock | Peer::Control | Peer::Bare | Peer::Rslock | Peer::Rlock => {
                Command::new(built(folder).join("release/peers-rust"))
            }
            Peer::Redsync => Command::new(built(folder).join("redsync")),
            Peer::Redisson => {
                let target = folder.join("redisson/target");
                let path = std::fs::read_to_string(target.join("classpath")).unwrap_or_default();
                let mut java = Command::new("java");
                java.arg("-cp")
                    .arg(format!(
                        "{}:{}",
                        target.join("classes").display(),
                        path.trim()
                    ))
                    .arg("Driver");
                java
            }
            Peer::NodeRedlock => {
                let mut node = Command::new("node");
                node.arg(folder.join("node-redlock/main.js"));
                node
            }
        }
    }

    /// Returns the program's name for the library.
    pub(crate) fn library(self) -> &'static str {
        match self {
            Peer::Quorlock | Peer::Control => "quorlock",
            Peer::Bare => "bare scripts",
            Peer::Rslock => "rslock",
            Peer::Rlock => "rlock",
            Peer::Redsync => "redsync",
            Peer::Redisson => "redisson",
            Peer::NodeRedlock => "node-redlock",
        }
    }
}

/// Returns the folder in which run.sh builds.
fn built(folder: &Path) -> PathBuf {
    folder.join("../../target/peers")
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Peer::Control => "quorlock again",
            peer => peer.library(),
        })
    }
}
