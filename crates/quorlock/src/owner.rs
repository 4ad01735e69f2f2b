//! An identity that can enter its own locks again, and the constructor of [`Locks`] for it.

mod slots;
mod turns;

use std::future::poll_fn;
use std::sync::Arc;

use quorlock_core::backoff::Backoff;
use quorlock_core::message::Mode;
use quorlock_core::time::Time;

use crate::attempt::Waits;
use crate::client::Client;
use crate::error::{AcquireError, ConfigError, ConfirmError, Holder};
use crate::guard::Guard;
use crate::hold::Hold;
use crate::layout::Layout;
use crate::lock::Lock;
use crate::locks::Locks;
use crate::mutex::Mutex;
use crate::under::Under;
use slots::{Slot, Slots};
use turns::Turns;

/// An identity: acquiring a name again through it re-enters the hold it has, instead of waiting for itself.
///
/// Clones are the same identity. An owner whose hold was lost starts a new hold, with a new token; guards of the lost
/// one stay lost. Entering again keeps the lease and the watchdog of the hold, whatever the lock says that is entered.
#[derive(Clone, Debug)]
pub struct Owner {
    locks: Locks,
    slots: Arc<Mutex<Slots>>,
    turns: Arc<Turns>,
}

impl Locks {
    /// An identity that can enter its own locks again: acquiring a name through the same owner re-enters its hold.
    /// (A task is no identity: it has no name, and it moves between threads.)
    pub fn owner(&self) -> Owner {
        Owner::new(self.clone())
    }
}

impl Owner {
    fn new(locks: Locks) -> Self {
        Owner {
            locks,
            slots: Arc::default(),
            turns: Arc::default(),
        }
    }

    /// A lock of this name, to be acquired by this owner.
    pub fn lock(&self, name: impl AsRef<str>) -> Lock {
        self.in_mode(Mode::Plain, name)
    }

    /// A fair lock of this name, to be acquired by this owner. See [`Locks::fair`].
    pub fn fair(&self, name: impl AsRef<str>) -> Lock {
        self.in_mode(Mode::Fair, name)
    }

    /// The lock of this name for a reader, to be acquired by this owner, who may be its writer. See [`Locks::read`].
    ///
    /// An owner that writes reads at once, and goes on reading when the guard of its write lock is released: others
    /// may read from then on, and nobody has written in between.
    pub fn read(&self, name: impl AsRef<str>) -> Lock {
        self.in_mode(Mode::Read, name)
    }

    /// The lock of this name for a writer, to be acquired by this owner. See [`Locks::write`].
    ///
    /// An owner that reads cannot acquire it, it would wait for itself: that is an error at once
    /// ([`AcquireError::Upgrade`]). What an owner begins on one name while another acquisition of that name is under
    /// way waits for that one first, and is then answered as if it had begun after it.
    pub fn write(&self, name: impl AsRef<str>) -> Lock {
        self.in_mode(Mode::Write, name)
    }

    fn in_mode(&self, mode: Mode, name: impl AsRef<str>) -> Lock {
        let layout = self.locks.layout(mode, [name]);
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
        let layout = Ok(self.locks.layout(Mode::Plain, names)?);
        Ok(Lock::new(
            self.locks.client().clone(),
            layout,
            Some(self.clone()),
        ))
    }

    pub(crate) async fn acquire(&self, lock: &Lock) -> Result<Guard, AcquireError> {
        let layout = lock.layout()?;
        let client = lock.client();
        let waits = lock.waits();
        let give_up_at = waits.until.unwrap_or(Time::NEVER);
        let Some(_turn) = self.turns.wait(layout, client, give_up_at).await else {
            return Err(contended(client, layout, waits));
        };
        // What the owner holds is known only now: an acquisition that began before has ended.
        let slot = self.slot(layout);
        if let Some(guard) = slot.reenter_within(client, waits).await? {
            return Ok(guard);
        }
        let under = self.under(layout, client.now())?;
        Ok(slot.remember(lock.acquire_anew(under, waits).await?))
    }

    pub(crate) async fn try_acquire(&self, lock: &Lock) -> Result<Guard, AcquireError> {
        let layout = lock.layout()?;
        let client = lock.client();
        let slot = self.slot(layout);
        // Two tasks enter at once what the owner holds: the one without the turn is not to hear that others hold it.
        if let Some(guard) = slot.reenter(client, Time::NEVER).await? {
            return Ok(guard);
        }
        let Some(_turn) = self.turns.try_begin(layout) else {
            return Err(contended(client, layout, Waits::UNBOUNDED));
        };
        // Another task may have won it since.
        if let Some(guard) = slot.reenter(client, Time::NEVER).await? {
            return Ok(guard);
        }
        let under = self.under(layout, client.now())?;
        Ok(slot.remember(lock.try_anew(under).await?))
    }

