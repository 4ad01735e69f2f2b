//! A semaphore: a number of permits, each of which is a lock.

mod look;
mod names;
mod refusals;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use quorlock_core::acquisition::Patience;

use self::look::{Seen, look};
pub(crate) use self::names::PermitNames;
use self::refusals::Refusals;
use crate::error::{AcquireError, ConfigError};
use crate::guard::Guard;
use crate::lock::Lock;
use crate::mutex::Mutex;
use crate::operation::attempt::Waits;
use crate::operation::holders::add_holders;
use crate::shared::layout::Layout;

/// A number of permits under one name, each of which can have one holder. See
/// [`Locks::semaphore`](crate::Locks::semaphore).
///
/// Cheap to clone. Make it once and clone it: making it prepares every permit, and clones remember which one was free.
///
/// Every permit is a [`Lock`] of its own, and its guard is that lock's: it is renewed and can be lost, its token counts the
/// holds of this permit alone, and [`Guard::names`] says which one it is. While guards report that they are held, there are
/// at most as many as permits, under the same assumptions as for a lock.
///
/// # Names
/// The permits of `printers` are the locks `{printers}:permit:0`, `{printers}:permit:1` and so on, for
/// [`Locks::inspect`](crate::Locks::inspect) and [`Locks::force_release`](crate::Locks::force_release). With the braces a
/// cluster stores them all on one server. A name with a hash tag keeps it: those of `{eu}/printers` are
/// `{eu}/printers:permit:0` and so on. (A name that is in braces as a whole gets a second pair, so that `printers` and
/// `{printers}` are two semaphores.) On a majority of shards, where names have no tags, they are `printers:permit:0` and so
/// on. A name that is too long for this is [`ConfigError::SemaphoreName`] when a permit is acquired.
///
/// # The number of permits
/// The number belongs to each client, and no node stores it: a client with `n` permits acquires those from 0 to `n - 1`. A
/// larger number counts at once. After it was lowered, holders of the other permits keep them until they release them. While
/// clients with different numbers run, there are at most as many holders as the largest number says.
#[derive(Clone, Debug)]
#[must_use]
pub struct Semaphore {
    /// The settings of every permit. An owner remembers the permit that it holds under the name of this lock, which is never
    /// acquired.
    lock: Lock,
    permits: Arc<Permits>,
}

/// What the clones of a semaphore share.
#[derive(Debug)]
struct Permits {
    names: PermitNames,
    layouts: Result<Box<[Arc<Layout>]>, ConfigError>,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// The permit that was acquired last. It is likely to be free again when the next acquisition begins.
    last: Option<usize>,
    /// Whether an acquisition that will wait is looking for a free permit.
    is_looking: bool,
}

/// The largest number of holds through which an acquisition looks for the permits that its client holds.
const MOST_LOOKED_THROUGH: usize = 1_000;

/// The largest number of permits that an acquisition tries one after another before it waits for all of them at once.
const FEW: usize = 3;

impl Semaphore {
    /// The largest number of permits. A waiter asks for each of them.
    pub const MOST_PERMITS: usize = names::MOST_PERMITS;

