//! A real `redis-server` on a port of the loopback interface. The port stays the same after a restart.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue, RedisResult};
use tempfile::TempDir;

use super::clock;
use super::guardian::{Folder, Guardian};
use super::preload::{Preload, ProcessClocks};
use quorlock_sim_plan::Persistence;

/// The longest time that a server may take to start, on a loaded machine.
const BOUND: Duration = Duration::from_secs(60);

/// The name of a server's configuration file in its folder.
const CONFIGURATION: &str = "server.conf";

/// A real Redis server. Dropping it ends the server and removes its folder; so does killing the command.
#[derive(Debug)]
pub(super) struct Node {
    port: u16,
    persistence: Persistence,
    /// Additional command-line options.
    options: Vec<String>,
    /// The content of the configuration file, if the server has one. A sentinel rewrites the file.
    configuration: Option<String>,
    follows: Follows,
    clock: Option<ProcessClocks>,
    running: Option<Guardian>,
    /// The lengths of the append-only file, each with the time of its reading.
    lengths: VecDeque<(u64, u64)>,
    dir: TempDir,
}

impl Node {
    pub(super) async fn start(
        persistence: Persistence,
        options: &[String],
        preload: Option<&Preload>,
    ) -> io::Result<Node> {
        Node::start_with(persistence, options, None, preload).await
    }

    /// Starts a sentinel with these lines in its configuration file: `sentinel monitor ..`.
    pub(super) async fn start_sentinel(lines: &[String]) -> io::Result<Node> {
        let options = ["--sentinel".to_owned()];
        let lines = lines.join("\n") + "\n";
        Node::start_with(Persistence::Memory, &options, Some(lines), None).await
    }

    /// Starts a node of a cluster, which knows no other node and owns no slot yet.
    pub(super) async fn start_in_cluster(
        persistence: Persistence,
        options: &[String],
    ) -> io::Result<Node> {
        // The usual port for the other nodes, 10,000 above, may be a port that the system uses for outgoing
        // connections.
        let bus = free_port()?.to_string();
        let own = ["--cluster-enabled", "yes", "--cluster-port", &bus].map(str::to_owned);
        let options = [&own, options].concat();
        Node::start_with(persistence, &options, None, None).await
    }

    async fn start_with(
        persistence: Persistence,
        options: &[String],
        configuration: Option<String>,
        preload: Option<&Preload>,
    ) -> io::Result<Node> {
        let dir = tempfile::Builder::new()
            .prefix("quorlock-chaos-")
            .tempdir()?;
        let clock = preload
            .map(|preload| preload.install(dir.path()))
            .transpose()?;
        let mut node = Node {
            port: free_port()?,
            persistence,
            options: options.to_vec(),
            configuration,
            follows: Follows::Nothing,
            clock,
            running: None,
            lengths: VecDeque::new(),
            dir,
        };
        for _ in 0..20 {
            if node.launch().await? {
                return Ok(node);
            }
            node.port = free_port()?;
        }
        Err(io::Error::other(
            "no redis-server could be started on a free port",
        ))
    }

    /// Returns the port of the server, which stays the same after a restart.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the wall clock of the server, if the run can change it.
    pub(super) fn clock(&mut self) -> Option<&mut ProcessClocks> {
        self.clock.as_mut()
    }

    /// Connects the command to a server.
    pub(super) async fn connect(port: u16) -> RedisResult<MultiplexedConnection> {
        Node::connect_for(port, Duration::from_secs(2)).await
    }

