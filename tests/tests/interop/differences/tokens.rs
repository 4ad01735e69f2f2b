//! Differences in tokens.

use std::time::Duration;

use quorlock::Locks;
use quorlock_testbed::wait::until;

use super::super::mode::Mode;
use super::super::stage::{LONG, Stage, locks_at, servers};

/// A short lease.
const MOMENT: Duration = Duration::from_millis(300);

pub(super) async fn w7_a_token_counter_that_expires(stage: Stage) {
    let mut theirs = stage.jvm(Mode::Fenced).await;
    for token in 1..=2 {
        assert_eq!(theirs.acquire(LONG).await, Some(token));
        theirs.release().await;
    }
    let locks = locks_at(Mode::Fenced.addresses()).await;
    let token = token_of(&locks, &stage).await;
    assert!(2 < token);

    // A MultiLock with a lease also gives the counters of its locks a TTL.
    let words = format!("{} {}", stage.name, Mode::Fenced.addresses().join(","));
    let millis = MOMENT.as_millis();
    let acquired = stage
        .version
        .jvm()
        .ask("multi", format!("acquire multi-fenced {words} {millis}"));
    acquired.await.unwrap();
    let counter = format!("redisson_lock_token:{{{}}}", stage.name);
    until("the counter has expired", || {
        !servers()[0].command::<bool>(&["EXISTS", &counter])
    })
    .await;
    let again = token_of(&locks, &stage).await;
    assert!(token < again, "{token} and {again}");

    servers()[0].command::<()>(&["DEL", &counter]);
    assert_eq!(theirs.acquire(LONG).await, Some(1));
}

async fn token_of(locks: &Locks, stage: &Stage) -> u64 {
    let guard = locks.lock(&stage.name).acquire().await.unwrap();
    let token = guard.fencing_token().0;
    guard.release().await.unwrap();
    token
}

pub(super) async fn tokens_on_entering_again(stage: Stage) {
    let mut theirs = stage.jvm(Mode::Fenced).await;
    assert_eq!(theirs.acquire(LONG).await, Some(1));
    assert_eq!(theirs.acquire(LONG).await, Some(2));
    theirs.release().await;
    theirs.release().await;
    let mut ours = stage.rust(Mode::Fenced).await;
    let token = ours.acquire(LONG).await;
    assert_eq!(ours.acquire(LONG).await, token);
}
