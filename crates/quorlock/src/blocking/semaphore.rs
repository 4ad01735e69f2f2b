//! A semaphore that blocks the thread that acquires a permit.

use std::sync::Arc;
use std::time::Duration;

use super::driver::Driver;
use super::guard::Guard;
use crate::error::AcquireError;

/// A number of permits under one name. Each method is that of [`quorlock::Semaphore`](crate::Semaphore) with the same name.
#[derive(Clone, Debug)]
#[must_use]
pub struct Semaphore {
    semaphore: crate::Semaphore,
    driver: Arc<Driver>,
}

impl Semaphore {
    pub(super) fn new(semaphore: crate::Semaphore, driver: Arc<Driver>) -> Self {
        Semaphore { semaphore, driver }
    }

    /// Returns the asynchronous semaphore, which has the name and the number of permits.
    pub fn as_async(&self) -> &crate::Semaphore {
        &self.semaphore
    }

    /// Sets a fixed lease, which is not renewed.
    pub fn lease(self, lease: Duration) -> Self {
        Semaphore::new(self.semaphore.lease(lease), self.driver)
    }

    /// Sets the length of a lease that the watchdog renews after every third of it.
    pub fn watchdog_lease(self, lease: Duration) -> Self {
        Semaphore::new(self.semaphore.watchdog_lease(lease), self.driver)
    }

    /// Sets how long an acquisition waits.
    pub fn wait(self, at_most: Duration) -> Self {
        Semaphore::new(self.semaphore.wait(at_most), self.driver)
    }

    /// Sets how long a permit stays taken from its grant on.
    pub fn at_least(self, least: Duration) -> Self {
        Semaphore::new(self.semaphore.at_least(least), self.driver)
    }

    /// Acquires a permit. Blocks the thread until one is free.
    ///
    /// # Errors
    /// Those of [`quorlock::Semaphore::acquire`](crate::Semaphore::acquire).
    pub fn acquire(&self) -> Result<Guard, AcquireError> {
        let semaphore = self.semaphore.clone();
        let acquired = self.driver.run(async move { semaphore.acquire().await });
        Ok(Guard::new(acquired?, self.driver.clone()))
    }

    /// Tries to acquire a permit. Returns `None` if all of them are held.
    ///
    /// # Errors
    /// Those of [`quorlock::Semaphore::try_acquire`](crate::Semaphore::try_acquire).
    pub fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        let semaphore = self.semaphore.clone();
        let tried = self
            .driver
            .run(async move { semaphore.try_acquire().await });
        Ok(tried?.map(|guard| Guard::new(guard, self.driver.clone())))
    }
}
