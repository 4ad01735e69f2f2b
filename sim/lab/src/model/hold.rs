//! The state of a hold at its holder.

use std::cell::RefCell;
use std::rc::Rc;

use quorlock::runtime::Time;
use quorlock::{OwnerId, Token};
use quorlock_core::fencing::Fence;
use quorlock_core::lease::Lease;

use super::client::LockClient;
use super::layout::Layout;
use super::requests::ConcurrentRequests;
use quorlock_sim_plan::variant::Flaw;

/// A hold, which is shared by its guards.
pub(super) struct ModelHold {
    pub(super) client: Rc<LockClient>,
    pub(super) layout: Rc<Layout>,
    /// The identity of the hold in the history.
    pub(super) id: OwnerId,
    /// The owner of the claims on the nodes.
    pub(super) owner: OwnerId,
    pub(super) lease: Lease,
    /// The tokens of the names, in the order of the names.
    pub(super) tokens: Vec<Token>,
    state: RefCell<ModelHoldState>,
}

struct ModelHoldState {
    /// The term of each member, or `None` if the member does not count.
    terms: Vec<Option<Time>>,
    guards: u32,
    is_lost: bool,
}

impl ModelHold {
    pub(super) fn new(
        client: &Rc<LockClient>,
        layout: &Rc<Layout>,
        owner: OwnerId,
        lease: Lease,
        tokens: Vec<Token>,
        terms: Vec<Option<Time>>,
    ) -> Rc<Self> {
        Rc::new(ModelHold {
            client: Rc::clone(client),
            layout: Rc::clone(layout),
            id: client.next_hold(),
            owner,
            lease,
            tokens,
            state: RefCell::new(ModelHoldState {
                terms,
                guards: 0,
                is_lost: false,
            }),
        })
    }

    pub(super) fn token(&self, group: usize) -> Token {
        self.tokens.get(group).copied().unwrap_or_default()
    }

    /// Returns the number of guards.
    pub(super) fn count(&self) -> u32 {
        self.state.borrow().guards
    }

    pub(super) fn enter(&self) {
        self.state.borrow_mut().guards += 1;
    }

    /// Decrements the number of guards and returns it.
    pub(super) fn leave(&self) -> u32 {
        let mut state = self.state.borrow_mut();
        state.guards = state.guards.saturating_sub(1);
        state.guards
    }

    /// Returns whether no guard is left.
    pub(super) fn is_over(&self) -> bool {
        self.count() == 0
    }

    pub(super) fn valid_until(&self) -> Time {
        let terms = &self.state.borrow().terms;
        self.layout.threshold_th(terms).unwrap_or(Time::ZERO)
    }

    /// Returns whether the client may rely on the lock. A lost hold stays lost.
    pub(super) fn is_held(&self) -> bool {
        if self.is_over() {
            return false;
        }
        let until = self.valid_until();
        let is_in_time = match self.client.has(Flaw::NoDeadline) {
            true => Time::ZERO < until,
            false => self.client.clock() < until,
        };
        let mut state = self.state.borrow_mut();
        // A lost hold stays lost: B may have won, worked and released while A's claims were expired. A renewal that
        // succeeds later must not let A continue with what it read before.
        if !is_in_time && !self.client.has(Flaw::FreshGrantRenews) {
            state.is_lost = true;
        }
        is_in_time && !state.is_lost
    }

    /// Records that a member has confirmed the claim until `term`, unless the hold is already lost.
    pub(super) fn confirm(&self, member: usize, term: Time) {
        if !self.is_held() && !self.client.has(Flaw::FreshGrantRenews) {
            return;
        }
        if let Some(place) = self.state.borrow_mut().terms.get_mut(member) {
            // Answers can arrive out of order, and an older one must not shorten the term.
            *place = (*place).max(Some(term));
        }
    }

    /// Records that a member no longer counts.
    pub(super) fn lose(&self, member: usize) {
        if let Some(place) = self.state.borrow_mut().terms.get_mut(member) {
            *place = None;
        }
    }

    /// Sends a renewal to every member.
    pub(super) fn ask_renewal(&self, asking: &mut ConcurrentRequests<'_>) {
        for (member, index) in self.layout.members.iter().zip(0..) {
            let token = self.token(member.group);
            let count = self.count().max(1);
            let request = if self.client.has(Flaw::FreshGrantRenews) {
                let fence = Fence::Carry(token);
                self.client
                    .acquire(member, self.owner, count, self.lease, fence)
            } else {
                member.renew(self.owner, count, self.lease, token)
            };
            asking.ask(index, member, request);
        }
    }
}
