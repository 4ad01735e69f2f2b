//! A Sentinel group of real processes: a primary, two replicas, three sentinels.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::server::Server;
use crate::wait::{BOUND, wait_until};

/// The sentinels' name for the primary.
pub const NAME: &str = "mymaster";

/// How many sentinels must consider the primary down and elect one of themselves.
const QUORUM: usize = 2;

/// Which ports the members of a group announce to each other and to clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Door {
    /// The ports that speak Redis.
    #[default]
    Plain,
    /// The ports that speak TLS.
    Tls,
}

/// How the members of a group are reached.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The host of all members.
    pub host: &'static str,
    /// Which of the ports are announced.
    pub door: Door,
    /// Options of the servers.
    pub servers: Vec<String>,
    /// Options of the sentinels.
    pub sentinels: Vec<String>,
    /// The first lines of the configuration of a sentinel.
    pub lines: Vec<String>,
}

impl Default for Reach {
    /// 127.0.0.1, without TLS.
    fn default() -> Self {
        Reach {
            host: "127.0.0.1",
            door: Door::Plain,
            servers: Vec::new(),
            sentinels: Vec::new(),
            lines: Vec::new(),
        }
    }
}

impl Reach {
    fn start_server(&self, options: &[&str]) -> Server {
        let own = self.servers.iter().map(String::as_str);
        let options: Vec<&str> = SERVER
            .into_iter()
            .chain(own)
            .chain(options.iter().copied())
            .collect();
        match self.door {
            Door::Plain => Server::start_with(&options),
            Door::Tls => Server::start_encrypted(&options),
        }
    }

    fn start_sentinel(&self, port: u16, quorum: usize) -> Server {
        let lines = [self.lines.clone(), configuration(self.host, port, quorum)].concat();
        let options: Vec<&str> = self.sentinels.iter().map(String::as_str).collect();
        match self.door {
            Door::Plain => Server::start_sentinel(&lines, &options),
            Door::Tls => Server::start_encrypted_sentinel(&lines, &options),
        }
    }

    fn port(&self, member: &Server) -> u16 {
        match self.door {
            Door::Plain => member.port(),
            Door::Tls => member.tls_port(),
        }
    }
}

/// A group whose sentinels detect within half a second that the primary is down.
#[derive(Debug)]
pub struct SentinelGroup {
    reach: Reach,
    servers: Vec<Server>,
    sentinels: Vec<Server>,
}

impl SentinelGroup {
    /// Starts a group, and waits until its members know each other.
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
        SentinelGroup::start_by(Reach::default(), servers, sentinels)
    }

    /// Starts a group with these numbers of servers and sentinels, which are reached in another way.
    ///
    /// # Panics
    /// Panics if the group does not come up.
    #[must_use]
    pub fn start_by(reach: Reach, servers: usize, sentinels: usize) -> SentinelGroup {
        let primary = reach.start_server(&[]);
        let port = reach.port(&primary);
        let mut group = SentinelGroup {
            reach,
            servers: vec![primary],
            sentinels: Vec::new(),
        };
        let reach = &group.reach;
        for _ in 1..servers {
            let port = port.to_string();
            let replica = reach.start_server(&["--replicaof", reach.host, &port]);
            group.servers.push(replica);
        }
        for _ in 0..sentinels {
            let sentinel = reach.start_sentinel(port, QUORUM.min(sentinels));
            group.sentinels.push(sentinel);
        }
        for sentinel in &group.sentinels {
            hasten(sentinel);
        }
        group.settle();
        group
    }

    /// Restarts killed members, resumes stopped ones, and waits until all know each other.
    ///
    /// # Panics
    /// Panics if that does not happen.
    pub fn mend(&mut self) {
        for server in &mut self.servers {
            mend(server);
        }
        for sentinel in &mut self.sentinels {
            if mend(sentinel) == Mended::Restarted {
                hasten(sentinel);
            }
        }
        self.settle();
    }

    /// Returns the address of the group, with the sentinels in this order.
    #[must_use]
    pub fn address(&self) -> String {
        self.address_by(&self.sentinels.iter().collect::<Vec<_>>())
    }

    /// Returns the address of the group with only these sentinels.
    #[must_use]
    pub fn address_by(&self, sentinels: &[&Server]) -> String {
        let host = match self.reach.host {
            host if host.contains(':') => format!("[{host}]"),
            host => host.to_owned(),
        };
        let mut address = String::from(match self.reach.door {
            Door::Plain => "redis+sentinel://",
            Door::Tls => "rediss+sentinel://",
        });
        for (number, sentinel) in sentinels.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            let _ = write!(address, "{comma}{host}:{}", self.reach.port(sentinel));
        }
        address + "/" + NAME
    }

    /// Returns the servers of the group, one of which is the primary.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Returns one of the servers.
    ///
    /// # Panics
    /// Panics if there is no such server.
    pub fn server_mut(&mut self, index: usize) -> &mut Server {
        self.servers.get_mut(index).expect("there is such a server")
    }

    /// Returns the sentinels of the group.
    #[must_use]
    pub fn sentinels(&self) -> &[Server] {
        &self.sentinels
    }

    /// Returns one of the sentinels.
    ///
    /// # Panics
    /// Panics if there is no such sentinel.
    pub fn sentinel_mut(&mut self, index: usize) -> &mut Server {
        self.sentinels
            .get_mut(index)
            .expect("there is such a sentinel")
    }

    /// Returns the index of the primary. It must report that role, and every sentinel that answers must name it.
    #[must_use]
    pub fn primary(&self) -> Option<usize> {
        let mut named = self.sentinels.iter().filter_map(named_by);
        let port = named.next()?;
        if named.any(|other| other != port) {
            return None;
        }
        let mut servers = self.servers.iter();
        let index = servers.position(|server| self.reach.port(server) == port)?;
        let server = self.servers.get(index)?;
        (role(server).as_deref() == Some("master")).then_some(index)
    }

    /// Waits until another server is the primary, according to all members that answer.
    ///
    /// # Panics
    /// Panics if that does not happen.
    #[must_use]
    pub fn wait_for_another(&self, before: usize) -> usize {
        patiently("another server is the primary", || {
            self.primary().filter(|index| *index != before)
        })
    }

    /// Makes a sentinel begin a failover, as an operator does, and waits until another server is the primary.
    ///
    /// # Panics
    /// Panics if that does not happen.
    pub fn fail_over(&self, before: usize) -> usize {
        patiently("the sentinel begins a failover", || {
            let words = ["SENTINEL", "FAILOVER", NAME];
            self.sentinels.first()?.try_command::<()>(&words).ok()
        });
        self.wait_for_another(before)
    }

    /// Waits until all sentinels agree, and every other server is a replica that is connected to the primary. The
    /// sentinels must report this, too.
    ///
    /// # Panics
    /// Panics if that does not happen.
    pub fn settle(&self) -> usize {
        let primary = patiently("the sentinels agree on a primary", || {
            self.primary().filter(|index| self.is_followed(*index))
        });
        let (replicas, others) = (self.servers.len() - 1, self.sentinels.len() - 1);
        for sentinel in &self.sentinels {
            wait_until("a sentinel knows the whole group", || {
                let state = state_of(sentinel);
                let is = |field: &str, value: &str| {
                    state.iter().any(|(key, has)| key == field && has == value)
                };
                is("num-slaves", &replicas.to_string())
                    && is("num-other-sentinels", &others.to_string())
                    && is("flags", "master")
            });
            wait_until("a sentinel finds all replicas fit", || {
                let words = ["SENTINEL", "SLAVES", NAME];
                let told: Vec<Vec<String>> = sentinel.try_command(&words).unwrap_or_default();
                let fit = told.iter().filter(|replica| {
                    let has = |field: &str, value: &str| {
                        let mut pairs = replica.chunks_exact(2);
                        pairs.any(|pair| {
                            pair.first().is_some_and(|k| k == field)
                                && pair.last().is_some_and(|v| v == value)
                        })
                    };
                    has("flags", "slave") && has("master-link-status", "ok")
                });
                fit.count() == replicas
            });
        }
        primary
    }

    /// Returns whether all other servers follow this one, and have all of its data.
    fn is_followed(&self, primary: usize) -> bool {
        let Some(primary) = self.servers.get(primary) else {
            return false;
        };
        let info: String = primary
            .try_command(&["INFO", "replication"])
            .unwrap_or_default();
        info.matches("state=online").count() == self.servers.len() - 1
    }
}

