//! A Sentinel group of real processes: a primary, its replicas, and sentinels.

mod setup;

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

pub use self::setup::GroupSetup;
use crate::server::{Door, Server};
use crate::wait::{ELECTED, patiently, within};

/// The sentinels' name for the primary.
pub const NAME: &str = "mymaster";

/// Periods of a sentinel, in milliseconds.
const PERIODS: [&str; 12] = [
    "info-period",
    "200",
    // After five of these periods, the report of a replica is too old for its promotion. While the primary is down,
    // replicas report once a second.
    "ping-period",
    "300",
    "ask-period",
    "100",
    "publish-period",
    "200",
    // The pause after which a sentinel assumes that its machine was suspended is longer than usual.
    "tilt-trigger",
    "20000",
    "tilt-period",
    "1000",
];

/// A group of real processes.
#[derive(Debug)]
pub struct SentinelGroup {
    setup: GroupSetup,
    servers: Vec<Server>,
    sentinels: Vec<Server>,
}

impl SentinelGroup {
    /// Starts a group of three servers and three sentinels, and waits until its members know each other.
    ///
    /// # Panics
    /// Panics if the group does not come up.
    #[must_use]
    pub fn start() -> SentinelGroup {
        SentinelGroup::start_of(3, 3)
    }

    /// Starts a group with these numbers of servers and sentinels.
    ///
    /// # Panics
    /// Panics if the group does not come up.
    #[must_use]
    pub fn start_of(servers: usize, sentinels: usize) -> SentinelGroup {
        SentinelGroup::start_by(GroupSetup::new(servers, sentinels))
    }

    /// Starts a group, and waits until its members know each other.
    ///
    /// # Panics
    /// Panics if the group does not come up.
    #[must_use]
    pub fn start_by(setup: GroupSetup) -> SentinelGroup {
        SentinelGroup::try_start(setup, ELECTED).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts a group, and waits until its members know each other.
    ///
    /// # Errors
    /// Returns the error of a member that does not come up, or what the group lacks after `bound`.
    pub fn try_start(setup: GroupSetup, bound: Duration) -> io::Result<SentinelGroup> {
        let primary = setup.start_server(&[])?;
        let port = setup.port(&primary);
        let mut servers = vec![primary];
        let follows = ["--replicaof", setup.host, &port.to_string()];
        for _ in 1..setup.servers {
            servers.push(setup.start_server(&follows)?);
        }
        let mut sentinels = Vec::new();
        for _ in 0..setup.sentinels {
            let sentinel = setup.start_sentinel(port)?;
            hasten(&sentinel)?;
            sentinels.push(sentinel);
        }
        let group = SentinelGroup {
            setup,
            servers,
            sentinels,
        };
        group.try_settle(bound)?;
        Ok(group)
    }

    /// Restarts killed members, resumes stopped ones, and waits until all know each other.
    ///
    /// # Panics
    /// Panics if that does not happen.
    pub fn mend(&self) {
        self.servers.iter().for_each(Server::mend);
        for sentinel in &self.sentinels {
            if sentinel.is_killed() {
                let restarted = self.restart_sentinel(sentinel);
                restarted.unwrap_or_else(|error| panic!("{error}"));
            }
            sentinel.mend();
        }
        self.settle();
    }

    /// Restarts a sentinel, which keeps what it knows, but not its periods.
    ///
    /// # Errors
    /// Returns the error of a sentinel that does not come up.
    pub fn restart_sentinel(&self, sentinel: &Server) -> io::Result<()> {
        sentinel.try_restart()?;
        hasten(sentinel)
    }

    /// Makes a server start as a primary from now on. The sentinels then say which primary it follows.
    pub fn start_as_primary(&self, server: &Server) {
        server.set_options(&self.setup.primary_options());
    }

    /// Returns the address of the group, with the sentinels in this order.
    #[must_use]
    pub fn address(&self) -> String {
        self.address_by(&self.sentinels.iter().collect::<Vec<_>>())
    }

    /// Returns the address of the group with only these sentinels.
    #[must_use]
    pub fn address_by(&self, sentinels: &[&Server]) -> String {
        let host = match self.setup.host {
            host if host.contains(':') => format!("[{host}]"),
            host => host.to_owned(),
        };
        let mut address = String::from(match self.setup.door {
            Door::Plain => "redis+sentinel://",
            Door::Tls => "rediss+sentinel://",
        });
        for (number, sentinel) in sentinels.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            let _ = write!(address, "{comma}{host}:{}", self.setup.port(sentinel));
        }
        address + "/" + NAME
    }

    /// Returns the servers of the group, one of which is the primary.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Returns the sentinels of the group.
    #[must_use]
    pub fn sentinels(&self) -> &[Server] {
        &self.sentinels
    }

    /// Returns the index of the primary. It must report that role, and every sentinel that answers must name it.
    #[must_use]
    pub fn primary(&self) -> Option<usize> {
        let mut named = self.working_sentinels().filter_map(named_by);
        let port = named.next()?;
        if named.any(|other| other != port) {
            return None;
        }
        let mut servers = self.servers.iter();
        let index = servers.position(|server| self.setup.port(server) == port)?;
        let server = self.servers.get(index)?;
        (role(server).as_deref() == Some("master")).then_some(index)
    }

