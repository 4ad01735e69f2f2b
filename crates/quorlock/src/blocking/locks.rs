//! A blocking client, and owners of its locks.

use std::sync::Arc;

use super::candidacy::Candidacy;
use super::driver::Driver;
use super::guard::Guard;
use super::lock::Lock;
use super::semaphore::Semaphore;
use crate::error::{AcquireError, ConfigError, ConnectError};
use crate::leader::Candidate;
use crate::operate::{ForceReleaseError, ForceReleased, Inspection};
use crate::ticket::Ticket;

/// A client whose calls block. See the [module](super).
///
/// Clones are the same client. Each method is that of [`quorlock::Locks`](crate::Locks) with the same name.
#[derive(Clone, Debug)]
pub struct Locks {
    locks: crate::Locks,
    driver: Arc<Driver>,
}

impl Locks {
    /// Starts a thread and makes a client there, with any constructor and settings.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// use quorlock::blocking::Locks;
    ///
    /// let locks = Locks::start(async || {
    ///     let builder = quorlock::Locks::builder().watchdog_lease(Duration::from_secs(10));
    ///     builder.quorum(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"]).await
    /// })?;
    /// # drop(locks);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The error of `make`, or [`ConnectError::Thread`] if the system starts no thread.
    pub fn start<E: Into<ConnectError>>(
        make: impl AsyncFnOnce() -> Result<crate::Locks, E> + Send + 'static,
    ) -> Result<Self, ConnectError> {
        let (driver, locks) = Driver::start(make)?;
        Ok(Locks { locks, driver })
    }

    /// Connects to one server. See [`quorlock::Locks::connect`](crate::Locks::connect).
    ///
    /// # Errors
    /// [`ConnectError`] with the reason.
    #[cfg(any(feature = "redis", feature = "store"))]
    pub fn connect(address: impl AsRef<str>) -> Result<Self, ConnectError> {
        let address = address.as_ref().to_owned();
        Self::start(async move || crate::Locks::connect(address).await)
    }

    /// Connects to a majority of independent servers. See [`quorlock::Locks::quorum`](crate::Locks::quorum).
    ///
    /// # Errors
    /// [`ConnectError`] with the reason.
    #[cfg(any(feature = "redis", feature = "store"))]
    pub fn quorum<A: AsRef<str>>(
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Self, ConnectError> {
        let addresses = addresses.into_iter();
        let addresses: Vec<String> = addresses.map(|address| address.as_ref().into()).collect();
        Self::start(async move || crate::Locks::quorum(addresses).await)
    }

    /// Returns a lock of this name. See [`quorlock::Locks::lock`](crate::Locks::lock).
    pub fn lock(&self, name: impl AsRef<[u8]>) -> Lock {
        self.of(self.locks.lock(name))
    }

    /// Returns a fair lock of this name. See [`quorlock::Locks::fair`](crate::Locks::fair).
    pub fn fair(&self, name: impl AsRef<[u8]>) -> Lock {
        self.of(self.locks.fair(name))
    }

    /// Returns a read lock of this name. See [`quorlock::Locks::read`](crate::Locks::read).
    pub fn read(&self, name: impl AsRef<[u8]>) -> Lock {
        self.of(self.locks.read(name))
    }

    /// Returns a write lock of this name. See [`quorlock::Locks::write`](crate::Locks::write).
    pub fn write(&self, name: impl AsRef<[u8]>) -> Lock {
        self.of(self.locks.write(name))
    }

    /// Returns a lock of several names taken together. See [`quorlock::Locks::all`](crate::Locks::all).
    pub fn all<N: AsRef<[u8]>>(&self, names: impl IntoIterator<Item = N>) -> Lock {
        self.of(self.locks.all(names))
    }

    /// Returns a semaphore of this name. See [`quorlock::Locks::semaphore`](crate::Locks::semaphore).
    pub fn semaphore(&self, name: impl AsRef<[u8]>, permits: usize) -> Semaphore {
        Semaphore::new(self.locks.semaphore(name, permits), self.driver.clone())
    }

    /// Returns a new owner, whose locks are reentrant. See [`quorlock::Locks::owner`](crate::Locks::owner).
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner {
            owner: self.locks.owner(),
            driver: self.driver.clone(),
        }
    }

