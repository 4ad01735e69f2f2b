//! Releasing or confirming a hold, and the result that can be reported afterwards.

use std::sync::Arc;

use crate::message::{ReleaseReply, RenewReply};
use crate::quorum::{MemberId, Members, Tally, Verdict, Vote};

/// The result of asking the members of a hold to release it or to confirm it (re-entry, extension, a token).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Confirmation {
    /// The result is not decided yet.
    Pending,
    /// A threshold of every group answered that the claim was ours, and executed the request.
    Confirmed,
    /// So many members answered that the claim was not ours that we had no quorum.
    NotHeld,
    /// So many members did not answer that the result is unknown.
    Unconfirmed,
}

/// A request to the members of a hold, each of which answers whether the claim is ours.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Confirming {
    tally: Tally,
}

impl Confirming {
    /// Returns a request to the members for which `is_asked` holds. The others are known not to have the claim.
    #[must_use]
    pub fn new(members: Arc<Members>, is_asked: impl Fn(MemberId) -> bool) -> Self {
        let mut tally = Tally::new(members.clone());
        for member in members.all() {
            let vote = if is_asked(member) {
                Vote::Pending
            } else {
                Vote::Refused
            };
            tally.record(member, vote);
        }
        Confirming { tally }
    }

    /// Returns whether the member was asked and has not answered.
    #[must_use]
    pub fn is_unanswered(&self, member: MemberId) -> bool {
        self.tally.vote(member) == Vote::Pending
    }

    /// Records a member's reply to a release.
    pub fn handle_released(&mut self, member: MemberId, reply: ReleaseReply) {
        let is_ours = reply != ReleaseReply::NotYours;
        self.record(member, is_ours);
    }

    /// Records a member's reply to a renewal.
    pub fn handle_renewed(&mut self, member: MemberId, reply: RenewReply) {
        let is_ours = reply != RenewReply::NotYours;
        self.record(member, is_ours);
    }

    fn record(&mut self, member: MemberId, is_ours: bool) {
        let vote = if is_ours {
            Vote::Granted
        } else {
            Vote::Refused
        };
        self.tally.record(member, vote);
    }

    /// Records that a member did not answer, answered with an error, or did not do what was requested.
    pub fn handle_failed(&mut self, member: MemberId) {
        self.tally.record(member, Vote::Failed);
    }

    /// Records that the members without an answer are no longer waited for.
    pub fn handle_timeout(&mut self) {
        for member in self.tally.members().clone().all() {
            if self.tally.vote(member) == Vote::Pending {
                self.tally.record(member, Vote::Failed);
            }
        }
    }

    /// Returns the result so far.
    #[must_use]
    pub fn outcome(&self) -> Confirmation {
        match self.tally.verdict() {
            Verdict::Pending => Confirmation::Pending,
            Verdict::Won => Confirmation::Confirmed,
            Verdict::Lost => {
                let not_held = self.tally.members().groups().any(|group| {
                    group.threshold().spare() < self.tally.count(&group, Vote::Refused)
                });
                if not_held {
                    Confirmation::NotHeld
                } else {
                    Confirmation::Unconfirmed
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quorum::Threshold;

    /// Every combination of the answers of three members, one of which may not be asked.
    #[test]
    fn every_combination_of_three_answers() {
        for code in 0..125usize {
            let given = [0, 1, 2].map(|i: u32| code / 5usize.pow(i) % 5);
            let members = Arc::new(Members::new([Threshold::majority(3)]));
            let mut release = Confirming::new(members.clone(), |m| given[m.index()] != 4);
            for member in members.all() {
                match given[member.index()] {
                    0 => release.handle_released(member, ReleaseReply::FREED),
                    1 => release.handle_released(member, ReleaseReply::NotYours),
                    2 => release.handle_failed(member),
                    _ => {}
                }
            }
            let count = |what: &[usize]| given.iter().filter(|g| what.contains(g)).count();
            let (ours, not_ours, failed) = (count(&[0]), count(&[1, 4]), count(&[2]));
            let expected = if 2 <= ours {
                Confirmation::Confirmed
            } else if 2 <= not_ours {
                Confirmation::NotHeld
            } else if 2 <= not_ours + failed {
                Confirmation::Unconfirmed
            } else {
                Confirmation::Pending
            };
            assert_eq!(release.outcome(), expected, "{given:?}");
            release.handle_timeout();
            assert_ne!(release.outcome(), Confirmation::Pending);
        }
    }

    #[test]
    fn a_partial_release_confirms_as_a_full_one_does() {
        let members = Arc::new(Members::new([Threshold::all(1)]));
        let mut release = Confirming::new(members.clone(), |_| true);
        let only = members.all().next().unwrap();
        assert!(release.is_unanswered(only));
        release.handle_released(only, ReleaseReply::Kept);
        assert_eq!(release.outcome(), Confirmation::Confirmed);
    }
}
