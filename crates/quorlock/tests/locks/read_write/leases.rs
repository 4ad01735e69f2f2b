//! Each reader has its own lease.

use quorlock::operate::Summary;
use quorlock::{EmbeddedNode, Locks, Lost, NodeTrust};
use tokio::time::{Instant, sleep, timeout};

use super::{SECOND, clients, name};

#[tokio::test(start_paused = true)]
async fn story_22_a_dead_reader_does_not_keep_writers_out_for_longer_than_its_lease() {
    for (_, locks) in clients() {
        let dead = locks.read("a").acquire().await.unwrap();
        let alive = locks.read("a").acquire().await.unwrap();
        dead.leak();
        sleep(40 * SECOND).await;
        assert!(alive.is_held());
        alive.release().await.unwrap();
        let writer = locks.write("a").try_acquire().await.unwrap();
        assert!(writer.is_some(), "the living one kept the dead one alive");
    }
}

/// A reader with a short lease set the TTL of the whole hash, and the other readers lost their locks with it.
#[tokio::test(start_paused = true)]
async fn story_22_a_short_lease_of_one_reader_cuts_nobody_else_s() {
    for (nodes, locks) in clients() {
        let long = locks.read("a").lease(20 * SECOND).acquire().await.unwrap();
        let short = locks.read("a").lease(SECOND).acquire().await.unwrap();
        sleep(5 * SECOND).await;
        assert!(long.is_held() && !short.is_held());
        assert!(locks.write("a").try_acquire().await.unwrap().is_none());
        let lasting = locks.read("a").lease(2 * SECOND).acquire().await.unwrap();
        lasting.release().await.unwrap();
        assert!(locks.write("a").try_acquire().await.unwrap().is_none());
        sleep(16 * SECOND).await;
        assert!(!long.is_held());
        assert!(locks.write("a").try_acquire().await.unwrap().is_some());
        drop((long, short));
        sleep(SECOND).await;
        assert!(nodes.iter().all(|node| node.names().is_empty()));
    }
}

/// Renewals of a reader that had entered twice continued after it had left twice.
#[tokio::test(start_paused = true)]
async fn story_22_no_renewal_of_a_reader_outlives_its_release() {
    for (nodes, watching) in clients() {
        // Nodes that are not watched are not probed, so every request is about the lock.
        drop(watching);
        let locks = Locks::builder().node_trust(NodeTrust::Unwatched);
        let locks = locks.on_nodes(nodes.clone()).unwrap();
        let owner = locks.owner();
        let outer = owner.read("a").acquire().await.unwrap();
        let inner = owner.read("a").acquire().await.unwrap();
        let other = locks.read("a").acquire().await.unwrap();
        sleep(25 * SECOND).await;
        inner.release().await.unwrap();
        outer.release().await.unwrap();
        assert!(nodes.iter().all(|node| node.readers(&name()).len() == 1));
        other.release().await.unwrap();
        sleep(SECOND).await;
        let executed: Vec<_> = nodes.iter().map(EmbeddedNode::executed).collect();
        sleep(120 * SECOND).await;
        let later: Vec<_> = nodes.iter().map(EmbeddedNode::executed).collect();
        assert_eq!(executed, later);
        assert!(nodes.iter().all(|node| node.names().is_empty()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_is_renewed_and_learns_of_its_loss() {
    for (nodes, locks) in clients() {
        let reader = locks.read("a").acquire().await.unwrap();
        let other = locks.read("a").acquire().await.unwrap();
        sleep(300 * SECOND).await;
        assert!(reader.is_held());
        locks.force_release("a").await.unwrap();
        assert_eq!(timeout(11 * SECOND, reader.lost()).await, Ok(Lost::Taken));
        assert_eq!(timeout(SECOND, other.lost()).await, Ok(Lost::Taken));
        assert!(nodes.iter().all(|node| node.readers(&name()).is_empty()));
    }
}

/// A reader with a longer lease has left, so the hash outlives the remaining readers.
#[tokio::test(start_paused = true)]
async fn dead_readers_in_a_hash_that_lives_are_in_nobody_s_way() {
    for (nodes, locks) in clients() {
        let long = locks.read("a").acquire().await.unwrap();
        let dead = locks.read("a").lease(2 * SECOND).acquire().await.unwrap();
        dead.leak();
        long.release().await.unwrap();
        let needed = nodes.len();
        let read = Summary::Read { nodes: needed };
        assert_eq!(locks.inspect("a").await.unwrap().summary(), read);
        let began = Instant::now();
        let writer = locks.write("a").acquire().await.unwrap();
        let waited = began.elapsed();
        assert!(waited < 3 * SECOND, "{waited:?}");
        drop(writer);
        sleep(SECOND).await;

        let long = locks.read("a").acquire().await.unwrap();
        locks
            .read("a")
            .lease(2 * SECOND)
            .acquire()
            .await
            .unwrap()
            .leak();
        long.release().await.unwrap();
        sleep(3 * SECOND).await;
        let inspection = locks.inspect("a").await.unwrap();
        assert_eq!(inspection.summary(), Summary::Free, "{inspection}");
        assert_eq!(
            nodes
                .iter()
                .filter(|node| node.held(&name()).is_some())
                .count(),
            needed
        );
    }
}
