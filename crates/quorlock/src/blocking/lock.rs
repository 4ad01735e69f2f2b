//! A lock that blocks the thread that acquires it.

use std::sync::Arc;
use std::time::Duration;

use super::driver::Driver;
use super::guard::Guard;
use crate::error::AcquireError;

/// One lock, or several taken together. Each method is that of [`quorlock::Lock`](crate::Lock) with the same name.
#[derive(Clone, Debug)]
#[must_use]
pub struct Lock {
    lock: crate::Lock,
    driver: Arc<Driver>,
}

impl Lock {
    pub(super) fn new(lock: crate::Lock, driver: Arc<Driver>) -> Self {
        Lock { lock, driver }
    }

    /// Returns a lock that takes other locks together with this one: all of them or none.
    ///
    /// The locks may be of several clients. The guard belongs to this one, whose thread must not end before: keep the other
    /// clients, too.
    pub fn and(self, others: impl IntoIterator<Item = Lock>) -> Self {
        let others = others.into_iter().map(|other| other.lock);
        Lock {
            lock: self.lock.and(others),
            driver: self.driver,
        }
    }

    /// Sets a fixed lease, which is not renewed.
    pub fn lease(self, lease: Duration) -> Self {
        Lock {
            lock: self.lock.lease(lease),
            driver: self.driver,
        }
    }

    /// Sets the length of a lease that the watchdog renews after every third of it.
    pub fn watchdog_lease(self, lease: Duration) -> Self {
        Lock {
            lock: self.lock.watchdog_lease(lease),
            driver: self.driver,
        }
    }

    /// Sets how long an acquisition waits.
    pub fn wait(self, at_most: Duration) -> Self {
        Lock {
            lock: self.lock.wait(at_most),
            driver: self.driver,
        }
    }

    /// Sets how long the lock stays locked from its grant on, even if it is released earlier. See
    /// [`quorlock::Lock::at_least`](crate::Lock::at_least).
    pub fn at_least(self, least: Duration) -> Self {
        Lock {
            lock: self.lock.at_least(least),
            driver: self.driver,
        }
    }

    /// Acquires the lock. Blocks the thread until it is free.
    ///
    /// # Errors
    /// Those of [`quorlock::Lock::acquire`](crate::Lock::acquire).
    pub fn acquire(&self) -> Result<Guard, AcquireError> {
        let lock = self.lock.clone();
        let guard = self.driver.run(async move { lock.acquire().await })?;
        Ok(Guard::new(guard, self.driver.clone()))
    }

    /// Tries to acquire the lock once. Returns `None` if others hold it.
    ///
    /// # Errors
    /// Those of [`Lock::acquire`], after one round.
    pub fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        let lock = self.lock.clone();
        let guard = self.driver.run(async move { lock.try_acquire().await })?;
        Ok(guard.map(|guard| Guard::new(guard, self.driver.clone())))
    }
}
