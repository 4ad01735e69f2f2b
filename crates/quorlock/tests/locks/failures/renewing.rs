//! Renewals that fail, and renewals that must not be sent.

use quorlock::transport::{Cause, Request};
use quorlock::{ConfirmError, EmbeddedNode, Locks, Lost, NodeTrust};
use quorlock_core::node::Held;
use tokio::time::{Instant, sleep, timeout};

use crate::failures::support::{
    LATENCY, assert_empty, client, foreign, is_claimed_by, millis, name, nodes, poll_times, secs,
    settle,
};
use crate::failures::unreliable::{Fate, Unreliable};

/// A renewal that was answered after the unlock armed the watchdog again, which renewed a lock without a holder for
/// the life of the process. Here the release is dropped at every step, before, during and after a renewal, and no
/// request is sent to any node once it is through.
#[tokio::test(start_paused = true)]
async fn story_02_no_renewal_outlives_the_release() {
    for many in [1, 3] {
        for when in (0..12).map(|step| secs(10) - millis(4) + millis(2) * step) {
            for polls in 0..6 {
                let nodes = nodes(many);
                // Nodes that are not watched are not probed, so every request is about the lock.
                let locks = Locks::builder().node_trust(NodeTrust::Unwatched);
                let locks = locks.on_nodes(nodes.clone()).unwrap();
                let guard = locks.lock("a").acquire().await.unwrap();
                sleep(when).await;
                let mut releasing = Box::pin(guard.release());
                let ended = poll_times(&mut releasing, polls).await;
                drop(releasing);
                settle().await;
                assert_empty(&nodes);
                assert_eq!(locks.held(), 0);
                let executed: Vec<_> = nodes.iter().map(EmbeddedNode::executed).collect();
                sleep(secs(60)).await;
                let later: Vec<_> = nodes.iter().map(EmbeddedNode::executed).collect();
                assert_eq!(executed, later, "{when:?}, {polls} polls, {ended:?}");
            }
        }
    }
}

/// One failed renewal ended the watchdog, and the lock was silently lost a lease later. Here the next renewal follows
/// within the lease, whatever error the failed one returned.
#[tokio::test(start_paused = true)]
async fn story_03_the_renewal_after_a_failed_one_is_sent() {
    let failures = [
        Fate::Refused(Cause::Busy),
        Fate::Refused(Cause::Loading),
        Fate::Refused(Cause::Cluster),
        Fate::Lost,
        Fate::ReplyLost,
        Fate::ArrivesLate(secs(3)),
    ];
    for failure in failures {
        let node = EmbeddedNode::new();
        let way = Unreliable::to(&node);
        let mut turn = 0;
        let fate = failure.clone();
        way.decide(move |request| {
            let is_renewal = matches!(request, Request::Renew(_));
            turn += u32::from(is_renewal);
            // Every other renewal fails.
            if is_renewal && turn % 2 == 1 {
                fate.clone()
            } else {
                Fate::Arrives
            }
        });
        let locks = Locks::on_node(way.transport()).unwrap();
        let guard = locks.lock("a").acquire().await.unwrap();
        sleep(secs(200)).await;
        assert!(guard.is_held(), "after {failure:?}");
        assert!(secs(10) < guard.validity(), "after {failure:?}");
        assert!(is_claimed_by(&node, "a", &guard, 1));
        assert!(12 < way.take_sent().len());
    }
}

/// A lock that could not be renewed ended the renewal of the locks behind it, and a node that failed ended that of
/// locks on other nodes. Here a thousand holds share their renewals: some are lost, the key of one is of another
/// type, and one node of five does not answer. All others are renewed in every pass.
#[tokio::test(start_paused = true)]
async fn story_23_what_cannot_be_renewed_stops_no_other_renewal() {
    for many in [1, 5] {
        let nodes = nodes(many);
        let locks = client(&nodes);
        let names: Vec<String> = (0..1_000).map(|index| format!("lock-{index}")).collect();
        let mut guards = Vec::new();
        for name in &names {
            guards.push(locks.lock(name).acquire().await.unwrap());
        }
        for (node, index) in nodes.iter().zip(0..) {
            node.put(&name("lock-1"), Held::NotALock, None);
            node.put(&name("lock-500"), foreign(), Some(secs(3_600)));
            if many == 5 && index == 3 {
                node.pause();
            }
        }
        locks.force_release("lock-0").await.unwrap();
        locks.force_release("lock-999").await.unwrap();
        sleep(secs(300)).await;
        let held: Vec<usize> = (0..guards.len())
            .filter(|i| !guards[*i].is_held())
            .collect();
        assert_eq!(held, [0, 1, 500, 999]);
        let others = guards.iter().filter(|guard| guard.is_held());
        assert!(others.into_iter().all(|guard| secs(15) < guard.validity()));
    }
}

