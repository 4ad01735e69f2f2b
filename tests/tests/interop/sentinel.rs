//! The reentrant lock on a Sentinel group that fails over while one side has it.

use libtest_mimic::Trial;
use quorlock::Locks;
use quorlock_testbed::sentinels::{NAME, SentinelGroup};
use quorlock_testbed::server::Server;
use quorlock_testbed::trials::trial;
use quorlock_testbed::wait::{BOUND, until, wait_until};
use quorlock_tests::pool::{Borrowed, Pool};
use tokio::time::timeout;

use super::jvm::Jvm;
use super::patient::Patient;
use super::stage::{Side, Version, settings};

/// Returns the tests of this file.
pub(crate) fn trials(version: &'static Version) -> Vec<Trial> {
    let title = |side: Side| format!("{}::sentinel::{}_first", version.number, side.word());
    vec![
        trial(&title(Side::Jvm), move || {
            what_a_jvm_holds_is_kept_through_a_failover(version)
        }),
        trial(&title(Side::Rust), move || {
            what_we_hold_is_kept_through_a_failover(version)
        }),
    ]
}

/// The group of all versions, for one test at a time.
async fn group() -> Borrowed<SentinelGroup> {
    static POOL: Pool<SentinelGroup, 1> = Pool::new(SentinelGroup::start);
    let group = POOL.borrow().await;
    tokio::task::block_in_place(|| group.mend());
    group
}

async fn ours(group: &SentinelGroup) -> Locks {
    let connected = settings().connect(group.address()).await;
    connected.expect("the group can be used")
}

/// Returns a thread of the JVM that uses the group.
fn theirs(jvm: &'static Jvm, name: &str, group: &SentinelGroup) -> Patient {
    let ports = group.sentinels().iter().map(Server::port);
    let sentinels: Vec<_> = ports
        .map(|port| format!("redis://127.0.0.1:{port}"))
        .collect();
    Patient::new(
        jvm,
        name,
        &format!("sentinel:{NAME};{}", sentinels.join(";")),
    )
}

/// Waits until all servers have the claim, and then promotes another one.
async fn fail_over(group: &SentinelGroup, name: &str) {
    let has_it = |server: &Server| {
        let stands: Result<u32, _> = server.try_command(&["EXISTS", name]);
        stands.is_ok_and(|keys| keys == 1)
    };
    until("all servers have the claim", || {
        group.servers().iter().all(has_it)
    })
    .await;
    tokio::task::block_in_place(|| {
        let before = group.settle();
        wait_until("a sentinel begins a failover", || {
            let words = ["SENTINEL", "FAILOVER", NAME];
            group.sentinels()[0].try_command::<()>(&words).is_ok()
        });
        let _ = group.wait_for_another(before);
        group.settle();
    });
}

async fn what_a_jvm_holds_is_kept_through_a_failover(version: &'static Version) {
    let group = group().await;
    let name = format!("interop/sentinel/jvm/{}", version.number);
    let theirs = theirs(version.jvm(), &name, &group);
    theirs.acquire_at_last().await;
    let locks = ours(&group).await;
    let lock = locks.lock(&name).wait(2 * BOUND);
    assert!(lock.try_acquire().await.unwrap().is_none());
    let waiting = tokio::spawn(async move { lock.acquire().await });
    fail_over(&group, &name).await;
    assert!(!waiting.is_finished());
    theirs.release_at_last().await;
    let waited = timeout(2 * BOUND, waiting).await.unwrap().unwrap();
    let guard = waited.unwrap();
    assert!(!theirs.is_let_in().await);
    guard.release().await.unwrap();
    assert!(theirs.is_let_in().await);
}

async fn what_we_hold_is_kept_through_a_failover(version: &'static Version) {
    let group = group().await;
    let name = format!("interop/sentinel/rust/{}", version.number);
    let locks = ours(&group).await;
    let guard = locks.lock(&name).lease(4 * BOUND).acquire().await.unwrap();
    let theirs = theirs(version.jvm(), &name, &group);
    assert!(!theirs.is_let_in().await);
    fail_over(&group, &name).await;
    assert!(!theirs.is_let_in().await);
    assert!(guard.is_held());
    let waiter = theirs.clone();
    let waiting = tokio::spawn(async move { waiter.acquire().await });
    theirs.is_asleep().await;
    guard.release().await.unwrap();
    timeout(2 * BOUND, waiting).await.unwrap().unwrap().unwrap();
    let again = locks.lock(&name).try_acquire().await.unwrap();
    assert!(again.is_none());
    theirs.release_at_last().await;
    locks
        .lock(&name)
        .wait(BOUND)
        .acquire()
        .await
        .unwrap()
        .leak();
}
