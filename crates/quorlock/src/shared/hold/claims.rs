//! What may stand on the members of a hold.

use quorlock_core::quorum::MemberId;

/// What may stand on a member under the hold's owner by the requests that have ended. An acquire that is under way is
/// judged by its own answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClaimState {
    /// No claim.
    Absent,
    /// A claim or a place in a queue, perhaps.
    Claimed,
}

/// What may stand on each member.
#[derive(Debug)]
pub(crate) struct Claims(Vec<ClaimState>);

impl Claims {
    /// What may stand on the members in their order.
    pub(crate) fn new(states: impl Iterator<Item = ClaimState>) -> Self {
        Claims(states.collect())
    }

    pub(super) fn set(&mut self, member: MemberId, state: ClaimState) {
        if let Some(place) = member.get_mut(&mut self.0) {
            *place = state;
        }
    }

    /// Whether a request that has ended may have left a claim there.
    pub(super) fn may_stand_on(&self, member: MemberId) -> bool {
        member.get(&self.0) == Some(&ClaimState::Claimed)
    }
}
