//! Real etcd servers, alone and in clusters of three.

use std::fs;
use std::path::{Path, PathBuf};

use crate::members::{Kind, Member, Members, asked};
pub use crate::run::installed;
use crate::run::{self, run};

/// Returns why tests that need a server are ignored; `None` if one is installed or required.
#[must_use]
pub fn missing() -> Option<&'static str> {
    let reason = "needs etcd: run tests/stores.sh";
    run::missing("QUORLOCK_REQUIRE_ETCD", installed("etcd").is_some(), reason)
}

/// A cluster of etcd.
pub type Etcd = Members<OfEtcd>;

/// What is particular to a cluster of etcd.
#[derive(Debug)]
pub struct OfEtcd {
    /// What the cluster has beside the addresses of its members as its name.
    token: String,
    settings: Vec<String>,
    /// The files of the certificate and of the key, if clients connect under TLS alone.
    tls: Option<[PathBuf; 2]>,
}

impl Members<OfEtcd> {
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
        let mut cluster = Members::new(1, OfEtcd::new("one", settings));
        cluster.launch();
        cluster
    }

    /// Starts a cluster of one server that takes connections under TLS alone, with a certificate and a key in files of PEM.
    ///
    /// # Panics
    /// Panics if etcd is not installed, or the server does not come up.
    #[must_use]
    pub fn encrypted(certificate: &Path, key: &Path) -> Etcd {
        let mut kind = OfEtcd::new("one", &[]);
        kind.tls = Some([certificate, key].map(Path::to_owned));
        let mut cluster = Members::new(1, kind);
        cluster.launch();
        cluster
    }

    /// Starts a cluster of three servers.
    ///
    /// # Panics
    /// Panics if etcd is not installed, or the servers do not come up.
    #[must_use]
    pub fn three() -> Etcd {
        let mut cluster = Members::new(3, OfEtcd::new("three", &[]));
        cluster.launch();
        cluster
    }

    /// Starts a cluster of one server with the data of a snapshot of another one, under this token.
    ///
    /// # Panics
    /// Panics if `etcdctl` is not installed, or the server does not come up.
    #[must_use]
    pub fn restored(snapshot: &[u8], token: &str) -> Etcd {
        let mut cluster = Members::new(1, OfEtcd::new(token, &[]));
        let member = &cluster.members[0];
        let (file, data) = (member.path("snapshot"), member.path("data"));
        fs::write(&file, snapshot).expect("a file");
        let words = [
            "env",
            "ETCDCTL_API=3",
            "etcdctl",
            "snapshot",
            "restore",
            &file,
        ];
        let mut command = words.map(String::from).to_vec();
        command.push(format!("--data-dir={data}"));
        command.extend(cluster.kind.names(member, &cluster.members));
        run(&command);
        cluster.launch();
        cluster
    }

    /// Starts the servers again, with other settings.
    ///
    /// # Panics
    /// Panics if they do not come up.
    pub fn launch_with(&mut self, settings: &[&str]) {
        self.kind.settings = settings.iter().map(ToString::to_string).collect();
        self.launch();
    }

    /// Returns a number that the first server says about itself, if it does.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<f64> {
        metric(&self.members[0], name)
    }
}

impl OfEtcd {
    fn new(token: &str, settings: &[&str]) -> Self {
        OfEtcd {
            token: token.to_owned(),
            settings: settings.iter().map(ToString::to_string).collect(),
            tls: None,
        }
    }

    /// Returns what the id of the cluster is made of.
    fn names(&self, member: &Member, all: &[Member]) -> Vec<String> {
        let peers = all.iter();
        let peers = peers.map(|peer| format!("m{}={}", peer.number, peer_address(peer)));
        vec![
            format!("--name=m{}", member.number),
            format!("--initial-advertise-peer-urls={}", peer_address(member)),
            format!("--initial-cluster={}", peers.collect::<Vec<_>>().join(",")),
            format!("--initial-cluster-token={}", self.token),
        ]
    }
}

impl Kind for OfEtcd {
    const SCHEME: &'static str = "etcd://";

    fn command(&self, member: &Member, all: &[Member]) -> Vec<String> {
        let program = installed("etcd").expect("etcd is installed (tests/stores.sh)");
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let clients = format!("{scheme}://127.0.0.1:{}", member.port);
        let metrics = format!("http://127.0.0.1:{}", metrics_port(member));
        let mut words = vec![program.to_str().expect("UTF-8").to_owned()];
        words.push(format!("--data-dir={}", member.path("data")));
        words.push(format!("--listen-client-urls={clients}"));
        words.push(format!("--advertise-client-urls={clients}"));
        words.push(format!("--listen-metrics-urls={metrics}"));
        if let Some([certificate, key]) = &self.tls {
            words.push(format!("--cert-file={}", certificate.display()));
            words.push(format!("--key-file={}", key.display()));
        }
        words.push(format!("--listen-peer-urls={}", peer_address(member)));
        words.extend(["--logger=zap", "--log-level=warn"].map(String::from));
        words.extend(self.names(member, all));
        words.extend(self.settings.iter().cloned());
        words
    }

    fn is_up(member: &Member) -> bool {
        // A server with an alarm is not healthy, and serves calls.
        metric(member, "etcd_server_has_leader") == Some(1.0)
    }

    fn leads(member: &Member) -> bool {
        metric(member, "etcd_server_is_leader") == Some(1.0)
    }
}

/// Returns the port at which a server says something about itself, without TLS. etcd has no port for elections.
fn metrics_port(member: &Member) -> u16 {
    member.election_port
}

fn peer_address(member: &Member) -> String {
    format!("http://127.0.0.1:{}", member.peer_port)
}

/// Returns a number that a server says about itself, if it does.
fn metric(member: &Member, name: &str) -> Option<f64> {
    let metrics = asked(metrics_port(member), "GET /metrics HTTP/1.0\r\n\r\n")?;
    let mut lines = metrics.lines().filter_map(|line| line.strip_prefix(name));
    lines.find_map(|rest| rest.strip_prefix(' ')?.parse().ok())
}
