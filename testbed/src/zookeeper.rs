//! Real ZooKeeper servers, alone and in ensembles of three.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::guardian::Guardian;
use crate::port::free_port;
use crate::run::{self, run};
use crate::wait::within;

/// The longest time that an ensemble may take until it serves calls, on a loaded machine.
const UP: Duration = Duration::from_secs(90);

/// How long a server may take for one answer about itself.
const ANSWERED: Duration = Duration::from_secs(2);

/// Where Debian has it.
const SERVER: &str = "/usr/share/java/zookeeper.jar";

/// Returns why tests that need a server are ignored; `None` if one is installed or required.
#[must_use]
pub fn missing() -> Option<&'static str> {
    let reason = "needs ZooKeeper: run tests/stores.sh";
    run::missing(
        "QUORLOCK_REQUIRE_ZOOKEEPER",
        Path::new(SERVER).exists(),
        reason,
    )
}

/// An ensemble of ZooKeeper that only its owner uses, on free ports of the loopback interface. When this value is dropped, or when
/// this process is killed, its servers end and their folders are removed.
#[derive(Debug)]
pub struct Zookeeper {
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    number: usize,
    port: u16,
    peer_port: u16,
    election_port: u16,
    running: Option<Guardian>,
    folder: TempDir,
}

impl Zookeeper {
    /// Starts an ensemble of one server.
    ///
    /// # Panics
    /// Panics if ZooKeeper is not installed, or the server does not come up.
    #[must_use]
    pub fn start() -> Zookeeper {
        Zookeeper::new(1)
    }

    /// Starts an ensemble of three servers.
    ///
    /// # Panics
    /// Panics if ZooKeeper is not installed, or the servers do not come up.
    #[must_use]
    pub fn three() -> Zookeeper {
        Zookeeper::new(3)
    }

    fn new(members: usize) -> Zookeeper {
        let port = || free_port().expect("a free port");
        let folder = || tempfile::Builder::new().prefix("quorlock-").tempdir();
        let member = |number| Member {
            number,
            port: port(),
            peer_port: port(),
            election_port: port(),
            running: None,
            folder: folder().expect("a temporary folder"),
        };
        let mut ensemble = Zookeeper {
            members: (0..members).map(member).collect(),
        };
        for member in &ensemble.members {
            fs::create_dir(member.path("data")).expect("a folder");
            fs::write(member.path("data/myid"), format!("{}\n", member.number)).expect("a file");
            fs::write(member.path("zoo.cfg"), ensemble.settings(member)).expect("a file");
        }
        ensemble.launch();
        ensemble
    }

    /// Returns the address of the ensemble.
    #[must_use]
    pub fn address(&self) -> String {
        let hosts = self.members.iter();
        let hosts = hosts.map(|member| format!("127.0.0.1:{}", member.port));
        format!("zk://{}", hosts.collect::<Vec<_>>().join(","))
    }

    /// Returns the port of the first server.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.members[0].port
    }

    /// Starts the servers that do not run, and waits until the ensemble serves calls.
    ///
    /// # Panics
    /// Panics if it does not. The message has the output of a server.
    pub fn launch(&mut self) {
        for member in &mut self.members {
            if member.running.is_none() {
                let running = Guardian::start(member.folder.path(), &member.command(), &[]);
                member.running = Some(running.expect("it starts"));
            }
        }
        for member in &self.members {
            let is_up = within(UP, || member.mode());
            let output = || fs::read_to_string(member.path("output")).unwrap_or_default();
            assert!(is_up.is_some(), "a server does not start: {}", output());
        }
    }

    /// Returns the number of the server that leads the others.
    ///
    /// # Panics
    /// Panics if none does.
    #[must_use]
    pub fn leader(&self) -> usize {
        let leads = |member: &&Member| {
            member.running.is_some() && member.mode().as_deref() == Some("leader")
        };
        let leader = within(UP, || self.members.iter().find(leads));
        leader.expect("a leader").number
    }

    /// Ends all servers at once, as a crash does.
    pub fn kill(&mut self) {
        for number in 0..self.members.len() {
            self.kill_one(number);
        }
    }

    /// Ends one server at once, as a crash does.
    pub fn kill_one(&mut self, number: usize) {
        if let Some(running) = self.members[number].running.take() {
            running.kill();
        }
    }

    /// Stops all servers, until [`Zookeeper::go_on`].
    pub fn stop(&self) {
        for member in &self.members {
            member.signal(Signal::STOP);
        }
    }

    /// Stops one server, until [`Zookeeper::go_on`].
    pub fn stop_one(&self, number: usize) {
        self.members[number].signal(Signal::STOP);
    }

    /// Lets stopped servers go on.
    pub fn go_on(&self) {
        for member in &self.members {
            member.signal(Signal::CONT);
        }
    }

    /// Copies the data of the only server, which is ended and started again.
    ///
    /// # Panics
    /// Panics if it cannot be copied.
    pub fn keep_copy(&mut self) {
        self.kill();
        self.members[0].copy("data", "copy");
        self.launch();
    }

    /// Ends the only server, and starts it again with the data of the copy.
    ///
    /// # Panics
    /// Panics if there is no copy.
    pub fn return_to_copy(&mut self) {
        self.kill();
        self.members[0].copy("copy", "data");
        self.launch();
    }

    fn settings(&self, member: &Member) -> String {
        let mut settings = format!(
            "tickTime=500\ninitLimit=20\nsyncLimit=6\nmaxSessionTimeout=20000\nmaxClientCnxns=0\nadmin.enableServer=false\n\
             4lw.commands.whitelist=srvr\nclientPort={}\nclientPortAddress=127.0.0.1\ndataDir={}\n",
            member.port,
            member.path("data")
        );
        if 1 < self.members.len() {
            for peer in &self.members {
                let (number, port, election) = (peer.number, peer.peer_port, peer.election_port);
                settings += &format!("server.{number}=127.0.0.1:{port}:{election}\n");
            }
        }
        settings
    }
}

impl Member {
    fn command(&self) -> Vec<String> {
        let words = [
            "java",
            "-Xmx128m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
        ];
        let mut words: Vec<String> = words.map(String::from).to_vec();
        words.push(SERVER.to_owned());
        words.push("org.apache.zookeeper.server.quorum.QuorumPeerMain".to_owned());
        words.push(self.path("zoo.cfg"));
        words
    }

    fn path(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().expect("UTF-8").to_owned()
    }

    fn copy(&self, from: &str, to: &str) {
        let to = self.path(to);
        if Path::new(&to).exists() {
            fs::remove_dir_all(&to).expect("a folder");
        }
        run(&["cp", "-r", &self.path(from), &to].map(String::from));
    }

    fn signal(&self, signal: Signal) {
        if let Some(running) = &self.running {
            running.signal(signal);
        }
    }

    /// Returns what the server is to the others, if it serves calls: `leader`, `follower` or `standalone`.
    fn mode(&self) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(ANSWERED)).ok()?;
        stream.write_all(b"srvr").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let mode = answer.lines().find_map(|line| line.strip_prefix("Mode: "));
        mode.map(str::to_owned)
    }
}
