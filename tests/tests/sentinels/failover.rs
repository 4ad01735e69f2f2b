//! Tests holds and waiters when another server becomes the primary.

use std::time::{Duration, Instant};

use quorlock::Guard;
use quorlock_testbed::sentinels::{NAME, SentinelGroup, named_by, role};
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::patiently;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::{hand_over, is_claimed_by, waiter};

use super::stage::{client, group};

server_tests![
    a_hold_lives_through_the_death_of_its_primary_and_waiters_are_served,
    a_primary_that_was_stopped_grants_nothing_when_it_comes_back,
    a_failover_on_request_moves_holds_and_wake_ups,
    the_group_fails_over_without_its_first_sentinel,
];

/// A lease that is longer than a failover.
const LEASE: Duration = Duration::from_secs(60);

/// The bound on a waiter's grant after a sentinel names the new primary. The client reconnects after 200 ms, and the
/// waiter tries again within another 100 ms. Without that, its pauses would double without a bound.
const SOON: Duration = BOUND;

/// Waits until all replicas have everything, because a failover may lose what no replica has.
async fn replicated(group: &SentinelGroup, name: &str, guard: &Guard) {
    let servers = group.servers();
    let have_it = || servers.iter().all(|s| is_claimed_by(s, name, guard));
    until("all servers have the claim", have_it).await;
}

/// When another server became the primary.
struct Promotion {
    server: usize,
    /// When the server first reported it.
    said: Instant,
    /// When a sentinel first named it. No client can know of it earlier.
    named: Instant,
}

/// Waits until a server other than this one is the primary, according to itself and to a sentinel.
fn promotion(group: &SentinelGroup, before: usize) -> Promotion {
    let find = |port: Option<u16>| {
        let mut servers = group.servers().iter().enumerate();
        let found = servers.find(|(index, server)| {
            let is_meant = port.is_none_or(|port| server.port() == port);
            *index != before && is_meant && role(server).as_deref() == Some("master")
        });
        found.map(|(index, _)| index)
    };
    let _ = patiently("a replica is promoted", || find(None));
    let said = Instant::now();
    let server = patiently("a sentinel names it", || {
        let mut named = group.sentinels().iter().filter_map(named_by);
        named.find_map(|port| find(Some(port)))
    });
    Promotion {
        server,
        said,
        named: Instant::now(),
    }
}

async fn a_hold_lives_through_the_death_of_its_primary_and_waiters_are_served() {
    let group = group().await;
    let (ours, theirs) = (client(&group).await, client(&group).await);
    let lock = ours.lock("held").lease(LEASE / 2);
    let guard = lock.acquire().await.unwrap();
    replicated(&group, "held", &guard).await;
    let behind = waiter(&theirs.lock("held"));

    let before = group.settle();
    let began = Instant::now();
    group.servers()[before].kill();
    let free = waiter(&theirs.lock("free"));
    let promoted = tokio::task::block_in_place(|| promotion(&group, before));
    let (other, served) = free.await.unwrap();
    println!(
        "killed; promoted after {:?}, named {:?} and a waiter served {:?} after that",
        promoted.said - began,
        promoted.named - promoted.said,
        served.saturating_duration_since(promoted.said)
    );
    assert!(served < promoted.named + SOON);
    other.release().await.unwrap();

    assert!(guard.is_held());
    let primary = &group.servers()[promoted.server];
    assert!(is_claimed_by(primary, "held", &guard));
    let before_extension = guard.validity();
    guard.extend(LEASE).await.unwrap();
    assert!(before_extension < guard.validity());
    assert!(!behind.is_finished());
    let (next, _) = hand_over(guard, behind).await;
    next.release().await.unwrap();
}

async fn a_primary_that_was_stopped_grants_nothing_when_it_comes_back() {
    let group = group().await;
    let (ours, idle) = (client(&group).await, client(&group).await);
    let guard = ours.lock("held").lease(LEASE).acquire().await.unwrap();
    replicated(&group, "held", &guard).await;
    // The client's connections lead to the old primary, and it has nothing to send on them.
    let used = idle.lock("used").acquire().await.unwrap();
    used.release().await.unwrap();

    let before = group.settle();
    let old = &group.servers()[before];
    old.pause();
    let promoted = tokio::task::block_in_place(|| promotion(&group, before));
    let new = &group.servers()[promoted.server];
    // The old primary does not know of the promotion.
    let fresh = waiter(&ours.lock("fresh").lease(LEASE)).await.unwrap().0;
    assert!(is_claimed_by(new, "fresh", &fresh));
    assert!(guard.is_held() && is_claimed_by(new, "held", &guard));

    old.resume();
    let still = role(old);
    let mut tries = 0;
    let mut latest = still.clone();
    while latest.as_deref() != Some("slave") {
        for name in ["held", "fresh"] {
            if let Ok(Some(double)) = idle.lock(name).try_acquire().await {
                panic!("{name} was granted twice, by {double:?}");
            }
            tries += 1;
        }
        latest = role(old);
    }
    println!("back as {still:?}; {tries} tries were refused until it was {latest:?}");
    fresh.release().await.unwrap();
    guard.release().await.unwrap();
}

async fn a_failover_on_request_moves_holds_and_wake_ups() {
    let group = group().await;
    let (ours, theirs) = (client(&group).await, client(&group).await);
    let guard = ours.lock("held").lease(LEASE).acquire().await.unwrap();
    replicated(&group, "held", &guard).await;
    let behind = waiter(&theirs.lock("held"));
    let before = group.settle();
    let began = Instant::now();
    tokio::task::block_in_place(|| {
        patiently("a sentinel begins a failover", || {
            let words = ["SENTINEL", "FAILOVER", NAME];
            group.sentinels()[0].try_command::<()>(&words).ok()
        });
    });
    let primary = tokio::task::block_in_place(|| group.wait_for_another(before));
    println!("on request; another primary after {:?}", began.elapsed());
    let new = &group.servers()[primary];
    let channels = || {
        let words = ["PUBSUB", "CHANNELS", "redisson_lock__channel:*"];
        let channels: Vec<String> = new.try_command(&words).unwrap_or_default();
        channels.len()
    };
    until("the waiter listens to the new primary", || channels() == 1).await;
    assert!(guard.is_held() && is_claimed_by(new, "held", &guard));
    let (next, _) = hand_over(guard, behind).await;
    assert!(is_claimed_by(new, "held", &next));
    next.release().await.unwrap();
}

async fn the_group_fails_over_without_its_first_sentinel() {
    let group = group().await;
    let ours = client(&group).await;
    let guard = ours.lock("held").lease(LEASE).acquire().await.unwrap();
    replicated(&group, "held", &guard).await;
    let before = group.settle();
    group.sentinels()[0].kill();
    group.servers()[before].pause();
    let free = waiter(&ours.lock("free"));
    let promoted = tokio::task::block_in_place(|| promotion(&group, before));
    // The sentinel that is queried first is the dead one.
    let (other, served) = free.await.unwrap();
    println!(
        "without a sentinel; named {:?} and a waiter served {:?} after the promotion",
        promoted.named - promoted.said,
        served.saturating_duration_since(promoted.said)
    );
    assert!(served < promoted.named + SOON);
    other.release().await.unwrap();
    assert!(guard.is_held() && is_claimed_by(&group.servers()[promoted.server], "held", &guard));
    guard.release().await.unwrap();
}
