//! Servers that take long to start, shared by tests. Each is used by one test at a time.

use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};
use tokio::task::block_in_place;

/// Up to `N` of these, started when they are needed.
pub struct Pool<T: 'static, const N: usize> {
    start: fn() -> T,
    free: Semaphore,
    all: [OnceLock<Mutex<T>>; N],
    /// Held while a test looks for a free one, so that none is started that is not needed.
    looking: Mutex<()>,
}

impl<T, const N: usize> fmt::Debug for Pool<T, N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pool").finish_non_exhaustive()
    }
}

/// One of a pool, for as long as a test has it.
#[derive(Debug)]
pub struct Borrowed<T: 'static> {
    one: MutexGuard<'static, T>,
    // Dropped after `one`, so that each permit stands for one that is free.
    _permit: SemaphorePermit<'static>,
}

impl<T> Deref for Borrowed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.one
    }
}

impl<T, const N: usize> Pool<T, N> {
    /// Creates a pool of what `start` starts.
    #[must_use]
    pub const fn new(start: fn() -> T) -> Pool<T, N> {
        Pool {
            start,
            free: Semaphore::const_new(N),
            all: [const { OnceLock::new() }; N],
            looking: Mutex::const_new(()),
        }
    }

    /// Waits until one is free, and returns it. Starts one if all that run are in use and there are fewer than `N`.
    ///
    /// # Panics
    /// Panics if `start` does.
    pub async fn borrow(&'static self) -> Borrowed<T> {
        let permit = self.free.acquire().await.expect("BUG: it is never closed");
        let _looking = self.looking.lock().await;
        let one = block_in_place(|| {
            let mut all = self
                .all
                .iter()
                .map(|one| one.get_or_init(|| Mutex::new((self.start)())));
            all.find_map(|one| one.try_lock().ok())
        });
        Borrowed {
            one: one.expect("BUG: there are as many permits"),
            _permit: permit,
        }
    }
}
