//! Real etcd servers, alone and in clusters of three.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::guardian::Guardian;
use crate::port::free_port;
pub use crate::run::installed;
use crate::run::{self, run};
use crate::wait::within;

/// The longest time that a cluster may take until it serves calls, on a loaded machine.
const UP: Duration = Duration::from_secs(60);

/// How long a server may take for one answer about itself.
const ANSWERED: Duration = Duration::from_secs(2);

/// Returns why tests that need a server are ignored; `None` if one is installed or required.
#[must_use]
pub fn missing() -> Option<&'static str> {
    let reason = "needs etcd: run tests/stores.sh";
    run::missing("QUORLOCK_REQUIRE_ETCD", installed("etcd").is_some(), reason)
}

/// A cluster of etcd that only its owner uses, on free ports of the loopback interface. When this value is dropped, or when this
/// process is killed, its servers end and their folders are removed.
#[derive(Debug)]
pub struct Etcd {
    members: Vec<Member>,
    /// What the cluster has beside the addresses of its members as its name.
    token: String,
    settings: Vec<String>,
}

#[derive(Debug)]
struct Member {
    number: usize,
    port: u16,
    peer_port: u16,
    running: Option<Guardian>,
    folder: TempDir,
}

impl Etcd {
    /// Starts a cluster of one server.
    ///
    /// # Panics
    /// Panics if etcd is not installed, or the server does not come up.
    #[must_use]
    pub fn start() -> Etcd {
        Etcd::start_with(&[])
    }

    /// The same with these settings, and otherwise those that every server has.
    ///
    /// # Panics
    /// Panics if etcd is not installed, or the server does not come up.
    #[must_use]
    pub fn start_with(settings: &[&str]) -> Etcd {
        let mut cluster = Etcd::new(1, "one", settings);
        cluster.launch();
        cluster
    }

    /// Starts a cluster of three servers.
    ///
    /// # Panics
    /// Panics if etcd is not installed, or the servers do not come up.
    #[must_use]
    pub fn three() -> Etcd {
        let mut cluster = Etcd::new(3, "three", &[]);
        cluster.launch();
        cluster
    }

    /// Starts a cluster of one server with the data of a snapshot of another one, under this token.
    ///
    /// # Panics
    /// Panics if `etcdctl` is not installed, or the server does not come up.
    #[must_use]
    pub fn restored(snapshot: &[u8], token: &str) -> Etcd {
        let mut cluster = Etcd::new(1, token, &[]);
        let member = &cluster.members[0];
        let (file, data) = (member.path("snapshot"), member.path("data"));
        fs::write(&file, snapshot).expect("a file");
        let words = ["ETCDCTL_API=3", "etcdctl", "snapshot", "restore", &file];
        let mut command: Vec<String> = ["env"]
            .iter()
            .chain(&words)
            .map(|it| (*it).to_owned())
            .collect();
        command.push(format!("--data-dir={data}"));
        command.extend(cluster.names(member));
        run(&command);
        cluster.launch();
        cluster
    }

    fn new(members: usize, token: &str, settings: &[&str]) -> Etcd {
        let folder = || tempfile::Builder::new().prefix("quorlock-").tempdir();
        let member = |number| Member {
            number,
            port: free_port().expect("a free port"),
            peer_port: free_port().expect("a free port"),
            running: None,
            folder: folder().expect("a temporary folder"),
        };
        Etcd {
            members: (0..members).map(member).collect(),
            token: token.to_owned(),
            settings: settings.iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns the address of the cluster.
    #[must_use]
    pub fn address(&self) -> String {
        let hosts = self
            .members
            .iter()
            .map(|member| format!("127.0.0.1:{}", member.port));
        format!("etcd://{}", hosts.collect::<Vec<_>>().join(","))
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
                let command = self.command(&self.members[index]);
                let member = &mut self.members[index];
                let running = Guardian::start(member.folder.path(), &command, &[]);
                member.running = Some(running.expect("it starts"));
            }
        }
        for member in &self.members {
            // A server with an alarm is not healthy, and serves calls.
            let has_leader = || (member.metric("etcd_server_has_leader")? == 1.0).then_some(());
            let is_up = within(UP, has_leader);
            let output = || fs::read_to_string(member.path("output")).unwrap_or_default();
            assert!(is_up.is_some(), "a server does not start: {}", output());
        }
    }

    /// Starts the servers again, with other settings.
    ///
    /// # Panics
    /// Panics if they do not come up.
    pub fn launch_with(&mut self, settings: &[&str]) {
        self.settings = settings.iter().map(ToString::to_string).collect();
        self.launch();
    }

    /// Returns the number of the server that leads the others.
    ///
    /// # Panics
    /// Panics if none does.
    #[must_use]
    pub fn leader(&self) -> usize {
        let leads = |member: &&Member| {
            member.running.is_some() && member.metric("etcd_server_is_leader") == Some(1.0)
        };
        let leader = within(UP, || self.members.iter().find(leads));
        leader.expect("a leader").number
    }

    /// Returns a number that the first server says about itself, if it does.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.members[0].metric(name)
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

    /// Stops all servers, until [`Etcd::go_on`].
    pub fn stop(&self) {
        for member in &self.members {
            member.signal(Signal::STOP);
        }
    }

    /// Stops one server, until [`Etcd::go_on`].
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

    fn command(&self, member: &Member) -> Vec<String> {
        let program = installed("etcd").expect("etcd is installed (tests/stores.sh)");
        let clients = format!("http://127.0.0.1:{}", member.port);
        let mut words = vec![program.to_str().expect("UTF-8").to_owned()];
        words.push(format!("--data-dir={}", member.path("data")));
        words.push(format!("--listen-client-urls={clients}"));
        words.push(format!("--advertise-client-urls={clients}"));
        words.push(format!("--listen-peer-urls={}", member.peer_address()));
        words.extend(["--logger=zap", "--log-level=warn"].map(String::from));
        words.extend(self.names(member));
        words.extend(self.settings.iter().cloned());
        words
    }

    /// Returns what the id of the cluster is made of.
    fn names(&self, member: &Member) -> Vec<String> {
        let peers = self.members.iter();
        let peers = peers.map(|peer| format!("m{}={}", peer.number, peer.peer_address()));
        vec![
            format!("--name=m{}", member.number),
            format!("--initial-advertise-peer-urls={}", member.peer_address()),
            format!("--initial-cluster={}", peers.collect::<Vec<_>>().join(",")),
            format!("--initial-cluster-token={}", self.token),
        ]
    }
}

impl Member {
    fn peer_address(&self) -> String {
        format!("http://127.0.0.1:{}", self.peer_port)
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

    /// Returns a number that the server says about itself, if it does.
    fn metric(&self, name: &str) -> Option<f64> {
        let metrics = self.asked("/metrics")?;
        let mut lines = metrics.lines().filter_map(|line| line.strip_prefix(name));
        lines.find_map(|rest| rest.strip_prefix(' ')?.parse().ok())
    }

    /// Returns what the server answers to a request of HTTP.
    fn asked(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(ANSWERED)).ok()?;
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }
}
