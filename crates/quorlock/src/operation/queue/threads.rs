//! Waiters on several threads, without attempts.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use super::*;

/// Waits for the turn in the queue, leads and leaves, as one of several waiters.
async fn lead(queues: &Queues, keeper: &Arc<Keeper>, leading: &AtomicUsize) {
    let lease = Lease::new(Duration::from_secs(30)).unwrap();
    let key = (Arc::from("a"), lease, true, Sharing::All);
    let (queue, waiter) = queues.join(key, keeper);
    poll_fn(|cx| match queue.turn(&waiter, cx) {
        QueueStep::Lead(attempt, _) => {
            assert!(attempt.is_none());
            Poll::Ready(())
        }
        QueueStep::Follow(_) => Poll::Pending,
        QueueStep::Enter | QueueStep::Take(_) | QueueStep::Rejoin | QueueStep::Fail(_) => {
            panic!("no waiter was sent away")
        }
    })
    .await;
    assert_eq!(leading.fetch_add(1, Ordering::SeqCst), 0);
    shuttle::future::yield_now().await;
    leading.fetch_sub(1, Ordering::SeqCst);
    // Its attempt has ended.
    queue.state.lock().attempt = Shelf::Empty;
    assert!(queues.leave(&queue, &waiter, None).is_none());
}

async fn all_lead(many: usize) {
    let queues = Arc::new(Queues::default());
    let keeper = Keeper::new();
    let leading = Arc::new(AtomicUsize::new(0));
    let lead = || {
        let (queues, keeper, leading) = (queues.clone(), keeper.clone(), leading.clone());
        shuttle::future::spawn(async move { lead(&queues, &keeper, &leading).await })
    };
    let threads: Vec<_> = (0..many).map(|_| lead()).collect();
    for thread in threads {
        thread.await.unwrap();
    }
    assert!(queues.0.lock().is_empty());
}

#[test]
fn each_waiter_leads_once_and_no_two_at_a_time() {
    let name = "each_waiter_leads_once_and_no_two_at_a_time";
    quorlock_explore::explore_all(name, 20_000, || all_lead(2));
}

#[test]
fn three_waiters_lead_one_after_another() {
    let name = "three_waiters_lead_one_after_another";
    quorlock_explore::explore(name, quorlock_explore::Pace::Untimed, || all_lead(3));
}