    /// Continues a hold that another process has handed over. See [`quorlock::Locks::adopt`](crate::Locks::adopt).
    ///
    /// # Errors
    /// Those of [`quorlock::Locks::adopt`](crate::Locks::adopt).
    pub fn adopt(&self, ticket: &Ticket) -> Result<Option<Guard>, AcquireError> {
        let (locks, ticket) = (self.locks.clone(), ticket.clone());
        let guard = self.driver.run(async move { locks.adopt(&ticket).await })?;
        Ok(guard.map(|guard| Guard::new(guard, self.driver.clone())))
    }

    /// Starts to campaign for the leadership of this name. See [`quorlock::Locks::leader`](crate::Locks::leader).
    pub fn campaign(&self, name: impl AsRef<[u8]>) -> Candidacy {
        self.campaign_as(&self.locks.leader(name))
    }

    /// Starts to campaign as a candidate with settings of its own, made by
    /// [`quorlock::Locks::leader`](crate::Locks::leader) of [`Locks::as_async`].
    pub fn campaign_as(&self, candidate: &Candidate) -> Candidacy {
        Candidacy::new(candidate.campaign(), self.driver.clone())
    }

    /// Reads the holder of a name from each node. See [`quorlock::Locks::inspect`](crate::Locks::inspect).
    ///
    /// # Errors
    /// [`ConfigError::Name`] if the name is invalid.
    pub fn inspect(&self, name: impl AsRef<[u8]>) -> Result<Inspection, ConfigError> {
        let (locks, name) = (self.locks.clone(), name.as_ref().to_vec());
        self.driver.run(async move { locks.inspect(name).await })
    }

    /// Releases a name by force. See [`quorlock::Locks::force_release`](crate::Locks::force_release).
    ///
    /// # Errors
    /// [`ForceReleaseError::Unconfirmed`] if fewer nodes than a lock needs report that the name is free.
    pub fn force_release(
        &self,
        name: impl AsRef<[u8]>,
    ) -> Result<ForceReleased, ForceReleaseError> {
        let (locks, name) = (self.locks.clone(), name.as_ref().to_vec());
        self.driver
            .run(async move { locks.force_release(name).await })
    }

    /// Checks that a lock could be acquired now. See [`quorlock::Locks::ready`](crate::Locks::ready).
    ///
    /// # Errors
    /// The error that an acquisition would have.
    pub fn ready(&self) -> Result<(), AcquireError> {
        let locks = self.locks.clone();
        self.driver.run(async move { locks.ready().await })
    }

    /// Returns the number of holds of this client.
    #[must_use]
    pub fn held(&self) -> usize {
        self.locks.held()
    }

    /// Releases everything that this client holds, and waits for it. See [`quorlock::Locks::close`](crate::Locks::close).
    ///
    /// The last of the client, its locks and guards does the same when it is dropped.
    pub fn close(&self) {
        let locks = self.locks.clone();
        self.driver.run(async move { locks.close().await });
    }

    /// Returns the asynchronous client. Its futures run on any executor.
    #[must_use]
    pub fn as_async(&self) -> &crate::Locks {
        &self.locks
    }

    fn of(&self, lock: crate::Lock) -> Lock {
        Lock::new(lock, self.driver.clone())
    }
}

/// An identity whose locks are reentrant. Each method is that of [`quorlock::Owner`](crate::Owner) with the same name.
#[derive(Clone, Debug)]
pub struct Owner {
    owner: crate::Owner,
    driver: Arc<Driver>,
}

impl Owner {
    /// Returns a lock of this name for this owner.
    pub fn lock(&self, name: impl AsRef<[u8]>) -> Lock {
        self.of(self.owner.lock(name))
    }

    /// Returns a fair lock of this name for this owner.
    pub fn fair(&self, name: impl AsRef<[u8]>) -> Lock {
        self.of(self.owner.fair(name))
    }

    /// Returns a read lock of this name for this owner.
    pub fn read(&self, name: impl AsRef<[u8]>) -> Lock {
        self.of(self.owner.read(name))
    }

    /// Returns a write lock of this name for this owner.
    pub fn write(&self, name: impl AsRef<[u8]>) -> Lock {
        self.of(self.owner.write(name))
    }

    /// Returns a lock of several names taken together, for this owner.
    pub fn all<N: AsRef<[u8]>>(&self, names: impl IntoIterator<Item = N>) -> Lock {
        self.of(self.owner.all(names))
    }

    /// Returns a semaphore of this name for this owner.
    pub fn semaphore(&self, name: impl AsRef<[u8]>, permits: usize) -> Semaphore {
        Semaphore::new(self.owner.semaphore(name, permits), self.driver.clone())
    }

    fn of(&self, lock: crate::Lock) -> Lock {
        Lock::new(lock, self.driver.clone())
    }
}