    fn slot(&self, layout: &Layout) -> Arc<Slot> {
        self.slots.lock().slot(layout)
    }

    /// As whom the owner writes what it is going to read, by a new hold of this lock.
    ///
    /// To be asked when the owner is known not to hold the lock itself: A writes, and has lost what it read beside
    /// that. Should it read anew as any other would, it would wait for its own claim to write.
    fn under(&self, layout: &Layout, now: Time) -> Result<Option<Under>, AcquireError> {
        let mut under = None;
        for hold in self.slots.lock().sharing_names(layout) {
            // A lost hold, whose guard is still out, is nothing that the owner has.
            if hold.is_valid(now) {
                under = under.or(beside(&hold, layout)?);
            }
        }
        Ok(under)
    }
}

/// Another acquisition of the owner has its turn.
fn contended(client: &Client, layout: &Layout, waits: Waits) -> AcquireError {
    let now = client.now();
    AcquireError::Contended {
        names: layout.title(),
        tried: now.since(waits.since.unwrap_or(now)),
        holder: Holder::ThisClient,
    }
}

/// Whether an owner that has this hold can acquire the layout as well; if it is to read what the hold writes, as whom.
fn beside(hold: &Hold, layout: &Layout) -> Result<Option<Under>, AcquireError> {
    let names = || layout.title();
    let (held, wanted) = (&hold.layout.parts, &layout.parts);
    if let ([held], [wanted]) = (&**held, &**wanted)
        && held.is_same_place(wanted)
    {
        match (held.mode, wanted.mode) {
            (Mode::Write, Mode::Read) => return Ok(Some(Under::new(hold.owner, hold.readers()))),
            (Mode::Read, Mode::Write) => return Err(AcquireError::Upgrade { names: names() }),
            _ => {}
        }
    }
    match hold.layout.common_name(layout) {
        None => Ok(None),
        Some(name) => {
            let held = name.to_string();
            Err(AcquireError::Overlap {
                names: names(),
                held,
            })
        }
    }
}

impl Slot {
    /// Enters the hold once more, if it is still held.
    async fn reenter(
        &self,
        client: &Arc<Client>,
        until: Time,
    ) -> Result<Option<Guard>, AcquireError> {
        let Some(hold) = self.live() else {
            return Ok(None);
        };
        let asked = client.now();
        match Guard::enter(client, &hold, until).await {
            Ok(guard) => Ok(Some(guard)),
            // The owner starts a new hold.
            Err(ConfirmError::Lost { .. } | ConfirmError::Config(_)) => Ok(None),
            Err(ConfirmError::TooManyEntries { names, most }) => {
                Err(AcquireError::TooManyEntries { names, most })
            }
            Err(ConfirmError::Unconfirmed { names, nodes }) => Err(AcquireError::NoQuorum {
                names,
                tried: client.now().since(asked),
                of: hold.layout.most_nodes(),
                nodes,
            }),
        }
    }

    /// Enters the hold once more, if it is still held; nodes that do not confirm that are asked again while the caller
    /// waits.
    async fn reenter_within(
        &self,
        client: &Arc<Client>,
        waits: Waits,
    ) -> Result<Option<Guard>, AcquireError> {
        let policy = &client.config.retry;
        let mut backoff = Backoff::new(policy.backoff, policy.backoff_cap);
        let mut timer = client.runtime.timer();
        let until = waits.until.unwrap_or(Time::NEVER);
        let mut failing_since = None;
        loop {
            let (names, took, of, nodes) = match self.reenter(client, until).await {
                Err(AcquireError::NoQuorum {
                    names,
                    tried,
                    of,
                    nodes,
                }) => (names, tried, of, nodes),
                other => return other,
            };
            let now = client.now();
            let began = *failing_since.get_or_insert(now - took);
            let give_up_at = policy.gives_up_at(waits.limit(), Some(began));
            if give_up_at <= now {
                let tried = now.since(waits.since.unwrap_or(began));
                return Err(AcquireError::NoQuorum {
                    names,
                    tried,
                    of,
                    nodes,
                });
            }
            let random = client.runtime.random();
            let again = now + backoff.next(random, took.saturating_mul(2));
            poll_fn(|cx| timer.poll_until(cx, again.min(give_up_at))).await;
        }
    }
}
