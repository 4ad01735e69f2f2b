//! Expiry as a request of its own, after the claims were made.

use std::time::Duration;

use quorlock::Token;
use quorlock::runtime::Time;
use quorlock_core::lease::Lease;

use super::{ConcurrentRequests, Round, Vote};

/// The length of a claim without an end. No run takes as long.
const ENDLESS: Duration = Duration::from_secs(24 * 3600);

/// Returns the lease of a claim whose expiry is set later.
pub(super) fn endless() -> Lease {
    Lease::new(ENDLESS).expect("a day is a lease")
}

impl Round {
    /// Sets the TTL of the key of each member that granted. The nodes do not check that the key is still this client's.
    /// Returns whether all of them answered.
    pub(super) async fn expire(&self, lease: Lease) -> bool {
        let mut asking = ConcurrentRequests::new(&self.client);
        for (member, index) in self.layout.members.iter().zip(0..) {
            if let Some(Vote::Granted(token, _)) = self.votes.get(index) {
                let token: Token = *token;
                asking.ask(index, member, member.renew(self.owner, 0, lease, token));
            }
        }
        let mut have_answered = true;
        while !asking.is_empty()
            && let Some(answer) = asking.next(Time::NEVER).await
        {
            have_answered &= answer.reply.is_ok();
        }
        have_answered
    }
}