    /// Returns the sentinels that are neither killed nor stopped.
    fn working_sentinels(&self) -> impl Iterator<Item = &Server> {
        let works = |sentinel: &&Server| sentinel.is_alive() && !sentinel.is_stopped();
        self.sentinels.iter().filter(works)
    }

    /// Waits until another server is the primary, according to all members that answer.
    ///
    /// # Panics
    /// Panics if that does not happen.
    #[must_use]
    pub fn wait_for_another(&self, before: usize) -> usize {
        patiently("another server is the primary", || self.another(before))
    }

    /// Returns the index of the primary, if that is another server.
    #[must_use]
    pub fn another(&self, before: usize) -> Option<usize> {
        self.primary().filter(|index| *index != before)
    }

    /// Orders a sentinel, counted in circles, to begin a failover. Returns whether it obeys: it refuses while another
    /// failover is in progress.
    #[must_use]
    pub fn order_failover(&self, number: usize) -> bool {
        let mut sentinels = self.sentinels.iter().cycle();
        let sentinel = sentinels.nth(number % self.sentinels.len().max(1));
        let order = ["SENTINEL", "FAILOVER", NAME];
        sentinel.is_some_and(|sentinel| sentinel.order(&order).is_ok())
    }

    /// Makes a sentinel begin a failover, as an operator does, and waits until another server is the primary.
    ///
    /// A sentinel of a busy machine may abort a failover, and does not begin it again while the primary works. So it gets the order
    /// again, which it refuses while a failover is in progress.
    ///
    /// # Panics
    /// Panics if that does not happen.
    pub fn fail_over(&self, before: usize) -> usize {
        patiently("another server is the primary", || {
            if self.primary() == Some(before) {
                let _ = self.order_failover(0);
            }
            self.another(before)
        })
    }

    /// Waits until all sentinels agree, and every other server is a replica that is connected to the primary. The
    /// sentinels must report this, too. Returns the index of the primary.
    ///
    /// # Panics
    /// Panics if that does not happen.
    pub fn settle(&self) -> usize {
        self.try_settle(ELECTED)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Waits until all sentinels agree, and every other server is a replica that is connected to the primary. The
    /// sentinels must report this, too, without those that are killed or stopped. Returns the index of the primary.
    ///
    /// # Errors
    /// Returns what the group lacks after `bound`.
    pub fn try_settle(&self, bound: Duration) -> io::Result<usize> {
        let mut lacks = "";
        let primary = within(bound, || match self.settled() {
            Ok(primary) => Some(primary),
            Err(why) => {
                lacks = why;
                None
            }
        });
        let why = || io::Error::other(format!("a Sentinel group does not settle: {lacks}"));
        primary.ok_or_else(why)
    }

    fn settled(&self) -> Result<usize, &'static str> {
        let primary = self.primary().ok_or("its members name no primary")?;
        let replicas = self.servers.len() - 1;
        let info: Option<String> = self
            .servers
            .get(primary)
            .and_then(|server| server.try_command(&["INFO", "replication"]).ok());
        if info.unwrap_or_default().matches("state=online").count() != replicas {
            return Err("its primary lacks a replica");
        }
        for sentinel in self.working_sentinels() {
            if !self.knows_all(sentinel) {
                return Err("a sentinel does not know the whole group");
            }
        }
        Ok(primary)
    }

    /// Returns whether a sentinel considers the primary up, and knows all other sentinels and all replicas, which
    /// follow the primary.
    fn knows_all(&self, sentinel: &Server) -> bool {
        let state: Vec<String> = sentinel
            .try_command(&["SENTINEL", "MASTER", NAME])
            .unwrap_or_default();
        let told: Vec<Vec<String>> = sentinel
            .try_command(&["SENTINEL", "SLAVES", NAME])
            .unwrap_or_default();
        let fit = told.iter().filter(|replica| {
            has(replica, "flags", "slave") && has(replica, "master-link-status", "ok")
        });
        let (replicas, others) = (self.servers.len() - 1, self.sentinels.len() - 1);
        has(&state, "num-slaves", &replicas.to_string())
            && has(&state, "num-other-sentinels", &others.to_string())
            && has(&state, "flags", "master")
            && fit.count() == replicas
    }
}

/// Returns whether a list of fields and values has this field with this value.
fn has(fields: &[String], field: &str, value: &str) -> bool {
    let mut pairs = fields.chunks_exact(2);
    pairs.any(|pair| pair == [field, value])
}

/// Returns the port of the server that a sentinel names as the primary.
#[must_use]
pub fn named_by(sentinel: &Server) -> Option<u16> {
    let words = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME];
    let told: (String, u16) = sentinel.try_command(&words).ok()?;
    Some(told.1)
}

/// Returns the role that a server reports.
#[must_use]
pub fn role(server: &Server) -> Option<String> {
    let info: String = server.try_command(&["INFO", "replication"]).ok()?;
    let role = info.lines().find_map(|line| line.strip_prefix("role:"))?;
    Some(role.trim().to_owned())
}

/// Shortens a sentinel's periods, which it does not keep in its configuration file.
fn hasten(sentinel: &Server) -> io::Result<()> {
    sentinel.order(&[["SENTINEL", "DEBUG"].as_slice(), &PERIODS].concat())
}
