//! Watches the claims of holds, and asks about those that may be gone.

use std::sync::{Arc, Weak};

use quorlock_core::message::{Channel, Wake};
use quorlock_core::quorum::MemberId;
use quorlock_core::time::Time;
use quorlock_core::transport::Listener;

use super::Keeper;
use super::task::KeeperTask;
use super::windows::{Executor, Next};
use crate::shared::hold::Hold;

/// The largest number of holds of a client, and of members of a hold, whose claims are watched. Each costs the server two small
/// commands after each renewal. The loss of others is noticed by their next renewal.
const MOST: usize = 1_000;

/// Passes the possible loss of one claim on to the keeper.
struct ClaimListener {
    keeper: Weak<Keeper>,
    hold: Weak<Hold>,
    member: MemberId,
}

impl Listener for ClaimListener {
    fn live(&self) {}

    fn wake(&self, _: Wake) {
        if let (Some(keeper), Some(hold)) = (self.keeper.upgrade(), self.hold.upgrade()) {
            keeper.doubt(hold, self.member);
        }
    }
}

impl KeeperTask {
    /// Begins to watch the claims of a hold that has lasted for a while.
    pub(super) fn watch(&self, hold: &Arc<Hold>, now: Time) {
        let unwatched = hold.unwatched(now);
        if unwatched.is_empty() || MOST < unwatched.len() || MOST < self.keeper.len() {
            return;
        }
        for member in unwatched {
            let place = hold.layout.place(member);
            let listener = ClaimListener {
                keeper: Arc::downgrade(&self.keeper),
                hold: Arc::downgrade(hold),
                member,
            };
            let channel = Channel::Claim(place.name.clone(), place.mode, hold.owner);
            let subscription = place.node.subscribe(&channel, Arc::new(listener));
            hold.watched(member, subscription);
        }
    }

    /// Asks a member whether it still has a claim, by stating the count that it has: a node that has the claim changes nothing,
    /// and the lease is not renewed.
    pub(super) fn doubted(&mut self, hold: Arc<Hold>, member: MemberId, now: Time) {
        if !hold.counts(member) {
            hold.unwatch(member);
            return;
        }
        let server = Executor::at(hold.layout.place(member));
        let next = self.windows.lower(&server, hold, member);
        if let Some(Next::Lower(hold, member)) = next {
            self.lower(server, hold, member, now);
        }
    }
}
