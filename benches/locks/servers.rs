//! The servers, and the figures that they report about the work.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use quorlock_testbed::postgres::Postgres;
use quorlock_testbed::relay::relay;
use quorlock_testbed::server::Server;

use crate::driver::program::Failure;

/// One server, or the members of a majority, perhaps with network delay.
pub(crate) struct Servers {
    servers: Vec<Server>,
    ports: Vec<u16>,
    database: Option<Postgres>,
}

impl Servers {
    /// Starts a server of databases, whose commits are on its disk.
    pub(crate) fn start_database() -> Self {
        Servers {
            servers: Vec::new(),
            ports: Vec::new(),
            database: Some(Postgres::start_with(&[])),
        }
    }

    pub(crate) fn start(nodes: usize, way: Duration) -> Self {
        let servers: Vec<_> = (0..nodes).map(|_| Server::start()).collect();
        let port = |server: &Server| {
            if way.is_zero() {
                server.port()
            } else {
                relay(server.port(), way)
            }
        };
        let ports = servers.iter().map(port).collect();
        let database = None;
        Servers {
            servers,
            ports,
            database,
        }
    }

    pub(crate) fn ports(&self) -> Vec<u16> {
        self.ports.clone()
    }

    pub(crate) fn database(&self) -> Option<String> {
        self.database.as_ref().map(Postgres::address)
    }

    /// Returns the processor time of all servers so far, in seconds.
    pub(crate) fn processor_seconds(&self) -> f64 {
        let of = |server: &Server| -> f64 {
            let info: String = server.command(&["INFO", "cpu"]);
            let seconds = |field: &str| {
                let line = info.lines().find_map(|line| line.strip_prefix(field));
                line.and_then(|line| line.trim().parse::<f64>().ok())
                    .unwrap_or(f64::NAN)
            };
            seconds("used_cpu_sys:") + seconds("used_cpu_user:")
        };
        let database = self.database.as_ref().map(Postgres::processor_seconds);
        self.servers.iter().map(of).chain(database).sum()
    }

    /// Starts to count the commands of clients with this name in them.
    pub(crate) fn count_commands(&self, name: &str) -> Result<Counting, Failure> {
        let count = |server: &Server| Counter::start(server.port(), name.to_owned());
        let counters: Result<_, Failure> = self.servers.iter().map(count).collect();
        Ok(Counting(counters?))
    }
}

/// Counts commands until it is read.
pub(crate) struct Counting(Vec<Counter>);

struct Counter {
    stream: TcpStream,
    counting: JoinHandle<usize>,
}

impl Counting {
    /// Returns the number of commands since the count began, without those that scripts call.
    pub(crate) fn commands(self) -> usize {
        let count = |counter: Counter| {
            let _ = counter.stream.shutdown(Shutdown::Both);
            counter.counting.join().unwrap_or(0)
        };
        self.0.into_iter().map(count).sum()
    }
}

impl Counter {
    fn start(port: u16, name: String) -> Result<Self, Failure> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.write_all(b"MONITOR\r\n")?;
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        lines
            .next()
            .ok_or("the server does not say what it does")??;
        let is_sent = move |line: &String| !line.contains(" lua] ") && line.contains(&name);
        let counting =
            std::thread::spawn(move || lines.map_while(Result::ok).filter(is_sent).count());
        Ok(Counter { stream, counting })
    }
}
