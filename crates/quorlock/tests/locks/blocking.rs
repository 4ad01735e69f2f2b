//! Locks for code without `async`, on embedded nodes and real threads.

#![allow(
    clippy::unwrap_used,
    reason = "a test is the world: it fails by panicking"
)]

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use quorlock::blocking::Locks;
use quorlock::{ConnectError, EmbeddedNode, ErrorKind, LeaderEvent, Lost};

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn client(node: &EmbeddedNode) -> Locks {
    let node = node.clone();
    Locks::start(async move || quorlock::Locks::on_node(node)).unwrap()
}

#[test]
fn a_lock_excludes_other_threads_and_clients() {
    let node = EmbeddedNode::new();
    let (ours, theirs) = (client(&node), client(&node));
    let guard = ours.lock("a").acquire().unwrap();
    assert!(guard.is_held() && guard.check().is_ok());
    assert!(ours.lock("a").try_acquire().unwrap().is_none());
    let busy = theirs.lock("a").wait(Duration::from_millis(20)).acquire();
    assert_eq!(busy.unwrap_err().kind(), ErrorKind::Busy);
    let waiter = thread::spawn({
        let lock = theirs.lock("a").wait(LONG);
        move || lock.acquire().unwrap().fencing_token()
    });
    let token = guard.fencing_token();
    guard.release().unwrap();
    assert!(token < waiter.join().unwrap());
    assert_eq!((ours.held(), theirs.held()), (0, 0));
}

#[test]
fn threads_share_the_permits_of_a_semaphore() {
    let node = EmbeddedNode::new();
    let (ours, theirs) = (client(&node), client(&node));
    let semaphore = ours.semaphore("a", 2);
    assert_eq!(semaphore.as_async().permits(), 2);
    let guard = semaphore.acquire().unwrap();
    let other = theirs.semaphore("a", 2).try_acquire().unwrap().unwrap();
    assert!(semaphore.try_acquire().unwrap().is_none());
    let busy = semaphore.clone().wait(Duration::from_millis(20)).acquire();
    assert_eq!(busy.unwrap_err().kind(), ErrorKind::Busy);
    let waiter = thread::spawn({
        let semaphore = theirs.semaphore("a", 2).wait(LONG);
        move || semaphore.acquire().unwrap().fencing_token()
    });
    let token = guard.fencing_token();
    guard.release().unwrap();
    assert!(token < waiter.join().unwrap());
    let short = theirs.semaphore("a", 2).lease(Duration::from_millis(50));
    let lost = short.acquire().unwrap().wait_lost(LONG);
    assert_eq!(lost, Some(Lost::Expired));
    let owner = ours.owner().semaphore("a", 2);
    let (outer, inner) = (owner.acquire().unwrap(), owner.acquire().unwrap());
    assert_eq!(outer.owner_id(), inner.owner_id());
    drop((outer, inner, other));
    assert_eq!((ours.held(), theirs.held()), (0, 0));
}

#[test]
fn the_thread_that_drops_a_guard_waits_for_its_release() {
    let node = EmbeddedNode::new().latency(Duration::from_millis(1));
    let (ours, theirs) = (client(&node), client(&node));
    for _ in 0..20 {
        drop(ours.lock("a").acquire().unwrap());
        drop(theirs.lock("a").try_acquire().unwrap().unwrap());
    }
}

/// The thread that holds the lock does nothing but block. Its lease is renewed by the thread of the client.
#[test]
fn a_hold_is_renewed_while_its_thread_blocks() {
    let locks = client(&EmbeddedNode::new());
    let lock = locks.lock("a").watchdog_lease(Duration::from_secs(3));
    let guard = lock.acquire().unwrap();
    let before = guard.validity();
    assert_eq!(guard.wait_lost(before + Duration::from_millis(10)), None);
    assert!(guard.check().is_ok() && !guard.validity().is_zero());
}

#[test]
fn a_loss_is_told_to_a_thread_that_may_block() {
    let node = EmbeddedNode::new();
    let locks = client(&node);
    let lock = locks.lock("a").lease(Duration::from_millis(50));
    let guard = lock.acquire().unwrap();
    let (sender, told) = channel();
    let again = lock.clone().wait(LONG);
    guard.on_lost(move |lost| sender.send((lost, again.acquire().is_ok())).unwrap());
    assert_eq!(told.recv_timeout(LONG).unwrap(), (Lost::Expired, true));
    assert_eq!(guard.wait_lost(LONG), Some(Lost::Expired));
    assert_eq!(guard.check(), Err(Lost::Expired));
    assert!(guard.extend(LONG).is_err() && guard.reenter().is_err());
    assert!(guard.release().is_err());
}

/// The last handle of a client is dropped where a loss is told.
#[test]
fn a_client_may_end_where_a_loss_is_told() {
    let locks = client(&EmbeddedNode::new());
    let lock = locks.lock("a").lease(Duration::from_millis(10));
    let guard = lock.acquire().unwrap();
    let (sender, told) = channel();
    guard.on_lost(move |lost| {
        drop((locks, lock));
        sender.send(lost).unwrap();
    });
    drop(guard);
    // Released or expired, as it comes.
    told.recv_timeout(LONG).unwrap();
}

#[test]
fn holds_are_entered_extended_and_left() {
    let locks = client(&EmbeddedNode::new());
    let guard = locks.all(["b", "a"]).acquire().unwrap();
    assert_eq!(guard.names().count(), 2);
    assert_eq!(guard.fencing_token_of("c"), None);
    let inner = guard.reenter().unwrap();
    assert_eq!(inner.hold_count(), 2);
    inner.release().unwrap();
    guard.extend(Duration::from_secs(50)).unwrap();
    assert!(Duration::from_secs(40) < guard.validity());
    guard.leak();
    assert!(locks.lock("a").try_acquire().unwrap().is_none());
    locks.force_release("a").unwrap();
    let owner = locks.owner();
    let (outer, inner) = (owner.lock("a").acquire(), owner.lock("a").acquire());
    assert_eq!(outer.unwrap().owner_id(), inner.unwrap().owner_id());
    locks.close();
    assert_eq!(
        locks.lock("a").acquire().unwrap_err().kind(),
        ErrorKind::Closed
    );
}

#[test]
fn one_candidate_leads_until_it_resigns() {
    let node = EmbeddedNode::new();
    let (ours, theirs) = (client(&node), client(&node));
    let mut first = ours.campaign("scheduler");
    let Some(LeaderEvent::Elected { term, .. }) = first.next() else {
        panic!("no other candidate is there")
    };
    assert!(first.leadership().unwrap().is_leading());
    let second = thread::spawn(move || {
        let mut second = theirs.campaign("scheduler");
        match second.next() {
            Some(LeaderEvent::Elected { term, .. }) => term,
            other => panic!("{other:?}"),
        }
    });
    first.resign().unwrap();
    assert!(term < second.join().unwrap());
}

/// Blocking is a mistake in a task, but no deadlock: the client has a thread of its own.
#[tokio::test]
async fn a_task_that_blocks_is_answered() {
    let locks = client(&EmbeddedNode::new());
    let guard = locks.lock("a").acquire().unwrap();
    let other = locks.as_async().lock("a").try_acquire().await.unwrap();
    assert!(other.is_none());
    guard.release().unwrap();
}

#[test]
fn a_client_that_cannot_be_made_is_an_error() {
    let error = Locks::start(async || {
        let builder = quorlock::Locks::builder().watchdog_lease(Duration::ZERO);
        builder.on_node(EmbeddedNode::new())
    });
    let error = error.unwrap_err();
    assert!(matches!(&error, ConnectError::Config(_)), "{error:?}");
}
