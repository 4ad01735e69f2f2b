//! Real `redis-server` processes.

mod command;
mod setup;
mod version;

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use self::command::Looking;
pub use self::setup::{Door, ServerSetup};
pub use self::version::{Product, Version, is_installed, programs, speaks_tls, version};
use crate::guardian::{Guardian, is_alive, state_of};
use crate::port::free_port;
use crate::wait::{BOUND, wait_until, within};

/// The longest time that a process may take until it answers, on a loaded machine.
const UP: Duration = Duration::from_secs(60);

/// How often a server is started on other ports, if another process has taken its port.
const ATTEMPTS: u32 = 20;

/// A `redis-server` that only its owner uses, on a free port of the loopback interface.
///
/// By default, it keeps nothing on disk. When this value is dropped, or when this process is killed, the server ends and
/// its folder is removed.
#[derive(Debug)]
pub struct Server {
    port: u16,
    /// The port for TLS, if the server has one.
    tls_port: Option<u16>,
    /// The port for the other nodes of a cluster.
    bus_port: u16,
    setup: ServerSetup,
    /// The options of the next start.
    options: Mutex<Vec<String>>,
    running: Mutex<Option<Guardian>>,
    looking: Mutex<Option<Looking>>,
    dir: TempDir,
}

impl Server {
    /// Starts a server that keeps nothing on disk.
    ///
    /// # Panics
    /// Panics if the server does not come up. The message has its output.
    #[must_use]
    pub fn start() -> Server {
        Server::start_with(&[])
    }

    /// Starts a server with further options, as on its command line: `&["--appendonly", "yes"]`.
    ///
    /// # Panics
    /// Panics if the server does not come up. The message has its output.
    #[must_use]
    pub fn start_with(options: &[&str]) -> Server {
        Server::start_by(&ServerSetup::new(options))
    }

    /// Starts the server of this program, one of [`programs`].
    ///
    /// # Panics
    /// Panics if the server does not come up. The message has its output.
    #[must_use]
    pub fn start_program(program: &str, options: &[&str]) -> Server {
        Server::start_by(&ServerSetup {
            program: program.to_owned(),
            ..ServerSetup::new(options)
        })
    }

    /// Starts a server that also speaks TLS on a separate port ([`Server::tls_port`]), with the certificate and the key
    /// of these options: `&["--tls-cert-file", ..]`.
    ///
    /// # Panics
    /// Panics if the server does not come up. The message has its output.
    #[must_use]
    pub fn start_encrypted(options: &[&str]) -> Server {
        Server::start_by(&ServerSetup {
            door: Door::Tls,
            ..ServerSetup::new(options)
        })
    }

    /// Starts a node of a cluster, which knows no other node and owns no slot yet.
    ///
    /// # Panics
    /// Panics if the server does not come up. The message has its output.
    #[must_use]
    pub fn start_in_cluster(options: &[&str]) -> Server {
        Server::start_with(&[&["--cluster-enabled", "yes"], options].concat())
    }

    fn start_by(setup: &ServerSetup) -> Server {
        Server::try_start(setup).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts a server.
    ///
    /// # Errors
    /// Returns what the server has written if it does not come up.
    pub fn try_start(setup: &ServerSetup) -> io::Result<Server> {
        Server::try_start_in(folder()?, setup)
    }

    /// Starts a server that works in this folder, in which files may already be.
    ///
    /// # Errors
    /// Returns what the server has written if it does not come up.
    pub fn try_start_in(dir: TempDir, setup: &ServerSetup) -> io::Result<Server> {
        let mut server = Server {
            port: 0,
            tls_port: None,
            bus_port: 0,
            options: Mutex::new(setup.options.clone()),
            setup: setup.clone(),
            running: Mutex::new(None),
            looking: Mutex::new(None),
            dir,
        };
        for _ in 0..ATTEMPTS {
            server.port = free_port()?;
            server.bus_port = free_port()?;
            if setup.door == Door::Tls {
                server.tls_port = Some(free_port()?);
            }
            if server.launch()? {
                server.try_wait_until_ready()?;
                return Ok(server);
            }
        }
        Err(io::Error::other("a server finds no free port"))
    }

    /// Returns the address of the server: `redis://127.0.0.1:<port>/`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Returns the port of the server, which stays the same after a restart.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the port for TLS.
    ///
    /// # Panics
    /// Panics if the server was not started with [`Door::Tls`].
    #[must_use]
    pub fn tls_port(&self) -> u16 {
        self.tls_port.expect("it speaks TLS")
    }

    /// Returns the port for the other nodes of the cluster, if the server is in a cluster.
    #[must_use]
    pub fn bus_port(&self) -> u16 {
        self.bus_port
    }

    /// Returns the folder of the server, which has its data, socket and output.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        self.dir.path().to_path_buf()
    }