    /// Connects the command to a server that may take this long to answer.
    pub(super) async fn connect_for(
        port: u16,
        answers: Duration,
    ) -> RedisResult<MultiplexedConnection> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{port}/"))?;
        let config = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(Some(Duration::from_secs(1)))
            .set_response_timeout(Some(answers));
        client
            .get_multiplexed_async_connection_with_config(&config)
            .await
    }

    /// Sends a command to a server. Returns `None` if the server is down, or answers with an error.
    pub(super) async fn ask<T: FromRedisValue>(port: u16, words: &[&str]) -> Option<T> {
        let mut connection = Node::connect(port).await.ok()?;
        let mut command = Cmd::new();
        command.arg(words);
        command.query_async(&mut connection).await.ok()
    }

    /// Makes the server a replica or a primary, now and after restarts.
    pub(super) async fn follow(&mut self, follows: Follows) -> io::Result<()> {
        self.follows = follows;
        let [host, port] = follows.words();
        let wrong = |error: redis::RedisError| io::Error::other(error.to_string());
        let mut connection = Node::connect(self.port).await.map_err(wrong)?;
        let mut replicaof = redis::cmd("REPLICAOF");
        let done = replicaof.arg(host).arg(port).query_async(&mut connection);
        done.await.map_err(wrong)
    }

    /// Makes the server start as a primary from now on, whatever it was told before.
    pub(super) fn restart_as_primary(&mut self) {
        self.follows = Follows::Nothing;
    }

    /// Stops the server at an arbitrary instruction.
    pub(super) fn pause(&self) {
        self.running.iter().for_each(Guardian::pause);
    }

    /// Resumes the server.
    pub(super) fn resume(&self) {
        self.running.iter().for_each(Guardian::resume);
    }

    /// Kills the server (SIGKILL), and waits until it has ended. Its folder stays.
    pub(super) async fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.end(Folder::Kept).await;
        }
    }

    /// Ends the server as a power cut does: removes from the append-only file what was written within the last `loses`
    /// nanoseconds.
    async fn lose_power(&mut self, loses: u64) -> io::Result<()> {
        self.look_at_length();
        let until = clock::now().saturating_sub(loses);
        self.kill().await;
        let kept = self.lengths.iter().rev().find(|(at, _)| *at <= until);
        let kept = kept.map_or(0, |(_, length)| *length);
        if let Some(path) = self.appended() {
            let file = std::fs::OpenOptions::new().write(true).open(path)?;
            let length = file.metadata()?.len();
            file.set_len(length.min(kept))?;
        }
        self.lengths.clear();
        // What survives this power cut also survives the next one.
        let length = self.appended().and_then(|path| path.metadata().ok());
        self.lengths
            .push_back((0, length.map_or(0, |length| length.len())));
        Ok(())
    }

    /// Crashes the server, and restarts it after `lasts` with the data that its persistence kept.
    pub(super) async fn crash(&mut self, lasts: Duration) -> io::Result<()> {
        match self.persistence {
            // After a crash, the operating system still has everything that was written. So only a power cut loses
            // data.
            Persistence::EverySecond => self.lose_power(1_000_000_000).await?,
            Persistence::Memory | Persistence::EveryWrite => self.kill().await,
        }
        clock::sleep(lasts).await;
        self.restart().await
    }

    /// Ends the server by a power cut, and restarts it after `lasts` without the latest writes.
    pub(super) async fn lose_power_for(
        &mut self,
        loses: Duration,
        lasts: Duration,
    ) -> io::Result<()> {
        let loses = u64::try_from(loses.as_nanos()).unwrap_or(u64::MAX);
        self.lose_power(loses).await?;
        clock::sleep(lasts).await;
        self.restart().await
    }

    /// Returns whether the process of the server is alive.
    pub(super) fn is_alive(&self) -> bool {
        self.running.as_ref().is_some_and(Guardian::is_alive)
    }

    /// Ends the server for good, and removes its folder.
    pub(super) async fn end(&mut self) {
        if let Some(running) = self.running.take() {
            running.end(Folder::Removed).await;
        }
    }

    /// Records the current length of the append-only file.
    pub(super) fn look_at_length(&mut self) {
        let length = self.appended().and_then(|path| path.metadata().ok());
        if let Some(length) = length {
            self.lengths.push_back((clock::now(), length.len()));
        }
        // The readings of half a minute, one every 20 ms.
        while 1_500 < self.lengths.len() {
            self.lengths.pop_front();
        }
    }

    /// Returns the path of the append-only file.
    fn appended(&self) -> Option<PathBuf> {
        if self.persistence == Persistence::Memory {
            return None;
        }
        let is_incremental = |path: &Path| {
            path.extension().is_some_and(|end| end == "aof")
                && path.to_string_lossy().contains(".incr.")
        };
        let files = std::fs::read_dir(self.dir.path().join("appendonlydir"));
        let files = files
            .into_iter()
            .flatten()
            .flatten()
            .map(|file| file.path());
        let last = files.filter(|path| is_incremental(path)).max();
        // Before Redis 7 there is a single file.
        last.or_else(|| Some(self.dir.path().join("appendonly.aof")).filter(|path| path.exists()))
    }

    /// Restarts the server on its port with the data that its persistence kept, and waits until the data is loaded.
    pub(super) async fn restart(&mut self) -> io::Result<()> {
        self.kill().await;
        // The port was free a moment ago, but another process may have got it since.
        for _ in 0..200 {
            if self.launch().await? {
                return Ok(());
            }
            clock::sleep(Duration::from_millis(20)).await;
        }
        let port = self.port;
        Err(io::Error::other(format!(
            "port {port} does not become free again"
        )))
    }

    /// Starts the process and waits until it answers `PING`. Returns `false` if another process uses the port.
    async fn launch(&mut self) -> io::Result<bool> {
        let variables = self.clock.as_ref().map(ProcessClocks::variables);
        // Replication and `DEBUG RELOAD` write this file, which is no part of the server's persistence.
        let _ = std::fs::remove_file(self.dir.path().join("dump.rdb"));
        let file = self.dir.path().join(CONFIGURATION);
        if let Some(lines) = self.configuration.as_ref().filter(|_| !file.exists()) {
            std::fs::write(&file, lines)?;
        }
        let running = Guardian::start(
            self.dir.path(),
            &self.command(),
            &variables.unwrap_or_default(),
        )?;
        let (pid, port) = (running.pid(), self.port);
        let up = clock::wait_for(BOUND, async || {
            if !running.is_alive() {
                return Some(Up::Ended);
            }
            let pid_there = answering_pid(port).await?;
            Some(if pid_there == pid {
                Up::Answers
            } else {
                Up::PortTaken
            })
        });
        match up.await {
            Some(Up::Answers) => {
                self.running = Some(running);
                return Ok(true);
            }
            Some(Up::Ended | Up::PortTaken) | None => running.end(Folder::Kept).await,
        }
        let output = std::fs::read_to_string(self.dir.path().join("output")).unwrap_or_default();
        if output.contains("Address already in use") {
            return Ok(false);
        }
        let said: Vec<&str> = output.lines().rev().take(5).collect();
        let said = said.join(" / ");
        Err(io::Error::other(format!(
            "redis-server did not start: {said}"
        )))
    }

    fn command(&self) -> Vec<String> {
        let (appends, syncs) = match self.persistence {
            Persistence::Memory => ("no", "no"),
            Persistence::EverySecond => ("yes", "everysec"),
            Persistence::EveryWrite => ("yes", "always"),
        };
        let port = self.port.to_string();
        let dir = self.dir.path().display().to_string();
        let words = [
            "redis-server",
            "--port",
            &port,
            "--bind",
            "127.0.0.1",
            "--dir",
            &dir,
            "--save",
            "",
            "--appendonly",
            appends,
            "--appendfsync",
            syncs,
            "--auto-aof-rewrite-percentage",
            "0",
            "--loglevel",
            "warning",
        ];
        let words = words.into_iter().map(str::to_owned);
        let mut words: Vec<String> = words.chain(self.options.iter().cloned()).collect();
        if self.configuration.is_some() {
            // The file is the first argument.
            let file = self.dir.path().join(CONFIGURATION);
            words.insert(1, file.display().to_string());
        }
        if let Follows::Port(_) = self.follows {
            words.push("--replicaof".to_owned());
            words.extend(self.follows.words());
        }
        words
    }
}

