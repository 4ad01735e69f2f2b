//! Observing the leader.

use futures_util::StreamExt;
use quorlock::{EmbeddedNode, LeaderEvent, LeaderObserver, LeaderView, Leadership};
use tokio::time::timeout;

use crate::failures::support::{at_once, client, foreign, millis, name, nodes, secs, settle};

/// The next view must show this leader.
async fn sees(observer: &mut LeaderObserver, leader: &Leadership) {
    let view = at_once(observer.next()).await.unwrap();
    match &view {
        LeaderView::Led { owner, term, .. } => {
            assert_eq!(*owner, leader.owner_id().to_string());
            assert_eq!(*term, Some(leader.term()));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(view.leader(), Some(leader.owner_id().to_string().as_str()));
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_leaders_come_and_go_and_nothing_twice() {
    let nodes = nodes(3);
    let watching = client(&nodes);
    let mut observer = watching.observe_leader("a").unwrap();
    assert_eq!(observer.next().await, Some(LeaderView::Vacant));
    for _ in 0..3 {
        let mut candidacy = client(&nodes).leader("a").campaign();
        let Some(LeaderEvent::Elected { leadership, .. }) = candidacy.next().await else {
            panic!("not elected");
        };
        sees(&mut observer, &leadership).await;
        // A renewal produces no view.
        assert!(timeout(secs(60), observer.next()).await.is_err());
        drop(candidacy);
        let vacant = at_once(observer.next()).await;
        assert_eq!(vacant, Some(LeaderView::Vacant));
    }
    watching.close().await;
    assert_eq!(at_once(StreamExt::next(&mut observer)).await, None);
}

#[tokio::test(start_paused = true)]
async fn one_leader_after_the_other_is_seen_soon_after_the_release() {
    let nodes = nodes(3);
    let (one, other) = (client(&nodes), client(&nodes));
    let (mut one, mut other) = (one.leader("a").campaign(), other.leader("a").campaign());
    let Some(LeaderEvent::Elected { leadership, .. }) = one.next().await else {
        panic!("not elected");
    };
    let second = tokio::spawn(async move {
        let event = other.next().await;
        (event, other)
    });
    let observer = client(&nodes).observe_leader("a").unwrap();
    let mut observer = observer.every(secs(60));
    sees(&mut observer, &leadership).await;
    let idle = timeout(secs(100), observer.next());
    assert!(idle.await.is_err());
    one.resign().await.unwrap();
    let (Some(LeaderEvent::Elected { leadership, .. }), _other) = second.await.unwrap() else {
        panic!("not elected");
    };
    // A wake-up brings the next look forward, long before a minute is over.
    let view = timeout(secs(7), observer.next()).await.unwrap();
    assert_eq!(
        view.unwrap().leader(),
        Some(leadership.owner_id().to_string().as_str())
    );
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_claims_are_removed_is_seen_to_be_gone_at_once() {
    let nodes = nodes(3);
    let locks = client(&nodes);
    let guard = locks.lock("a").lease(secs(60)).acquire().await.unwrap();
    let observer = client(&nodes).observe_leader("a").unwrap();
    let mut observer = observer.every(secs(60));
    let view = observer.next().await.unwrap();
    assert_eq!(view.leader(), Some(guard.owner_id().to_string().as_str()));
    assert!(timeout(secs(10), observer.next()).await.is_err());
    let before = nodes[2].executed();
    nodes[0].flush();
    assert!(timeout(secs(40), observer.next()).await.is_err());
    // It does not look all the time because of one node.
    let looks = nodes[2].executed() - before;
    assert!(looks <= 10, "{looks} requests in 40 seconds");
    nodes[1].flush();
    let view = timeout(millis(10), observer.next()).await.unwrap();
    assert_eq!(view, Some(LeaderView::Vacant));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_known_is_said_and_a_look_costs_a_request_to_each_node() {
    let nodes = nodes(3);
    let locks = client(&nodes);
    let mut candidacy = locks.leader("a").campaign();
    let Some(LeaderEvent::Elected { leadership, .. }) = candidacy.next().await else {
        panic!("not elected");
    };
    let mut observer = client(&nodes).observe_leader("a").unwrap();
    sees(&mut observer, &leadership).await;
    // Two of three nodes show the leader, which is enough.
    nodes[0].kill();
    assert!(timeout(secs(5), observer.next()).await.is_err());
    nodes[1].kill();
    assert_eq!(observer.next().await, Some(LeaderView::Unknown));
    nodes[1].restart();
    // The node has lost the claim, and the leader has not re-acquired it yet.
    let view = observer.next().await.unwrap();
    assert!(
        matches!(view, LeaderView::Undecided | LeaderView::Vacant),
        "{view:?}"
    );
    drop((candidacy, observer, locks));

    let node = EmbeddedNode::new();
    node.put(&name("b"), foreign(), None);
    let locks = quorlock::Locks::on_node(node.clone()).unwrap();
    let mut observer = locks.observe_leader("b").unwrap().every(millis(500));
    let view = observer.next().await.unwrap();
    assert!(
        matches!(view, LeaderView::Led { term: None, .. }),
        "{view:?}"
    );
    settle().await;
    let before = node.executed();
    assert!(timeout(secs(50), observer.next()).await.is_err());
    let looks = node.executed() - before;
    assert!((95..=105).contains(&looks), "{looks} looks in 50 seconds");
    assert!(locks.observe_leader("").is_err());
}
