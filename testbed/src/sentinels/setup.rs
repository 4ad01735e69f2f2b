//! What a Sentinel group is started with.

use std::io;
use std::time::Duration;

use super::NAME;
use crate::server::{Door, Server, ServerSetup};

/// Options with which a replica synchronizes without delay, and reports its offset often.
const SERVER: [&str; 6] = [
    "--repl-diskless-sync-delay",
    "0",
    "--repl-ping-replica-period",
    "1",
    "--repl-timeout",
    "60",
];

/// The members of a group, and how they are reached.
#[derive(Clone, Debug)]
pub struct GroupSetup {
    /// The number of servers. One of them is the primary.
    pub servers: usize,
    /// The number of sentinels.
    pub sentinels: usize,
    /// How many sentinels must consider the primary down before one of them begins a failover.
    pub quorum: usize,
    /// How long a server must be silent to count as down.
    pub down_after: Duration,
    /// The host of all members.
    pub host: &'static str,
    /// Which of their ports the members announce to each other and to clients.
    pub door: Door,
    /// Options of the servers.
    pub server_options: Vec<String>,
    /// Options of the sentinels.
    pub sentinel_options: Vec<String>,
    /// The first lines of the configuration of a sentinel.
    pub lines: Vec<String>,
}

impl GroupSetup {
    /// Returns the setup of a group on 127.0.0.1, without TLS, whose sentinels detect within half a second that the
    /// primary is down.
    #[must_use]
    pub fn new(servers: usize, sentinels: usize) -> GroupSetup {
        GroupSetup {
            servers,
            sentinels,
            quorum: sentinels.min(2),
            down_after: Duration::from_millis(500),
            host: "127.0.0.1",
            door: Door::Plain,
            server_options: Vec::new(),
            sentinel_options: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Returns the options of a server that starts as a primary.
    pub(super) fn primary_options(&self) -> Vec<&str> {
        let own = self.server_options.iter().map(String::as_str);
        SERVER.into_iter().chain(own).collect()
    }

    pub(super) fn start_server(&self, options: &[&str]) -> io::Result<Server> {
        let options = [&self.primary_options(), options].concat();
        Server::try_start(&ServerSetup {
            door: self.door,
            ..ServerSetup::new(&options)
        })
    }

    pub(super) fn start_sentinel(&self, primary: u16) -> io::Result<Server> {
        let down_after = self.down_after.as_millis();
        // Sentinels that voted for each other vote again after twice this time.
        let failover_timeout = 3 * down_after;
        let own = [
            format!(
                "sentinel monitor {NAME} {} {primary} {}",
                self.host, self.quorum
            ),
            format!("sentinel down-after-milliseconds {NAME} {down_after}"),
            format!("sentinel failover-timeout {NAME} {failover_timeout}"),
            format!("sentinel parallel-syncs {NAME} 2"),
        ];
        let options: Vec<&str> = self.sentinel_options.iter().map(String::as_str).collect();
        Server::try_start(&ServerSetup {
            door: self.door,
            configuration: self.lines.iter().cloned().chain(own).collect(),
            ..ServerSetup::new(&[&["--sentinel"], options.as_slice()].concat())
        })
    }

    pub(super) fn port(&self, member: &Server) -> u16 {
        match self.door {
            Door::Plain => member.port(),
            Door::Tls => member.tls_port(),
        }
    }
}
