//! Claims that stay on nodes although no client holds the lock.

use std::rc::Rc;

use quorlock::{OwnerId, Token};
use quorlock_core::lease::Lease;

use super::client::LockClient;
use super::hold::ModelHold;
use super::layout::Layout;
use super::watchdog;

/// Claims of a lock that no client releases. Each member becomes a separate lock with its own watchdog.
pub(super) struct Orphans<'a> {
    pub(super) client: &'a Rc<LockClient>,
    pub(super) layout: &'a Layout,
    pub(super) owner: OwnerId,
    pub(super) lease: Lease,
}

impl Orphans<'_> {
    /// Keeps the claim of a member as long as the process lives and the node has the claim.
    pub(super) fn keep(&self, member: usize, token: Token) {
        let Some(part) = self.layout.part(member) else {
            return;
        };
        let part = Rc::new(part);
        let tokens = vec![token];
        // This is a first guess. The answers of the node show whether it still has the claim.
        let terms = vec![Some(self.lease.term(self.client.clock()))];
        let hold = ModelHold::new(self.client, &part, self.owner, self.lease, tokens, terms);
        // The hold counts a guard, although no client has one.
        hold.enter();
        self.client.spawn(watchdog::watch(hold));
    }
}
