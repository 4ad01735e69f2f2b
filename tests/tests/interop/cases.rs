//! Cases in which one side holds a lock and the other one wants it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use quorlock_testbed::wait::{BOUND, until};
use tokio::time::timeout;

use super::mode::Mode;
use super::party::{Party, Released};
use super::stage::{LONG, Side, Stage, Version, WATCHDOG};
use super::table::case;

/// The bound on the time from a release to the grant of the other side's waiter.
pub(crate) const SOON: Duration = Duration::from_secs(1);

/// A lease that a test waits for.
const SHORT: Duration = Duration::from_secs(1);

/// The allowance for TTLs, which Redis counts in milliseconds on its own clock.
const ROUNDING: Duration = Duration::from_millis(5);

const OK: &str = "ok";

/// Returns the tests of this file.
pub(crate) fn trials(version: &'static Version) -> Vec<Trial> {
    let mut trials = Vec::new();
    for mode in Mode::ALL {
        for first in Side::BOTH {
            let stage = || Stage::new(version, mode, first);
            trials.extend([
                case("excludes", stage(), excludes),
                case("wakes_a_waiter", stage(), wakes_a_waiter),
                case("counts_entries", stage(), counts_entries),
                case("is_renewed", stage(), is_renewed),
                case("expires", stage(), expires),
                case("is_freed_by_force", stage(), is_freed_by_force),
            ]);
            trials.extend(match mode {
                Mode::Fair => Some(case("keeps_the_order", stage(), keeps_the_order)),
                Mode::Read => Some(case("is_shared", stage(), is_shared)),
                Mode::Fenced => Some(case("tokens_grow", stage(), tokens_grow)),
                _ => None,
            });
        }
    }
    trials
}

async fn excludes(stage: Stage) -> String {
    for (stage, rival) in stage.with_rivals() {
        let mut holder = stage.holder().await;
        let mut other = stage.rival(rival).await;
        holder.acquire(LONG).await;
        assert!(!other.try_acquire(LONG).await, "{rival:?}");
        assert_eq!(holder.release().await, Released::Yes);
        assert!(other.try_acquire(LONG).await, "{rival:?}");
        assert!(!holder.try_acquire(LONG).await, "{rival:?}");
        assert_eq!(other.release().await, Released::Yes);
        stage.until_free().await;
    }
    OK.into()
}

/// Prints how long the slowest waiter took to get the lock after the holder was asked to release it.
async fn wakes_a_waiter(stage: Stage) -> String {
    let mut longest = Duration::ZERO;
    for (stage, rival) in stage.with_rivals() {
        let mut holder = stage.holder().await;
        let other = stage.rival(rival).await;
        holder.acquire(LONG).await;
        let watch = other.watch();
        let waiting = tokio::spawn(wait_for_it(other));
        stage.until_asleep(&watch).await;
        let released = Instant::now();
        assert_eq!(holder.release().await, Released::Yes);
        let (mut other, entered) = timeout(BOUND, waiting).await.unwrap().unwrap();
        let took = entered - released;
        assert!(took < SOON, "{took:?} for {rival:?}");
        longest = longest.max(took);
        assert_eq!(other.release().await, Released::Yes);
        stage.until_free().await;
    }
    format!("{} ms", longest.as_millis())
}

async fn counts_entries(stage: Stage) -> String {
    for (stage, rival) in stage.with_rivals() {
        let mut holder = stage.holder().await;
        let mut other = stage.rival(rival).await;
        for count in 1..=3 {
            holder.acquire(LONG).await;
            until_counts_are(&other, rival, count).await;
        }
        for count in [2, 1] {
            assert_eq!(holder.release().await, Released::Yes);
            until_counts_are(&other, rival, count).await;
            assert!(!other.try_acquire(LONG).await, "{rival:?} at {count}");
        }
        assert_eq!(holder.release().await, Released::Yes);
        assert!(other.try_acquire(LONG).await, "{rival:?}");
        assert_eq!(other.release().await, Released::Yes);
    }
    OK.into()
}

/// Waits until `party` sees every claim at this count, or those on a majority of the servers.
async fn until_counts_are(party: &Party, mode: Mode, count: u64) {
    let begun = Instant::now();
    loop {
        let counts = party.counts().await;
        let these = counts.iter().filter(|shown| **shown == count).count();
        if mode.needed() <= these {
            return;
        }
        assert!(begun.elapsed() < BOUND, "{counts:?}, not {count}");
    }
}

async fn is_renewed(stage: Stage) -> String {
    for (stage, rival) in stage.with_rivals() {
        let mut holder = stage.holder().await;
        let other = stage.rival(rival).await;
        holder.acquire(None).await;
        let watch = other.watch();
        let waiting = tokio::spawn(wait_for_it(other));
        stage.until_asleep(&watch).await;
        outlive_a_lease(&stage).await;
        assert!(!waiting.is_finished(), "{rival:?}");
        assert_eq!(holder.release().await, Released::Yes);
        let (mut other, _) = timeout(BOUND, waiting).await.unwrap().unwrap();
        assert_eq!(other.release().await, Released::Yes);
    }
    OK.into()
}

/// Waits until the lock was renewed often enough to outlive its lease.
pub(crate) async fn outlive_a_lease(stage: &Stage) {
    let begun = Instant::now();
    let mut seen = stage.left();
    while begun.elapsed() < WATCHDOG * 3 / 2 {
        until("it is renewed", || {
            let before = std::mem::replace(&mut seen, stage.left());
            before < seen
        })
        .await;
    }
}

