//! Tests the statements about `rslock` on the page about other libraries.

use std::time::Duration;

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use rslock::{LockError, LockManager};

server_tests![
    rslock_tries_a_few_times_and_its_acquire_without_end,
    rslock_renews_in_using_and_ends_the_work_when_an_extension_fails,
];

fn manager(server: &Server) -> LockManager {
    LockManager::new(vec![server.address()])
}

async fn rslock_tries_a_few_times_and_its_acquire_without_end() {
    let server = Server::start();
    let rslock = manager(&server);
    server.command::<()>(&["SET", "a", "another's"]);
    let gave_up = rslock.lock("a", BOUND).await;
    assert!(matches!(gave_up, Err(LockError::Unavailable)));

    let tries = || -> u32 {
        let stats: String = server.command(&["INFO", "commandstats"]);
        let line = stats
            .lines()
            .find_map(|l| l.strip_prefix("cmdstat_set:calls="));
        line.and_then(|l| l.split(',').next())
            .unwrap()
            .parse()
            .unwrap()
    };
    server.command::<()>(&["CONFIG", "RESETSTAT"]);
    let waiting = rslock.clone();
    let waiting = tokio::spawn(async move { waiting.acquire("a", BOUND).await.is_ok() });
    let is_tried = || {
        server
            .command::<String>(&["INFO", "commandstats"])
            .contains("cmdstat_set:")
    };
    until("it has asked", is_tried).await;
    until("it has asked more often than it tries by default", || {
        3 < tries()
    })
    .await;
    server.command::<()>(&["DEL", "a"]);
    assert!(waiting.await.unwrap());
}

async fn rslock_renews_in_using_and_ends_the_work_when_an_extension_fails() {
    let server = Server::start();
    let rslock = manager(&server);
    let lease = Duration::from_millis(800);
    let (say, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let using = tokio::spawn(async move {
        let work = async move || {
            let _ = say.send(());
            std::future::pending::<()>().await;
        };
        rslock.using(b"a", lease, work).await
    });
    heard.recv().await.unwrap();
    let left = || server.command::<i64>(&["PTTL", "a"]);
    until("some of the lease is over", || left() < 600).await;
    until("it is renewed", || 700 < left()).await;
    server.kill();
    assert!(using.await.unwrap().is_err());
    assert!(heard.recv().await.is_none(), "the work was dropped");
}
