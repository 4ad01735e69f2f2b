//! A server in a process and a folder of its own: what servers of MariaDB, MongoDB and S3 have in common.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::guardian::Guardian;
use crate::port::free_port;
use crate::wait::within;

/// The longest time that a server may take until it answers, on a loaded machine.
const UP: Duration = Duration::from_secs(60);

/// A server with a free port of the loopback interface, which may run or not. When this value is dropped, or when this process is killed,
/// the server ends and its folder is removed.
#[derive(Debug)]
pub(crate) struct Lone {
    pub(crate) port: u16,
    running: Option<Guardian>,
    folder: TempDir,
}

impl Lone {
    /// Returns a server that is not started.
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("quorlock-").tempdir();
        Lone {
            port: free_port().expect("a free port"),
            running: None,
            folder: folder.expect("a temporary folder"),
        }
    }

    /// Starts the server by this command, and waits until it answers.
    pub(crate) fn start(&mut self, command: &[String], answers: impl Fn() -> bool) {
        let running = Guardian::start(self.folder.path(), command, &[]);
        self.running = Some(running.expect("it starts"));
        let is_up = within(UP, || answers().then_some(()));
        let output = || fs::read_to_string(self.path("output")).unwrap_or_default();
        assert!(is_up.is_some(), "the server does not start: {}", output());
    }

    /// Starts the server by this command, and waits until it takes connections.
    pub(crate) fn start_listening(&mut self, command: &[String]) {
        let port = self.port;
        self.start(command, || TcpStream::connect(("127.0.0.1", port)).is_ok());
    }

    /// Ends the server at once, as a crash does.
    pub(crate) fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill();
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.running.as_ref().expect("it runs").signal(signal);
    }

    /// The folder of the server.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of a file in the folder of the server.
    pub(crate) fn path(&self, name: &str) -> String {
        let path = self.folder().join(name);
        path.to_str().expect("UTF-8").to_owned()
    }
}

/// Gives a server the methods of its process. They are its own, and not reached by `Deref`: a trait of a test program that has methods of
/// the same names would come before those, and call itself.
macro_rules! is_lone {
    ($server:ty) => {
        impl $server {
            /// Returns the port of the server.
            #[must_use]
            pub fn port(&self) -> u16 {
                self.process.port
            }

            /// Ends the server at once, as a crash does.
            pub fn kill(&mut self) {
                self.process.kill();
            }

            /// Stops the server, until it is told to go on.
            ///
            /// # Panics
            /// Panics if it does not run.
            pub fn stop(&self) {
                self.process.signal(rustix::process::Signal::STOP);
            }

            /// Lets a stopped server go on.
            ///
            /// # Panics
            /// Panics if it does not run.
            pub fn go_on(&self) {
                self.process.signal(rustix::process::Signal::CONT);
            }
        }
    };
}
pub(crate) use is_lone;