/// The role of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Follows {
    /// The server is a primary.
    Nothing,
    /// The server is a replica of the server behind this port.
    Port(u16),
}

impl Follows {
    fn words(self) -> [String; 2] {
        match self {
            Follows::Nothing => ["NO".to_owned(), "ONE".to_owned()],
            Follows::Port(port) => ["127.0.0.1".to_owned(), port.to_string()],
        }
    }
}

/// The result of starting a process.
enum Up {
    Answers,
    PortTaken,
    Ended,
}

/// Returns the id of the process that answers at a port, when that process has loaded its data.
async fn answering_pid(port: u16) -> Option<u32> {
    let mut connection = Node::connect(port).await.ok()?;
    let _: String = redis::cmd("PING").query_async(&mut connection).await.ok()?;
    let mut info = redis::cmd("INFO");
    let info: String = info.arg("server").query_async(&mut connection).await.ok()?;
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("process_id:"))?;
    line.trim().parse().ok()
}

/// Returns a port that was free a moment ago and that this process has not returned before.
///
/// The port is below the range that the system uses for outgoing connections, so that it is still free after a
/// restart.
fn free_port() -> io::Result<u16> {
    const FIRST: u16 = 12_000;
    const MANY: u16 = 20_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let of_this_process = u16::try_from(std::process::id() % u32::from(MANY)).unwrap_or(0);
    let mut last = None;
    for _ in 0..MANY {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (of_this_process.wrapping_mul(61).wrapping_add(next)) % MANY;
        match std::net::TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::other("no free port")))
}
