//! A lock that can be acquired.

use std::sync::Arc;
use std::time::Duration;

use quorlock_core::acquisition::Patience;

use crate::error::{AcquireError, ConfigError, LeaseSource};
use crate::guard::Guard;
use crate::operation::acquire::Acquiring;
use crate::operation::attempt::{LockRequest, Waits};
use crate::operation::queue::Queues;
use crate::owner::identity::Identity;
use crate::shared::client::Client;
use crate::shared::layout::{Layout, MOST_NAMES};
use crate::shared::under::Under;

/// One lock, or several taken together. Cheap to clone, to be acquired any number of times.
///
/// Two acquisitions exclude each other, also through the same `Lock`, unless both go through one [`Owner`](crate::Owner).
#[derive(Clone, Debug)]
#[must_use]
pub struct Lock {
    client: Arc<Client>,
    /// Those who wait for locks of the client, each behind the others for the same.
    queues: Arc<Queues>,
    layout: Result<Arc<Layout>, ConfigError>,
    owner: Option<Arc<Identity>>,
    leasing: Leasing,
    wait: Option<Duration>,
    /// The other clients of its members. They watch their nodes for as long as it lives.
    others: Vec<Arc<Client>>,
}

/// What a lock is asked for, and who sees to it that it lasts.
#[derive(Clone, Copy, Debug)]
enum Leasing {
    /// The lease of the client's watchdog, which renews it.
    Watchdog,
    /// A lease of its own, which the watchdog renews.
    Renewed(Duration),
    /// A lease of its own, which nothing renews.
    Fixed(Duration),
}

