//! Members that do not answer the rounds of an acquisition.

use crate::quorum::MemberId;
use crate::round::Round;

/// How many rounds in a row may be lost without waiting for a mute member. The next round waits for it again.
///
/// A member that has recovered answers a moment after the others. If no round ever waited for it again, a claim of a
/// dead owner on one of the others would block the lock for all clients for its whole lease.
const ROUNDS_WITHOUT: u32 = 4;

/// The members that let a round run out of time, and have not answered since.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Silence {
    mute: Vec<MemberId>,
    /// How many more rounds do not wait for the mute members.
    rounds_left: u32,
}

impl Silence {
    /// Returns the members that the next round does not wait for where the others disagree.
    pub(super) fn mute(&self) -> &[MemberId] {
        &self.mute
    }

    /// Updates the mute members from a round that was lost.
    pub(super) fn handle_loss(&mut self, members: impl Iterator<Item = MemberId>, round: &Round) {
        // A round that was lost for another reason reveals nothing about the members that it did not wait for.
        self.mute
            .retain(|member| round.sent(*member).is_none() || round.is_unanswered(*member));
        if self.mute.iter().any(|member| round.is_silent(*member)) {
            self.rounds_left = self.rounds_left.saturating_sub(1);
        }
        if self.rounds_left == 0 {
            self.mute.clear();
        }
        for member in members.filter(|member| round.is_mute(*member)) {
            self.rounds_left = ROUNDS_WITHOUT;
            if !self.mute.contains(&member) {
                self.mute.push(member);
            }
        }
    }
}
