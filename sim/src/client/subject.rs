//! What is put to the test: the product's lock, or a variant of the simulator's own. Workloads do not care which.

use std::future::Future;
use std::time::Duration;

use quorlock::{AcquireError, ConfirmError, OwnerId, ReleaseError, Token};

pub use crate::client::hold::Hold;
use crate::history::Access;
use crate::model;

/// A lock under test.
#[derive(Clone, Debug)]
pub enum Subject {
    /// Of the product.
    Product(quorlock::Lock),
    /// A read-write lock of the product, and which side of it.
    ReadWrite(quorlock::Lock, Access),
    /// Of the simulator.
    Variant(model::Lock),
}

impl From<quorlock::Lock> for Subject {
    fn from(lock: quorlock::Lock) -> Self {
        Subject::Product(lock)
    }
}

impl Subject {
    /// The same with a lease of its own, which nothing renews.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        match self {
            Subject::Product(lock) => Subject::Product(lock.lease(lease)),
            Subject::ReadWrite(lock, access) => Subject::ReadWrite(lock.lease(lease), access),
            Subject::Variant(lock) => Subject::Variant(lock.lease(lease)),
        }
    }

    /// The same, for a client that waits no longer than this. A variant of the simulator waits all the same.
    #[must_use]
    pub fn wait(self, at_most: Duration) -> Self {
        match self {
            Subject::Product(lock) => Subject::Product(lock.wait(at_most)),
            Subject::ReadWrite(lock, access) => Subject::ReadWrite(lock.wait(at_most), access),
            variant @ Subject::Variant(_) => variant,
        }
    }

    /// In which way its holds keep others out.
    pub(crate) fn access(&self) -> Access {
        match self {
            Subject::ReadWrite(_, access) => *access,
            _ => Access::Alone,
        }
    }

    pub(crate) async fn acquire(&self) -> Result<Guard, AcquireError> {
        match self {
            Subject::Product(lock) | Subject::ReadWrite(lock, _) => {
                lock.acquire().await.map(Guard::Product)
            }
            Subject::Variant(lock) => lock.acquire().await.map(Guard::Variant),
        }
    }

    pub(crate) async fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        match self {
            Subject::Product(lock) | Subject::ReadWrite(lock, _) => {
                Ok(lock.try_acquire().await?.map(Guard::Product))
            }
            Subject::Variant(lock) => Ok(lock.try_acquire().await?.map(Guard::Variant)),
        }
    }
}

impl Hold for quorlock::Guard {
    fn id(&self) -> OwnerId {
        self.owner_id()
    }

    fn is_held(&self) -> bool {
        quorlock::Guard::is_held(self)
    }

    fn validity(&self) -> Option<Duration> {
        let validity = quorlock::Guard::validity(self);
        (!validity.is_zero()).then_some(validity)
    }

    fn each_name(&self, f: &mut dyn FnMut(&str)) {
        self.names().for_each(|name| f(&name.text()));
    }

    fn token_of(&self, name: &str) -> Option<Token> {
        self.fencing_token_of(name)
    }
}

/// A guard of a lock under test.
#[derive(Debug)]
#[must_use = "dropping a guard releases the lock"]
pub enum Guard {
    /// Of the product.
    Product(quorlock::Guard),
    /// Of the simulator.
    Variant(model::Guard),
}

impl Hold for Guard {
    fn id(&self) -> OwnerId {
        match self {
            Guard::Product(guard) => guard.id(),
            Guard::Variant(guard) => guard.id(),
        }
    }

    fn is_held(&self) -> bool {
        match self {
            Guard::Product(guard) => guard.is_held(),
            Guard::Variant(guard) => guard.is_held(),
        }
    }

    fn validity(&self) -> Option<Duration> {
        match self {
            Guard::Product(guard) => Hold::validity(guard),
            Guard::Variant(guard) => Hold::validity(guard),
        }
    }

    fn each_name(&self, f: &mut dyn FnMut(&str)) {
        match self {
            Guard::Product(guard) => guard.each_name(f),
            Guard::Variant(guard) => guard.each_name(f),
        }
    }

    fn token_of(&self, name: &str) -> Option<Token> {
        match self {
            Guard::Product(guard) => guard.token_of(name),
            Guard::Variant(guard) => guard.token_of(name),
        }
    }
}

impl Guard {
    /// The token of the first name.
    pub(crate) fn token(&self) -> u64 {
        let mut first = None;
        self.each_name(&mut |name| {
            first = first.or_else(|| self.token_of(name));
        });
        first.map_or(0, |token| token.0)
    }

    pub(crate) fn hold_count(&self) -> u32 {
        match self {
            Guard::Product(guard) => guard.hold_count(),
            Guard::Variant(guard) => guard.hold_count(),
        }
    }

    pub(crate) async fn reenter(&self) -> Result<Guard, ConfirmError> {
        match self {
            Guard::Product(guard) => guard.reenter().await.map(Guard::Product),
            Guard::Variant(guard) => guard.reenter().await.map(Guard::Variant),
        }
    }

    pub(crate) async fn extend(&self, lease: Duration) -> Result<(), ConfirmError> {
        match self {
            Guard::Product(guard) => guard.extend(lease).await,
            Guard::Variant(guard) => guard.extend(lease).await,
        }
    }

    pub(crate) async fn release(self) -> Result<(), ReleaseError> {
        match self {
            Guard::Product(guard) => guard.release().await,
            Guard::Variant(guard) => guard.release().await,
        }
    }

    /// Runs work while the lock is held, then releases it; `None` if it was lost meanwhile.
    pub(crate) async fn while_held<F: Future>(self, work: F) -> Option<F::Output> {
        match self {
            Guard::Product(guard) => {
                let done = guard.while_held(async |_| work.await).await;
                done.ok().map(|done| done.output)
            }
            Guard::Variant(guard) => guard.while_held(work).await,
        }
    }
}
