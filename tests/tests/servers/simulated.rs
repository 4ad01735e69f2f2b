//! Tests that the simulated server answers as a real one does, byte for byte.
//!
//! The commands are in `simulated/*.txt`, as a person would type them. A number before a colon selects the connection,
//! `raw` sends bytes, and `hello3` changes to RESP3 (the reply to `HELLO` differs between servers).

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, wait_until};
use quorlock_tests::requests::wall_clock;
use redis_sim::{Condition, Server as Simulated, SessionId, WallMicros};

server_tests![
    commands_are_answered_alike,
    scripts_are_answered_alike,
    a_password_is_asked_for_alike,
    WORDS_OF_REDIS: a_replica_refuses_writes_alike,
    WORDS_OF_REDIS: a_server_without_memory_refuses_alike,
    WORDS_OF_REDIS: a_busy_server_refuses_alike,
];

/// The version whose error texts the simulated server has. Other versions word some errors differently.
const VERSION: &str = "7.0.";

/// The same connections to both servers.
struct Both<'a> {
    real: &'a Server,
    simulated: Simulated,
    connections: BTreeMap<u8, (TcpStream, SessionId)>,
}

impl<'a> Both<'a> {
    fn new(real: &'a Server) -> Self {
        Both {
            real,
            simulated: Simulated::new(1),
            connections: BTreeMap::new(),
        }
    }

    fn connect(&mut self, number: u8) {
        if !self.connections.contains_key(&number) {
            let stream = TcpStream::connect(("127.0.0.1", self.real.port())).unwrap();
            stream.set_read_timeout(Some(BOUND)).unwrap();
            let session = self.simulated.open_session();
            self.connections.insert(number, (stream, session));
        }
    }

    /// Sends bytes to both servers, and compares their replies on all connections.
    fn send(&mut self, number: u8, bytes: &[u8]) {
        self.connect(number);
        let (stream, session) = &mut self.connections.get_mut(&number).unwrap();
        self.simulated.receive(*session, now(), bytes);
        // A server that has closed the connection accepts no more bytes.
        let _ = stream.write_all(bytes);
        for (number, (stream, session)) in &mut self.connections {
            let expected = self.simulated.take_output(*session);
            let said = read(stream, expected.len());
            assert_eq!(
                String::from_utf8_lossy(&expected),
                String::from_utf8_lossy(&said),
                "on connection {number}, after {:?}: the simulated server, then the real one",
                String::from_utf8_lossy(bytes)
            );
        }
    }

    /// Checks that neither server sends anything more.
    fn end(mut self) {
        for number in self.connections.keys().copied().collect::<Vec<_>>() {
            self.send(number, b"QUIT\r\n");
            let (stream, session) = self.connections.get_mut(&number).unwrap();
            assert!(self.simulated.is_closing(*session));
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
            assert_eq!(
                String::from_utf8_lossy(&rest),
                "",
                "the real server says more"
            );
        }
    }
}

fn now() -> WallMicros {
    WallMicros::from_millis(wall_clock().0)
}

/// Reads this many bytes, or fewer if no more arrive.
fn read(stream: &mut TcpStream, len: usize) -> Vec<u8> {
    let mut said = vec![0; len];
    let mut at = 0;
    while at < len {
        match stream.read(&mut said[at..]) {
            Ok(0) | Err(_) => break,
            Ok(read) => at += read,
        }
    }
    said.truncate(at);
    said
}

/// Returns whether the server is of the version whose texts the simulated server has.
fn is_comparable(server: &Server) -> bool {
    let info: String = server.command(&["INFO", "server"]);
    let is_comparable = info.contains(&format!("redis_version:{VERSION}"));
    if !is_comparable {
        println!("not compared: the server is not of version {VERSION}x");
    }
    is_comparable
}

fn compare(text: &str) {
    let server = Server::start();
    if !is_comparable(&server) {
        return;
    }
    let groups = text.split("\n\n").filter(|group| !group.trim().is_empty());
    for group in groups {
        server.command::<()>(&["FLUSHALL"]);
        server.command::<()>(&["SCRIPT", "FLUSH"]);
        let mut both = Both::new(&server);
        for line in group.lines().filter(|line| !line.starts_with('#')) {
            ask(&mut both, line);
        }
        both.end();
    }
}

