//! Lock algorithms of your own, beside those of this crate in every command.
//!
//! An algorithm says how one attempt is made, how a hold is renewed and released, and until when the client may rely on it. The
//! laboratory has clients wait and try again, renews what the watchdog must renew, and releases guards that are dropped. The page
//! "Your own algorithm in the matrix" has an example; [`LeaseRecord`] is another one.

mod guard;
mod lease_record;
mod lock;
mod registry;
mod server_name;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

pub use guard::AlgorithmGuard;
pub use lease_record::LeaseRecord;
pub use lock::OwnLock;
pub use quorlock::runtime::Time;
pub use quorlock::{Name, OwnerId};
pub use quorlock_sim_plan::property::Property;
pub use quorlock_sim_plan::variant::{AlgorithmNodes, RegisterError};
pub use registry::register;
pub(crate) use registry::{named, registered};
pub use server_name::{Claimed, ServerName};

pub use crate::model::LockClient;

/// A future on the thread of a run.
pub type Step<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A lock algorithm.
pub trait LockAlgorithm: fmt::Debug + Send + Sync {
    /// Returns its name in plans, and in the column of the matrix: lower-case letters, digits and hyphens.
    fn name(&self) -> &'static str;

    /// Returns a description of one line.
    fn title(&self) -> &'static str;

    /// Returns the nodes that it uses.
    fn nodes(&self) -> AlgorithmNodes;

    /// Returns whether it claims that a property, exclusion or fencing, never breaks under a class of fault of the matrix. A claim
    /// that breaks ends the command with exit code 2. The default claims nothing.
    fn claims(&self, property: Property, class: &str) -> bool {
        let _ = (property, class);
        false
    }

    /// Creates the lock of a name in a client process.
    fn lock(&self, client: Rc<LockClient>, name: Name) -> Rc<dyn AlgorithmLock>;
}

/// The lock of one name in one client process.
pub trait AlgorithmLock: fmt::Debug {
    /// Makes one attempt to acquire the name for a lease.
    fn attempt(&self, lease: Duration) -> Step<'_, Attempt>;
}

/// The outcome of an attempt.
#[derive(Debug)]
pub enum Attempt {
    /// The client holds the name.
    Won(Rc<dyn AlgorithmHold>),
    /// Another client holds the name, for about this long if that is known.
    Refused(Option<Duration>),
    /// Too few nodes have answered.
    Failed,
}

/// A hold of a name.
pub trait AlgorithmHold: fmt::Debug {
    /// Returns until when the client may rely on the hold, by [`LockClient::now`]; a time that is over if it is lost.
    fn valid_until(&self) -> Time;

    /// Returns the fencing token, larger than that of every earlier hold of the name.
    fn token(&self) -> u64;

    /// Renews the hold once. Called every third of the lease while the watchdog renews the hold.
    fn renew(&self) -> Step<'_, ()>;

    /// Gives the name back. Called once. The hold is not renewed afterwards.
    fn release(&self) -> Step<'_, Released>;
}

/// The outcome of a release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Released {
    /// The name was held until now, and is free.
    Free,
    /// The client did not hold the name any more.
    NotHeld,
    /// The nodes have not confirmed it.
    Unconfirmed,
}
