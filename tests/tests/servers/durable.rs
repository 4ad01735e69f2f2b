//! Tests which restarts and failovers of real servers cause a quarantine.

use quorlock::{AcquireError, Locks, LocksBuilder, NodeTrust, Why};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::wait_until;
use quorlock_tests::clients::{acquire_at_last, settings};

server_tests![
    a_restart_that_lost_nothing_is_a_quarantine_unless_it_is_asserted,
    a_restarted_server_with_a_replica_is_quarantined_whatever_is_asserted,
    a_promoted_replica_is_quarantined_whatever_is_asserted,
    a_flushed_server_is_quarantined_whatever_is_asserted,
];

const TRUSTS: [NodeTrust; 2] = [NodeTrust::AssertedDurable, NodeTrust::Watched];

const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

fn builder(trust: NodeTrust) -> LocksBuilder {
    settings().node_trust(trust)
}

/// Returns a client for which the server is new and trusted. The client holds the lock `held`.
async fn first(server: &Server, trust: NodeTrust) -> Locks {
    let locks = builder(trust).connect(server.address()).await.unwrap();
    locks.lock("held").acquire().await.unwrap().leak();
    locks
}

/// Returns the reason why a client does not trust the server, if there is one.
async fn distrust(locks: &Locks) -> Option<Why> {
    match locks.lock("free").try_acquire().await {
        Ok(Some(guard)) => {
            guard.release().await.unwrap();
            None
        }
        Ok(None) => panic!("no lock is held"),
        Err(AcquireError::NoQuorum { nodes, .. }) => {
            let quarantine = nodes[0].quarantine;
            Some(quarantine.expect("it answers").why)
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns the same for a new client. The client never considers a server new, so what it finds missing was lost.
async fn newcomer_distrusts(server: &Server, trust: NodeTrust) -> Option<Why> {
    let locks = Locks::builder().node_trust(trust);
    let locks = locks.connect(server.address()).await.unwrap();
    let why = distrust(&locks).await;
    // What the client was granted but did not count is released.
    locks.close().await;
    why
}

fn says(server: &Server, line: &str) -> bool {
    let info: String = server.command(&["INFO", "replication"]);
    info.lines().any(|said| said.trim_end() == line)
}

fn follow(server: &Server, options: &[&str]) -> Server {
    let port = server.port().to_string();
    let replica = Server::start_with(&[&["--replicaof", "127.0.0.1", &port], options].concat());
    wait_until("the replica follows", || {
        says(&replica, "master_link_status:up")
    });
    replica
}

async fn a_restart_that_lost_nothing_is_a_quarantine_unless_it_is_asserted() {
    for trust in TRUSTS {
        let server = Server::start_with(&DURABLE);
        let known = first(&server, trust).await;
        server.restart();
        let expected = match trust {
            NodeTrust::AssertedDurable => None,
            _ => Some(Why::Watched),
        };
        assert_eq!(newcomer_distrusts(&server, trust).await, expected);
        if expected.is_none() {
            // A client that knew the process before trusts it after another restart as well, and the hold continues.
            server.restart();
            let guard = acquire_at_last(&known.lock("free")).await;
            guard.release().await.unwrap();
            assert!(known.lock("held").try_acquire().await.unwrap().is_none());
        }
    }
}

async fn a_restarted_server_with_a_replica_is_quarantined_whatever_is_asserted() {
    for trust in TRUSTS {
        let server = Server::start_with(&DURABLE);
        let _replica = follow(&server, &[]);
        let known = first(&server, trust).await;
        assert_eq!(distrust(&known).await, None);
        server.restart();
        wait_until("the replica is back", || {
            says(&server, "connected_slaves:1")
        });
        let why = newcomer_distrusts(&server, trust).await;
        assert_eq!(why, Some(Why::Watched), "{trust:?}");
    }
}

async fn a_promoted_replica_is_quarantined_whatever_is_asserted() {
    for trust in TRUSTS {
        let primary = Server::start_with(&DURABLE);
        let replica = follow(&primary, &DURABLE);
        first(&primary, trust).await;
        wait_until("the replica has the claim and the marker", || {
            replica.command::<u32>(&["EXISTS", "held", "quorlock_marker"]) == 2
        });
        primary.kill();
        replica.command::<()>(&["REPLICAOF", "NO", "ONE"]);
        let why = newcomer_distrusts(&replica, trust).await;
        assert_eq!(why, Some(Why::Watched), "{trust:?}");
    }
}

async fn a_flushed_server_is_quarantined_whatever_is_asserted() {
    for trust in TRUSTS {
        let server = Server::start_with(&DURABLE);
        first(&server, trust).await;
        server.command::<()>(&["FLUSHALL"]);
        let why = newcomer_distrusts(&server, trust).await;
        assert_eq!(why, Some(Why::Watched), "{trust:?}");
        server.restart();
        let why = newcomer_distrusts(&server, trust).await;
        assert_eq!(why, Some(Why::Watched), "{trust:?}: an observing marker");
    }
}
