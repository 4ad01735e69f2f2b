//! A server of a run, whose power can fail and whose clock can be set. Its port stays the same after a restart.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use quorlock_sim_plan::Persistence;
use quorlock_testbed::server::{Server, ServerSetup, folder};
use rustix::process::Signal;

use super::append_log::AppendLog;
use super::blocking::blocking;
use super::clock;
use super::preload::{Preload, ProcessClocks};

/// A server of a run. Dropping it ends the server and removes its folder; so does killing the command.
#[derive(Debug)]
pub(super) struct Node {
    server: Arc<Server>,
    persistence: Persistence,
    /// The options of a primary.
    options: Vec<String>,
    clock: Option<ProcessClocks>,
    log: AppendLog,
}

impl Node {
    pub(super) async fn start(
        persistence: Persistence,
        options: &[String],
        preload: Option<&Preload>,
    ) -> io::Result<Node> {
        let options = [persistent(persistence), options.to_vec()].concat();
        let dir = folder()?;
        let clock = preload
            .map(|preload| preload.install(dir.path()))
            .transpose()?;
        let variables = clock.as_ref().map(ProcessClocks::variables);
        let setup = ServerSetup {
            variables: variables.unwrap_or_default(),
            ..ServerSetup::new(&words(&options))
        };
        let server = blocking(move || Server::try_start_in(dir, &setup)).await?;
        Ok(Node {
            server: Arc::new(server),
            persistence,
            options,
            clock,
            log: AppendLog::default(),
        })
    }

    /// Returns the port of the server, which stays the same after a restart.
    pub(super) fn port(&self) -> u16 {
        self.server.port()
    }

    /// Returns the wall clock of the server, if the run can change it.
    pub(super) fn clock(&mut self) -> Option<&mut ProcessClocks> {
        self.clock.as_mut()
    }

    /// Runs work that waits for the server.
    async fn on<T: Send + 'static>(&self, work: impl FnOnce(&Server) -> T + Send + 'static) -> T {
        let server = Arc::clone(&self.server);
        blocking(move || work(&server)).await
    }

    /// Makes the server a replica or a primary, now and after restarts.
    pub(super) async fn follow(&self, follows: Follows) -> io::Result<()> {
        let (host, port) = match follows {
            Follows::Nothing => ("NO", "ONE".to_owned()),
            Follows::Port(port) => ("127.0.0.1", port.to_string()),
        };
        let mut options = words(&self.options);
        if let Follows::Port(_) = follows {
            options.extend(["--replicaof", host, &port]);
        }
        self.server.set_options(&options);
        self.on(move |server| server.order(&["REPLICAOF", host, &port]))
            .await
    }

    /// Stops the server at an arbitrary instruction.
    pub(super) fn pause(&self) {
        self.server.signal(Signal::STOP);
    }

    /// Resumes the server.
    pub(super) fn resume(&self) {
        self.server.signal(Signal::CONT);
    }

    /// Kills the server (SIGKILL), and waits until it has ended. Its folder stays.
    pub(super) async fn kill(&self) {
        self.on(Server::kill).await;
    }

    /// Ends the server as a power cut does: removes from the append-only file what was written within the last `loses`
    /// nanoseconds.
    async fn lose_power(&mut self, loses: u64) -> io::Result<()> {
        self.look_at_length();
        let until = clock::now().saturating_sub(loses);
        self.kill().await;
        self.log.cut(&self.server.dir(), until)
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
        self.server.is_alive()
    }

    /// Records the current length of the append-only file.
    pub(super) fn look_at_length(&mut self) {
        if self.persistence != Persistence::Memory {
            self.log.look(&self.server.dir());
        }
    }

    /// Restarts the server on its port with the data that its persistence kept, and waits until the data is loaded.
    pub(super) async fn restart(&self) -> io::Result<()> {
        self.on(restart).await
    }
}

/// Restarts a server with the data that its persistence kept.
pub(super) fn restart(server: &Server) -> io::Result<()> {
    server.kill();
    // Replication and `DEBUG RELOAD` write this file, which is no part of the server's persistence.
    let _ = std::fs::remove_file(server.dir().join("dump.rdb"));
    server.try_restart()
}

/// Returns the options of a server that keeps its data in this way.
pub(super) fn persistent(persistence: Persistence) -> Vec<String> {
    let (appends, syncs) = match persistence {
        Persistence::Memory => ("no", "no"),
        Persistence::EverySecond => ("yes", "everysec"),
        Persistence::EveryWrite => ("yes", "always"),
    };
    let options = [
        "--appendonly",
        appends,
        "--appendfsync",
        syncs,
        "--auto-aof-rewrite-percentage",
        "0",
        "--loglevel",
        "warning",
    ];
    options.map(str::to_owned).to_vec()
}

/// Returns options as the test bed takes them.
fn words(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}

/// The role of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Follows {
    /// The server is a primary.
    Nothing,
    /// The server is a replica of the server behind this port.
    Port(u16),
}