async fn expires(stage: Stage) -> String {
    for (stage, rival) in stage.with_rivals() {
        let mut holder = stage.holder().await;
        let other = stage.rival(rival).await;
        holder.acquire(Some(SHORT)).await;
        let held = Held::now(&stage, holder.validity());
        let (mut other, entered) = timeout(BOUND, wait_for_it(other)).await.unwrap();
        held.assert_is_outlived_by(entered);
        if holder.admits_that_it_is_not_held() {
            assert_eq!(holder.release().await, Released::NotHeld, "{rival:?}");
        }
        assert_eq!(other.release().await, Released::Yes, "{rival:?}");
    }
    OK.into()
}

async fn is_freed_by_force(stage: Stage) -> String {
    for (stage, rival) in stage.with_rivals() {
        let mut holder = stage.holder().await;
        let forcing = stage.rival(stage.mode).await;
        let mut other = stage.rival(rival).await;
        holder.acquire(None).await;
        forcing.force_release().await;
        assert!(other.try_acquire(LONG).await, "{rival:?}");
        let told = timeout(BOUND, holder.is_told_of_the_loss()).await;
        assert!(told.is_ok(), "{rival:?}");
        if holder.admits_that_it_is_not_held() {
            assert_eq!(holder.release().await, Released::NotHeld, "{rival:?}");
        }
        assert_eq!(other.release().await, Released::Yes, "{rival:?}");
    }
    OK.into()
}

/// How long a lock that is not renewed will be held.
#[derive(Debug)]
pub(crate) struct Held {
    seen: Instant,
    /// How long the holder relies on the lock. Our client releases what it no longer relies on.
    validity: Duration,
    /// How long the claim of the holder stays.
    ttl: Duration,
}

impl Held {
    /// Returns the remaining times. A party whose validity is unknown relies on the claim.
    pub(crate) fn now(stage: &Stage, validity: Option<Duration>) -> Held {
        let seen = Instant::now();
        let ttl = stage.left();
        let validity = validity.unwrap_or(ttl.saturating_sub(ROUNDING));
        Held {
            seen,
            validity,
            ttl,
        }
    }

    /// Checks that the hold was over when the other party acquired the lock.
    pub(crate) fn assert_was_not_entered_before(&self, entered: Instant) {
        assert!(
            self.seen + self.validity <= entered,
            "{self:?}, {entered:?}"
        );
    }

    /// Checks that the hold was over when the other party acquired the lock, and that the other party did not wait
    /// much longer.
    fn assert_is_outlived_by(&self, entered: Instant) {
        self.assert_was_not_entered_before(entered);
        assert!(
            entered < self.seen + self.ttl + SOON,
            "{self:?}, {entered:?}"
        );
    }
}

/// The next holder has the larger token.
async fn tokens_grow(stage: Stage) -> String {
    let mut one = stage.holder().await;
    let mut other = stage.rival(stage.mode).await;
    let mut last = None;
    for _ in 0..3 {
        for party in [&mut one, &mut other] {
            let token = party.acquire(LONG).await;
            assert!(last < token, "{token:?} after {last:?}");
            last = token;
            assert_eq!(party.release().await, Released::Yes);
        }
    }
    OK.into()
}

/// Readers of both sides read at the same time, and a writer of either side waits for all of them.
async fn is_shared(stage: Stage) -> String {
    let (mut one, mut other) = (stage.holder().await, stage.rival(Mode::Read).await);
    let mut writer = stage.rival(Mode::Write).await;
    one.acquire(LONG).await;
    assert!(other.try_acquire(LONG).await);
    assert_eq!(one.release().await, Released::Yes);
    assert!(!writer.try_acquire(LONG).await);
    assert!(one.try_acquire(LONG).await);
    assert_eq!(other.release().await, Released::Yes);
    assert!(!writer.try_acquire(LONG).await);
    assert_eq!(one.release().await, Released::Yes);
    assert!(writer.try_acquire(LONG).await);
    assert_eq!(writer.release().await, Released::Yes);
    stage.until_free().await;
    OK.into()
}

/// The party that has waited the longest is served next, whichever side it is on.
async fn keeps_the_order(stage: Stage) -> String {
    const WAITERS: usize = 6;
    let mut holder = stage.holder().await;
    holder.acquire(LONG).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut waiting = Vec::new();
    for number in 0..WAITERS {
        let mut party = match number % 2 {
            0 => stage.rival(Mode::Fair).await,
            _ => stage.holder().await,
        };
        let order = order.clone();
        waiting.push(tokio::spawn(async move {
            party.acquire(LONG).await;
            order.lock().unwrap().push(number);
            assert_eq!(party.release().await, Released::Yes);
        }));
        until("it is in the queue", || stage.waiters() == number + 1).await;
    }
    assert_eq!(holder.release().await, Released::Yes);
    for waiting in waiting {
        timeout(BOUND, waiting).await.unwrap().unwrap();
    }
    let order = order.lock().unwrap();
    assert!(order.iter().copied().eq(0..WAITERS), "{order:?}");
    OK.into()
}

/// Waits for the lock. Returns when it was granted.
pub(crate) async fn wait_for_it(mut party: Party) -> (Party, Instant) {
    party.acquire(LONG).await;
    (party, Instant::now())
}
