//! The reentrant lock on a Sentinel group that fails over while one side has it.

use std::sync::OnceLock;
use std::time::Instant;

use libtest_mimic::Trial;
use quorlock::Locks;
use quorlock_tests::sentinels::{NAME, SentinelGroup};
use quorlock_tests::server::Server;
use quorlock_tests::trials::trial;
use quorlock_tests::wait::{BOUND, until, wait_until};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

use super::jvm::{Answer, Jvm};
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
async fn group() -> MutexGuard<'static, SentinelGroup> {
    static GROUP: OnceLock<Mutex<SentinelGroup>> = OnceLock::new();
    let group = GROUP.get_or_init(|| Mutex::new(SentinelGroup::start()));
    let mut group = group.lock().await;
    group.mend();
    group
}

async fn ours(group: &SentinelGroup) -> Locks {
    let connected = settings().connect(group.address()).await;
    connected.expect("the group can be used")
}

/// A thread of the JVM with the lock.
struct Theirs {
    jvm: &'static Jvm,
    thread: String,
    words: String,
}

impl Theirs {
    fn new(jvm: &'static Jvm, name: &str, group: &SentinelGroup) -> Theirs {
        let ports = group.sentinels().iter().map(Server::port);
        let sentinels: Vec<_> = ports
            .map(|port| format!("redis://127.0.0.1:{port}"))
            .collect();
        Theirs {
            jvm,
            thread: format!("sentinel-{name}"),
            words: format!("reentrant {name} sentinel:{NAME};{}", sentinels.join(";")),
        }
    }

    async fn ask(&self, verb: &str, lease: &str) -> Answer {
        let words = format!("{verb} {} {lease}", self.words);
        self.jvm.ask(&self.thread, words).await
    }

    /// Returns the answer of the first attempt that works. After a failover, Redisson throws until it has reconnected.
    async fn says_at_last(&self, verb: &str, lease: &str) -> String {
        let begun = Instant::now();
        loop {
            match self.ask(verb, lease).await {
                Ok(said) => return said,
                Err(error) => assert!(begun.elapsed() < 2 * BOUND, "still: {error:?}"),
            }
        }
    }
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
    let theirs = Theirs::new(version.jvm(), &name, &group);
    theirs.ask("acquire", "30000").await.unwrap();
    let locks = ours(&group).await;
    let lock = locks.lock(&name).wait(2 * BOUND);
    assert!(lock.try_acquire().await.unwrap().is_none());
    let waiting = tokio::spawn(async move { lock.acquire().await });
    fail_over(&group, &name).await;
    assert!(!waiting.is_finished());
    theirs.says_at_last("release", "").await;
    let waited = timeout(2 * BOUND, waiting).await.unwrap().unwrap();
    let guard = waited.unwrap();
    assert_eq!(theirs.says_at_last("try", "1000").await, "false");
    guard.release().await.unwrap();
    assert_eq!(theirs.says_at_last("try", "1000").await, "true");
}

async fn what_we_hold_is_kept_through_a_failover(version: &'static Version) {
    let group = group().await;
    let name = format!("interop/sentinel/rust/{}", version.number);
    let locks = ours(&group).await;
    let guard = locks.lock(&name).lease(4 * BOUND).acquire().await.unwrap();
    let theirs = Theirs::new(version.jvm(), &name, &group);
    assert_eq!(theirs.ask("try", "1000").await.unwrap(), "false");
    fail_over(&group, &name).await;
    assert_eq!(theirs.says_at_last("try", "1000").await, "false");
    assert!(guard.is_held());
    let words = format!("acquire {} 30000", theirs.words);
    let (jvm, thread) = (theirs.jvm, theirs.thread.clone());
    let waiting = tokio::spawn(async move { jvm.ask(&thread, words).await });
    let begun = Instant::now();
    while theirs.jvm.ask(&theirs.thread, "sleeps").await.unwrap() != "true" {
        assert!(begun.elapsed() < BOUND, "it does not sleep");
    }
    guard.release().await.unwrap();
    timeout(2 * BOUND, waiting).await.unwrap().unwrap().unwrap();
    let again = locks.lock(&name).try_acquire().await.unwrap();
    assert!(again.is_none());
    theirs.says_at_last("release", "").await;
    locks
        .lock(&name)
        .wait(BOUND)
        .acquire()
        .await
        .unwrap()
        .leak();
}
