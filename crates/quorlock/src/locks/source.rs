//! The source of one client's locks, either for a given owner or with a new owner for each acquisition.

use std::sync::Arc;

use quorlock_core::message::Mode;
use quorlock_core::name::Name;
use quorlock_core::quorum::Threshold;

use crate::error::ConfigError;
use crate::lock::Lock;
use crate::operation::queue::Queues;
use crate::owner::identity::Identity;
use crate::semaphore::{PermitNames, Semaphore};
use crate::shared::client::Client;
use crate::shared::layout::{Layout, Node, Part};
use crate::ticket::Ticket;

/// What all locks of a client have in common, and the owner that acquires them.
#[derive(Clone, Debug)]
pub(crate) struct LockSource {
    client: Arc<Client>,
    queues: Arc<Queues>,
    nodes: Arc<[Node]>,
    threshold: Threshold,
    /// The owner of every lock, or `None` if each acquisition gets a new one.
    owner: Option<Arc<Identity>>,
}

impl LockSource {
    /// Creates a source of locks whose acquisitions each get a new owner.
    pub(crate) fn new(
        client: Arc<Client>,
        queues: Arc<Queues>,
        nodes: Arc<[Node]>,
        threshold: Threshold,
    ) -> Self {
        LockSource {
            client,
            queues,
            nodes,
            threshold,
            owner: None,
        }
    }

    /// Creates a source of the same locks for this owner.
    pub(crate) fn of_owner(&self, owner: Arc<Identity>) -> Self {
        LockSource {
            owner: Some(owner),
            ..self.clone()
        }
    }

    /// Returns a lock of one name.
    pub(crate) fn one(&self, mode: Mode, name: impl AsRef<[u8]>) -> Lock {
        self.lock_of(self.layout(mode, [name]))
    }

    /// Returns a lock of several plain names taken together.
    pub(crate) fn all<N: AsRef<[u8]>>(&self, names: impl IntoIterator<Item = N>) -> Lock {
        self.lock_of(self.layout(Mode::Plain, names))
    }

    /// Returns the lock that this ticket is for.
    ///
    /// # Errors
    /// [`ConfigError`] if this client cannot have such a lock.
    pub(crate) fn continued(&self, ticket: &Ticket) -> Result<Lock, ConfigError> {
        let parts = ticket.parts.iter();
        let parts = parts.map(|part| self.part(part.mode, &part.name));
        let layout = Layout::of(parts.collect::<Result<_, _>>()?, Vec::new())?;
        let lock = self.lock_of(Ok(layout));
        let lease = ticket.lease.length();
        Ok(match ticket.is_watched {
            true => lock.watchdog_lease(lease),
            false => lock.lease(lease),
        })
    }

    /// Returns a semaphore with permits that are plain locks.
    pub(crate) fn semaphore(&self, name: impl AsRef<[u8]>, permits: usize) -> Semaphore {
        let mut names = PermitNames::new(name, permits);
        // A cluster in a majority stores all names under tags of the client, and refuses those with a tag of their own. All its
        // clients do the same here, because they have the same nodes.
        if let Ok(base) = Name::new(names.base())
            && matches!(self.key(&base), Err(ConfigError::UnfitName { .. }))
        {
            names = names.without_tag();
        }
        let all = names.all(self.client.config.prefix_len());
        let layouts =
            all.and_then(|all| all.map(|name| self.layout(Mode::Plain, [name])).collect());
        let own = self.layout(Mode::Plain, [names.base()]);
        let own = self.lock_of(own.map(Layout::of_a_semaphore));
        Semaphore::new(own, names, layouts)
    }

    /// Returns the lock with this layout. A lock that cannot be is an error when it is acquired.
    fn lock_of(&self, layout: Result<Arc<Layout>, ConfigError>) -> Lock {
        let (client, queues) = (self.client.clone(), self.queues.clone());
        Lock::new(client, queues, layout, self.owner.clone())
    }

    fn layout<N: AsRef<[u8]>>(
        &self,
        mode: Mode,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Arc<Layout>, ConfigError> {
        let names = names.into_iter();
        let mut parts = Vec::with_capacity(names.size_hint().0);
        for name in names {
            parts.push(self.part(mode, &Name::new(name)?)?);
        }
        Layout::of(parts, Vec::new())
    }

    fn part(&self, mode: Mode, given: &Name) -> Result<Part, ConfigError> {
        if mode == Mode::Fair && 1 < self.nodes.len() {
            let name = given.to_string();
            return Err(ConfigError::FairQuorum { name });
        }
        Ok(Part {
            name: self.key(given)?,
            given: given.clone(),
            mode,
            nodes: self.nodes.clone(),
            threshold: self.threshold,
        })
    }

    /// Returns the key under which the nodes store a name.
    ///
    /// # Errors
    /// [`ConfigError`] if the key is invalid, or if a node cannot store it.
    pub(crate) fn key(&self, given: &Name) -> Result<Name, ConfigError> {
        let key = self.client.config.key(given)?;
        for node in self.nodes.iter() {
            node.slot(&key).map_err(|error| ConfigError::UnfitName {
                address: node.address().to_owned(),
                error,
            })?;
        }
        Ok(key)
    }

    #[cfg(test)]
    pub(crate) fn owner(&self) -> Option<&Identity> {
        self.owner.as_deref()
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn threshold(&self) -> Threshold {
        self.threshold
    }
}
