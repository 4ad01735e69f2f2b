//! Tests what a backup by replication does to the identity of a real server.

use std::process::{Command, Stdio};

use quorlock::redis::{Backlog, RedisConfig, RedisTransport};
use quorlock::{AcquireError, Locks, NodeTrust, Why};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_tests::clients::settings;

server_tests![
    a_first_backup_is_a_quarantine_and_one_after_the_start_prevents_it,
    a_database_that_takes_the_place_of_another_brings_its_own_locks_and_marker,
    a_promotion_leaves_no_trace_that_the_next_backup_does_not_wipe_out,
];

/// Options with which a server does not wait for further replicas before it begins.
const PROMPT: [&str; 2] = ["--repl-diskless-sync-delay", "0"];

/// Runs `redis-cli --rdb`, which attaches as a replica, copies everything, and leaves.
fn back_up(server: &Server) {
    let ended = Command::new("redis-cli")
        .args(["-p", &server.port().to_string(), "--rdb"])
        .arg(server.dir().join("backup.rdb"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(ended.expect("redis-cli is installed").success());
}

fn says(server: &Server, field: &str) -> String {
    let info: String = server.command(&["INFO"]);
    let said = info
        .lines()
        .filter_map(|line| line.trim_end().split_once(':'))
        .find(|(name, _)| *name == field);
    said.expect("a field of INFO").1.to_owned()
}

async fn backlog(server: &Server) -> Backlog {
    let transport = RedisTransport::open(&server.address(), RedisConfig::default()).unwrap();
    transport.check().await.unwrap().backlog
}

async fn distrust(server: &Server, locks: &Locks) -> Option<Why> {
    match locks.lock("free").try_acquire().await {
        Ok(Some(guard)) => {
            guard.release().await.unwrap();
            None
        }
        Ok(None) => panic!("no lock is held on {server:?}"),
        Err(AcquireError::NoQuorum { nodes, .. }) => {
            nodes[0].quarantine.map(|quarantine| quarantine.why)
        }
        Err(error) => panic!("{error}"),
    }
}

async fn watching(server: &Server) -> Locks {
    let builder = settings().node_trust(NodeTrust::Watched);
    let locks = builder.connect(server.address()).await.unwrap();
    assert_eq!(distrust(server, &locks).await, None);
    locks
}

async fn a_first_backup_is_a_quarantine_and_one_after_the_start_prevents_it() {
    let server = Server::start_with(&PROMPT);
    assert_eq!(backlog(&server).await, Backlog::Missing);
    let locks = watching(&server).await;
    back_up(&server);
    assert!(is_watched_anew(&server, &locks).await);

    let server = Server::start_with(&[&PROMPT[..], &["--repl-backlog-ttl", "0"]].concat());
    back_up(&server);
    assert_eq!(backlog(&server).await, Backlog::Active);
    let (id, locks) = (says(&server, "master_replid"), watching(&server).await);
    for _ in 0..2 {
        back_up(&server);
        assert_eq!(distrust(&server, &locks).await, None);
    }
    assert_eq!(says(&server, "master_replid"), id);
}

/// Whether the node is quarantined as another process: it was found restarted, or a probe of the client has found it before and
/// the node is watched since.
async fn is_watched_anew(server: &Server, locks: &Locks) -> bool {
    let why = distrust(server, locks).await;
    matches!(why, Some(Why::Restarted | Why::Watched))
}

/// Shows why no milder rule can use the other fields of the server.
async fn a_promotion_leaves_no_trace_that_the_next_backup_does_not_wipe_out() {
    let server = Server::start_with(&PROMPT);
    let locks = watching(&server).await;
    let says_of_itself = || {
        let fields = ["run_id", "role", "connected_slaves", "master_replid2"];
        fields.map(|field| says(&server, field))
    };
    let before = says_of_itself();
    server.command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    server.command::<()>(&["REPLICAOF", "NO", "ONE"]);
    assert_ne!(says_of_itself(), before, "master_replid2 says it");
    back_up(&server);
    assert_eq!(says_of_itself(), before, "and now nothing does");
    assert!(is_watched_anew(&server, &locks).await);
}

/// `SWAPDB` gives a client another database, whose marker was confirmed for the same process. The markers do not show
/// it: one that another client has confirmed after a flush looks the same. Two clients then hold one name.
async fn a_database_that_takes_the_place_of_another_brings_its_own_locks_and_marker() {
    let server = Server::start();
    let client = async |database: u32| {
        let builder = settings().node_trust(NodeTrust::Watched);
        let address = format!("{}{database}", server.address());
        builder.connect(address).await.unwrap()
    };
    let (locks, others) = (client(0).await, client(1).await);
    let held = locks.lock("a").acquire().await.unwrap();
    assert_eq!(distrust(&server, &others).await, None);
    server.command::<()>(&["SWAPDB", "0", "1"]);
    let second = locks.lock("a").try_acquire().await.unwrap();
    assert!(second.is_some() && held.is_held());
}
