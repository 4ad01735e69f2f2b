//! The workers that lock names, and their findings.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quorlock::{Guard, Locks};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The number of names.
const NAMES: u32 = 4;

/// A guard that is held until it is taken out for its release.
type Held = Arc<Mutex<Option<Guard>>>;

/// The findings about the names of one kind of majority.
#[derive(Default)]
pub(crate) struct Book {
    names: Mutex<BTreeMap<String, Name>>,
    holds: AtomicU64,
    lost: AtomicU64,
    refused: AtomicU64,
    /// The number of tokens that were not larger than every token that had been won before they were requested.
    backward: AtomicU64,
    /// How often two guards of one name were held at the same time.
    pub(crate) doubles: AtomicU64,
    slowest_millis: AtomicU64,
}

#[derive(Default)]
struct Name {
    holders: Vec<Held>,
    largest: u64,
}

impl fmt::Display for Book {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figure = |of: &AtomicU64| of.load(Ordering::SeqCst);
        write!(
            f,
            "{} holds, {} of them lost; {} times none within 2 s (the longest wait {} ms); {} double holds, {} tokens out of order",
            figure(&self.holds),
            figure(&self.lost),
            figure(&self.refused),
            figure(&self.slowest_millis),
            figure(&self.doubles),
            figure(&self.backward)
        )
    }
}

impl Book {
    fn largest(&self, name: &str) -> u64 {
        let names = self.names.lock().unwrap();
        names.get(name).map_or(0, |name| name.largest)
    }

    /// Records a guard that was just granted, and checks whether other guards of the name are held.
    fn enter(&self, name: &str, guard: Guard, before: u64) -> Held {
        let token = guard.fencing_token().0;
        if token <= before {
            self.backward.fetch_add(1, Ordering::SeqCst);
            println!("{name}: token {token} after {before}");
        }
        let mut names = self.names.lock().unwrap();
        let entry = names.entry(name.to_owned()).or_default();
        entry.largest = entry.largest.max(token);
        for other in &entry.holders {
            let other = other.lock().unwrap();
            // The older guard is checked first: if it is held now, it was held when the other one was granted.
            if let Some(other) = &*other
                && other.is_held()
                && guard.is_held()
            {
                self.doubles.fetch_add(1, Ordering::SeqCst);
                println!("{name}: held by {other:?} and by {guard:?}");
            }
        }
        let held = Arc::new(Mutex::new(Some(guard)));
        entry.holders.push(Arc::clone(&held));
        self.holds.fetch_add(1, Ordering::SeqCst);
        held
    }

    fn leave(&self, name: &str, held: &Held) -> Option<Guard> {
        let mut names = self.names.lock().unwrap();
        let entry = names.entry(name.to_owned()).or_default();
        entry.holders.retain(|other| !Arc::ptr_eq(other, held));
        held.lock().unwrap().take()
    }
}

/// Locks one name after another, for short and for long times.
pub(crate) async fn worker(locks: Locks, book: Arc<Book>, seed: u64, lease: Duration) {
    let mut random = StdRng::seed_from_u64(seed);
    loop {
        let name = format!("n{}", random.random_range(0..NAMES));
        let before = book.largest(&name);
        let asked = Instant::now();
        let mut lock = locks.lock(&name).wait(Duration::from_secs(2));
        // Nothing renews the lease, so nothing notifies the holder of a failover. The holder relies on its lease.
        let is_renewed = random.random_range(0..2) == 0;
        if !is_renewed {
            lock = lock.lease(lease);
        }
        let Ok(guard) = lock.acquire().await else {
            book.refused.fetch_add(1, Ordering::SeqCst);
            continue;
        };
        let waited = u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX);
        book.slowest_millis.fetch_max(waited, Ordering::SeqCst);
        let lost = guard.lost();
        let held = book.enter(&name, guard, before);
        // Some holds are longer than a failover and are renewed during it.
        let span = match random.random_range(0..8) {
            0 if is_renewed => Duration::from_millis(random.random_range(3_000..10_000)),
            0 => lease.mul_f32(random.random_range(0.5..1.0)),
            _ => Duration::from_millis(random.random_range(1..60)),
        };
        let is_lost = tokio::time::timeout(span, lost).await;
        if is_lost.is_ok() {
            book.lost.fetch_add(1, Ordering::SeqCst);
        }
        if let Some(guard) = book.leave(&name, &held) {
            let _ = guard.release().await;
        }
        tokio::time::sleep(Duration::from_millis(random.random_range(0..20))).await;
    }
}
