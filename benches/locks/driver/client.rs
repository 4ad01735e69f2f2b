//! The libraries, each as in its documentation and with its defaults, except for leases and the number of tries.

use std::time::Duration;

use quorlock::{Guard, Locks};
use rlock::AcquireOptions;
use rlock::async_lock::{RLock, RLockGuard};
use rslock::LockManager;

use crate::bare::{Bare, BareClaim};
use crate::job::Job;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A client of one of the libraries.
#[derive(Clone)]
pub(crate) enum Peer {
    Quorlock(Locks),
    Rslock(LockManager, Duration),
    Rlock(RLock, AcquireOptions),
    Bare(Bare),
}

/// A lock that is held.
pub(crate) enum Held {
    Quorlock(Guard),
    Rslock(LockManager, rslock::Lock, Duration),
    Rlock(RLockGuard),
    Bare(BareClaim),
}

impl Peer {
    pub(crate) async fn connect(job: &Job) -> Result<Peer, Failure> {
        let lease = Duration::from_millis(job.lease_millis);
        let addresses: Vec<_> = job
            .ports
            .iter()
            .map(|port| format!("redis://127.0.0.1:{port}/"))
            .collect();
        match (job.peer.as_str(), addresses.as_slice()) {
            ("quorlock", [only]) => {
                let locks = Locks::builder().watchdog_lease(lease);
                Ok(Peer::Quorlock(locks.connect(only).await?))
            }
            ("quorlock", _) => {
                // The servers have just been started, and have no keys.
                let locks = Locks::builder().watchdog_lease(lease).trust_fresh_nodes();
                Ok(Peer::Quorlock(locks.quorum(&addresses).await?))
            }
            ("rslock", _) => Ok(Peer::Rslock(LockManager::new(addresses), lease)),
            ("rlock", [only]) => {
                let options = AcquireOptions::builder().ttl(lease).build()?;
                Ok(Peer::Rlock(RLock::new(only.as_str()).await?, options))
            }
            ("bare scripts", [only]) => {
                Ok(Peer::Bare(Bare::connect(only, job.lease_millis).await?))
            }
            (peer, _) => Err(format!("there is no {peer} on {} servers", addresses.len()).into()),
        }
    }

    pub(crate) async fn acquire(&self, name: &str) -> Result<Held, Failure> {
        Ok(match self {
            Peer::Quorlock(locks) => Held::Quorlock(locks.lock(name).acquire().await?),
            Peer::Rslock(manager, lease) => {
                let lock = manager.acquire_no_guard(name.as_bytes(), *lease).await?;
                Held::Rslock(manager.clone(), lock, *lease)
            }
            Peer::Rlock(rlock, options) => {
                let guard = rlock.acquire_mutex_with_options(name, options.clone());
                Held::Rlock(guard.await?)
            }
            Peer::Bare(bare) => Held::Bare(bare.acquire(name).await?),
        })
    }
}

impl Held {
    pub(crate) async fn release(self) -> Result<(), Failure> {
        match self {
            Held::Quorlock(guard) => guard.release().await?,
            Held::Rslock(manager, lock, _) => manager.unlock(&lock).await,
            Held::Rlock(mut guard) => guard.release().await?,
            Held::Bare(claim) => claim.release().await?,
        }
        Ok(())
    }

    /// Extends the lease every third of it, as a user would, if the library does not.
    pub(crate) async fn keep(&mut self) {
        let Held::Rslock(manager, lock, lease) = self else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(*lease / 3).await;
            match manager.extend(lock, *lease).await {
                Ok(extended) => *lock = extended,
                Err(_) => return,
            }
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        match self {
            Held::Quorlock(guard) => guard.is_held(),
            // `keep` ends when the lock is lost.
            Held::Rslock(..) => true,
            // Its work ends before its lease does.
            Held::Bare(_) => true,
            Held::Rlock(guard) => guard.lease_state() == rlock::LeaseState::Active,
        }
    }
}
