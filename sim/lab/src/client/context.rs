//! The context of a client in the lab: that of the test kit, with the lock under test and the records for the checkers.

mod effects;
mod hand_over;
mod leadership;
mod record;
mod section;

use std::ops::Deref;
use std::rc::Rc;

pub use leadership::{Candidacy, LeadershipRecord};
use quorlock_sim_world::engine::clients;
use quorlock_sim_world::history::{Access, HoldId, NameId};
use quorlock_sim_world::world::with;
pub use record::{Fencing, HeldLock};
pub use section::SectionHandle;

use crate::algorithm::{self, OwnLock};
use crate::client::subject::{Hold, Subject};
use crate::model::{LockClient, ModelLock};

/// One client process: what the test kit gives it, the lock under test, and the records for the checkers.
///
/// Cheap to clone. Only the future that receives it may use it.
#[derive(Clone, Debug)]
pub struct Context {
    kit: quorlock_sim::context::Context,
    /// The client that is used instead of the product's, if the plan selects a variant.
    variant: Option<Rc<LockClient>>,
}

impl Deref for Context {
    type Target = quorlock_sim::context::Context;

    fn deref(&self) -> &Self::Target {
        &self.kit
    }
}

impl Context {
    pub(crate) fn new(kit: quorlock_sim::context::Context) -> Self {
        let plan = with(|world| Rc::clone(&world.plan));
        let variant = LockClient::new(kit.who(), &plan, kit.transports());
        Context { kit, variant }
    }

    /// Creates the lock under test for these names: the product's, or that of the plan's variant.
    ///
    /// # Panics
    /// Panics like [`Context::lock`](quorlock_sim::context::Context::lock).
    pub fn subject(&self, names: &[String]) -> Subject {
        match &self.variant {
            Some(client) => match client.plan().variant.algorithm() {
                Some(own) => Subject::Own(OwnLock::new(algorithm::named(own), client, names)),
                None => Subject::Variant(ModelLock::new(client, names)),
            },
            None => Subject::Product(self.lock(names)),
        }
    }

    /// Creates the lock under test with its own owner, so that an acquisition during a hold re-enters the hold.
    ///
    /// # Panics
    /// Panics like [`Context::lock`](quorlock_sim::context::Context::lock).
    pub fn reentrant_subject(&self, name: String) -> Subject {
        match &self.variant {
            Some(client) => Subject::Variant(ModelLock::new(client, &[name]).owned()),
            None => Subject::Owned(self.locks().owner().lock(name)),
        }
    }

    /// Enters the critical sections of all names of a guard.
    pub fn critical_section(&self, guard: &impl Hold) -> SectionHandle {
        let mut token = None;
        guard.each_name(&mut |name| token = token.or(guard.token_of(name)));
        let token = token.map_or(0, |token| token.0);
        let hold = with(|world| clients::hold_of(world, self.who(), guard.id(), token).id());
        SectionHandle::enter(self.who(), guard, hold, Access::Alone, HoldId::NONE)
    }

    /// Enters the critical sections of a guard whose acquisition was recorded.
    pub fn section(&self, held: &HeldLock) -> SectionHandle {
        SectionHandle::enter(self.who(), &held.guard, held.hold, held.access, held.under)
    }

    /// Records that a candidate begins to wait for the leadership of a name.
    pub fn stand(&self, name: NameId) -> Candidacy<'_> {
        Candidacy::new(self, name)
    }
}
