//! Every kind of lock.

use quorlock::operate::Summary;
use quorlock::{LeaderEvent, Locks};
use quorlock_store::StoreTransport;
use tokio::time::{Instant, timeout};

use crate::databases::{Database, SECOND, patient, store};

pub(crate) async fn every_kind_of_lock_works<D: Database>(server: D) {
    let (one, other) = (patient(store(&server).await), patient(store(&server).await));
    let reader = one.read("page").acquire().await.unwrap();
    let second = other.read("page").acquire().await.unwrap();
    assert!(other.write("page").try_acquire().await.unwrap().is_none());
    reader.release().await.unwrap();
    second.release().await.unwrap();
    let writer = other.write("page").try_acquire().await.unwrap().unwrap();
    assert!(one.read("page").try_acquire().await.unwrap().is_none());
    writer.release().await.unwrap();

    let both = one.all(["a", "b"]).acquire().await.unwrap();
    assert!(other.lock("b").try_acquire().await.unwrap().is_none());
    both.release().await.unwrap();

    // Who came first is first.
    let first = one.fair("queue").acquire().await.unwrap();
    let token = first.fencing_token();
    let waiting = tokio::spawn({
        let other = other.clone();
        async move { other.fair("queue").acquire().await.unwrap() }
    });
    // The waiter is in the queue, or will be.
    tokio::time::sleep(SECOND / 2).await;
    first.release().await.unwrap();
    let second = timeout(60 * SECOND, waiting).await.unwrap().unwrap();
    assert!(token < second.fencing_token());

    let summary = one.inspect("queue").await.unwrap().summary();
    let owner = second.owner_id().to_string();
    assert_eq!(summary, Summary::Held { owner, nodes: 1 });
    one.force_release("queue").await.unwrap();
    assert!(one.lock("queue").try_acquire().await.unwrap().is_some());
}

pub(crate) async fn a_leader_resigns_and_another_one_is_elected<D: Database>(server: D) {
    let (one, other) = (patient(store(&server).await), patient(store(&server).await));
    let mut first = one.leader("scheduler").campaign();
    let LeaderEvent::Elected { term, .. } = first.next().await.unwrap() else {
        panic!("the first event is another one")
    };
    let mut second = other.leader("scheduler").campaign();
    let elected = tokio::spawn(async move { second.next().await.unwrap() });
    tokio::time::sleep(SECOND / 2).await;
    assert!(!elected.is_finished());
    first.resign().await.unwrap();
    let LeaderEvent::Elected { term: next, .. } = elected.await.unwrap() else {
        panic!("the second candidate was not elected")
    };
    assert!(term < next);
}

/// The client of a dead holder says nothing. Another one has to see its claim unchanged for the whole lease.
pub(crate) async fn a_dead_holder_is_replaced_by_what_was_observed<D: Database>(server: D) {
    let builder = || Locks::builder().watchdog_lease(3 * SECOND);
    let client = async || {
        let transport = StoreTransport::new(store(&server).await);
        builder().on_node(transport).unwrap()
    };
    let (one, other) = (client().await, client().await);
    let guard = one.lock("a").acquire().await.unwrap();
    let token = guard.fencing_token();
    guard.leak();
    let began = Instant::now();
    let taken = other.lock("a").acquire().await.unwrap();
    assert!(2 * SECOND < began.elapsed(), "{:?}", began.elapsed());
    assert!(token < taken.fencing_token());
    taken.release().await.unwrap();
}
