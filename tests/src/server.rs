//! Real `redis-server` processes.

mod port;
mod version;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use redis::{FromRedisValue, RedisResult};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use self::port::free_port;
pub use self::version::{Product, Version, is_installed, programs, speaks_tls, version};
use crate::guardian::{Guardian, state_of};
use crate::wait::{BOUND, wait_for, wait_until};

/// A `redis-server` that only this test uses, on a free port of the loopback interface.
///
/// By default, it keeps nothing on disk. When this value is dropped, or when the test process is killed, the server
/// ends and its folder is removed.
#[derive(Debug)]
pub struct Server {
    port: u16,
    /// The port for TLS, if the server has one.
    tls_port: Option<u16>,
    /// The port for the other nodes of a cluster.
    bus_port: u16,
    program: String,
    options: Vec<String>,
    /// The content of the configuration file, if the server has one.
    configuration: Option<String>,
    running: Option<Guardian>,
    looking: Mutex<Option<Looking>>,
    dir: TempDir,
}

/// The connection of [`Server::command`].
struct Looking(redis::Connection);

impl std::fmt::Debug for Looking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Looking")
    }
}

impl Server {
    /// Starts a server that keeps nothing on disk.
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
        Server::start_program("redis-server", options)
    }

    /// Starts the server of this program, one of [`programs`].
    ///
    /// # Panics
    /// Panics if the server does not come up. The message has its output.
    #[must_use]
    pub fn start_program(program: &str, options: &[&str]) -> Server {
        Server::start_on(program, None, options, || None)
    }

    /// Starts a server that also speaks TLS on a separate port ([`Server::tls_port`]), with the certificate and the key
    /// of these options: `&["--tls-cert-file", ..]`.
    ///
    /// # Panics
    /// Panics if the server does not come up. The message has its output.
    #[must_use]
    pub fn start_encrypted(options: &[&str]) -> Server {
        Server::start_on("redis-server", None, options, || Some(free_port()))
    }

    /// Starts a node of a cluster, which knows no other node and owns no slot yet.
    ///
    /// # Panics
    /// Panics if the server does not come up. The message has its output.
    #[must_use]
    pub fn start_in_cluster(options: &[&str]) -> Server {
        let options = [&["--cluster-enabled", "yes"], options].concat();
        Server::start_on("redis-server", None, &options, || None)
    }

    /// Starts a node of a cluster that also speaks TLS on a separate port, with the certificates of these options.
    ///
    /// # Panics
    /// Panics if the server does not come up. The message has its output.
    #[must_use]
    pub fn start_encrypted_in_cluster(options: &[&str]) -> Server {
        let options = [&["--cluster-enabled", "yes"], options].concat();
        Server::start_on("redis-server", None, &options, || Some(free_port()))
    }

    /// Starts a sentinel with these lines in its configuration file: `sentinel monitor ..`.
    ///
    /// # Panics
    /// Panics if the server does not come up. The message has its output.
    #[must_use]
    pub fn start_sentinel(lines: &[String], options: &[&str]) -> Server {
        Server::start_watching(lines, options, || None)
    }

    /// Starts a sentinel that also speaks TLS on a separate port, with the certificates of these options.
    ///
    /// # Panics
    /// Panics if the server does not come up. The message has its output.
    #[must_use]
    pub fn start_encrypted_sentinel(lines: &[String], options: &[&str]) -> Server {
        Server::start_watching(lines, options, || Some(free_port()))
    }

    fn start_watching(
        lines: &[String],
        options: &[&str],
        tls_port: impl Fn() -> Option<u16>,
    ) -> Server {
        let lines = lines.join("\n") + "\n";
        let options = [&["--sentinel"], options].concat();
        Server::start_on("redis-server", Some(lines), &options, tls_port)
    }

    fn start_on(
        program: &str,
        configuration: Option<String>,
        options: &[&str],
        tls_port: impl Fn() -> Option<u16>,
    ) -> Server {
        let options: Vec<String> = options.iter().copied().map(String::from).collect();
        wait_for("a server on a free port", || {
            let dir = tempfile::Builder::new()
                .prefix("quorlock-")
                .tempdir()
                .expect("a temporary folder");
            let mut server = Server {
                port: free_port(),
                tls_port: tls_port(),
                bus_port: free_port(),
                program: program.to_owned(),
                options: options.clone(),
                configuration: configuration.clone(),
                running: None,
                looking: Mutex::new(None),
                dir,
            };
            server.launch().then(|| {
                server.wait_until_ready();
                server
            })
        })
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
    /// Panics if the server was not started by [`Server::start_encrypted`].
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
        let running = self.running.as_ref();
        running.expect("the server was not killed").pid()
    }

    /// Returns whether the server was killed and has not been started again.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.running.is_none()
    }

    /// Ends the server as a power cut does (SIGKILL), and waits until it is gone.
    pub fn kill(&mut self) {
        self.forget_connection();
        if let Some(running) = self.running.take() {
            running.kill();
        }
    }

    /// Restarts the server with the same port, folder and options. Kills it first if it is running.
    ///
    /// # Panics
    /// Panics if the server does not come up.
    pub fn restart(&mut self) {
        self.relaunch();
        self.wait_until_ready();
    }

    /// Restarts the server with other options, which replace the previous ones.
    ///
    /// # Panics
    /// Panics if the server does not come up.
    pub fn restart_with(&mut self, options: &[&str]) {
        self.options = options.iter().copied().map(String::from).collect();
        self.restart();
    }

    /// Restarts the server with other options, and does not wait until it has loaded its data.
    ///
    /// # Panics
    /// Panics if the server does not come up.
    pub fn relaunch_with(&mut self, options: &[&str]) {
        self.options = options.iter().copied().map(String::from).collect();
        self.relaunch();
    }

    /// Stops the server (SIGSTOP). Its connections stay open, but it answers nothing.
    ///
    /// # Panics
    /// Panics if the server was killed, or does not stop.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
        wait_until("the server is stopped", || {
            state_of(self.pid()) == Some('T')
        });
    }

    /// Resumes the server (SIGCONT).
    ///
    /// # Panics
    /// Panics if the server was killed, or does not resume.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
        wait_until("the server continues", || state_of(self.pid()) != Some('T'));
    }

    /// Sends a command on a separate connection of the test.
    ///
    /// # Panics
    /// Panics if the answer is an error, or has another type.
    pub fn command<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_command(words)
            .unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// Sends a command on a separate connection of the test.
    ///
    /// # Errors
    /// Returns the error of the server, or of the connection.
    pub fn try_command<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        let mut looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = self.ask(&mut looking, words);
        if answer.as_ref().is_err_and(redis::RedisError::is_io_error) {
            *looking = None;
        }
        answer
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

    /// Waits until the server answers PING, which it does when it has loaded its data.
    ///
    /// # Panics
    /// Panics if it does not do so within ten seconds.
    pub fn wait_until_ready(&self) {
        wait_until("the server answers PING", || {
            self.try_command::<String>(&["PING"]).is_ok()
        });
    }

    fn relaunch(&mut self) {
        self.kill();
        // The server had the port a moment ago, but another process may have got it in the meantime.
        wait_until("the server's own port is free again", || self.launch());
    }

    /// Starts the process and waits until it answers. Returns `false` if another process has the port.
    fn launch(&mut self) -> bool {
        self.forget_connection();
        let file = self.configuration.as_ref().map(|lines| {
            let file = self.dir.path().join("server.conf");
            // A sentinel writes what it learns into the file, and reads it after a restart.
            if !file.exists() {
                std::fs::write(&file, lines).expect("the folder can be written to");
            }
            file.display().to_string()
        });
        let mut arguments: Vec<String> = [
            ("--port", self.port.to_string()),
            ("--bind", "127.0.0.1".into()),
            ("--unixsocket", "redis.sock".into()),
            ("--dir", self.dir.path().display().to_string()),
            ("--save", String::new()),
            ("--appendonly", "no".into()),
        ]
        .into_iter()
        .flat_map(|(option, value)| [option.to_string(), value])
        .collect();
        arguments.splice(0..0, file);
        let tls_port = self.tls_port.map(|port| port.to_string());
        arguments.extend(
            tls_port
                .into_iter()
                .flat_map(|port| ["--tls-port".into(), port]),
        );
        if self
            .options
            .iter()
            .any(|option| option == "--cluster-enabled")
        {
            arguments.extend(["--cluster-port".into(), self.bus_port.to_string()]);
        }
        arguments.extend(self.options.iter().cloned());
        let running = Guardian::start(self.dir.path(), &self.program, &arguments);
        let pid = running.pid();
        self.running = Some(running);
        let up = wait_for("the server comes up", || match state_of(pid) {
            None | Some('Z') => Some(Up::Ended),
            Some(_) => self.answering_pid().map(|answering| {
                if answering == pid {
                    Up::Answers
                } else {
                    Up::PortTaken
                }
            }),
        });
        match up {
            Up::Answers => return true,
            Up::PortTaken => self.kill(),
            Up::Ended => {
                self.kill();
                let output = std::fs::read_to_string(self.dir.path().join("output"));
                let output = output.unwrap_or_default();
                assert!(
                    output.contains("Address already in use"),
                    "redis-server did not start: {output}"
                );
            }
        }
        false
    }

    /// Returns the process that listens on the port. A server that loads its data also answers INFO.
    fn answering_pid(&self) -> Option<u32> {
        let info: String = self.try_command(&["INFO", "server"]).ok()?;
        let line = info.lines().find_map(|l| l.strip_prefix("process_id:"))?;
        line.trim().parse().ok()
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).expect("process ids are small");
        let pid = Pid::from_raw(pid).expect("process ids are not zero");
        kill_process(pid, signal).expect("the server is there");
    }

    fn forget_connection(&self) {
        *self.looking.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
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
    wait_until("the process is gone", || {
        matches!(state_of(pid), None | Some('Z'))
    });
}
