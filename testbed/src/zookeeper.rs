//! Real ZooKeeper servers, alone and in ensembles of three.

use std::fs;
use std::path::Path;

use crate::members::{Kind, Member, Members, asked};
use crate::run;

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

/// An ensemble of ZooKeeper.
pub type Zookeeper = Members<OfZookeeper>;

/// What is particular to ZooKeeper.
#[derive(Debug)]
pub struct OfZookeeper;

impl Members<OfZookeeper> {
    /// Starts an ensemble of one server.
    ///
    /// # Panics
    /// Panics if ZooKeeper is not installed, or the server does not come up.
    #[must_use]
    pub fn start() -> Zookeeper {
        Self::start_many(1)
    }

    /// Starts an ensemble of three servers.
    ///
    /// # Panics
    /// Panics if ZooKeeper is not installed, or the servers do not come up.
    #[must_use]
    pub fn three() -> Zookeeper {
        Self::start_many(3)
    }

    fn start_many(members: usize) -> Zookeeper {
        let mut ensemble = Members::new(members, OfZookeeper);
        ensemble.launch();
        ensemble
    }
}

impl Kind for OfZookeeper {
    const SCHEME: &'static str = "zk://";

    fn command(&self, member: &Member, all: &[Member]) -> Vec<String> {
        fs::create_dir_all(member.path("data")).expect("a folder");
        fs::write(member.path("data/myid"), format!("{}\n", member.number)).expect("a file");
        fs::write(member.path("zoo.cfg"), settings(member, all)).expect("a file");
        let words = [
            "java",
            "-Xmx128m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            SERVER,
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            &member.path("zoo.cfg"),
        ];
        words.map(String::from).to_vec()
    }

    fn is_up(member: &Member) -> bool {
        mode(member).is_some()
    }

    fn leads(member: &Member) -> bool {
        mode(member).as_deref() == Some("leader")
    }
}

fn settings(member: &Member, all: &[Member]) -> String {
    let mut settings = format!(
        "tickTime=500\ninitLimit=20\nsyncLimit=6\nmaxSessionTimeout=20000\nmaxClientCnxns=0\nadmin.enableServer=false\n\
         4lw.commands.whitelist=srvr\nclientPort={}\nclientPortAddress=127.0.0.1\ndataDir={}\n",
        member.port,
        member.path("data")
    );
    if 1 < all.len() {
        for peer in all {
            let (number, port, election) = (peer.number, peer.peer_port, peer.election_port);
            settings += &format!("server.{number}=127.0.0.1:{port}:{election}\n");
        }
    }
    settings
}

/// Returns what a server is to the others, if it serves calls: `leader`, `follower` or `standalone`.
fn mode(member: &Member) -> Option<String> {
    let answer = asked(member.port, "srvr")?;
    let mode = answer.lines().find_map(|line| line.strip_prefix("Mode: "));
    mode.map(str::to_owned)
}
