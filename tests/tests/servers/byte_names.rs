//! Tests names that are not text, on real servers. Keys of Redis are bytes.

use std::time::Duration;

use quorlock::Locks;
use quorlock::operate::Summary;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::{quorum_of, settings};

server_tests![
    a_name_of_bytes_is_the_key_to_the_letter_and_its_release_wakes_a_waiter,
    every_kind_of_lock_takes_a_name_of_bytes,
    a_majority_takes_a_name_of_bytes,
];

const NAME: &[u8] = b"orders/\xff\xfe\x01";

async fn connect(server: &Server) -> Locks {
    settings().connect(server.address()).await.unwrap()
}

fn keys(server: &Server) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = server.command(&["KEYS", "*"]);
    keys.sort();
    keys
}

async fn a_name_of_bytes_is_the_key_to_the_letter_and_its_release_wakes_a_waiter() {
    let server = Server::start();
    let (ours, theirs) = (connect(&server).await, connect(&server).await);
    let guard = ours.lock(NAME).acquire().await.unwrap();
    let counter = [b"redisson_lock_token:{", NAME, b"}"].concat();
    assert_eq!(keys(&server), [NAME.to_vec(), counter]);
    assert!(theirs.lock(NAME).try_acquire().await.unwrap().is_none());
    // This name looks the same, but it is free.
    let same = theirs
        .lock(r"orders/\xff\xfe\x01")
        .try_acquire()
        .await
        .unwrap();
    same.unwrap().release().await.unwrap();

    let waits = theirs.lock(NAME).wait(BOUND);
    let waits = tokio::spawn(async move { waits.acquire().await });
    let channel = [b"redisson_lock__channel:{", NAME, b"}"].concat();
    until("the waiter listens", || {
        let channels: Vec<Vec<u8>> = server.command(&["PUBSUB", "CHANNELS"]);
        channels.contains(&channel)
    })
    .await;
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    let next = waits.await.unwrap().unwrap();
    assert!(token < next.fencing_token());
    let inspection = ours.inspect(NAME).await.unwrap();
    assert!(
        matches!(inspection.summary(), Summary::Held { .. }),
        "{inspection:?}"
    );
    assert_eq!(inspection.name.as_bytes(), NAME);
    next.release().await.unwrap();
}

async fn every_kind_of_lock_takes_a_name_of_bytes() {
    let server = Server::start();
    let (ours, theirs) = (connect(&server).await, connect(&server).await);
    let soon = Duration::from_millis(50);
    let guard = ours.fair(NAME).acquire().await.unwrap();
    assert!(theirs.fair(NAME).wait(soon).acquire().await.is_err());
    guard.release().await.unwrap();
    let (one, two) = (
        ours.read(NAME).acquire().await.unwrap(),
        theirs.read(NAME).acquire().await.unwrap(),
    );
    assert!(ours.write(NAME).wait(soon).acquire().await.is_err());
    two.release().await.unwrap();
    one.release().await.unwrap();
    ours.write(NAME)
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    let left = [b"redisson_lock_token:{", NAME, b"}"].concat();
    assert_eq!(keys(&server), [left]);
}

async fn a_majority_takes_a_name_of_bytes() {
    let servers: Vec<_> = std::iter::repeat_with(Server::start).take(3).collect();
    let locks = quorum_of(&servers).await;
    let guard = locks.lock(NAME).acquire().await.unwrap();
    until("all servers have the claim", || {
        let mut servers = servers.iter();
        servers.all(|server| keys(server).contains(&NAME.to_vec()))
    })
    .await;
    guard.extend(Duration::from_secs(40)).await.unwrap();
    let forced = locks.force_release(NAME).await;
    assert!(forced.is_ok(), "{forced:?}");
    drop(guard);
}