    /// `lock` has the settings, `layouts` are those of the permits.
    pub(crate) fn new(
        lock: Lock,
        names: PermitNames,
        layouts: Result<Box<[Arc<Layout>]>, ConfigError>,
    ) -> Self {
        Semaphore {
            lock,
            permits: Arc::new(Permits {
                names,
                layouts,
                memory: Mutex::default(),
            }),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.permits.names.given
    }

    /// Returns the number of permits.
    #[must_use]
    pub fn permits(&self) -> usize {
        self.permits.names.permits
    }

    /// Sets a fixed lease, which is not renewed. See [`Lock::lease`].
    pub fn lease(self, lease: Duration) -> Self {
        let lock = self.lock.lease(lease);
        Semaphore { lock, ..self }
    }

    /// Sets the length of a lease that the watchdog renews. See [`Lock::watchdog_lease`].
    pub fn watchdog_lease(self, lease: Duration) -> Self {
        let lock = self.lock.watchdog_lease(lease);
        Semaphore { lock, ..self }
    }

    /// Sets how long an acquisition waits. See [`Lock::wait`].
    pub fn wait(self, at_most: Duration) -> Self {
        let lock = self.lock.wait(at_most);
        Semaphore { lock, ..self }
    }

    /// Sets how long a permit stays taken from its grant on. See [`Lock::at_least`].
    pub fn at_least(self, least: Duration) -> Self {
        let lock = self.lock.at_least(least);
        Semaphore { lock, ..self }
    }

    /// Acquires a permit, waiting until one is free.
    ///
    /// Waiters of one process are served in the order in which they began to wait, if they request the same lease. Waiters of
    /// different processes have no order.
    ///
    /// # Errors
    /// Those of [`Lock::acquire`]; [`AcquireError::Contended`] if all permits are held at the end of the wait.
    ///
    /// # Cancel safety
    /// That of [`Lock::acquire`], for every permit.
    pub async fn acquire(&self) -> Result<Guard, AcquireError> {
        let waits = self.lock.waits();
        match self.lock.enter(waits, |_| self.any(waits)).await {
            Err(error) => {
                let error = self.permits.names.tell(error);
                let layouts = self.permits.layouts.as_deref().unwrap_or_default();
                Err(Box::pin(add_holders(self.lock.client(), layouts, waits, error)).await)
            }
            guard => guard,
        }
    }

    /// Tries to acquire a permit. Returns `None` if all of them are held: each one was refused, or was held when the nodes
    /// were asked for its holder.
    ///
    /// # Errors
    /// Those of [`Lock::try_acquire`].
    ///
    /// # Cancel safety
    /// That of [`Lock::try_acquire`].
    pub async fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        let anew = |_| self.try_any(Waits::UNBOUNDED, Search::Whole);
        let guard = self.lock.try_enter(anew).await;
        guard.map_err(|error| self.permits.names.tell(error))
    }

    fn layouts(&self) -> Result<&[Arc<Layout>], ConfigError> {
        let layouts = self.permits.layouts.as_deref();
        layouts.map_err(ConfigError::clone)
    }

    /// Acquires any permit.
    async fn any(&self, waits: Waits) -> Result<Guard, AcquireError> {
        if self.lock.is_impatient() {
            return self.try_any(Waits::UNBOUNDED, Search::Whole).await;
        }
        if !self.has_to_queue()? {
            let tried = self.try_any(waits, Search::Brief).await;
            let is_late = waits
                .until
                .is_some_and(|until| until <= self.lock.client().now());
            if tried.is_ok() || is_late {
                return tried;
            }
            // Nodes that do not answer now may answer during the wait, and what waiting does not cure ends it at once.
        }
        self.wait_for_any(waits).await
    }

    /// Whether others have waited for longer.
    ///
    /// Suppose A releases and acquires again in a loop, and a try may overtake those who wait. A's try reaches the node before
    /// waiter B has the message of A's release, every time. B is in A's process, or in another one whose listening the release
    /// has shown.
    fn has_to_queue(&self) -> Result<bool, ConfigError> {
        let layouts = self.layouts()?;
        // Each waiter waits for every permit, except for those that can never be granted.
        let mut all = layouts.iter();
        let client = self.lock.client();
        let contended = client.keeper.contended();
        let mut keys = layouts.iter().map(|layout| &layout.key);
        Ok(all.any(|layout| self.lock.is_waited_for(layout))
            || contended.is_letting_pass(client.now(), &mut keys))
    }

    /// Tries a permit that is likely to be free, and then those that the nodes show as free.
    async fn try_any(&self, waits: Waits, search: Search) -> Result<Guard, AcquireError> {
        let began = self.lock.client().now();
        let layouts = self.layouts()?;
        let mut refusals = Refusals::default();
        if let Some(likely) = self.likely(layouts) {
            match self.hold(likely, Patience::Try, waits).await {
                Err(error) => refusals.add(error)?,
                guard => return guard,
            }
        }
        let seen = match search {
            Search::Whole => look(self.lock.client(), layouts, waits).await,
            Search::Brief => self.look_alone(layouts, waits).await,
        };
        let unknown = match refusals.is_of_all() {
            true => &[],
            false => seen.unknown.as_slice(),
        };
        refusals.see(&seen);
        for &permit in seen.free.iter().chain(unknown) {
            match self.hold(permit, Patience::Try, waits).await {
                Err(error) => refusals.add(error)?,
                guard => return guard,
            }
        }
        Err(refusals.error(&self.permits.names, self.lock.client().now().since(began)))
    }

