//! Records of holds that pass from one client to another.

use quorlock::{OwnerId, Ticket};
use quorlock_sim_plan::fault::{Fault, Kind};
use quorlock_sim_world::history::{Access, Action, Adoption, HoldId, Outcome};
use quorlock_sim_world::world::with;

use super::{Context, HeldLock};
use crate::client::subject::{Hold as _, SubjectGuard};

impl Context {
    /// Hands a hold over, and shows its ticket to every client. The history records it as a release. A hold that cannot be handed
    /// over, or is a variant's, is dropped.
    pub fn hand_over(&self, held: HeldLock) {
        let names = Self::mask(&held.guard);
        let begun = self.begin(Action::Release, names, held.hold, held.guard.token());
        let SubjectGuard::Product(guard) = held.guard else {
            return;
        };
        match guard.hand_over() {
            Ok(ticket) => {
                self.end(begun, Outcome::Ok);
                // A process that is stopped in the middle shows what it does when it goes on.
                with(|world| {
                    let at = world.moment(self.who());
                    world.tickets.push((at, ticket.to_string()));
                });
            }
            Err(_) => self.end(begun, Outcome::Fail),
        }
    }

    /// Returns one of the `newest` tickets that clients have handed over; `None` if there are none.
    pub fn ticket(&self, newest: usize) -> Option<Ticket> {
        let mut shown: Vec<String> = with(|world| {
            let tickets = world.tickets.iter().rev();
            let shown = tickets.filter(|(at, _)| *at <= world.now());
            shown.take(newest).map(|(_, text)| text.clone()).collect()
        });
        let last = u64::try_from(shown.len()).ok()?.checked_sub(1)?;
        let chosen = usize::try_from(self.random(0, last)).ok()?;
        shown.swap_remove(chosen).parse().ok()
    }

    /// Adopts the hold of a ticket, and records the operation. Returns `None` if nothing is left of the hold, nodes do not answer,
    /// or a fault of the plan cancelled the operation.
    pub async fn adopt(&self, ticket: &Ticket) -> Option<HeldLock> {
        let names: Vec<_> = ticket.names().map(|name| self.name(&name.text())).collect();
        let begun = self.begin(Action::Try, super::record::mask(&names), HoldId::NONE, 0);
        let locks = self.locks();
        match self.cancellable(locks.adopt(ticket)).await {
            Ok(Ok(Some(guard))) => {
                let guard = SubjectGuard::Product(guard);
                let hold = self.won(begun, &guard, Access::Alone, true);
                // A copy of the first owner's acquire that arrives after the hold can be adopted once more.
                let is_copied = |fault: &Fault| fault.kind() == Kind::Duplicate;
                let before = owner_of(ticket);
                if let Some(before) = before.filter(|_| !self.plan().faults.iter().any(is_copied)) {
                    let owner = guard.id();
                    with(|world| world.history.adoptions.push(Adoption { before, owner }));
                }
                Some(HeldLock::of(guard, hold, Access::Alone))
            }
            Ok(_) => {
                self.end(begun, Outcome::Fail);
                None
            }
            Err(_) => {
                self.end(begun, Outcome::Indeterminate);
                None
            }
        }
    }
}

/// Reads the owner of a ticket: the two fields after the version.
fn owner_of(ticket: &Ticket) -> Option<OwnerId> {
    let text = ticket.to_string();
    let mut fields = text.split('.').skip(1);
    format!("{}:{}", fields.next()?, fields.next()?)
        .parse()
        .ok()
}
