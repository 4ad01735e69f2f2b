//! What operators ask: who holds a name, and freeing it by force.

mod ask;
mod force;
mod inspect;

pub use force::{ForceReleaseError, ForceReleased, NodeForceRelease};
pub use inspect::{Inspection, NodeInspection, Summary};

use futures_util::future::join;
use quorlock_core::message::{ForceRelease, Inspect, Reply, Request};
use quorlock_core::name::Name;

use crate::error::ConfigError;
use crate::locks::Locks;

impl Locks {
    /// Looks who holds a name: node by node, and what that amounts to. Changes nothing.
    ///
    /// For people and their tools. It is a picture of the past: do not decide by it whether to work, acquire the lock
    /// for that. A node that cannot be read is part of the answer, not an error of it. Each is given as long as it is
    /// given in a round of a lock with the watchdog's lease.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks, Summary};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let guard = locks.lock("orders/42").acquire().await?;
    /// let inspection = locks.inspect("orders/42").await?;
    /// println!("{inspection}");
    /// let owner = guard.owner_id().to_string();
    /// assert_eq!(inspection.summary(), Summary::Held { owner, nodes: 1 });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConfigError::Name`] for a name that cannot be one.
    pub async fn inspect(&self, name: impl AsRef<str>) -> Result<Inspection, ConfigError> {
        let name = self.key(name)?;
        let request = Request::Inspect(Inspect { name: name.clone() });
        let nodes = ask::all(self, &request, |reply| match reply {
            Reply::Inspect(reply) => Some(reply),
            _ => None,
        });
        let (nodes, quarantines) = join(nodes, ask::about_themselves(self)).await;
        let nodes = nodes.into_iter().zip(quarantines);
        Ok(Inspection {
            name,
            needed: self.threshold().needed(),
            nodes: nodes
                .map(|((address, found), quarantine)| NodeInspection {
                    address,
                    found,
                    quarantine,
                })
                .collect(),
        })
    }

    /// Frees a name by force, whoever holds it: for a holder that is known to be gone, or to be stopped for good.
    ///
    /// **The holder is not asked, and is not told.** Its watchdog learns of it at its next renewal, within a third of
    /// its lease, and its guards are then lost ([`Lost::Taken`](crate::Lost::Taken)); a holder with an explicit lease
    /// asks nobody and learns nothing. Until then two may work at once, unless the resource compares
    /// [fencing tokens](crate::Guard::fencing_token): those keep growing, the counter stays.
    ///
    /// Locks of every mode are freed, readers all at once. Where the name has no holder, but a waiter stands in the queue of
    /// the fair lock, those at its head who are dead lose their places, or else the first, who then joins it again at the
    /// end if it lives: that frees a queue behind a dead waiter of a JVM. A key that is no lock stays as it is.
    ///
    /// # Errors
    /// [`ForceReleaseError::Unconfirmed`] when fewer nodes than a lock needs say that the name is free now: whoever
    /// held it may hold it still. It has the same report.
    ///
    /// # Cancel safety
    /// Dropped early, any of the nodes may or may not have freed the name.
    pub async fn force_release(
        &self,
        name: impl AsRef<str>,
    ) -> Result<ForceReleased, ForceReleaseError> {
        let name = self.key(name)?;
        let request = Request::ForceRelease(ForceRelease { name: name.clone() });
        let nodes = ask::all(self, &request, |reply| match reply {
            Reply::ForceRelease(reply) => Some(reply),
            _ => None,
        });
        let nodes = nodes.await.into_iter();
        let report = ForceReleased {
            name,
            needed: self.threshold().needed(),
            nodes: nodes
                .map(|(address, result)| NodeForceRelease { address, result })
                .collect(),
        };
        if report.is_free() {
            Ok(report)
        } else {
            Err(ForceReleaseError::Unconfirmed(report))
        }
    }

    fn key(&self, name: impl AsRef<str>) -> Result<Name, ConfigError> {
        let given = Name::new(name)?;
        Ok(self.client().config.key(&given)?)
    }
}