/// Waits for a failover. Sentinels that voted for each other vote again seconds later, several times if necessary.
///
/// # Panics
/// Panics after half a minute. The message has `what`.
pub fn patiently<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + 3 * BOUND;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            Instant::now() < until,
            "{:?} were not enough: {what}",
            3 * BOUND
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What was necessary to mend a process.
#[derive(PartialEq)]
enum Mended {
    Restarted,
    Resumed,
}

fn mend(server: &mut Server) -> Mended {
    if server.is_killed() {
        server.restart();
        return Mended::Restarted;
    }
    server.resume();
    Mended::Resumed
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

/// Options with which a replica synchronizes without delay, and reports its offset often.
const SERVER: [&str; 6] = [
    "--repl-diskless-sync-delay",
    "0",
    "--repl-ping-replica-period",
    "1",
    "--repl-timeout",
    "60",
];

/// Returns the configuration of a sentinel.
#[must_use]
pub fn configuration(host: &str, port: u16, quorum: usize) -> Vec<String> {
    vec![
        format!("sentinel monitor {NAME} {host} {port} {quorum}"),
        format!("sentinel down-after-milliseconds {NAME} 500"),
        format!("sentinel failover-timeout {NAME} 1500"),
        format!("sentinel parallel-syncs {NAME} 2"),
    ]
}

/// Shortens a sentinel's timeouts, and lengthens the pause after which it assumes that its machine was suspended.
fn hasten(sentinel: &Server) {
    let periods = [
        ("info-period", "200"),
        // After five of these periods, the report of a replica is too old for its promotion. While the primary is
        // down, replicas report once a second.
        ("ping-period", "300"),
        ("ask-period", "100"),
        ("publish-period", "200"),
        ("tilt-trigger", "20000"),
        ("tilt-period", "1000"),
    ];
    let mut words = vec!["SENTINEL", "DEBUG"];
    words.extend(
        periods
            .iter()
            .flat_map(|(period, millis)| [*period, *millis]),
    );
    sentinel.command::<()>(&words);
}

fn state_of(sentinel: &Server) -> Vec<(String, String)> {
    let told: Vec<String> = sentinel
        .try_command(&["SENTINEL", "MASTER", NAME])
        .unwrap_or_default();
    let pairs = told.chunks_exact(2);
    pairs
        .filter_map(|pair| match pair {
            [key, value] => Some((key.clone(), value.clone())),
            _ => None,
        })
        .collect()
}
