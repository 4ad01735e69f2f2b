//! What lost rounds reveal about competitors.

/// Whether other clients want the lock at the same time, as far as lost rounds show.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum Contention {
    /// There is no sign of a competitor.
    #[default]
    Alone,
    /// The last round split the votes. Either competitors collided, or one holder has all the members that refused.
    Split,
    /// Other clients want the lock too. The first member is asked before the rest (*first-member order*), so that one
    /// of them passes. The last vote is kept, because this order may be abandoned again.
    Contended(Refusal),
}

/// How a round was refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Refusal {
    /// So few members granted that this round cannot have prevented a competitor from winning.
    Whole,
    /// Some members granted, but not enough. A competitor's round may also have got too few.
    Split,
}

impl Contention {
    /// Handles a refused round whose vote counts. The second split vote in a row is a collision.
    pub(super) fn handle_vote(&mut self, vote: Refusal) {
        *self = match (*self, vote) {
            (Contention::Contended(_), vote) => Contention::Contended(vote),
            (Contention::Split, Refusal::Split) => Contention::Contended(Refusal::Split),
            (Contention::Alone, Refusal::Split) => Contention::Split,
            (Contention::Alone | Contention::Split, Refusal::Whole) => Contention::Alone,
        };
    }

    /// Records that the name became free and another client was faster.
    pub(super) fn handle_outrun(&mut self) {
        *self = Contention::Contended(self.last_vote());
    }

    /// Records that the first member does not answer. Asking it before the rest would only cost time.
    pub(super) fn handle_silent_first_member(&mut self) {
        *self = match self.last_vote() {
            Refusal::Whole => Contention::Alone,
            Refusal::Split => Contention::Split,
        };
    }

    /// Returns whether the first member is asked before the rest.
    pub(super) fn is_contended(self) -> bool {
        matches!(self, Contention::Contended(_))
    }

    /// Returns how the last round whose vote counted was refused.
    pub(super) fn last_vote(self) -> Refusal {
        match self {
            Contention::Alone => Refusal::Whole,
            Contention::Split => Refusal::Split,
            Contention::Contended(vote) => vote,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_splits_in_a_row_are_contention_and_two_apart_are_not() {
        let mut contention = Contention::default();
        contention.handle_vote(Refusal::Split);
        assert_eq!(contention, Contention::Split);
        contention.handle_vote(Refusal::Whole);
        assert_eq!(contention, Contention::Alone);
        contention.handle_vote(Refusal::Split);
        assert!(!contention.is_contended());
        contention.handle_vote(Refusal::Split);
        assert!(contention.is_contended());
    }

    #[test]
    fn contention_outlasts_a_vote_that_does_not_split() {
        let mut contention = Contention::Alone;
        contention.handle_outrun();
        contention.handle_vote(Refusal::Split);
        contention.handle_vote(Refusal::Whole);
        assert_eq!(contention, Contention::Contended(Refusal::Whole));
    }

    #[test]
    fn who_is_outrun_after_a_split_still_knows_of_it() {
        let mut contention = Contention::Split;
        contention.handle_outrun();
        assert_eq!(contention.last_vote(), Refusal::Split);
        contention.handle_silent_first_member();
        assert_eq!(contention, Contention::Split);
        contention.handle_vote(Refusal::Split);
        assert!(contention.is_contended(), "the second split in a row");
    }

    #[test]
    fn a_silent_first_member_is_not_asked_first_again() {
        let mut contention = Contention::Contended(Refusal::Whole);
        contention.handle_silent_first_member();
        assert_eq!(contention, Contention::Alone);
        contention.handle_silent_first_member();
        assert_eq!(contention, Contention::Alone);
    }
}
