//! The lock under test: the product's, or a variant of the simulator. Workloads use both in the same way.

use std::future::Future;
use std::time::Duration;

use quorlock::{AcquireError, ConfirmError, OwnerId, ReleaseError, Token};

use crate::algorithm;
pub use crate::client::hold::Hold;
use crate::model;
use quorlock_sim_world::history::Access;

/// A lock under test.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A lock of the product.
    Product(quorlock::Lock),
    /// A lock of the product with an owner, which can enter its hold again.
    Owned(quorlock::Lock),
    /// A read or write lock of the product, and which of the two it is.
    ReadWrite(quorlock::Lock, Access),
    /// A lock of a variant of the simulator.
    Variant(model::ModelLock),
    /// A lock of a registered algorithm.
    Own(algorithm::OwnLock),
}

impl From<quorlock::Lock> for Subject {
    fn from(lock: quorlock::Lock) -> Self {
        Subject::Product(lock)
    }
}

impl Subject {
    /// Sets a lease that is not renewed.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        match self {
            Subject::Product(lock) => Subject::Product(lock.lease(lease)),
            Subject::Owned(lock) => Subject::Owned(lock.lease(lease)),
            Subject::ReadWrite(lock, access) => Subject::ReadWrite(lock.lease(lease), access),
            Subject::Variant(lock) => Subject::Variant(lock.lease(lease)),
            Subject::Own(lock) => Subject::Own(lock.lease(lease)),
        }
    }

    /// Sets the longest wait of an acquisition. Has no effect on variants of the simulator.
    #[must_use]
    pub fn wait(self, at_most: Duration) -> Self {
        match self {
            Subject::Product(lock) => Subject::Product(lock.wait(at_most)),
            Subject::Owned(lock) => Subject::Owned(lock.wait(at_most)),
            Subject::ReadWrite(lock, access) => Subject::ReadWrite(lock.wait(at_most), access),
            Subject::Own(lock) => Subject::Own(lock.wait(at_most)),
            variant @ Subject::Variant(_) => variant,
        }
    }

    /// Returns how holds of this lock exclude other holds.
    pub(crate) fn access(&self) -> Access {
        match self {
            Subject::ReadWrite(_, access) => *access,
            _ => Access::Alone,
        }
    }

    /// Whether each acquisition is a hold of its own.
    pub(crate) fn is_never_entered(&self) -> bool {
        matches!(self, Subject::Product(_))
    }

    pub(crate) async fn acquire(&self) -> Result<SubjectGuard, AcquireError> {
        match self {
            Subject::Product(lock) | Subject::Owned(lock) | Subject::ReadWrite(lock, _) => {
                lock.acquire().await.map(SubjectGuard::Product)
            }
            Subject::Variant(lock) => lock.acquire().await.map(SubjectGuard::Variant),
            Subject::Own(lock) => lock.acquire().await.map(SubjectGuard::Own),
        }
    }

    pub(crate) async fn try_acquire(&self) -> Result<Option<SubjectGuard>, AcquireError> {
        match self {
            Subject::Product(lock) | Subject::Owned(lock) | Subject::ReadWrite(lock, _) => {
                Ok(lock.try_acquire().await?.map(SubjectGuard::Product))
            }
            Subject::Variant(lock) => Ok(lock.try_acquire().await?.map(SubjectGuard::Variant)),
            Subject::Own(lock) => Ok(lock.try_acquire().await?.map(SubjectGuard::Own)),
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
pub enum SubjectGuard {
    /// A guard of the product.
    Product(quorlock::Guard),
    /// A guard of a variant of the simulator.
    Variant(model::ModelGuard),
    /// A guard of a registered algorithm.
    Own(algorithm::AlgorithmGuard),
}

impl Hold for SubjectGuard {
    fn id(&self) -> OwnerId {
        match self {
            SubjectGuard::Product(guard) => guard.id(),
            SubjectGuard::Variant(guard) => guard.id(),
            SubjectGuard::Own(guard) => guard.id(),
        }
    }

    fn is_held(&self) -> bool {
        match self {
            SubjectGuard::Product(guard) => guard.is_held(),
            SubjectGuard::Variant(guard) => guard.is_held(),
            SubjectGuard::Own(guard) => guard.is_held(),
        }
    }

    fn validity(&self) -> Option<Duration> {
        match self {
            SubjectGuard::Product(guard) => Hold::validity(guard),
            SubjectGuard::Variant(guard) => Hold::validity(guard),
            SubjectGuard::Own(guard) => Hold::validity(guard),
        }
    }

    fn each_name(&self, f: &mut dyn FnMut(&str)) {
        match self {
            SubjectGuard::Product(guard) => guard.each_name(f),
            SubjectGuard::Variant(guard) => guard.each_name(f),
            SubjectGuard::Own(guard) => guard.each_name(f),
        }
    }

    fn token_of(&self, name: &str) -> Option<Token> {
        match self {
            SubjectGuard::Product(guard) => guard.token_of(name),
            SubjectGuard::Variant(guard) => guard.token_of(name),
            SubjectGuard::Own(guard) => guard.token_of(name),
        }
    }
}

impl SubjectGuard {
    /// Returns the token of the first name, or 0 if there is none.
    pub(crate) fn token(&self) -> u64 {
        let mut first = None;
        self.each_name(&mut |name| {
            first = first.or_else(|| self.token_of(name));
        });
        first.map_or(0, |token| token.0)
    }

    pub(crate) fn hold_count(&self) -> u32 {
        match self {
            SubjectGuard::Product(guard) => guard.hold_count(),
            SubjectGuard::Variant(guard) => guard.hold_count(),
            SubjectGuard::Own(_) => 1,
        }
    }

    pub(crate) async fn reenter(&self) -> Result<SubjectGuard, ConfirmError> {
        match self {
            SubjectGuard::Product(guard) => guard.reenter().await.map(SubjectGuard::Product),
            SubjectGuard::Variant(guard) => guard.reenter().await.map(SubjectGuard::Variant),
            SubjectGuard::Own(_) => unreachable!("BUG: the plan was checked"),
        }
    }

    pub(crate) async fn extend(&self, lease: Duration) -> Result<(), ConfirmError> {
        match self {
            SubjectGuard::Product(guard) => guard.extend(lease).await,
            SubjectGuard::Variant(guard) => guard.extend(lease).await,
            SubjectGuard::Own(_) => unreachable!("BUG: the plan was checked"),
        }
    }

    pub(crate) async fn release(self) -> Result<(), ReleaseError> {
        match self {
            SubjectGuard::Product(guard) => guard.release().await,
            SubjectGuard::Variant(guard) => guard.release().await,
            SubjectGuard::Own(guard) => guard.release().await,
        }
    }

    /// Runs work while the lock is held, then releases it. Returns `None` if the lock was lost before the work ended.
    pub(crate) async fn while_held<F: Future>(self, work: F) -> Option<F::Output> {
        match self {
            SubjectGuard::Product(guard) => {
                let done = guard.while_held(async |_| work.await).await;
                done.ok().map(|done| done.output)
            }
            SubjectGuard::Variant(guard) => guard.while_held(work).await,
            SubjectGuard::Own(guard) => guard.while_held(work).await,
        }
    }
}
