//! Locks over several clients with equal nodes and names, and different settings.

use quorlock::{AcquireError, EmbeddedNode, Lock, Locks, LocksBuilder, Lost};
use tokio::time::{Instant, sleep};

use super::{S, wait_in_line};

/// Two clients of one node, each with a part in a lock with the same first client. The waiter for the second lock is
/// behind the waiter for the first.
struct SamePlaces {
    clients: [Locks; 2],
    locks: [Lock; 2],
    /// A third client of the node.
    other: Locks,
}

impl SamePlaces {
    /// The second client has these settings.
    fn new(settings: LocksBuilder) -> Self {
        let first = Locks::on_node(EmbeddedNode::new()).unwrap();
        let node = EmbeddedNode::new();
        let free = Locks::on_node(node.clone()).unwrap();
        let clients = [free, settings.on_node(node.clone()).unwrap()];
        let locks = clients
            .each_ref()
            .map(|client| first.lock("a").and([client.lock("b")]));
        let other = Locks::on_node(node).unwrap();
        SamePlaces {
            clients,
            locks,
            other,
        }
    }
}

/// The second client allows no hold longer than 40 s, and its waiter gets a hold of the first lock.
#[tokio::test(start_paused = true)]
async fn a_waiter_gets_a_hold_of_its_own_clients() {
    let SamePlaces { locks, other, .. } = SamePlaces::new(Locks::builder().max_hold(S(40)));
    let held = other.lock("b").acquire().await.unwrap();
    let [leader, follower] = wait_in_line(locks).await;
    held.release().await.unwrap();
    leader.await.unwrap().unwrap().release().await.unwrap();
    let guard = follower.await.unwrap().unwrap();
    let began = Instant::now();
    let lost = tokio::time::timeout(S(300), guard.lost()).await;
    assert_eq!(
        lost,
        Ok(Lost::Expired),
        "held for {:?}, and for {:?} more",
        began.elapsed(),
        guard.validity()
    );
    assert!(began.elapsed() <= S(40));
}

/// The client of the leader's lock is closed, and those of the follower's lock are not.
#[tokio::test(start_paused = true)]
async fn a_closed_client_ends_no_acquisition_that_it_has_no_part_in() {
    let SamePlaces {
        clients,
        locks,
        other,
    } = SamePlaces::new(Locks::builder());
    let held = other.lock("b").acquire().await.unwrap();
    let [leader, follower] = wait_in_line(locks).await;
    clients[0].close().await;
    let ended = leader.await.unwrap().map(drop);
    assert_eq!(ended, Err(AcquireError::Closed));
    sleep(S(1)).await;
    held.release().await.unwrap();
    let won = follower.await.unwrap();
    assert!(won.is_ok(), "{won:?}");
}
