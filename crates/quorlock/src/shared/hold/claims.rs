//! The claims that may exist on the members of a hold.

use quorlock_core::quorum::MemberId;

/// Whether a member may have a claim of the hold's owner, judged by the requests that have ended. An acquire in
/// flight is judged by its own answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClaimState {
    /// The member has no claim.
    Absent,
    /// The member may have a claim, or a place in a queue.
    Claimed,
    /// The member may have a claim: the reply to the acquire did not come, or was lost.
    Unanswered,
}

/// The claim state of each member.
#[derive(Clone, Debug)]
pub(crate) struct Claims(Vec<ClaimState>);

impl Claims {
    /// Takes the states of the members in their order.
    pub(crate) fn new(states: impl Iterator<Item = ClaimState>) -> Self {
        Claims(states.collect())
    }

    pub(super) fn set(&mut self, member: MemberId, state: ClaimState) {
        if let Some(place) = member.get_mut(&mut self.0) {
            *place = state;
        }
    }

    /// Whether a finished request may have left a claim on the member.
    pub(super) fn may_stand_on(&self, member: MemberId) -> bool {
        member
            .get(&self.0)
            .is_some_and(|state| *state != ClaimState::Absent)
    }

    /// Whether the member did not answer an acquire that has ended.
    pub(super) fn is_unanswered_on(&self, member: MemberId) -> bool {
        member.get(&self.0) == Some(&ClaimState::Unanswered)
    }

    /// Whether a member did not answer an acquire that has ended.
    pub(super) fn has_unanswered(&self) -> bool {
        self.0.contains(&ClaimState::Unanswered)
    }
}
