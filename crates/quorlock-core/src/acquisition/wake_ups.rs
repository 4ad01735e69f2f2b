//! Messages that members publish while an acquisition waits.

use crate::quorum::{MemberId, Members};

/// Tracks which members refused the last round, and which have published since it began that the name is free.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct WakeUps {
    /// Members that refused the last round.
    refused: Vec<MemberId>,
    /// Members that have published since the last round began.
    woken: Vec<MemberId>,
}

/// How many of the members that refused have published since.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum WakeUpTally {
    /// None of them has published.
    Nothing,
    /// Some members have published, but the others may still refuse a round.
    Some,
    /// Enough members have published for a round to win.
    Enough,
}

impl WakeUps {
    /// Begins a round. Earlier messages reveal nothing about the state that it will find.
    pub(super) fn begin_round(&mut self) {
        self.woken.clear();
    }

    /// Sets the members that refused the last round. Only their messages can mean that a claim in the way has ended. A
    /// message of another member is mostly caused by the acquisition itself, which gives back the grant that it got
    /// there.
    pub(super) fn wait_for(&mut self, refused: Vec<MemberId>) {
        self.refused = refused;
    }

    /// Records a message from a member that the name is free. All members are recorded, because it is not known before
    /// the end of a round which ones refuse it.
    pub(super) fn handle_wake(&mut self, member: MemberId) {
        if !self.woken.contains(&member) {
            self.woken.push(member);
        }
    }

    /// Returns whether the member has published since the last round began.
    pub(super) fn has_woken(&self, member: MemberId) -> bool {
        self.woken.contains(&member)
    }

    /// Returns the members that refused the last round.
    pub(super) fn refused(&self) -> &[MemberId] {
        &self.refused
    }

    /// Returns whether a round that begins now can win, judging by the messages.
    ///
    /// A message from node 1 may arrive before the holder's release has reached nodes 2 and 3. A round that begins at
    /// once is refused there, and splits the vote. The acquisition therefore waits for messages from enough members.
    pub(super) fn published(&self, members: &Members) -> WakeUpTally {
        let mut refused = self.refused.iter();
        if !refused.any(|member| self.woken.contains(member)) {
            WakeUpTally::Nothing
        } else if members.groups().all(|group| {
            let has_refused = self.refused.iter().any(|member| group.has(*member));
            let woken = self.woken.iter().filter(|member| group.has(**member));
            !has_refused || group.threshold().needed() <= woken.count()
        }) {
            WakeUpTally::Enough
        } else {
            WakeUpTally::Some
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quorum::Threshold;

    fn refused_by(members: &Members, count: usize) -> (Vec<MemberId>, WakeUps) {
        let mut wake_ups = WakeUps::default();
        wake_ups.wait_for(members.all().take(count).collect());
        (members.all().collect(), wake_ups)
    }

    #[test]
    fn a_majority_is_enough_if_one_of_it_had_refused() {
        let members = Members::new([Threshold::majority(5)]);
        let (all, mut wake_ups) = refused_by(&members, 3);
        assert_eq!(wake_ups.published(&members), WakeUpTally::Nothing);
        for member in [all[0], all[0], all[4]] {
            wake_ups.handle_wake(member);
            assert_eq!(wake_ups.published(&members), WakeUpTally::Some);
        }
        wake_ups.handle_wake(all[1]);
        assert_eq!(wake_ups.published(&members), WakeUpTally::Enough);
    }

    #[test]
    fn members_that_did_not_refuse_say_nothing_by_themselves() {
        let members = Members::new([Threshold::majority(5)]);
        let (all, mut wake_ups) = refused_by(&members, 2);
        for member in &all[2..] {
            wake_ups.handle_wake(*member);
        }
        assert_eq!(wake_ups.published(&members), WakeUpTally::Nothing);
        wake_ups.handle_wake(all[0]);
        assert_eq!(wake_ups.published(&members), WakeUpTally::Enough);
    }

    #[test]
    fn what_was_published_before_a_round_is_not_news_after_it() {
        let members = Members::new([Threshold::all(1)]);
        let (all, mut wake_ups) = refused_by(&members, 1);
        wake_ups.handle_wake(all[0]);
        assert_eq!(wake_ups.published(&members), WakeUpTally::Enough);
        wake_ups.begin_round();
        assert_eq!(wake_ups.published(&members), WakeUpTally::Nothing);
    }

    #[test]
    fn each_group_that_refused_has_to_say_so() {
        let members = Members::new([Threshold::all(1), Threshold::all(1), Threshold::all(1)]);
        let (all, mut wake_ups) = refused_by(&members, 2);
        wake_ups.handle_wake(all[0]);
        assert_eq!(wake_ups.published(&members), WakeUpTally::Some);
        wake_ups.handle_wake(all[1]);
        assert_eq!(wake_ups.published(&members), WakeUpTally::Enough);
    }
}
