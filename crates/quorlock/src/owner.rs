//! An identity that can enter its own locks again.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use quorlock_core::renewal::Status;

use crate::client::Client;
use crate::error::{AcquireError, ConfigError, ConfirmError};
use crate::guard::Guard;
use crate::hold::Hold;
use crate::layout::Layout;
use crate::lock::Lock;
use crate::locks::Locks;
use crate::mutex::Mutex;

/// An identity: acquiring a name again through it re-enters the hold it has, instead of waiting for itself.
///
/// Clones are the same identity. An owner whose hold was lost starts a new hold, with a new token; guards of the lost
/// one stay lost.
#[derive(Clone, Debug)]
pub struct Owner {
    locks: Locks,
    holds: Arc<Mutex<BTreeMap<Arc<str>, Slot>>>,
}

/// The hold of one lock. Acquisitions of it through one owner take turns.
type Slot = Arc<tokio::sync::Mutex<Held>>;

#[derive(Debug, Default)]
struct Held {
    hold: Weak<Hold>,
    layout: Option<Arc<Layout>>,
}

impl Owner {
    pub(crate) fn new(locks: Locks) -> Self {
        Owner {
            locks,
            holds: Arc::default(),
        }
    }

    /// A lock of this name, to be acquired by this owner.
    pub fn lock(&self, name: impl AsRef<str>) -> Lock {
        let layout = self.locks.layout([name]);
        Lock::new(self.locks.client().clone(), layout, Some(self.clone()))
    }

    /// Several locks taken together, to be acquired by this owner.
    ///
    /// # Errors
    /// As [`Locks::all`].
    pub fn all<N: AsRef<str>>(
        &self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Lock, ConfigError> {
        let layout = Ok(self.locks.layout(names)?);
        Ok(Lock::new(
            self.locks.client().clone(),
            layout,
            Some(self.clone()),
        ))
    }

    pub(crate) async fn acquire(&self, lock: &Lock) -> Result<Guard, AcquireError> {
        let layout = lock.layout()?;
        let slot = self.slot(layout)?;
        let mut held = slot.lock().await;
        match reenter(&held, lock.client()).await? {
            Some(guard) => Ok(guard),
            None => {
                let guard = lock.acquire_anew().await?;
                held.remember(&guard, layout);
                Ok(guard)
            }
        }
    }

    pub(crate) async fn try_acquire(&self, lock: &Lock) -> Result<Guard, AcquireError> {
        let layout = lock.layout()?;
        let slot = self.slot(layout)?;
        let Ok(mut held) = slot.try_lock() else {
            let names = layout.title();
            return Err(AcquireError::Contended { names });
        };
        match reenter(&held, lock.client()).await? {
            Some(guard) => Ok(guard),
            None => {
                let guard = lock.try_anew().await?;
                held.remember(&guard, layout);
                Ok(guard)
            }
        }
    }

    /// The slot of a lock. Slots that are not in use are forgotten on the way.
    fn slot(&self, layout: &Layout) -> Result<Slot, AcquireError> {
        let mut slots = self.holds.lock();
        slots.retain(|_, slot| {
            1 < Arc::strong_count(slot) || slot.try_lock().is_ok_and(|held| held.is_live())
        });
        for (key, slot) in slots.iter() {
            if *key != layout.key
                && let Ok(held) = slot.try_lock()
                && let Some(name) = held.overlap(layout)
            {
                return Err(AcquireError::Overlap {
                    names: layout.title(),
                    held: name,
                });
            }
        }
        Ok(slots.entry(layout.key.clone()).or_default().clone())
    }
}

impl Held {
    fn is_live(&self) -> bool {
        self.hold.upgrade().is_some_and(|hold| 0 < hold.count())
    }

    fn remember(&mut self, guard: &Guard, layout: &Arc<Layout>) {
        self.hold = Arc::downgrade(guard.hold());
        self.layout = Some(layout.clone());
    }

    /// A name that both this hold and another lock have.
    fn overlap(&self, other: &Layout) -> Option<String> {
        let layout = self.layout.as_ref().filter(|_| self.is_live())?;
        let common = layout
            .names()
            .find(|name| other.names().any(|n| n == *name))?;
        Some(common.to_string())
    }
}

/// Enters the hold once more, if it is still held.
async fn reenter(held: &Held, client: &Arc<Client>) -> Result<Option<Guard>, AcquireError> {
    let Some(hold) = held.hold.upgrade() else {
        return Ok(None);
    };
    if hold.count() == 0 || hold.status(client.now()) != Status::Held {
        return Ok(None);
    }
    match Guard::enter(client, &hold).await {
        Ok(guard) => Ok(Some(guard)),
        // The owner starts a new hold.
        Err(ConfirmError::Lost { .. } | ConfirmError::Config(_)) => Ok(None),
        Err(ConfirmError::Unconfirmed { names, nodes }) => {
            Err(AcquireError::NoQuorum { names, nodes })
        }
    }
}
