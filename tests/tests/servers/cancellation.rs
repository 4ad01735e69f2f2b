//! Tests futures that are dropped at every point at which they wait for a real server.
#![allow(
    clippy::async_yields_async,
    reason = "what is made in each world is a future, to be cut off"
)]

use std::future::Future;
use std::pin::Pin;

use quorlock::Locks;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::{claim_of, quorum_of};
use quorlock_tests::polls::poll_times;

server_tests![
    a_dropped_acquisition_leaves_no_key,
    a_dropped_try_leaves_no_key,
    a_dropped_acquisition_of_two_leaves_no_key,
    a_dropped_release_goes_on,
    dropped_work_under_a_lock_frees_it,
    a_dropped_client_leaves_no_key,
];

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Drops the future of `begin` after no poll, after one poll, after two, and so on, until it completes. Then none of
/// its keys may be left, on one server and on three. The number of polls depends on the network.
async fn cut_off_at_every_poll<T>(begin: impl AsyncFn(&Locks) -> Boxed<T>) {
    for many in [1, 3] {
        let servers: Vec<_> = std::iter::repeat_with(Server::start).take(many).collect();
        let (locks, other) = (quorum_of(&servers).await, quorum_of(&servers).await);
        let mut polls = 0;
        loop {
            let mut future = begin(&locks).await;
            let output = poll_times(&mut future, polls).await;
            let is_over = output.is_some();
            drop((future, output));
            until("nothing stays behind", || {
                let is_free = |name| servers.iter().all(|s| claim_of(s, name).is_none());
                is_free("a") && is_free("b")
            })
            .await;
            let next = other.all(["a", "b"]).wait(BOUND).acquire().await;
            next.unwrap().release().await.unwrap();
            if is_over {
                break;
            }
            polls += 1;
        }
        until("the client holds nothing", || locks.held() == 0).await;
    }
}

async fn a_dropped_acquisition_leaves_no_key() {
    cut_off_at_every_poll(async |locks| {
        let lock = locks.lock("a");
        Box::pin(async move { lock.acquire().await.unwrap() }) as Boxed<_>
    })
    .await;
}

async fn a_dropped_try_leaves_no_key() {
    cut_off_at_every_poll(async |locks| {
        let lock = locks.lock("a");
        Box::pin(async move { lock.try_acquire().await.unwrap() }) as Boxed<_>
    })
    .await;
}

async fn a_dropped_acquisition_of_two_leaves_no_key() {
    cut_off_at_every_poll(async |locks| {
        let lock = locks.all(["b", "a"]);
        Box::pin(async move { lock.acquire().await.unwrap() }) as Boxed<_>
    })
    .await;
}

async fn a_dropped_release_goes_on() {
    cut_off_at_every_poll(async |locks| {
        let guard = locks.lock("a").acquire().await.unwrap();
        Box::pin(guard.release()) as Boxed<_>
    })
    .await;
}

async fn dropped_work_under_a_lock_frees_it() {
    cut_off_at_every_poll(async |locks| {
        let guard = locks.lock("a").acquire().await.unwrap();
        let work = async {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        };
        Box::pin(guard.while_held(async |_| work.await)) as Boxed<_>
    })
    .await;
}

async fn a_dropped_client_leaves_no_key() {
    for _ in 0..5 {
        let servers = [Server::start()];
        let locks = quorum_of(&servers).await;
        let guard = locks.lock("a").acquire().await.unwrap();
        let lock = locks.lock("a");
        let mut waiting = Box::pin(async move { lock.acquire().await.map(drop) });
        drop(poll_times(&mut waiting, 2).await);
        drop((locks, guard, waiting));
        until("nothing stays behind", || {
            claim_of(&servers[0], "a").is_none()
        })
        .await;
    }
}
