//! Several locks taken together.

use quorlock::transport::Cause;
use quorlock::{AcquireError, EmbeddedNode, Lock, Locks, Lost, ReleaseError};
use tokio::time::sleep;

use crate::failures::support::{
    assert_empty, at_once, claim_on, client, millis, name, nodes, secs, settle,
};
use crate::failures::unreliable::{Fate, Unreliable};

/// Two locks of two clients, each on its own node, taken together.
fn both(first: &Locks, second: &Locks) -> Lock {
    first.lock("a").and([second.lock("b")])
}

/// A lock over several names failed at one of them, or was interrupted, and the others stayed locked. Here everything
/// that may have been granted is released, node by node.
#[tokio::test(start_paused = true)]
async fn story_07_a_failed_acquisition_of_several_leaves_none() {
    for failure in [Fate::Refused(Cause::Loading), Fate::Lost, Fate::ReplyLost] {
        let two = nodes(2);
        let (good, bad) = (Unreliable::to(&two[0]), Unreliable::to(&two[1]));
        let fate = failure.clone();
        bad.decide(move |_| fate.clone());
        let lock = both(
            &Locks::on_node(good.transport()).unwrap(),
            &Locks::on_node(bad.transport()).unwrap(),
        );
        let error = lock.acquire().await.unwrap_err();
        assert!(matches!(error, AcquireError::NoQuorum { .. }), "{error}");
        bad.heal();
        sleep(secs(3)).await;
        assert_empty(&two);
    }
}

/// A lock over three nodes of which one was down was an error, and the keys on the other two stayed. Here two of
/// three are enough; and when two are down, the third keeps nothing.
#[tokio::test(start_paused = true)]
async fn story_07_a_node_that_is_down_is_no_error_and_two_leave_no_keys() {
    let nodes = nodes(3);
    let lock = client(&nodes).lock("a");
    nodes[0].kill();
    let guard = at_once(lock.acquire()).await.unwrap();
    guard.release().await.unwrap();
    nodes[1].kill();
    let error = lock.acquire().await.unwrap_err();
    let AcquireError::NoQuorum { nodes: reports, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(reports.len(), 2, "{error}");
    settle().await;
    assert_empty(&nodes);
}

/// A round was under way when the wait ended, and all nodes were reported as silent, whatever they had answered before.
#[tokio::test(start_paused = true)]
async fn a_wait_that_ends_during_a_round_reports_the_round_before() {
    let nodes = nodes(3);
    let lock = client(&nodes).lock("a");
    nodes[0].kill();
    nodes[1].kill();
    for wait in 10..80 {
        let lock = lock.clone().wait(millis(wait));
        let said = lock.acquire().await.unwrap_err().to_string();
        assert!(!said.contains("no answer"), "{wait} ms: {said}");
    }
}

/// Releasing several locks stopped at the first failure, and the rest stayed locked and renewed. Here each is
/// released independently of the others.
#[tokio::test(start_paused = true)]
async fn story_07_a_release_that_fails_on_one_frees_the_others() {
    for failure in [Fate::Refused(Cause::Misconfigured), Fate::Lost] {
        let two = nodes(2);
        let (bad, good) = (Unreliable::to(&two[0]), Unreliable::to(&two[1]));
        let lock = both(
            &Locks::on_node(bad.transport()).unwrap(),
            &Locks::on_node(good.transport()).unwrap(),
        );
        let guard = lock.acquire().await.unwrap();
        let fate = failure.clone();
        bad.decide(move |_| fate.clone());
        let releasing = tokio::spawn(guard.release());
        sleep(millis(5)).await;
        assert_empty(&two[1..]);
        let error = releasing.await.unwrap().unwrap_err();
        assert!(matches!(error, ReleaseError::Unconfirmed { .. }), "{error}");
        // A claim that could not be released is not renewed, and ends with its lease.
        sleep(secs(31)).await;
        assert_empty(&two);
    }
}

#[tokio::test(start_paused = true)]
async fn one_lost_name_loses_them_all() {
    let nodes = nodes(3);
    let lock = client(&nodes).all(["a", "b"]);
    let guard = lock.acquire().await.unwrap();
    for node in &nodes {
        let (held, _) = node.held(&name("a")).unwrap();
        node.flush();
        node.put(&name("a"), held, Some(secs(60)));
    }
    assert_eq!(guard.lost().await, Lost::Taken);
    settle().await;
    assert_empty(&nodes);
}

#[tokio::test(start_paused = true)]
async fn a_try_for_several_of_which_one_is_held_takes_none() {
    let nodes = nodes(3);
    let locks = client(&nodes);
    let held = locks.lock("b").acquire().await.unwrap();
    let three = locks.all(["c", "b", "a"]);
    assert!(three.try_acquire().await.unwrap().is_none());
    settle().await;
    for node in &nodes {
        assert_eq!(node.names(), [name("b")]);
    }
    held.release().await.unwrap();
    let guard = three.try_acquire().await.unwrap().unwrap();
    let names: Vec<_> = guard.names().filter_map(|name| name.to_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_name_given_twice_is_one_lock() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let lock = locks.lock("a").and([locks.lock("a"), locks.lock("b")]);
    let guard = at_once(lock.acquire()).await.unwrap();
    assert_eq!(guard.names().count(), 2);
    assert_eq!(claim_on(&node, "a").map(|(_, count)| count), Some(1));
    guard.release().await.unwrap();
    assert_empty(&[node]);
}

/// Four clients, each with the names in another order, over quorums with one node that goes down and comes back.
#[tokio::test(start_paused = true)]
async fn all_orders_over_quorums_make_progress() {
    let (left, right) = (nodes(3), nodes(3));
    let mut tasks = Vec::new();
    for turn in 0..4 {
        let (first, second) = (client(&left), client(&right));
        let mut locks = [first.lock("a"), second.lock("b"), first.lock("c")];
        let many = locks.len();
        locks.rotate_left(turn % many);
        let [one, rest @ ..] = locks;
        let lock = one.and(rest);
        tasks.push(tokio::spawn(async move {
            for _ in 0..10 {
                let guard = lock.acquire().await.unwrap();
                sleep(millis(3)).await;
                assert!(guard.is_held());
                guard.release().await.unwrap();
            }
        }));
    }
    sleep(millis(30)).await;
    left[1].pause();
    right[2].kill();
    sleep(millis(300)).await;
    left[1].resume();
    for task in tasks {
        tokio::time::timeout(secs(60), task).await.unwrap().unwrap();
    }
    sleep(secs(5)).await;
    assert_empty(&left);
    assert_empty(&right[..2]);
}
