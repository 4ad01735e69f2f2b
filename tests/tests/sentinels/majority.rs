//! Tests a majority with a Sentinel group as a member.

use std::time::Duration;

use quorlock::{Locks, LocksBuilder, NodeTrust};
use quorlock_testbed::sentinels::{SentinelGroup, role};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::patiently;
use quorlock_testbed::wait::until;
use quorlock_tests::clients::{claim_of, settings};

use super::stage::group;

server_tests![a_promoted_replica_without_the_claim_has_no_vote];

const LEASE: Duration = Duration::from_secs(40);

fn watching() -> LocksBuilder {
    settings()
        .longest_lease(LEASE)
        .watchdog_lease(LEASE)
        .trust_fresh_nodes()
}

async fn quorum(builder: LocksBuilder, group: &SentinelGroup, others: &[Server; 2]) -> Locks {
    let [second, third] = others.each_ref().map(Server::address);
    let connected = builder.quorum([group.address(), second, third]).await;
    connected.expect("the group and the servers can be used")
}

/// A holds the group and the second member. The third one does not have A's claim. The group fails over to a replica
/// that does not have it either. B may be granted the third member, and must not be granted the group.
async fn a_promoted_replica_without_the_claim_has_no_vote() {
    let group = group().await;
    let others = [Server::start(), Server::start()];
    // A replica that lags tells A of nothing, unlike this test, which deletes the claim.
    let holder = quorum(watching().watch_claims(false), &group, &others).await;
    // The markers of this client are there, and new clients trust them.
    let first = holder.lock("first").acquire().await.unwrap();
    first.release().await.unwrap();

    others[1].pause();
    let guard = holder.lock("held").lease(LEASE).acquire().await.unwrap();
    others[1].resume();
    until("the third member has heard of it", || {
        claim_of(&others[1], "held").is_some()
    })
    .await;
    others[1].command::<()>(&["DEL", "held"]);

    let before = group.settle();
    group.servers()[before].kill();
    let promoted = tokio::task::block_in_place(|| {
        patiently("a replica is promoted", || {
            let mut servers = group.servers().iter().enumerate();
            let is_new = |server: &Server| role(server).as_deref() == Some("master");
            servers.find(|(index, server)| *index != before && is_new(server))
        })
    });
    promoted.1.command::<()>(&["DEL", "held"]);
    tokio::task::block_in_place(|| group.wait_for_another(before));
    assert!(guard.is_held());

    let watched = quorum(watching(), &group, &others).await;
    for _ in 0..20 {
        let granted = watched.lock("held").try_acquire().await;
        assert!(!matches!(granted, Ok(Some(_))), "{granted:?}");
    }
    assert!(guard.is_held(), "the lease is long enough for this test");
    // The control: a client that counts every vote is granted the lock a second time.
    let unwatched = settings()
        .node_trust(NodeTrust::Unwatched)
        .longest_lease(LEASE);
    let unwatched = quorum(unwatched.watchdog_lease(LEASE), &group, &others).await;
    let twice = unwatched.lock("held").try_acquire().await.unwrap();
    assert!(twice.is_some() && guard.is_held());
}
