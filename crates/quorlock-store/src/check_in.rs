//! The lock and the data in one transaction: a commit that fails if the hold is gone.

use std::fmt;

use quorlock_core::marker::Process;
use quorlock_core::name::Name;
use quorlock_core::node::Held;
use quorlock_core::owner::OwnerId;
use quorlock_core::time::WallMillis;
use quorlock_core::transport::TransportError;

use crate::store::{Key, decode};

/// The claims of one hold, as a transaction checks them. `Guard::claims` returns them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claims {
    owner: OwnerId,
    /// In the order in which their records are locked. If A locked X and then Y, and B locked Y and then X, each would
    /// wait for the other.
    names: Vec<Name>,
    nodes: Nodes,
}

/// How many nodes each claim is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Nodes {
    One,
    Several,
}

impl Claims {
    /// Returns the claims of an owner on these names, with their prefix, each on one node alone.
    #[must_use]
    pub fn new(owner: OwnerId, names: impl IntoIterator<Item = Name>) -> Self {
        let mut names: Vec<Name> = names.into_iter().collect();
        names.sort_by(|a, b| a.stem().cmp(b.stem()));
        Claims {
            owner,
            names,
            nodes: Nodes::One,
        }
    }

    /// Returns the same claims on a majority of nodes, which no transaction can check.
    #[must_use]
    pub fn on_several_nodes(self) -> Self {
        Claims {
            nodes: Nodes::Several,
            ..self
        }
    }

    /// Returns the keys of the records, in the order in which a transaction locks them. It is for a database whose driver
    /// has no [`CheckIn`]; [`Claims::check`] comes next.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        self.names.iter().map(|name| Key::new(name.stem()))
    }

    /// Checks the claims in records that no other transaction can change before this one ends. `find` returns the record of
    /// a key, and `now` is the clock of the database.
    ///
    /// # Errors
    /// [`CheckInError::NotHeld`] for a claim that is over or another's, and what else is wrong.
    pub fn check<'r>(
        &self,
        now: WallMillis,
        find: impl Fn(&Key) -> Option<&'r [u8]>,
    ) -> Result<(), CheckInError> {
        if self.nodes == Nodes::Several {
            return Err(CheckInError::SeveralNodes);
        }
        for name in &self.names {
            let key = Key::new(name.stem());
            let record = find(&key).ok_or_else(|| CheckInError::not_held(name))?;
            let (record, _) = decode(&key, record).map_err(CheckInError::Failed)?;
            let stem = Name::new(name.stem()).expect("BUG: a stem is a name");
            // The process is of no interest: a claim that another server has forgotten is not in its record.
            let node = record.to_node(Process::default(), &stem);
            let is_ours = match node.held(now, name) {
                Some((Held::Plain { owner, .. }, _)) => owner == self.owner,
                Some((Held::ReadWrite(held), _)) => {
                    let writer = held.writer.map(|(owner, _)| owner);
                    let readers = node.readers(now, name);
                    let mut owners = writer.into_iter().chain(readers.iter().map(|it| it.0));
                    owners.any(|owner| owner == self.owner)
                }
                Some((Held::NotALock, _)) | None => false,
            };
            if !is_ours {
                return Err(CheckInError::not_held(name));
            }
        }
        Ok(())
    }
}

/// A transaction of a database that has the records of locks beside the data.
///
/// The check reads each claim under a lock of its row, until the transaction ends. So no other client can be granted the
/// name between the check and the commit. If the check fails, **the transaction cannot be committed any more**, also if
/// the error is ignored.
///
/// Check in last, just before the commit: a renewal of the hold waits for the row, and a transaction that is open for longer
/// than the lease loses it.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use quorlock::Locks;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("shop.db");
/// # let address = format!("sqlite:{}", path.display());
/// # Locks::init(&address).await?;
/// # let mut database = rusqlite::Connection::open(&path)?;
/// # database.execute_batch("CREATE TABLE stock (item, pieces); INSERT INTO stock VALUES (7, 3)")?;
/// let locks = Locks::connect(&address).await?;
/// let guard = locks.lock("stock/7").acquire().await?;
/// let mut sale = database.transaction()?;
/// sale.execute("UPDATE stock SET pieces = pieces - 1 WHERE item = 7", [])?;
/// guard.check_in(&mut sale)?; // with `.await` on PostgreSQL and MySQL
/// sale.commit()?;
/// guard.release().await?;
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "sqlite"))]
/// # fn main() {}
/// ```
pub trait CheckIn {
    /// The result: of a driver without async functions a [`Result`], otherwise a future of one.
    type Checked<'t>
    where
        Self: 't;

    /// Checks that the claims are those of the present holder.
    ///
    /// # Errors
    /// [`CheckInError`]. The transaction is rolled back.
    ///
    /// # Cancel safety
    /// If a future is dropped early, nothing was checked: drop the transaction, too.
    fn check_in(&mut self, claims: Claims) -> Self::Checked<'_>;
}

/// Why a transaction must not be committed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CheckInError {
    /// The hold is gone: its lease is over, or it was released, or another client has the name.
    NotHeld {
        /// The name, with its prefix.
        name: Name,
    },
    /// Another transaction came first. Run this one again.
    Conflict,
    /// The lock is on several nodes, whose majority no transaction can check. A lock on the database alone can be.
    SeveralNodes,
    /// The check could not be made.
    Failed(TransportError),
}

impl CheckInError {
    fn not_held(name: &Name) -> Self {
        CheckInError::NotHeld { name: name.clone() }
    }
}

impl fmt::Display for CheckInError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckInError::NotHeld { name } => write!(
                f,
                "{name}: the lock is not held any more in this database, so the transaction is rolled back: acquire it and begin again"
            ),
            CheckInError::Conflict => {
                f.write_str("another transaction came first: run this one again")
            }
            CheckInError::SeveralNodes => f.write_str(
                "the lock is on several nodes, whose majority no transaction can check: lock on the database alone",
            ),
            CheckInError::Failed(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl std::error::Error for CheckInError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CheckInError::Failed(error) => Some(error),
            _ => None,
        }
    }
}
