//! The locks of the family: the rows of the table.

use quorlock::{ConfigError, Lock, Owner};
use quorlock_tests::server::Server;

use super::stage::servers;

/// A lock of the family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Mode {
    Reentrant,
    Fair,
    Read,
    Write,
    Fenced,
    Multi,
    Red,
}

impl Mode {
    pub(crate) const ALL: [Mode; 7] = [
        Mode::Reentrant,
        Mode::Fair,
        Mode::Read,
        Mode::Write,
        Mode::Fenced,
        Mode::Multi,
        Mode::Red,
    ];

    /// The driver's name for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Mode::Reentrant => "reentrant",
            Mode::Fair => "fair",
            Mode::Read => "read",
            Mode::Write => "write",
            Mode::Fenced => "fenced",
            Mode::Multi => "multi",
            Mode::Red => "red",
        }
    }

    /// The locks on the same names that exclude it, and that it excludes.
    pub(crate) fn rivals(self) -> &'static [Mode] {
        match self {
            Mode::Reentrant => &[Mode::Reentrant, Mode::Fenced],
            Mode::Fair => &[Mode::Fair],
            Mode::Read => &[Mode::Write],
            Mode::Write => &[Mode::Write, Mode::Read],
            Mode::Fenced => &[Mode::Fenced],
            Mode::Multi => &[Mode::Multi, Mode::Reentrant],
            Mode::Red => &[Mode::Red],
        }
    }

    /// The names that it locks, if a test calls it `name`.
    pub(crate) fn names(self, name: &str) -> Vec<String> {
        match self {
            Mode::Multi => vec![name.to_owned(), format!("{name}/too")],
            _ => vec![name.to_owned()],
        }
    }

    /// The servers that it is locked on.
    pub(crate) fn servers(self) -> &'static [Server] {
        let many = if self == Mode::Red { 3 } else { 1 };
        &servers()[..many]
    }

    /// The least number of claims of its holder: one under each name, or on a majority of the servers.
    pub(crate) fn needed(self) -> usize {
        self.names("").len() * (self.servers().len() / 2 + 1)
    }

    /// Where the claims are.
    pub(crate) fn addresses(self) -> Vec<String> {
        self.servers().iter().map(Server::address).collect()
    }

    /// The lock in the driver's words.
    pub(crate) fn words(self, name: &str) -> String {
        let (names, addresses) = (self.names(name), self.addresses());
        format!(
            "{} {} {}",
            self.word(),
            names.join(","),
            addresses.join(",")
        )
    }

    /// Our lock.
    pub(crate) fn lock(self, owner: &Owner, name: &str) -> Result<Lock, ConfigError> {
        Ok(match self {
            Mode::Reentrant | Mode::Fenced | Mode::Red => owner.lock(name),
            Mode::Fair => owner.fair(name),
            Mode::Read => owner.read(name),
            Mode::Write => owner.write(name),
            Mode::Multi => owner.all(self.names(name))?,
        })
    }
}