    /// Looks for a few free permits, but sees nothing while another acquisition is looking, which suffices for all.
    ///
    /// If 5,000 tasks came at once for 1,000 permits, 4,000 would be refused at once, and would look at 4,000,000 permits.
    async fn look_alone(&self, layouts: &[Arc<Layout>], waits: Waits) -> Seen {
        let is_looking = {
            let mut memory = self.permits.memory.lock();
            std::mem::replace(&mut memory.is_looking, true)
        };
        if is_looking {
            return Seen::default();
        }
        let _looking = Looking(&self.permits);
        let mut seen = look(self.lock.client(), layouts, waits).await;
        seen.free.truncate(FEW);
        seen.unknown.clear();
        seen
    }

    /// Returns a permit that this client does not hold: the last one that it had, or a random one.
    fn likely(&self, layouts: &[Arc<Layout>]) -> Option<usize> {
        let client = self.lock.client();
        let held = match client.keeper.len() <= MOST_LOOKED_THROUGH {
            true => client.keeper.held_keys(),
            false => Default::default(),
        };
        let is_free = |layout: &Arc<Layout>| !held.contains(&layout.key);
        // Taken, so that of tasks that come at once only one tries it.
        let last = self.permits.memory.lock().last.take();
        if let Some(last) = last
            && layouts.get(last).is_some_and(is_free)
        {
            return Some(last);
        }
        let free = layouts.iter().enumerate();
        let free = free.filter(|(_, layout)| is_free(layout));
        let free: Vec<usize> = free.map(|(permit, _)| permit).collect();
        let many = u64::try_from(free.len()).ok().filter(|many| 0 < *many)?;
        let chosen = usize::try_from(client.runtime.random() % many).ok()?;
        free.get(chosen).copied()
    }

    /// Waits for all permits at once, and ends with the first that is granted.
    ///
    /// A waiter is in the queue of each permit. Those of one process are in the same order in all of them, so that the first one
    /// requests on behalf of all. What else it is granted passes to the next one, because it leaves all queues when it ends. (If
    /// two join at the same moment on two threads, one may be in front here and the other there: each requests at some permits.)
    async fn wait_for_any(&self, waits: Waits) -> Result<Guard, AcquireError> {
        let began = waits.since.unwrap_or(self.lock.client().now());
        let permits = 0..self.layouts()?.len();
        let mut waiting: FuturesUnordered<_> = permits
            .map(|permit| self.hold(permit, Patience::Wait, waits))
            .collect();
        let mut refusals = Refusals::default();
        // Stop at the first guard: those that were granted at the same moment must not be taken out of their queues.
        while let Some(ended) = waiting.next().await {
            match ended {
                Err(error) => refusals.add(error)?,
                guard => return guard,
            }
        }
        Err(refusals.error(&self.permits.names, self.lock.client().now().since(began)))
    }

    async fn hold(
        &self,
        permit: usize,
        patience: Patience,
        waits: Waits,
    ) -> Result<Guard, AcquireError> {
        let layouts = self.layouts()?;
        let layout = layouts
            .get(permit)
            .expect("BUG: a permit that is not there");
        let guard = self.lock.hold(Ok(layout), patience, None, waits).await?;
        self.permits.memory.lock().last = Some(permit);
        Ok(guard)
    }
}

/// How many permits are tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    /// All that may be free: the answer is final.
    Whole,
    /// A few: if none is granted, the acquisition waits.
    Brief,
}

/// An acquisition that is looking, until it is dropped.
struct Looking<'a>(&'a Permits);

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        self.0.memory.lock().is_looking = false;
    }
}