fn ask(both: &mut Both<'_>, line: &str) {
    let (number, line) = match line.split_once(": ") {
        Some((number, line)) if number.len() == 1 => (number.parse().unwrap(), line),
        _ => (1, line),
    };
    if line == "hello3" {
        both.connect(number);
        let (stream, session) = both.connections.get_mut(&number).unwrap();
        let request = b"HELLO 3\r\nECHO end\r\n";
        both.simulated.receive(*session, now(), request);
        let said = both.simulated.take_output(*session);
        assert!(said.ends_with(b"$3\r\nend\r\n"));
        stream.write_all(request).unwrap();
        let mut said = Vec::new();
        while !said.ends_with(b"$3\r\nend\r\n") {
            said.extend(read(stream, 1));
        }
    } else if let Some(bytes) = line.strip_prefix("raw ") {
        let bytes = bytes.replace("\\r", "\r").replace("\\n", "\n");
        both.send(number, bytes.as_bytes());
    } else {
        both.send(number, format!("{line}\r\n").as_bytes());
    }
}

async fn commands_are_answered_alike() {
    compare(include_str!("simulated/commands.txt"));
}

async fn scripts_are_answered_alike() {
    compare(include_str!("simulated/scripts.txt"));
}

async fn a_password_is_asked_for_alike() {
    let server = Server::start();
    if !is_comparable(&server) {
        return;
    }
    server.command::<()>(&["CONFIG", "SET", "requirepass", "hunter2"]);
    let mut both = Both::new(&server);
    both.simulated = Simulated::new(1).with_password("hunter2");
    for line in [
        "PING",
        "nope",
        "GET",
        "AUTH wrong",
        "AUTH default wrong",
        "HELLO 2",
        "HELLO 2 AUTH default wrong",
        "AUTH default hunter2",
        "PING",
        "RESET",
        "GET a",
        "AUTH hunter2",
        "GET a",
    ] {
        ask(&mut both, line);
    }
    ask(&mut both, "2: *11");
    both.end();
}

async fn a_replica_refuses_writes_alike() {
    // The server cannot find its primary, but answers anyway.
    let server = Server::start_with(&["--replicaof", "127.0.0.1", "1"]);
    let mut both = Both::new(&server);
    both.simulated.follow(&Simulated::new(2));
    for line in [
        "GET a",
        "SET a 1",
        "EVAL \"return redis.call('GET','a')\" 0",
        "EVAL \"return redis.call('SET','a',1)\" 0",
        "EVAL \"return redis.pcall('SET','a',1)\" 0",
        "PUBLISH a b",
        "WAIT 0 0",
        "REPLICAOF NO ONE",
        "SET a 1",
    ] {
        ask(&mut both, line);
    }
    both.end();
}

async fn a_server_without_memory_refuses_alike() {
    let server = Server::start_with(&["--maxmemory", "1", "--maxmemory-policy", "noeviction"]);
    let mut both = Both::new(&server);
    both.simulated.set_condition(Some(Condition::OutOfMemory));
    for line in [
        "GET a",
        "SET a 1",
        "DEL a",
        "PEXPIRE a 1",
        "EVAL \"return redis.call('GET','a')\" 0",
        "EVAL \"return redis.call('SET','a',1)\" 0",
        "EVAL \"redis.call('PEXPIRE','a',1) return redis.call('SET','a',1)\" 0",
        "EVAL \"return redis.pcall('SET','a',1)\" 0",
        "GET a",
        "HSET h a 1",
        "LPUSH l a",
        "PUBLISH a b",
    ] {
        ask(&mut both, line);
    }
    both.end();
}

async fn a_busy_server_refuses_alike() {
    let server = Server::start_with(&["--lua-time-limit", "1"]);
    let mut busy = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    busy.write_all(b"EVAL \"while true do end\" 0\r\n").unwrap();
    wait_until("the script runs for too long", || {
        server.try_command::<String>(&["PING"]).is_err()
    });
    let mut both = Both::new(&server);
    both.simulated.set_condition(Some(Condition::Busy));
    for line in [
        "PING",
        "GET a",
        "SET a 1",
        "EVAL \"return 1\" 0",
        "SUBSCRIBE a",
        "SCRIPT EXISTS x",
        "AUTH a b",
        "HELLO 9",
        "MULTI",
        "DISCARD",
        "nope",
        "RESET",
    ] {
        ask(&mut both, line);
    }
    both.end();
    server.command::<()>(&["SCRIPT", "KILL"]);
}
