//! A lock that can be acquired.

mod adopt;

use std::sync::Arc;
use std::time::Duration;

use quorlock_core::acquisition::Patience;
use quorlock_core::lease::Lease;

use crate::error::{AcquireError, ConfigError, LeaseSource};
use crate::guard::Guard;
use crate::operation::acquire::Acquiring;
use crate::operation::attempt::{LockRequest, Waits};
use crate::operation::holders::add_holders;
use crate::operation::queue::{Queues, Sharing};
use crate::owner::identity::Identity;
use crate::shared::client::Client;
use crate::shared::layout::{Layout, MOST_NAMES};
use crate::shared::under::Under;

/// One lock, or several taken together. Cheap to clone; it can be acquired any number of times.
///
/// Two acquisitions exclude each other, even through the same `Lock`, unless both go through one
/// [`Owner`](crate::Owner).
#[derive(Clone, Debug)]
#[must_use]
pub struct Lock {
    client: Arc<Client>,
    /// The queues of waiters for the client's locks, one per lock and lease.
    queues: Arc<Queues>,
    layout: Result<Arc<Layout>, ConfigError>,
    owner: Option<Arc<Identity>>,
    leasing: Leasing,
    wait: Option<Duration>,
    least: Duration,
    /// Whether the holder is a leader.
    elects: bool,
    /// The other clients that have members of this lock. They keep watching their nodes while the lock exists.
    others: Vec<Arc<Client>>,
}

/// The lease that a lock requests, and whether it is renewed.
#[derive(Clone, Copy, Debug)]
enum Leasing {
    /// The watchdog's lease, which the watchdog renews.
    Watchdog,
    /// An explicit lease, which the watchdog renews.
    Renewed(Duration),
    /// An explicit lease, which is not renewed.
    Fixed(Duration),
}

impl Lock {
    /// The largest number of names in one lock.
    ///
    /// Each name costs a request to each of its nodes, and all of them must be answered within the [member
    /// time-out](crate::LocksBuilder::member_timeout): thousands of names need a long lease.
    pub const MOST_NAMES: usize = MOST_NAMES;

    pub(crate) fn new(
        client: Arc<Client>,
        queues: Arc<Queues>,
        layout: Result<Arc<Layout>, ConfigError>,
        owner: Option<Arc<Identity>>,
    ) -> Self {
        Lock {
            client,
            queues,
            layout,
            owner,
            leasing: Leasing::Watchdog,
            wait: None,
            least: Duration::ZERO,
            elects: false,
            others: Vec::new(),
        }
    }

    /// Makes this the lock of candidates for a leadership.
    pub(crate) fn electing(self) -> Self {
        Lock {
            elects: true,
            ..self
        }
    }

    /// Returns a lock that takes other locks together with this one, in any modes and of any clients: all of them or
    /// none.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # let (orders, stock) = (Locks::on_node(EmbeddedNode::new())?, Locks::on_node(EmbeddedNode::new())?);
    /// let both = orders.lock("42").and([stock.read("7")]);
    /// let guard = both.acquire().await?;
    /// # guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Lease, wait, owner, member time-out and retry policy are those of this lock. Each client's other settings
    /// apply to its own names: no lease is longer than the shortest
    /// [`longest_lease`](crate::LocksBuilder::longest_lease) among them, no hold lasts longer than the shortest
    /// [`max_hold`](crate::LocksBuilder::max_hold), and each client's nodes keep token counters for its
    /// [`token_retention`](crate::LocksBuilder::token_retention). Closing any of the clients ends the lock.
    ///
    /// A fair lock among them is requested first, and the other locks when its turn has come. Until then other
    /// clients can acquire those locks, while the place in the queue is kept. If one of them is then held, the fair
    /// lock is released together with its place, and its queue is joined again, at the end, when that other lock is
    /// free. So the fair lock is fair to clients that want this lock alone, but not to clients that combine it with
    /// others.
    ///
    /// One name in two modes, and more than [`Lock::MOST_NAMES`] names, are errors [when the lock is
    /// acquired](crate::Locks#names), as invalid names are.
    pub fn and(mut self, others: impl IntoIterator<Item = Lock>) -> Lock {
        let (mut parts, mut parties) = (Vec::new(), Vec::new());
        let mut layout = self.layout.map(|own| {
            parts.extend(own.parts.iter().cloned());
            parties.extend(own.parties().cloned());
        });
        for lock in others {
            // The first error of a name is the one that is returned.
            layout = layout.and_then(|()| {
                let its = lock.layout?;
                parts.extend(its.parts.iter().cloned());
                parties.extend(its.parties().cloned());
                Ok(())
            });
            for other in [lock.client].into_iter().chain(lock.others) {
                let is_new = !self.others.iter().any(|known| Arc::ptr_eq(known, &other));
                if is_new && !Arc::ptr_eq(&other, &self.client) {
                    other.party.used_by(&self.client);
                    self.others.push(other);
                }
            }
        }
        Lock {
            layout: layout.and_then(|()| Layout::of(parts, parties)),
            ..self
        }
    }

