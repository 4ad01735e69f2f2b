//! The locks of the family, which are the rows of the table.

use quorlock::{ConfigError, Lock, Owner};
use quorlock_testbed::server::Server;

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

    /// Returns the driver's name for the lock.
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

    /// Returns the locks on the same names that exclude this lock and that it excludes.
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

    /// Returns the names that the lock locks if a test calls it `name`.
    pub(crate) fn names(self, name: &str) -> Vec<String> {
        match self {
            Mode::Multi => vec![name.to_owned(), format!("{name}/too")],
            _ => vec![name.to_owned()],
        }
    }

    /// Returns the servers on which the lock is locked.
    pub(crate) fn servers(self) -> &'static [Server] {
        let many = if self == Mode::Red { 3 } else { 1 };
        &servers()[..many]
    }

    /// Returns the smallest number of claims that a holder has: one under each name, or one on each server of a
    /// majority.
    pub(crate) fn needed(self) -> usize {
        self.names("").len() * (self.servers().len() / 2 + 1)
    }

    /// Returns the addresses of the servers that have the claims.
    pub(crate) fn addresses(self) -> Vec<String> {
        self.servers().iter().map(Server::address).collect()
    }

    /// Returns the lock in the driver's words.
    pub(crate) fn words(self, name: &str) -> String {
        let (names, addresses) = (self.names(name), self.addresses());
        format!(
            "{} {} {}",
            self.word(),
            names.join(","),
            addresses.join(",")
        )
    }

    /// Returns our lock.
    pub(crate) fn lock(self, owner: &Owner, name: &str) -> Result<Lock, ConfigError> {
        Ok(match self {
            Mode::Reentrant | Mode::Fenced | Mode::Red => owner.lock(name),
            Mode::Fair => owner.fair(name),
            Mode::Read => owner.read(name),
            Mode::Write => owner.write(name),
            Mode::Multi => owner.all(self.names(name)),
        })
    }
}
