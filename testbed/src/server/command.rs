//! Commands on a connection beside those of the clients.

use std::io;

use redis::{FromRedisValue, RedisResult};

use super::{Server, lock};
use crate::wait::BOUND;

/// The connection of [`Server::command`].
pub(super) struct Looking(redis::Connection);

impl std::fmt::Debug for Looking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Looking")
    }
}

impl Server {
    /// Sends a command on a separate connection.
    ///
    /// # Panics
    /// Panics if the answer is an error, or has another type.
    pub fn command<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_command(words)
            .unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// Sends a command on a separate connection.
    ///
    /// # Errors
    /// Returns the error of the server, or of the connection.
    pub fn try_command<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        let mut looking = lock(&self.looking);
        let answer = self.ask(&mut looking, words);
        if answer.as_ref().is_err_and(redis::RedisError::is_io_error) {
            *looking = None;
        }
        answer
    }

    /// Sends a command that must be accepted, whatever its answer is.
    ///
    /// # Errors
    /// Returns the error of the server, or of the connection, with the command.
    pub fn order(&self, words: &[&str]) -> io::Result<()> {
        self.try_command::<redis::Value>(words)
            .map(|_| ())
            .map_err(|error| {
                let words = words.iter().copied().take(4).collect::<Vec<_>>().join(" ");
                io::Error::other(format!("a server refused {words}: {error}"))
            })
    }

    fn ask<T: FromRedisValue>(
        &self,
        looking: &mut Option<Looking>,
        words: &[&str],
    ) -> RedisResult<T> {
        if looking.is_none() {
            *looking = Some(Looking(self.connect()?));
        }
        let Some(Looking(connection)) = looking else {
            unreachable!("it was made just now")
        };
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(*word);
        }
        command.query(connection)
    }

    /// Opens a blocking connection.
    ///
    /// # Errors
    /// Returns the error of the operating system.
    pub fn connect(&self) -> RedisResult<redis::Connection> {
        let connection = redis::Client::open(self.address())?.get_connection_with_timeout(BOUND)?;
        connection.set_read_timeout(Some(BOUND))?;
        Ok(connection)
    }

    /// Returns the process that listens on the port. A server that loads its data also answers INFO.
    pub(super) fn answering_pid(&self) -> Option<u32> {
        let info: String = self.try_command(&["INFO", "server"]).ok()?;
        let line = info.lines().find_map(|l| l.strip_prefix("process_id:"))?;
        line.trim().parse().ok()
    }

    pub(super) fn forget_connection(&self) {
        *lock(&self.looking) = None;
    }
}