impl Lock {
    /// No lock has more names than this. Each costs a request to each of its nodes, and all of them must be answered
    /// within the [member time-out](crate::LocksBuilder::member_timeout): thousands of names need a long lease.
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
            others: Vec::new(),
        }
    }

    /// Locks of several clients, in any modes, taken together: all of them or none. Lease, wait, owner, member time-out
    /// and retry policy are those of the first.
    ///
    /// Every client's other settings count for its own names: no lease is longer than the shortest
    /// [`longest_lease`](crate::LocksBuilder::longest_lease) among them, no hold lasts longer than the shortest
    /// [`max_hold`](crate::LocksBuilder::max_hold), and each one's nodes keep its token counters for as long as it says.
    /// When any of them is closed, the lock ends.
    ///
    /// A fair lock among them is asked for before the rest, and the others only when its turn has come: until then they
    /// are left to others, and the place in its queue stays. If another lock is held then, the fair one is given back,
    /// and with it the place; its queue is joined again, at the end, when that other lock is free. So a fair lock is
    /// not fair to those who want more than it, but to everybody else.
    ///
    /// # Errors
    /// [`ConfigError::NoNames`] without locks, [`ConfigError::Name`] for a name that cannot be one,
    /// [`ConfigError::TwoModes`] for one name in two modes, [`ConfigError::TooManyNames`] for more than
    /// [`Lock::MOST_NAMES`].
    pub fn all(locks: impl IntoIterator<Item = Lock>) -> Result<Lock, ConfigError> {
        let locks: Vec<Lock> = locks.into_iter().collect();
        let (mut parts, mut parties) = (Vec::new(), Vec::new());
        for lock in &locks {
            let layout = lock.layout.as_ref().map_err(ConfigError::clone)?;
            parts.extend(layout.parts.iter().cloned());
            parties.extend(layout.parties().cloned());
        }
        let client = &locks.first().ok_or(ConfigError::NoNames)?.client;
        let mut others: Vec<Arc<Client>> = Vec::new();
        for lock in &locks {
            for other in [&lock.client].into_iter().chain(&lock.others) {
                let is_new = !others.iter().any(|known| Arc::ptr_eq(known, other));
                if is_new && !Arc::ptr_eq(other, client) {
                    other.party.driven_by(client);
                    others.push(other.clone());
                }
            }
        }
        let layout = Ok(Layout::of(parts, parties)?);
        let first = locks.into_iter().next().ok_or(ConfigError::NoNames)?;
        Ok(Lock {
            layout,
            others,
            ..first
        })
    }

    /// Holds the lock for this long and no longer: without the watchdog. [`Guard::extend`] prolongs it.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.leasing = Leasing::Fixed(lease);
        self
    }

    /// Asks for this lease, which the watchdog renews every third of it.
    pub(crate) fn renewed_lease(mut self, lease: Duration) -> Self {
        self.leasing = Leasing::Renewed(lease);
        self
    }

    /// What is asked for.
    pub(crate) fn lease_length(&self) -> Duration {
        match self.leasing {
            Leasing::Watchdog => self.client.config.watchdog_lease.length(),
            Leasing::Renewed(length) | Leasing::Fixed(length) => length,
        }
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Waits for this long, also through an outage of the nodes; without it, for as long as others hold the lock, and where
    /// no quorum answers for [`RetryPolicy::without_quorum`](crate::RetryPolicy::without_quorum).
    ///
    /// What waiting cannot cure ends either at once: a login that is refused, missing rights, a key that is no lock, another
    /// [`longest_lease`](crate::LocksBuilder::longest_lease) of the deployment, where no quorum is left without the nodes
    /// that say so.
    pub fn wait(mut self, at_most: Duration) -> Self {
        self.wait = Some(at_most);
        self
    }

    /// Waits until the lock is ours.
    ///
    /// # Errors
    /// [`AcquireError::Contended`] when others hold it at the end of the wait, [`AcquireError::NoQuorum`] and
    /// [`AcquireError::TooSlow`] when the nodes do not answer well enough then, [`AcquireError::Refused`] when they refuse
    /// in a way that waiting does not cure. Nothing stays behind.
    ///
    /// # Cancel safety
    /// Dropped early, it leaves at most one clean-up to the background; a grant in flight passes to the next waiter of
    /// the process.
    ///
    /// Poll it or drop it. Of several waiters of the process for the same lock and lease one asks the nodes on behalf of
    /// all; if its future is woken and not polled, the next one goes on after 100 to 200 ms with what is in flight, and it
    /// begins at the end of the queue when it is polled again. What such a future was granted alone is given back when the
    /// same client is refused the lock, for another lease or mode or by a try. To other clients, and to locks of several names with this
    /// one among them, it is held until the future is polled or dropped, the client is closed, or the lease ends.
    pub async fn acquire(&self) -> Result<Guard, AcquireError> {
        match &self.owner {
            None => self.acquire_anew(None, self.waits()).await,
            Some(owner) => {
                let layout = self.layout()?;
                let waits = self.waits();
                let anew = |under| self.acquire_anew(under, waits);
                owner.acquire(&self.client, layout, waits, anew).await
            }
        }
    }

    /// Tries once. `None` says that others hold the lock: contention is an answer, not an error.
    ///
    /// # Errors
    /// As [`Lock::acquire`], after one round.
    ///
    /// # Cancel safety
    /// Dropped early, it leaves at most one clean-up to the background. Poll it or drop it: what nodes have granted to a
    /// future that is neither polled nor dropped stays until it is, until the client is closed, or until the lease ends.
    pub async fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        let guard = match &self.owner {
            None => self.try_anew(None).await,
            Some(owner) => {
                let layout = self.layout()?;
                let anew = |under| self.try_anew(under);
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

    /// How long an acquisition waits that begins now.
    fn waits(&self) -> Waits {
        self.wait.map_or(Waits::UNBOUNDED, |wait| {
            let now = self.client.now();
            Waits {
                since: Some(now),
                until: Some(now + wait),
            }
        })
    }

    /// A new hold; `under` is the writer of what the reader reads.
    fn acquire_anew(
        &self,
        under: Option<Under>,
        waits: Waits,
    ) -> impl Future<Output = Result<Guard, AcquireError>> {
        match self.wait {
            Some(Duration::ZERO) => self.hold(Patience::Try, under, Waits::UNBOUNDED),
            _ => self.hold(Patience::Wait, under, waits),
        }
    }

    fn try_anew(&self, under: Option<Under>) -> impl Future<Output = Result<Guard, AcquireError>> {
        self.hold(Patience::Try, under, Waits::UNBOUNDED)
    }

    async fn hold(
        &self,
        patience: Patience,
        under: Option<Under>,
        waits: Waits,
    ) -> Result<Guard, AcquireError> {
        if self.client.is_closed() {
            return Err(AcquireError::Closed);
        }
        let config = &self.client.config;
        let (of, lease) = match self.leasing {
            Leasing::Renewed(length) | Leasing::Fixed(length) => {
                (LeaseSource::Lock, config.lease(length)?)
            }
            Leasing::Watchdog => (LeaseSource::WatchdogLease, config.watchdog_lease),
        };
        let layout = self.layout()?.clone();
        if layout.is_closed() {
            return Err(AcquireError::Closed);
        }
        layout.check(of, lease)?;
        let wanted = LockRequest {
            layout,
            lease,
            member_timeout: config.member_timeout(lease),
            is_watched: !matches!(self.leasing, Leasing::Fixed(_)),
            patience,
            under,
        };
        let hold = Acquiring::new(self.client.clone(), self.queues.clone(), wanted, waits).await?;
        Ok(Guard::new(self.client.clone(), hold))
    }
}
