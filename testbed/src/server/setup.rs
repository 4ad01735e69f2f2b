//! How a server is started.

use std::io;
use std::path::Path;

/// The name of a server's configuration file in its folder.
const CONFIGURATION: &str = "server.conf";

/// What a server is started with. By default, it keeps nothing on disk.
#[derive(Clone, Debug)]
pub struct ServerSetup {
    /// The program.
    pub program: String,
    /// Options, as on the command line: `["--appendonly", "yes"]`.
    pub options: Vec<String>,
    /// Lines of the configuration file, which a sentinel rewrites. Without lines there is no file.
    pub configuration: Vec<String>,
    /// The ports of the server.
    pub door: Door,
    /// Environment variables of the process.
    pub variables: Vec<(String, String)>,
}

/// Which ports a server has for clients, and which of them it announces in a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Door {
    /// A port that speaks Redis.
    #[default]
    Plain,
    /// A port that speaks TLS, which is announced, beside the plain one.
    Tls,
}

impl ServerSetup {
    /// Returns the setup of a `redis-server` with further options.
    #[must_use]
    pub fn new(options: &[&str]) -> ServerSetup {
        ServerSetup {
            program: "redis-server".to_owned(),
            options: options.iter().copied().map(String::from).collect(),
            configuration: Vec::new(),
            door: Door::Plain,
            variables: Vec::new(),
        }
    }

    /// Writes the configuration file, unless it is there: a sentinel writes what it learns into the file, and reads it
    /// after a restart.
    pub(super) fn write_configuration(&self, dir: &Path) -> io::Result<()> {
        let file = dir.join(CONFIGURATION);
        if self.configuration.is_empty() || file.exists() {
            return Ok(());
        }
        std::fs::write(file, self.configuration.join("\n") + "\n")
    }

    /// Returns the command line without the options.
    pub(super) fn command(&self, dir: &Path, port: u16) -> Vec<String> {
        let mut command = vec![self.program.clone()];
        if !self.configuration.is_empty() {
            command.push(dir.join(CONFIGURATION).display().to_string());
        }
        let own = [
            ("--port", port.to_string()),
            ("--bind", "127.0.0.1".to_owned()),
            ("--unixsocket", "redis.sock".to_owned()),
            ("--dir", dir.display().to_string()),
            ("--save", String::new()),
            ("--appendonly", "no".to_owned()),
        ];
        let own = own.into_iter();
        command.extend(own.flat_map(|(option, value)| [option.to_owned(), value]));
        command
    }
}