    /// Returns the path of the server's Unix socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("redis.sock")
    }

    /// Returns the process id of the server.
    ///
    /// # Panics
    /// Panics if the server was killed.
    #[must_use]
    pub fn pid(&self) -> u32 {
        let running = lock(&self.running);
        running.as_ref().expect("the server was not killed").pid()
    }

    /// Returns whether the server was killed and has not been started again.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        lock(&self.running).is_none()
    }

    /// Returns whether the server runs or is stopped. It may also have ended by itself.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        lock(&self.running).as_ref().is_some_and(Guardian::is_alive)
    }

    /// Ends the server as a power cut does (SIGKILL), and waits until it is gone. Its folder stays.
    pub fn kill(&self) {
        let running = lock(&self.running).take();
        if let Some(running) = running {
            running.kill();
        }
        self.forget_connection();
    }

    /// Restarts the server with the same port and folder. Kills it first if it is running.
    ///
    /// # Panics
    /// Panics if the server does not come up.
    pub fn restart(&self) {
        self.try_restart().unwrap_or_else(|error| panic!("{error}"));
    }

    /// Restarts the server with the same port and folder. Kills it first if it is running.
    ///
    /// # Errors
    /// Returns what the server has written if it does not come up.
    pub fn try_restart(&self) -> io::Result<()> {
        self.relaunch()?;
        self.try_wait_until_ready()
    }

    /// Changes the options of later starts.
    pub fn set_options(&self, options: &[&str]) {
        *lock(&self.options) = options.iter().copied().map(String::from).collect();
    }

    /// Restarts the server with other options, which replace the previous ones.
    ///
    /// # Panics
    /// Panics if the server does not come up.
    pub fn restart_with(&self, options: &[&str]) {
        self.set_options(options);
        self.restart();
    }

    /// Restarts the server with other options, and does not wait until it has loaded its data.
    ///
    /// # Panics
    /// Panics if the server does not come up.
    pub fn relaunch_with(&self, options: &[&str]) {
        self.set_options(options);
        self.relaunch().unwrap_or_else(|error| panic!("{error}"));
    }

    /// Restarts the server if it was killed, and resumes it if it was stopped.
    ///
    /// # Panics
    /// Panics if the server does not come up.
    pub fn mend(&self) {
        if self.is_killed() {
            self.restart();
        } else {
            self.resume();
        }
    }

    /// Stops the server (SIGSTOP). Its connections stay open, but it answers nothing.
    ///
    /// # Panics
    /// Panics if the server was killed, or does not stop.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
        wait_until("the server is stopped", || self.is_stopped());
    }

    /// Resumes the server (SIGCONT).
    ///
    /// # Panics
    /// Panics if the server was killed, or does not resume.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
        wait_until("the server continues", || !self.is_stopped());
    }

    /// Returns whether the server is stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        let running = lock(&self.running);
        running
            .as_ref()
            .is_some_and(|running| state_of(running.pid()) == Some('T'))
    }

    /// Sends a signal to the server, and does not wait for its effect. A server that was killed ignores it.
    pub fn signal(&self, signal: Signal) {
        if let Some(running) = &*lock(&self.running) {
            running.signal(signal);
        }
    }

    /// Waits until the server answers PING, which it does when it has loaded its data.
    ///
    /// # Panics
    /// Panics if it does not do so within a minute.
    pub fn wait_until_ready(&self) {
        self.try_wait_until_ready()
            .unwrap_or_else(|error| panic!("{error}"));
    }

    fn try_wait_until_ready(&self) -> io::Result<()> {
        let ready = within(UP, || self.try_command::<String>(&["PING"]).ok());
        let why = || io::Error::other("a server does not load its data");
        ready.map(|_| ()).ok_or_else(why)
    }

    fn relaunch(&self) -> io::Result<()> {
        self.kill();
        // The server had the port a moment ago, but another process may have got it in the meantime.
        let launched = within(BOUND, || match self.launch() {
            Ok(false) => None,
            launched => Some(launched),
        });
        let why = || io::Error::other(format!("port {} does not become free again", self.port));
        launched.ok_or_else(why)?.map(|_| ())
    }

    /// Starts the process and waits until it answers. Returns `false` if another process has the port.
    fn launch(&self) -> io::Result<bool> {
        self.forget_connection();
        self.setup.write_configuration(self.dir.path())?;
        let mut command = self.setup.command(self.dir.path(), self.port);
        let options = lock(&self.options).clone();
        if let Some(port) = self.tls_port {
            command.extend(["--tls-port".to_owned(), port.to_string()]);
        }
        if options.iter().any(|option| option == "--cluster-enabled") {
            command.extend(["--cluster-port".to_owned(), self.bus_port.to_string()]);
        }
        command.extend(options);
        let said_before = self.output().len();
        let running = Guardian::start(self.dir.path(), &command, &self.setup.variables)?;
        let pid = running.pid();
        let up = within(UP, || match is_alive(pid) {
            false => Some(Up::Ended),
            true => self.answering_pid().map(|answering| {
                if answering == pid {
                    Up::Answers
                } else {
                    Up::PortTaken
                }
            }),
        });
        if let Some(Up::Answers) = up {
            *lock(&self.running) = Some(running);
            return Ok(true);
        }
        running.kill();
        self.forget_connection();
        let output = self.output();
        let output = output.get(said_before..).unwrap_or_default();
        if matches!(up, Some(Up::PortTaken)) || output.contains("Address already in use") {
            return Ok(false);
        }
        let program = &self.setup.program;
        Err(io::Error::other(format!(
            "{program} did not start: {output}"
        )))
    }

    /// Returns what the processes of this server have written.
    fn output(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("output")).unwrap_or_default()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a temporary folder for a server.
///
/// # Errors
/// Returns the error of the operating system.
pub fn folder() -> io::Result<TempDir> {
    tempfile::Builder::new().prefix("quorlock-").tempdir()
}

/// The outcome of starting a process.
enum Up {
    Answers,
    PortTaken,
    Ended,
}

/// Waits until a process is gone or is a zombie.
///
/// # Panics
/// Panics if the process still runs after ten seconds.
pub fn wait_until_gone(pid: u32) {
    wait_until("the process is gone", || !is_alive(pid));
}
