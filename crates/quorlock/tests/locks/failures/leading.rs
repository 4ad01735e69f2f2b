//! Leaders and candidates: only one leads, it stops believing so before the next one begins, and terms grow.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use quorlock::transport::Cause;
use quorlock::{
    AcquireError, Candidacy, EmbeddedNode, LeaderEvent, Leadership, Locks, Lost, Token,
};
use tokio::time::{Instant, sleep, timeout};

use crate::failures::support::{
    Moment, assert_empty, at_once, client, millis, nodes, secs, settle, take_away,
};
use crate::failures::unreliable::{Fate, Unreliable};

/// Returns the next event, which must be an election.
async fn elected(candidacy: &mut Candidacy) -> Leadership {
    match candidacy.next().await {
        Some(LeaderEvent::Elected {
            term, leadership, ..
        }) => {
            assert_eq!(leadership.term(), term);
            leadership
        }
        other => panic!("not elected: {other:?}"),
    }
}

/// Returns the next event, which must be the end of a term.
async fn lost(candidacy: &mut Candidacy) -> (Token, Lost) {
    match candidacy.next().await {
        Some(LeaderEvent::Lost { term, how, .. }) => (term, how),
        other => panic!("no loss: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_lost_is_a_candidate_again_and_its_next_term_is_larger() {
    let nodes = nodes(3);
    let mut candidacy = client(&nodes).leader("a").campaign();
    let mut last = None;
    for _ in 0..5 {
        let leadership = elected(&mut candidacy).await;
        assert!(leadership.is_leading() && last < Some(leadership.term()));
        assert_eq!(
            candidacy.leadership().map(Leadership::term),
            Some(leadership.term())
        );
        last = Some(leadership.term());
        nodes.iter().for_each(|node| take_away(node, "a"));
        assert_eq!(lost(&mut candidacy).await, (leadership.term(), Lost::Taken));
        assert!(!leadership.is_leading() && leadership.validity().is_zero());
        assert!(candidacy.leadership().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_has_stopped_leading_when_the_next_one_begins() {
    let nodes = nodes(5);
    let ways: Vec<_> = nodes.iter().map(Unreliable::to).collect();
    let old = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(ways.iter().map(Unreliable::transport))
        .unwrap();
    let mut old = old.leader("a").campaign();
    let first = elected(&mut old).await;
    let told = Moment::default();
    let noted = told.clone();
    let waiting = tokio::spawn(async move {
        let ended = lost(&mut old).await;
        noted.is_now();
        (ended, old)
    });
    sleep(secs(15)).await;
    for way in &ways {
        way.decide(|_| Fate::Lost);
    }
    let new = client(&nodes);
    let mut new = new.leader("a").campaign();
    let second = elected(&mut new).await;
    assert!(second.is_leading() && !first.is_leading());
    assert!(told.when().expect("the old leader was told") < Instant::now());
    assert!(first.term() < second.term());
    let ((term, how), mut old) = waiting.await.unwrap();
    assert_eq!((term, how), (first.term(), Lost::Unreachable));
    // It is reachable again, as a candidate, and the leader stays.
    ways.iter().for_each(Unreliable::heal);
    assert!(timeout(secs(60), elected(&mut old)).await.is_err());
    assert!(second.is_leading());
    drop(new);
    let third = at_once(elected(&mut old)).await;
    assert!(second.term() < third.term());
}

#[tokio::test(start_paused = true)]
async fn of_twenty_candidates_one_leads_and_terms_grow_with_every_election() {
    const ELECTIONS: usize = 40;
    let nodes = nodes(3);
    let terms: Arc<Mutex<Vec<Token>>> = Arc::default();
    let leading = Arc::new(AtomicUsize::new(0));
    let candidates = (0..20).map(|number| {
        let locks = client(&nodes);
        let (terms, leading) = (terms.clone(), leading.clone());
        tokio::spawn(async move {
            let mut candidacy = locks.leader("a").campaign();
            loop {
                let leadership = elected(&mut candidacy).await;
                assert_eq!(leading.fetch_add(1, Ordering::SeqCst), 0, "two lead");
                terms.lock().unwrap().push(leadership.term());
                sleep(millis(100)).await;
                assert!(leadership.is_leading());
                leading.fetch_sub(1, Ordering::SeqCst);
                match number % 2 {
                    0 => leadership.step_down(),
                    _ => candidacy = locks.leader("a").campaign(),
                }
                if number % 2 == 0 {
                    assert_eq!(lost(&mut candidacy).await.1, Lost::Released);
                }
            }
        })
    });
    let candidates: Vec<_> = candidates.collect();
    let enough = async {
        while terms.lock().unwrap().len() < ELECTIONS {
            sleep(millis(10)).await;
        }
    };
    timeout(secs(120), enough).await.expect("elections go on");
    for candidate in candidates {
        assert!(!candidate.is_finished(), "{:?}", candidate.await);
        candidate.abort();
    }
    let terms = terms.lock().unwrap();
    assert!(terms.is_sorted_by(|a, b| a < b), "{terms:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_steps_down_lets_others_win_and_rests() {
    let nodes = nodes(3);
    let (one, other) = (client(&nodes), client(&nodes));
    let mut one = one.leader("a").campaign();
    let first = elected(&mut one).await;
    let mut other = other.leader("a").campaign();
    assert!(timeout(secs(1), other.next()).await.is_err());
    first.step_down();
    assert!(!first.is_leading());
    assert_eq!(lost(&mut one).await, (first.term(), Lost::Released));
    let second = at_once(elected(&mut other)).await;
    assert!(first.term() < second.term());
    // Without other candidates it wins again after its rest, a tenth of the lease.
    let (down, stepped) = (second.clone(), Instant::now());
    drop(one);
    down.step_down();
    assert_eq!(lost(&mut other).await.1, Lost::Released);
    elected(&mut other).await;
    let rested = stepped.elapsed();
    assert!(
        secs(3) <= rested && rested < millis(3_100),
        "rested {rested:?}"
    );
    // Stepping down in a term that is over has no effect.
    first.step_down();
    second.step_down();
    assert!(timeout(secs(60), other.next()).await.is_err());
    assert!(other.leadership().unwrap().is_leading());
}

#[tokio::test(start_paused = true)]
async fn without_a_rest_it_may_win_again_at_once_and_a_lease_of_its_own_is_renewed() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let candidate = locks.leader("a").watchdog_lease(secs(3));
    let mut candidacy = candidate.rest(millis(0)).campaign();
    let first = elected(&mut candidacy).await;
    assert!(first.validity() <= secs(3));
    sleep(secs(60)).await;
    assert!(first.is_leading() && !first.validity().is_zero());
    first.step_down();
    let began = Instant::now();
    assert_eq!(lost(&mut candidacy).await.1, Lost::Released);
    assert!(first.term() < elected(&mut candidacy).await.term());
    assert!(began.elapsed() < millis(50));
}

#[tokio::test(start_paused = true)]
async fn resigning_reports_and_candidates_that_are_dropped_leave_no_key() {
    let nodes = nodes(3);
    let locks = client(&nodes);
    let mut leader = locks.leader("a").campaign();
    elected(&mut leader).await;
    // One waits, one was never polled, one rests.
    let mut waiting = client(&nodes).leader("a").campaign();
    assert!(timeout(secs(1), waiting.next()).await.is_err());
    let idle = locks.leader("a").campaign();
    let mut resting = locks.leader("b").campaign();
    elected(&mut resting).await.step_down();
    lost(&mut resting).await;
    drop((waiting, idle, resting));
    leader.resign().await.unwrap();
    settle().await;
    assert_empty(&nodes);
    let mut leader = locks.leader("a").campaign();
    elected(&mut leader).await;
    drop(leader);
    settle().await;
    assert_empty(&nodes);
    // Resigning in a term that is over reports an error.
    let mut leader = locks.leader("a").campaign();
    elected(&mut leader).await;
    nodes.iter().for_each(|node| take_away(node, "a"));
    sleep(secs(30)).await;
    assert!(leader.resign().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_holder_of_the_lock_of_that_name_keeps_candidates_out() {
    let nodes = nodes(3);
    let guard = client(&nodes).lock("a").acquire().await.unwrap();
    let mut candidacy = client(&nodes).leader("a").campaign();
    assert!(timeout(secs(60), candidacy.next()).await.is_err());
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    let leadership = at_once(elected(&mut candidacy)).await;
    assert!(token < leadership.term());
    let lock = client(&nodes).lock("a");
    assert!(lock.try_acquire().await.unwrap().is_none());
    // A candidacy is also a stream.
    leadership.step_down();
    assert!(matches!(
        StreamExt::next(&mut candidacy).await,
        Some(LeaderEvent::Lost { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn a_candidate_goes_on_through_an_outage_and_says_so() {
    let nodes = nodes(3);
    nodes.iter().for_each(EmbeddedNode::kill);
    let mut candidacy = client(&nodes).leader("a").campaign();
    let began = Instant::now();
    for failures in 1..=2 {
        let event = candidacy.next().await;
        let no_quorum = matches!(
            &event,
            Some(LeaderEvent::Failed {
                error: AcquireError::NoQuorum { .. },
                ..
            })
        );
        assert!(no_quorum, "{event:?}");
        let after = began.elapsed();
        assert!(secs(30) * failures <= after && after < secs(32) * failures);
    }
    nodes.iter().for_each(EmbeddedNode::restart);
    // Its nodes have lost their markers, and are quarantined for a longest lease.
    let leadership = loop {
        match candidacy.next().await {
            Some(LeaderEvent::Failed { .. }) => {}
            Some(LeaderEvent::Elected { leadership, .. }) => break leadership,
            other => panic!("{other:?}"),
        }
    };
    assert!(leadership.is_leading());
}

#[tokio::test(start_paused = true)]
async fn what_refuses_at_once_is_asked_again_with_pauses_and_what_cannot_be_ends_the_stream() {
    let node = EmbeddedNode::new();
    let way = Unreliable::to(&node);
    way.decide(|_| Fate::Refused(Cause::NoPermission));
    let locks = Locks::on_node(way.transport()).unwrap();
    let mut candidacy = locks.leader("a").campaign();
    for _ in 0..10 {
        let failed = candidacy.next().await;
        assert!(matches!(failed, Some(LeaderEvent::Failed { .. })));
    }
    let asked = way.take_sent().len();
    assert!(asked <= 20, "{asked} requests in ten seconds");
    way.heal();
    elected(&mut candidacy).await;
    locks.close().await;
    assert_eq!(lost(&mut candidacy).await.1, Lost::Closed);
    for candidate in [locks.leader("b"), locks.leader("")] {
        let mut candidacy = candidate.campaign();
        let failed = candidacy.next().await;
        assert!(matches!(failed, Some(LeaderEvent::Failed { .. })));
        assert!(candidacy.next().await.is_none() && candidacy.next().await.is_none());
        assert!(
            candidate
                .clone()
                .run_while_leader(|_| async {})
                .await
                .is_err()
        );
    }
}