    /// Sets a fixed lease: the watchdog does not renew it, and the lock is lost at its end unless [`Guard::extend`]
    /// prolongs it.
    ///
    /// For another length of a lease that is renewed, see [`Lock::watchdog_lease`]. The later of the two calls counts.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks, Lost};
    /// # use std::time::Duration;
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let lock = locks.lock("orders/42").lease(Duration::from_millis(50));
    /// let guard = lock.acquire().await?;
    /// assert_eq!(guard.lost().await, Lost::Expired); // nothing renews it
    /// # Ok(())
    /// # }
    /// ```
    pub fn lease(mut self, lease: Duration) -> Self {
        self.leasing = Leasing::Fixed(lease);
        self
    }

    /// Sets the length of a lease that the watchdog renews after every third of it. Default:
    /// [`LocksBuilder::watchdog_lease`](crate::LocksBuilder::watchdog_lease), 30 s.
    ///
    /// With a shorter one the name is free sooner after its holder died, and with a longer one the holder survives a
    /// longer outage of the nodes. At most [`LocksBuilder::longest_lease`](crate::LocksBuilder::longest_lease).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # use std::time::Duration;
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let five = Duration::from_secs(5);
    /// let renewed = locks.lock("orders/42").watchdog_lease(five).acquire().await?; // held until it is released
    /// let fixed = locks.lock("orders/43").lease(five).acquire().await?; // held for five seconds at most
    /// # renewed.release().await?;
    /// # fixed.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn watchdog_lease(mut self, lease: Duration) -> Self {
        self.leasing = Leasing::Renewed(lease);
        self
    }

    /// The lease that this lock requests.
    pub(crate) fn lease_length(&self) -> Duration {
        match self.leasing {
            Leasing::Watchdog => self.client.config.watchdog_lease.length(),
            Leasing::Renewed(length) | Leasing::Fixed(length) => length,
        }
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Sets how long an acquisition waits, including during an outage of the nodes.
    ///
    /// Without it an acquisition waits for as long as others hold the lock. While no quorum answers, it gives up after
    /// [`RetryPolicy::without_quorum`](crate::RetryPolicy::without_quorum).
    ///
    /// Failures that waiting cannot cure end either wait immediately if too few other nodes are left for a quorum.
    /// Examples are a refused login, missing permissions, a key that is not a lock, and another
    /// [`longest_lease`](crate::LocksBuilder::longest_lease) in the deployment.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{AcquireError, EmbeddedNode, Locks};
    /// # use std::time::Duration;
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let lock = locks.lock("orders/42").wait(Duration::from_millis(20));
    /// let guard = lock.acquire().await?;
    /// let other = lock.acquire().await; // waits for 20 ms
    /// assert!(matches!(other, Err(AcquireError::Contended { .. })));
    /// # guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(mut self, at_most: Duration) -> Self {
        self.wait = Some(at_most);
        self
    }

    /// Sets how long the lock stays locked from its grant on, even if it is released earlier. Default: zero.
    ///
    /// Several instances of a service start the same job at the same time, such as once a minute. The first one that gets the
    /// lock runs the job. Without this, a short job would be over before an instance whose clock is a little late tries, and it
    /// would run again:
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # use std::time::Duration;
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let tick = locks.lock("jobs/report").at_least(Duration::from_secs(20));
    /// if let Some(guard) = tick.try_acquire().await? {
    ///     // the job
    ///     guard.release().await?; // the name is free twenty seconds after it was granted
    /// }
    /// assert!(tick.try_acquire().await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Releasing or dropping a guard before then returns at once, and the client releases the lock in time. If the process ends
    /// before, or the client is [closed](crate::Locks::close), the lock is free when its lease ends. So it must not be longer than
    /// the lease ([`ConfigError::AtLeast`]).
    ///
    /// An [`Owner`](crate::Owner) can enter its lock again in that time.
    pub fn at_least(mut self, least: Duration) -> Self {
        self.least = least;
        self
    }

    /// Acquires the lock, waiting until it is free.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let guard = locks.lock("orders/42").acquire().await?;
    /// // the work
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`AcquireError::Contended`] if others hold it at the end of the wait. [`AcquireError::NoQuorum`] and
    /// [`AcquireError::TooSlow`] if too few nodes have answered by then, or have answered too slowly.
    /// [`AcquireError::Refused`] if nodes refuse in a way that waiting does not cure. No claim is left behind.
    ///
    /// # Cancel safety
    /// If the future is dropped early, at most one clean-up continues in the background. A grant in flight passes to
    /// the next waiter of the process.
    ///
    /// Poll the future or drop it. Of several waiters of the process for the same lock and lease, one sends the
    /// requests on behalf of all. If its future is woken and not polled, the next waiter takes over the requests in
    /// flight after 100 to 200 ms, and the first starts at the end of the queue when it is polled again. If it was
    /// the only waiter, its grants are released when another acquisition of the same client is refused the lock:
    /// one with another lease or mode, or a `try_acquire`. Other clients, and locks of several names that include
    /// this one, find it held until the future is polled or dropped, the client is closed, or the lease ends.
    pub async fn acquire(&self) -> Result<Guard, AcquireError> {
        let waits = self.waits();
        let won = self.enter(waits, |under| self.acquire_anew(under, waits));
        match won.await {
            Err(error) => {
                let layouts = self.layout.as_ref().map_or(&[][..], std::slice::from_ref);
                Err(Box::pin(add_holders(&self.client, layouts, waits, error)).await)
            }
            guard => guard,
        }
    }

    /// Enters the hold of the owner, or acquires a new one through `anew`.
    pub(crate) async fn enter<F>(
        &self,
        waits: Waits,
        anew: impl Fn(Option<Under>) -> F,
    ) -> Result<Guard, AcquireError>
    where
        F: Future<Output = Result<Guard, AcquireError>>,
    {
        match &self.owner {
            None => anew(None).await,
            Some(owner) => {
                let layout = self.layout()?;
                owner.acquire(&self.client, layout, waits, anew).await
            }
        }
    }

    /// Tries to acquire the lock once. Returns `None` if others hold it: contention is an answer, not an error.
    ///
    /// Of several nodes, those that try at the same moment may each get some and none a majority. They try a second time, and
    /// ask the first node before the rest, so that one of them gets the lock.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// match locks.lock("orders/42").try_acquire().await? {
    ///     Some(guard) => guard.release().await?, // after the work
    ///     None => println!("others work on it"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Lock::acquire`], after one round, or two.
    ///
    /// # Cancel safety
    /// If the future is dropped early, at most one clean-up continues in the background. Poll the future or drop it:
    /// what nodes granted to a future that is neither polled nor dropped stays claimed until the client is closed or
    /// the lease ends.
    pub async fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        let anew = |under| self.hold(self.layout(), Patience::Try, under, Waits::UNBOUNDED);
        self.try_enter(anew).await
    }

    /// Like [`Lock::enter`], without waiting; `None` if others hold the lock.
    pub(crate) async fn try_enter<F>(
        &self,
        anew: impl FnOnce(Option<Under>) -> F,
    ) -> Result<Option<Guard>, AcquireError>
    where
        F: Future<Output = Result<Guard, AcquireError>>,
    {
        let guard = match &self.owner {
            None => anew(None).await,
            Some(owner) => {
                let layout = self.layout()?;
                owner.try_acquire(&self.client, layout, anew).await
            }
        };
        match guard {
            Ok(guard) => Ok(Some(guard)),
            Err(AcquireError::Contended { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn layout(&self) -> Result<&Arc<Layout>, ConfigError> {
        self.layout.as_ref().map_err(ConfigError::clone)
    }

    /// Whether an acquisition does not wait, because the time that it may wait is zero.
    pub(crate) fn is_impatient(&self) -> bool {
        self.wait == Some(Duration::ZERO)
    }

    /// The time span of an acquisition that begins now.
    pub(crate) fn waits(&self) -> Waits {
        self.wait.map_or(Waits::UNBOUNDED, |wait| {
            let now = self.client.now();
            Waits {
                since: Some(now),
                until: Some(now + wait),
            }
        })
    }

    /// Acquires a new hold. `under` is the owner's write hold, if the new hold is a read hold beside it.
    fn acquire_anew(
        &self,
        under: Option<Under>,
        waits: Waits,
    ) -> impl Future<Output = Result<Guard, AcquireError>> {
        match self.is_impatient() {
            true => self.hold(self.layout(), Patience::Try, under, Waits::UNBOUNDED),
            false => self.hold(self.layout(), Patience::Wait, under, waits),
        }
    }

    /// Returns the lease that is requested, and the setting that it comes from.
    fn lease_of(&self) -> Result<(LeaseSource, Lease), ConfigError> {
        let config = &self.client.config;
        Ok(match self.leasing {
            Leasing::Renewed(length) | Leasing::Fixed(length) => {
                (LeaseSource::Lock, config.lease(length)?)
            }
            Leasing::Watchdog => (LeaseSource::WatchdogLease, config.watchdog_lease),
        })
    }

    fn is_watched(&self) -> bool {
        !matches!(self.leasing, Leasing::Fixed(_))
    }

    /// Whether other acquisitions of the process wait for this layout with the same lease.
    pub(crate) fn is_waited_for(&self, layout: &Layout) -> bool {
        self.lease_of().is_ok_and(|(_, lease)| {
            let (key, is_watched) = (layout.key.clone(), self.is_watched());
            self.queues
                .has_asked((key, lease, is_watched, Sharing::All))
        })
    }

    /// Acquires a new hold of this layout with the settings of the lock.
    pub(crate) async fn hold(
        &self,
        layout: Result<&Arc<Layout>, ConfigError>,
        patience: Patience,
        under: Option<Under>,
        waits: Waits,
    ) -> Result<Guard, AcquireError> {
        let wanted = self.request(layout?.clone(), patience, under)?;
        self.won(wanted, waits).await
    }

    async fn won(&self, wanted: LockRequest, waits: Waits) -> Result<Guard, AcquireError> {
        let hold = Acquiring::new(self.client.clone(), self.queues.clone(), wanted, waits).await?;
        if self.elects {
            hold.stay_here();
        }
        let guard = Guard::new(self.client.clone(), hold);
        Ok(guard.at_least(self.least))
    }

    /// Returns the request for a hold of this layout with the settings of the lock.
    fn request(
        &self,
        layout: Arc<Layout>,
        patience: Patience,
        under: Option<Under>,
    ) -> Result<LockRequest, AcquireError> {
        if self.client.is_closed() {
            return Err(AcquireError::Closed);
        }
        let (of, lease) = self.lease_of()?;
        if layout.is_closed() {
            return Err(AcquireError::Closed);
        }
        layout.check(of, lease)?;
        if lease.length() < self.least {
            return Err(ConfigError::AtLeast {
                least: self.least,
                lease: lease.length(),
            }
            .into());
        }
        Ok(LockRequest {
            layout,
            lease,
            member_timeout: self.client.config.member_timeout(lease),
            is_watched: self.is_watched(),
            patience,
            under,
            continues: None,
            elects: self.elects,
        })
    }
}
