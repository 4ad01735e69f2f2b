//! Clients on stores that fail in every way that is allowed, with seeds.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorlock::Locks;
use quorlock_core::time::WallMillis;
use quorlock_core::transport::{Cause, Subscription, TransportError};
use quorlock_store::{MemoryStore, Store, StoreTransport};
use tokio::time::{Instant, sleep, timeout};

use crate::SECOND;
use crate::wrapped::Wrapped;

/// Draws numbers from a seed.
#[derive(Clone, Debug)]
struct Dice(Arc<AtomicU64>);

impl Dice {
    fn below(&self, end: u64) -> u64 {
        let state = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn millis(&self, end: u64) -> Duration {
        Duration::from_millis(self.below(end))
    }
}

/// A store whose calls take time, and of which one in four fails: the reply is lost, the write is executed late or twice,
/// or not at all.
fn failing(store: &MemoryStore, dice: &Dice) -> Wrapped {
    let lost = || TransportError::indeterminate(Cause::Closed, "lost");
    let (reads, writes, watches) = (dice.clone(), dice.clone(), dice.clone());
    Wrapped::new(store)
        .on_read(move |store, key| {
            let (store, key, dice) = (store.clone(), key.clone(), reads.clone());
            Box::pin(async move {
                sleep(dice.millis(5)).await;
                let snapshot = store.read(&key).await;
                sleep(dice.millis(5)).await;
                match dice.below(20) {
                    0 => Err(lost()),
                    _ => snapshot,
                }
            })
        })
        .on_write(move |store, key, version, draft| {
            let (store, key, version) = (store.clone(), key.clone(), version.cloned());
            let dice = writes.clone();
            let later = |after: Duration| {
                let (store, key) = (store.clone(), key.clone());
                let (version, draft) = (version.clone(), draft.clone());
                tokio::spawn(async move {
                    sleep(after).await;
                    let _ = store.write_if(&key, version.as_ref(), draft).await;
                });
            };
            let fate = dice.below(20);
            if fate == 1 || fate == 2 {
                later(dice.millis(3_000));
            }
            Box::pin(async move {
                sleep(dice.millis(5)).await;
                let written = match fate {
                    0 | 1 => Err(lost()),
                    _ => store.write_if(&key, version.as_ref(), draft).await,
                };
                sleep(dice.millis(5)).await;
                match fate {
                    3 | 4 => Err(lost()),
                    _ => written,
                }
            })
        })
        .on_watch(move |store, key, watcher| match watches.below(3) {
            // Reports that never come.
            0 => {
                watcher.live();
                Some(Subscription::new(()))
            }
            1 => None,
            _ => store.watch(key, watcher),
        })
}

/// What the clients of one run have done.
#[derive(Default)]
struct Ledger {
    inside: AtomicUsize,
    /// The tokens of all holds. Each is larger than all before it.
    tokens: Mutex<BTreeSet<quorlock::Token>>,
    holds: AtomicUsize,
}

async fn work(locks: Locks, dice: Dice, ledger: Arc<Ledger>, until: Instant) {
    while Instant::now() < until {
        // Without a quorum, the client tries again.
        let Ok(guard) = locks.lock("a").acquire().await else {
            continue;
        };
        {
            let mut tokens = ledger.tokens.lock().unwrap();
            let last = tokens.last().copied();
            assert!(last < Some(guard.fencing_token()), "{last:?}");
            tokens.insert(guard.fencing_token());
        }
        let work = async |_: &quorlock::Guard| {
            assert_eq!(ledger.inside.fetch_add(1, Ordering::SeqCst), 0);
            let counted = Inside(&ledger.inside);
            sleep(dice.millis(40)).await;
            if dice.below(20) == 0 {
                sleep(dice.millis(6_000)).await;
            }
            drop(counted);
        };
        if dice.below(12) == 0 {
            // The process dies: it neither works nor releases.
            guard.leak();
        } else {
            let _ = guard.while_held(work).await;
        }
        ledger.holds.fetch_add(1, Ordering::SeqCst);
        sleep(dice.millis(20)).await;
    }
}

struct Inside<'a>(&'a AtomicUsize);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn run(seed: u64, store: MemoryStore) {
    let dice = Dice(Arc::new(AtomicU64::new(seed)));
    let ledger = Arc::new(Ledger::default());
    let until = Instant::now() + 60 * SECOND;
    let clients = (0..5).map(|_| {
        let transport = StoreTransport::new(failing(&store, &dice));
        let builder = Locks::builder().watchdog_lease(2 * SECOND);
        let locks = builder.on_node(transport).unwrap();
        tokio::spawn(work(locks, dice.clone(), ledger.clone(), until))
    });
    for client in clients.collect::<Vec<_>>() {
        timeout(3_600 * SECOND, client).await.unwrap().unwrap();
    }
    let holds = ledger.holds.load(Ordering::SeqCst);
    assert!(50 < holds, "seed {seed}: {holds} holds");
}

fn seeds() -> u64 {
    let seeds = std::env::var("QUORLOCK_STORE_SEEDS");
    seeds.map_or(20, |seeds| seeds.parse().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_grants_no_name_twice_and_no_token_twice() {
    for seed in 0..seeds() {
        run(seed, MemoryStore::new()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_and_has_no_clock_grants_no_name_twice_and_no_token_twice() {
    for seed in 0..seeds() {
        run(seed, MemoryStore::with_clock(|| None)).await;
    }
}

/// The clock of the store is set back now and then.
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_and_whose_clock_is_set_back_grants_no_name_twice() {
    for seed in 0..seeds() {
        let began = Instant::now();
        let clock = move || {
            let passed = u64::try_from(began.elapsed().as_millis()).unwrap();
            // Every seven seconds it is set back by three.
            WallMillis(1_700_000_000_000 + passed - passed / 7_000 * 3_000)
        };
        run(seed, MemoryStore::with_clock(move || Some(clock()))).await;
    }
}
