//! Tests certificates that are replaced while clients run.

use std::time::Duration;

use quorlock::ConnectError;
use quorlock::errors::NodeProblem;
use quorlock::redis::NodeConnectError;
use quorlock_testbed::certificates::{Authority, Validity};
use quorlock_testbed::server_tests;

use super::bench::{Bench, Clients, take_and_release, with};

server_tests![
    TLS: certificates_are_read_again_and_a_half_written_one_is_not_used,
    TLS: the_authority_is_read_again,
];

async fn certificates_are_read_again_and_a_half_written_one_is_not_used() {
    let bench = Bench::start(Clients::Certified);
    let files = bench.client_files(Validity::Now);
    let tls = bench
        .roots()
        .client_certificate_files(&files.certificate, &files.key);
    let locks = bench.locks(tls).await;
    let guard = locks.lock("a").acquire().await.unwrap();
    let cut = || {
        bench
            .server
            .command::<u32>(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    };
    // The certificate has been replaced, but its key has not.
    let new = bench.authority.sign(&["client"], Validity::Now);
    std::fs::write(&files.certificate, &new.certificate).unwrap();
    cut();
    until_extended(&guard).await;
    // Now neither of them is signed by the authority.
    let strange = Authority::new().sign(&["client"], Validity::Now);
    let _ = strange.write(bench.folder.path(), "client");
    cut();
    // The first request may still be in flight on the connection that ends.
    let start = std::time::Instant::now();
    loop {
        let error = locks.lock("b").try_acquire().await.unwrap_err();
        if error.to_string().contains("does not trust") {
            break;
        }
        assert!(start.elapsed() < quorlock_testbed::wait::BOUND, "{error}");
    }
    let _ = new.write(bench.folder.path(), "client");
    until_extended(&guard).await;
    guard.release().await.unwrap();
}

/// Waits until the server confirms the hold, perhaps on a new connection.
async fn until_extended(guard: &quorlock::Guard) {
    let start = std::time::Instant::now();
    while let Err(error) = guard.extend(Duration::from_secs(30)).await {
        assert!(
            guard.is_held() && start.elapsed() < quorlock_testbed::wait::BOUND,
            "{error}"
        );
    }
}

async fn the_authority_is_read_again() {
    let bench = Bench::start(Clients::Any);
    let ca = bench.folder.path().join("ca.pem");
    std::fs::write(&ca, Authority::new().pem()).unwrap();
    let tls = bench.roots();
    let error = with(tls.clone()).connect(bench.address("localhost")).await;
    let ConnectError::Nodes { problems, .. } = error.unwrap_err() else {
        panic!("the node is to blame")
    };
    assert!(
        matches!(
            problems[..],
            [NodeProblem::Redis(NodeConnectError::Tls { .. })]
        ),
        "{problems:?}"
    );
    std::fs::write(&ca, bench.authority.pem()).unwrap();
    let locks = bench.locks(tls).await;
    take_and_release(&locks).await;
}
