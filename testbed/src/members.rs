//! Servers that are the members of one cluster and elect a leader: what clusters of etcd and ensembles of ZooKeeper have in common.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::guardian::Guardian;
use crate::port::free_port;
use crate::run::run;
use crate::wait::within;

/// The longest time that a cluster may take until it serves calls, on a loaded machine.
const UP: Duration = Duration::from_secs(90);

/// How long a member may take for one answer about itself.
const ANSWERED: Duration = Duration::from_secs(2);

/// What is particular to the servers of one kind of cluster.
pub trait Kind {
    /// What the address of a cluster begins with.
    const SCHEME: &'static str;

    /// Returns the command that starts a member, after writing what it needs to its folder.
    fn command(&self, member: &Member, all: &[Member]) -> Vec<String>;

    /// Returns whether a member serves calls.
    fn is_up(member: &Member) -> bool;

    /// Returns whether a member leads the others.
    fn leads(member: &Member) -> bool;
}

/// A cluster that only its owner uses, on free ports of the loopback interface. When this value is dropped, or when this process is killed,
/// its servers end and their folders are removed.
#[derive(Debug)]
pub struct Members<K> {
    pub(crate) members: Vec<Member>,
    pub(crate) kind: K,
}

/// One server of a cluster.
#[derive(Debug)]
pub struct Member {
    pub(crate) number: usize,
    pub(crate) port: u16,
    /// Where other members connect to.
    pub(crate) peer_port: u16,
    pub(crate) election_port: u16,
    running: Option<Guardian>,
    folder: TempDir,
}

impl<K: Kind> Members<K> {
    /// Returns a cluster whose servers are not started.
    pub(crate) fn new(members: usize, kind: K) -> Self {
        Members {
            members: (0..members).map(Member::new).collect(),
            kind,
        }
    }

    /// Returns the address of the cluster.
    #[must_use]
    pub fn address(&self) -> String {
        let hosts = self.members.iter();
        let hosts = hosts.map(|member| format!("127.0.0.1:{}", member.port));
        format!("{}{}", K::SCHEME, hosts.collect::<Vec<_>>().join(","))
    }

    /// Returns the port of the first server.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.members[0].port
    }

    /// Starts the servers that do not run, and waits until the cluster serves calls.
    ///
    /// # Panics
    /// Panics if it does not. The message has the output of a server.
    pub fn launch(&mut self) {
        for index in 0..self.members.len() {
            if self.members[index].running.is_none() {
                let command = self.kind.command(&self.members[index], &self.members);
                self.members[index].start(&command);
            }
        }
        for member in &self.members {
            let is_up = within(UP, || K::is_up(member).then_some(()));
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
        let leads = |member: &&Member| member.running.is_some() && K::leads(member);
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

    /// Stops all servers, until [`Members::go_on`].
    pub fn stop(&self) {
        for member in &self.members {
            member.signal(Signal::STOP);
        }
    }

    /// Stops one server, until [`Members::go_on`].
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
}

impl Member {
    fn new(number: usize) -> Self {
        let port = || free_port().expect("a free port");
        let folder = tempfile::Builder::new().prefix("quorlock-").tempdir();
        Member {
            number,
            port: port(),
            peer_port: port(),
            election_port: port(),
            running: None,
            folder: folder.expect("a temporary folder"),
        }
    }

    fn start(&mut self, command: &[String]) {
        let running = Guardian::start(self.folder.path(), command, &[]);
        self.running = Some(running.expect("it starts"));
    }

    /// Returns the path of a file in the folder of the server.
    pub(crate) fn path(&self, name: &str) -> String {
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
}

/// Returns all that a server answers to a question at a port.
pub(crate) fn asked(port: u16, question: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(ANSWERED)).ok()?;
    stream.write_all(question.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