/// An extension that found no key, or another owner's, created one or took it over. Here an extension never creates a
/// claim: it reports that the lock is lost.
#[tokio::test(start_paused = true)]
async fn story_16_an_extension_makes_no_claim_and_takes_none_over() {
    for found in [None, Some(foreign())] {
        let nodes = nodes(3);
        let locks = client(&nodes);
        let guard = locks.lock("a").lease(secs(10)).acquire().await.unwrap();
        settle().await;
        for node in &nodes {
            node.flush();
            if let Some(held) = found.clone() {
                node.put(&name("a"), held.clone(), Some(secs(5)));
            }
        }
        let error = guard.extend(secs(30)).await.unwrap_err();
        let lost = Lost::Taken;
        let names = "a".to_owned();
        assert_eq!(error, ConfirmError::Lost { names, lost });
        assert!(!guard.is_held());
        assert!(guard.reenter().await.is_err());
        drop(guard);
        settle().await;
        for node in &nodes {
            assert_eq!(node.held(&name("a")).map(|(held, _)| held), found);
        }
        sleep(secs(6)).await;
        assert_empty(&nodes);
    }
}

/// A failed renewal deleted the lock, and the work continued without it. Here a failure neither extends nor ends
/// anything: only renewals are sent, and the claim stays as it was.
#[tokio::test(start_paused = true)]
async fn story_18_a_failed_renewal_leaves_the_claim_alone() {
    for failure in [
        Fate::Refused(Cause::Misconfigured),
        Fate::Lost,
        Fate::ReplyLost,
    ] {
        let node = EmbeddedNode::new().latency(LATENCY);
        let way = Unreliable::to(&node);
        let locks = Locks::on_node(way.transport()).unwrap();
        let guard = locks.lock("a").acquire().await.unwrap();
        way.take_sent();
        let fate = failure.clone();
        way.decide(move |_| fate.clone());
        assert!(guard.extend(secs(40)).await.is_err());
        assert!(guard.reenter().await.is_err());
        sleep(secs(18)).await;
        assert!(guard.is_held());
        assert!(is_claimed_by(&node, "a", &guard, 1) || matches!(failure, Fate::ReplyLost));
        let sent = way.take_sent();
        assert!(3 < sent.len());
        // The failed re-entry removes its entry, and must leave the claim at its count.
        let keeps_claim = |request: &Request| match request {
            Request::Renew(_) => true,
            Request::Release(release) => 0 < release.count,
            _ => false,
        };
        assert!(sent.iter().all(keeps_claim), "{sent:?}");
        way.heal();
        sleep(secs(60)).await;
        assert!(guard.is_held());
        assert!(is_claimed_by(&node, "a", &guard, 1));
    }
}

/// A holder that hung for ever was renewed for ever. With a longest hold the watchdog stops, and the holder learns of
/// it in time.
#[tokio::test(start_paused = true)]
async fn story_27_no_hold_is_renewed_beyond_the_longest() {
    let nodes = nodes(3);
    let builder = Locks::builder().trust_fresh_nodes().max_hold(secs(100));
    let locks = builder.on_nodes(nodes.clone()).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    let began = Instant::now();
    let other = client(&nodes).lock("a");
    let waiting = tokio::spawn(async move {
        let _guard = other.acquire().await.unwrap();
        Instant::now()
    });
    let wedged = std::future::pending::<()>();
    let ended = timeout(secs(300), guard.while_held(async |_| wedged.await)).await;
    assert_eq!(ended, Ok(Err(Lost::Expired)));
    let told = began.elapsed();
    assert!(secs(99) < told && told <= secs(100), "{told:?}");
    // Its keys are deleted at once: no waiter waits for the rest of the lease.
    let entered = waiting.await.unwrap() - began;
    assert!(told < entered && entered < secs(102), "{entered:?}");
}
