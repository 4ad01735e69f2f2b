//! One waiter of a process sends the requests of all. When it leaves, the next one continues where it was.

use std::time::Duration;

use quorlock::EmbeddedNode;
use tokio::time::{Instant, sleep};

use crate::failures::support::{LATENCY, client, millis, nodes, poll_once, poll_times, settle};

/// The leader is dropped after every possible number of polls while the holder releases. The next waiter takes over
/// its wake-ups, requests and grants, and wins at most a round or a back-off later.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_dropped_hands_on_what_it_has() {
    for many in [1, 3] {
        let mut polls = 1;
        loop {
            let nodes = nodes(many);
            let holder = client(&nodes).lock("a").acquire().await.unwrap();
            let lock = client(&nodes).lock("a");
            let leading = lock.clone();
            let mut leader = Box::pin(async move { leading.acquire().await.unwrap() });
            assert!(poll_once(&mut leader).is_pending());
            let next = tokio::spawn(async move {
                let guard = lock.acquire().await.unwrap();
                (Instant::now(), guard)
            });
            let releasing = tokio::spawn(async move {
                sleep(millis(30)).await;
                holder.release().await.unwrap();
                Instant::now()
            });
            let is_over = poll_times(&mut leader, polls).await.is_some();
            drop(leader);
            let dropped = Instant::now();
            let since = dropped.max(releasing.await.unwrap());
            let (entered, guard) = next.await.unwrap();
            let waited = entered.saturating_duration_since(since);
            assert!(waited <= slack(many), "{waited:?} after {polls} polls");
            guard.release().await.unwrap();
            if is_over {
                break;
            }
            polls += 1;
        }
        assert!(3 < polls, "{polls} polls are few");
    }
}

/// A round and its clean-up. On several nodes the first wake-up of three may cost one back-off.
fn slack(many: usize) -> Duration {
    if many == 1 { LATENCY * 3 } else { LATENCY * 20 }
}

/// A grant in flight to a leader that is dropped passes to the next waiter: nothing is released and requested again.
#[tokio::test(start_paused = true)]
async fn a_grant_on_its_way_passes_to_the_next() {
    let nodes = nodes(1);
    let lock = client(&nodes).lock("a");
    let leading = lock.clone();
    let mut leader = Box::pin(async move { leading.acquire().await });
    assert!(poll_once(&mut leader).is_pending());
    let next = tokio::spawn(async move { lock.acquire().await.unwrap() });
    sleep(LATENCY / 4 * 3).await;
    drop(leader);
    let guard = next.await.unwrap();
    assert!(guard.is_held());
    settle().await;
    assert_eq!(executed(&nodes), 1);
}

/// The leader's wait is its own: when it ends, the next waiter leads, and is woken as the leader would have been.
#[tokio::test(start_paused = true)]
async fn a_leader_that_gives_up_leaves_its_place() {
    let nodes = nodes(3);
    let holder = client(&nodes).lock("a").acquire().await.unwrap();
    let lock = client(&nodes).lock("a");
    let impatient = lock.clone().wait(millis(100));
    let leader = tokio::spawn(async move { impatient.acquire().await.map(drop) });
    settle().await;
    let next = tokio::spawn(async move { lock.acquire().await.unwrap() });
    assert!(leader.await.unwrap().is_err());
    settle().await;
    holder.release().await.unwrap();
    let released = Instant::now();
    next.await.unwrap().release().await.unwrap();
    assert!(released.elapsed() <= slack(3));
}

fn executed(nodes: &[EmbeddedNode]) -> u64 {
    nodes.iter().map(EmbeddedNode::executed).sum()
}
