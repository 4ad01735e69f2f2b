//! Concurrent acquisitions of one owner on one name.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test"
)]

use std::time::Duration;

use quorlock::{AcquireError, EmbeddedNode, Guard, Lock, Locks};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

/// A client of one node, and a client of three, with a round trip of 1 ms.
fn clients() -> [(Vec<EmbeddedNode>, Locks); 2] {
    [1, 3].map(|count| {
        let node = || EmbeddedNode::new().latency(Duration::from_millis(1));
        let nodes: Vec<_> = (0..count).map(|_| node()).collect();
        let settings = Locks::builder().trust_fresh_nodes();
        let locks = settings.on_nodes(nodes.clone()).unwrap();
        (nodes, locks)
    })
}

type Acquiring = JoinHandle<Result<Guard, AcquireError>>;

fn begin(lock: Lock) -> Acquiring {
    tokio::spawn(async move { lock.acquire().await })
}

async fn end(acquiring: Acquiring) -> Result<Guard, AcquireError> {
    let ended = timeout(SECOND, acquiring).await;
    ended.expect("it waits for itself").unwrap()
}

fn is_upgrade(result: &Result<Guard, AcquireError>) -> bool {
    matches!(result, Err(AcquireError::Upgrade { .. }))
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_begins_to_read_at_once_reads_under_its_own_write() {
    for (_, locks) in clients() {
        let owner = locks.owner();
        let (writer, reader) = (begin(owner.write("a")), begin(owner.read("a")));
        let (writer, reader) = (end(writer).await.unwrap(), end(reader).await.unwrap());
        assert!(locks.read("a").try_acquire().await.unwrap().is_none());
        writer.release().await.unwrap();
        drop(locks.read("a").try_acquire().await.unwrap().unwrap());
        reader.release().await.unwrap();
        drop(locks.write("a").try_acquire().await.unwrap().unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_begins_to_write_at_once_is_told() {
    for (_, locks) in clients() {
        let owner = locks.owner();
        let (reader, writer) = (begin(owner.read("a")), begin(owner.write("a")));
        let reader = end(reader).await.unwrap();
        let refused = end(writer).await;
        assert!(is_upgrade(&refused), "{refused:?}");
        reader.release().await.unwrap();
        drop(owner.write("a").try_acquire().await.unwrap().unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn both_wait_for_another_holder_in_the_order_in_which_they_began() {
    for (_, locks) in clients() {
        for reads_first in [false, true] {
            let other = locks.write("a").acquire().await.unwrap();
            let owner = locks.owner();
            let mut locks = [owner.write("a"), owner.read("a")];
            if reads_first {
                locks.reverse();
            }
            let [first, second] = locks.map(begin);
            sleep(5 * SECOND).await;
            assert!(!first.is_finished() && !second.is_finished());
            other.release().await.unwrap();
            let first = end(first).await.unwrap();
            let second = end(second).await;
            assert_eq!(is_upgrade(&second), reads_first, "{second:?}");
            assert!(first.is_held() && (reads_first || second.is_ok()));
            drop((first, second));
            sleep(SECOND).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_may_be_dropped_or_give_up() {
    for (_, locks) in clients() {
        let other = locks.write("a").acquire().await.unwrap();
        let owner = locks.owner();
        let dropped = begin(owner.read("a"));
        sleep(SECOND).await;
        let bounded = begin(owner.read("a").wait(2 * SECOND));
        sleep(SECOND).await;
        let writer = begin(owner.write("a"));
        let brief = owner.write("a").wait(SECOND).acquire().await;
        assert!(
            matches!(brief, Err(AcquireError::Contended { .. })),
            "{brief:?}"
        );
        dropped.abort();
        assert!(end(bounded).await.is_err());
        assert!(!writer.is_finished());
        other.release().await.unwrap();
        end(writer).await.unwrap().release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_overlaps_is_told_so_instead_of_waiting_for_itself() {
    for (_, locks) in clients() {
        let owner = locks.owner();
        let both = owner.all(["b", "a"]);
        for [first, second] in [
            [owner.lock("a"), both.clone()],
            [both.clone(), owner.lock("b")],
            [both.clone(), owner.all(["a", "c"])],
            [owner.write("a"), owner.lock("a")],
        ] {
            let (first, second) = (begin(first), begin(second));
            let first = end(first).await.unwrap();
            let second = end(second).await;
            assert!(
                matches!(second, Err(AcquireError::Overlap { .. })),
                "{second:?}"
            );
            first.release().await.unwrap();
        }
    }
}
