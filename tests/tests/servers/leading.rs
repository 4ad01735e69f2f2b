//! Tests leaders on five servers. Some servers are killed, some are cut off, and another candidate takes over in time.

use std::time::Duration;

use quorlock::{Candidacy, LeaderEvent, LeaderView, Leadership, Locks, Lost};
use quorlock_testbed::proxy::Proxy;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::{claim_of, quorum_of, settings};
use tokio::time::{Instant, timeout};

server_tests![
    a_leader_outlives_the_death_of_two_servers_and_ends_with_the_third,
    a_leader_that_is_cut_off_has_ended_its_work_before_another_leads,
    candidates_lead_one_after_the_other_with_growing_terms,
    a_leader_holds_the_ordinary_lock_and_leaves_no_key,
];

fn five() -> Vec<Server> {
    std::iter::repeat_with(Server::start).take(5).collect()
}

/// Returns a client of these addresses whose leaders are renewed every second.
async fn brief(addresses: impl IntoIterator<Item = String>) -> Locks {
    let settings = settings().watchdog_lease(Duration::from_secs(3));
    settings.quorum(addresses).await.unwrap()
}

async fn within_bounds(candidacy: &mut Candidacy) -> LeaderEvent {
    let event = timeout(BOUND, candidacy.next()).await;
    event
        .expect("an event in time")
        .expect("the campaign continues")
}

async fn elected(candidacy: &mut Candidacy) -> Leadership {
    loop {
        match within_bounds(candidacy).await {
            LeaderEvent::Elected { leadership, .. } => return leadership,
            LeaderEvent::Failed { .. } => {}
            other => panic!("not elected: {other:?}"),
        }
    }
}

async fn until_free(servers: &[Server]) {
    until("no key is left", || {
        servers.iter().all(|server| claim_of(server, "a").is_none())
    })
    .await;
}

async fn a_leader_outlives_the_death_of_two_servers_and_ends_with_the_third() {
    let servers = five();
    let locks = brief(servers.iter().map(Server::address)).await;
    let mut candidacy = locks.leader("a").campaign();
    let first = elected(&mut candidacy).await;
    servers[0].kill();
    servers[3].kill();
    let began = first.validity();
    until("it is renewed by three", || {
        let left = first.validity();
        began < left || Duration::from_millis(2_500) < left
    })
    .await;
    // A renewal that was sent before the servers died cannot make the term last until then.
    assert!(
        timeout(Duration::from_secs(4), candidacy.next())
            .await
            .is_err()
    );
    assert!(first.is_leading());
    servers[4].kill();
    match within_bounds(&mut candidacy).await {
        LeaderEvent::Lost { term, how, .. } => {
            assert_eq!((term, how), (first.term(), Lost::Unreachable));
        }
        other => panic!("{other:?}"),
    }
    assert!(!first.is_leading());
    for server in [0, 3, 4] {
        servers[server].restart();
    }
    let second = elected(&mut candidacy).await;
    assert!(first.term() < second.term());
    drop(candidacy);
    until_free(&servers).await;
}

async fn a_leader_that_is_cut_off_has_ended_its_work_before_another_leads() {
    let servers = five();
    let mut ways = Vec::new();
    for server in &servers {
        ways.push(Proxy::to(server).await);
    }
    let old = brief(ways.iter().map(Proxy::address)).await;
    let (begun, mut leading) = tokio::sync::mpsc::unbounded_channel();
    let (ended, mut done) = tokio::sync::mpsc::unbounded_channel();
    let old = tokio::spawn(async move {
        let work = |leadership: Leadership| {
            let bell = Bell(ended.clone());
            let _ = begun.send(leadership.term());
            async move {
                let _bell = bell;
                std::future::pending::<()>().await;
            }
        };
        old.leader("a").run_while_leader(work).await
    });
    let first = timeout(BOUND, leading.recv()).await.unwrap().unwrap();
    ways.iter().for_each(Proxy::lose_replies);
    let new = brief(servers.iter().map(Server::address)).await;
    let mut candidacy = new.leader("a").campaign();
    let second = elected(&mut candidacy).await;
    let elected_at = Instant::now();
    assert!(first < second.term());
    let ended_at = done.try_recv().expect("the work had ended");
    assert!(ended_at < elected_at);
    // The former leader is a candidate again, and waits.
    for way in &ways {
        way.carry_replies();
    }
    assert!(!old.is_finished() && leading.is_empty());
    candidacy.resign().await.unwrap();
    let third = timeout(BOUND, leading.recv()).await.unwrap().unwrap();
    assert!(second.term() < third);
    old.abort();
    until_free(&servers).await;
}

/// Sends a message when it is dropped.
struct Bell(tokio::sync::mpsc::UnboundedSender<Instant>);

impl Drop for Bell {
    fn drop(&mut self) {
        let _ = self.0.send(Instant::now());
    }
}

async fn candidates_lead_one_after_the_other_with_growing_terms() {
    let servers = five();
    let observing = quorum_of(&servers).await;
    let mut observer = observing.observe_leader("a").unwrap();
    let mut candidates = Vec::new();
    for _ in 0..3 {
        let locks = brief(servers.iter().map(Server::address)).await;
        candidates.push(locks.leader("a").campaign());
    }
    let mut last = None;
    let mut candidacy = candidates.remove(0);
    for turn in 0..9 {
        let leadership = elected(&mut candidacy).await;
        assert!(last < Some(leadership.term()), "turn {turn}");
        last = Some(leadership.term());
        let owner = leadership.owner_id().to_string();
        let seen = async {
            loop {
                let view = observer.next().await.expect("the observation continues");
                if let LeaderView::Led {
                    owner: seen, term, ..
                } = &view
                    && *seen == owner
                {
                    break *term;
                }
            }
        };
        // The observer may see a term that had to be agreed on only with the next view.
        let term = timeout(BOUND, seen).await.expect("the observer sees it");
        assert!(term.is_none_or(|term| term <= leadership.term()));
        leadership.step_down();
        assert!(matches!(
            within_bounds(&mut candidacy).await,
            LeaderEvent::Lost {
                how: Lost::Released,
                ..
            }
        ));
        candidates.push(candidacy);
        candidacy = candidates.remove(0);
    }
    drop((candidates, candidacy));
    until_free(&servers).await;
}

async fn a_leader_holds_the_ordinary_lock_and_leaves_no_key() {
    let servers = five();
    let locks = brief(servers.iter().map(Server::address)).await;
    let mut candidacy = locks.leader("a").campaign();
    let leadership = elected(&mut candidacy).await;
    let owner = leadership.owner_id().to_string();
    until("three servers show the leader", || {
        let shows = |server: &&Server| claim_of(server, "a") == Some((owner.clone(), 1));
        3 <= servers.iter().filter(shows).count()
    })
    .await;
    let other = quorum_of(&servers).await;
    assert!(other.lock("a").try_acquire().await.unwrap().is_none());
    drop(candidacy);
    until_free(&servers).await;
}
