//! Quorums: thresholds, members, tallies, verdicts.

use std::ops::Range;
use std::sync::Arc;

/// How many members of a group must grant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Threshold {
    needed: usize,
    of: usize,
}

impl Threshold {
    /// Returns the threshold N/2 + 1 of N: any two majorities share a member.
    ///
    /// An even number is allowed but has no advantage: 3 of 4 tolerates one failure, as 2 of 3 does.
    #[must_use]
    pub const fn majority(of: usize) -> Self {
        Threshold {
            needed: of / 2 + 1,
            of,
        }
    }

    /// Returns the threshold N of N: every member must grant.
    #[must_use]
    pub const fn all(of: usize) -> Self {
        Threshold { needed: of, of }
    }

    /// Returns how many members must grant.
    #[must_use]
    pub const fn needed(self) -> usize {
        self.needed
    }

    /// Returns how many members there are.
    #[must_use]
    pub const fn of(self) -> usize {
        self.of
    }

    /// Returns how many members may fail to grant.
    #[must_use]
    pub const fn spare(self) -> usize {
        self.of - self.needed
    }
}

/// A member of a lock: one name on one node. The value is an index into the [`Members`] that it comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MemberId(u16);

impl MemberId {
    /// Returns its index among all members.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Returns its entry in a list that is indexed by member.
    #[must_use]
    pub fn get<T>(self, list: &[T]) -> Option<&T> {
        list.get(self.index())
    }

    /// Returns its entry in a list that is indexed by member, mutably.
    #[must_use]
    pub fn get_mut<T>(self, list: &mut [T]) -> Option<&mut T> {
        list.get_mut(self.index())
    }
}

/// The members of a lock in canonical order, divided into groups. Each group has its own threshold, and every group
/// must be won.
///
/// A lock on one node has one group of one member. A lock on a majority of nodes has one group of N members. Several
/// locks taken together have several groups.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Members {
    groups: Vec<Threshold>,
    /// For each group, the index after its last member.
    ends: Vec<usize>,
    len: u16,
}

impl Members {
    /// The largest number of members of a lock.
    pub const MOST: usize = u16::MAX as usize;

    /// Returns the members of groups with these thresholds, group after group.
    ///
    /// # Panics
    /// Panics if there are more than [`Members::MOST`]; the constructor of a lock rejects that earlier.
    #[must_use]
    pub fn new(groups: impl IntoIterator<Item = Threshold>) -> Self {
        let groups: Vec<_> = groups.into_iter().collect();
        let ends = groups.iter().scan(0, |end, group: &Threshold| {
            *end += group.of;
            Some(*end)
        });
        let ends: Vec<usize> = ends.collect();
        let len = ends.last().copied().unwrap_or(0);
        let len = u16::try_from(len).expect("BUG: more members than a lock can have");
        Members { groups, ends, len }
    }

    /// Returns the number of members in all groups.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Returns whether there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns every member, in canonical order.
    pub fn all(&self) -> impl Iterator<Item = MemberId> + use<> {
        (0..self.len).map(MemberId)
    }

    /// Returns the member with this index, if there is one.
    #[must_use]
    pub fn at(&self, index: usize) -> Option<MemberId> {
        let index = u16::try_from(index).ok()?;
        (index < self.len).then_some(MemberId(index))
    }

    /// Returns every group, in canonical order.
    pub fn groups(&self) -> impl Iterator<Item = Group> + '_ {
        (0..self.groups.len()).filter_map(|index| self.group(index))
    }

    /// Returns the group with this index, if there is one.
    #[must_use]
    pub fn group(&self, index: usize) -> Option<Group> {
        let threshold = *self.groups.get(index)?;
        let end = *self.ends.get(index)?;
        Some(Group {
            index,
            threshold,
            range: end - threshold.of..end,
        })
    }

    /// Returns the index of the group that a member belongs to.
    #[must_use]
    pub fn group_of(&self, member: MemberId) -> usize {
        self.ends.partition_point(|end| *end <= member.index())
    }
}

/// One group of members.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Group {
    index: usize,
    threshold: Threshold,
    range: Range<usize>,
}

impl Group {
    /// Returns its index among the groups.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the index of its first member among all members.
    #[must_use]
    pub fn start(&self) -> usize {
        self.range.start
    }

    /// Returns how many of its members must grant.
    #[must_use]
    pub fn threshold(&self) -> Threshold {
        self.threshold
    }

    /// Returns its members.
    pub fn members(&self) -> impl Iterator<Item = MemberId> + use<> {
        self.range
            .clone()
            .map(|index| MemberId(u16::try_from(index).unwrap_or(u16::MAX)))
    }

    /// Returns whether a member belongs to it.
    #[must_use]
    pub fn has(&self, member: MemberId) -> bool {
        self.range.contains(&member.index())
    }

    /// Returns its part of a list that is indexed by member.
    #[must_use]
    pub fn slice<'a, T>(&self, list: &'a [T]) -> &'a [T] {
        list.get(self.range.clone()).unwrap_or(&[])
    }
}

/// What is known about the answer of one member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Vote {
    /// The member was not asked.
    Unasked,
    /// The member was asked and has not answered.
    Pending,
    /// The member granted.
    Granted,
    /// The member definitely did not grant.
    Refused,
    /// The member did not answer, or its answer does not show whether it granted.
    Failed,
}

/// The result of a tally.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// The tally can still be won or lost.
    Pending,
    /// Enough members have granted.
    Won,
    /// So many members did not grant that the threshold is out of reach.
    Lost,
}

/// The votes of the members so far.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Tally {
    members: Arc<Members>,
    votes: Vec<Vote>,
}

impl Tally {
    /// Returns a tally in which no member was asked.
    #[must_use]
    pub fn new(members: Arc<Members>) -> Self {
        let votes = vec![Vote::Unasked; members.len()];
        Tally { members, votes }
    }

    /// Returns the members that vote.
    #[must_use]
    pub fn members(&self) -> &Arc<Members> {
        &self.members
    }

    /// Records the vote of a member.
    pub fn record(&mut self, member: MemberId, vote: Vote) {
        if let Some(place) = member.get_mut(&mut self.votes) {
            *place = vote;
        }
    }

    /// Returns the vote of a member.
    #[must_use]
    pub fn vote(&self, member: MemberId) -> Vote {
        member.get(&self.votes).copied().unwrap_or(Vote::Unasked)
    }

    /// Returns the verdict: won when every group is won, lost when one is lost.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let mut verdict = Verdict::Won;
        for group in self.members.groups() {
            match self.group_verdict(&group) {
                Verdict::Won => {}
                Verdict::Pending => verdict = Verdict::Pending,
                Verdict::Lost => return Verdict::Lost,
            }
        }
        verdict
    }

    /// Returns the verdict of one group.
    #[must_use]
    pub fn group_verdict(&self, group: &Group) -> Verdict {
        let (mut granted, mut denied) = (0, 0);
        for vote in group.slice(&self.votes) {
            match vote {
                Vote::Granted => granted += 1,
                Vote::Refused | Vote::Failed => denied += 1,
                Vote::Unasked | Vote::Pending => {}
            }
        }
        if group.threshold.needed <= granted {
            Verdict::Won
        } else if group.threshold.spare() < denied {
            Verdict::Lost
        } else {
            Verdict::Pending
        }
    }

    /// Returns how many members of a group have this vote.
    #[must_use]
    pub fn count(&self, group: &Group, vote: Vote) -> usize {
        group
            .slice(&self.votes)
            .iter()
            .filter(|v| **v == vote)
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_majorities_always_share_a_member() {
        for n in 1..=9 {
            let majority = Threshold::majority(n);
            assert!(n < 2 * majority.needed());
            assert_eq!(majority.needed() + majority.spare(), n);
        }
    }

    /// Every combination of the five votes over every group size up to five, compared with the definition.
    #[test]
    fn a_group_is_won_by_its_threshold_and_lost_when_it_is_out_of_reach() {
        let votes = [
            Vote::Unasked,
            Vote::Pending,
            Vote::Granted,
            Vote::Refused,
            Vote::Failed,
        ];
        for n in 1..=5usize {
            let members = Arc::new(Members::new([Threshold::majority(n)]));
            for code in 0..5usize.pow(n as u32) {
                let mut tally = Tally::new(members.clone());
                let (mut granted, mut open) = (0, 0);
                for member in members.all() {
                    let vote = votes[code / 5usize.pow(member.index() as u32) % 5];
                    granted += usize::from(vote == Vote::Granted);
                    open += usize::from(matches!(vote, Vote::Unasked | Vote::Pending));
                    tally.record(member, vote);
                }
                let needed = n / 2 + 1;
                let expected = if needed <= granted {
                    Verdict::Won
                } else if granted + open < needed {
                    Verdict::Lost
                } else {
                    Verdict::Pending
                };
                assert_eq!(tally.verdict(), expected, "{tally:?}");
            }
        }
    }

    #[test]
    fn every_group_is_needed() {
        let members = Arc::new(Members::new([Threshold::all(1), Threshold::majority(3)]));
        let mut tally = Tally::new(members.clone());
        let ids: Vec<_> = members.all().collect();
        tally.record(ids[0], Vote::Granted);
        assert_eq!(tally.verdict(), Verdict::Pending);
        tally.record(ids[1], Vote::Granted);
        tally.record(ids[3], Vote::Granted);
        assert_eq!(tally.verdict(), Verdict::Won);
        tally.record(ids[0], Vote::Failed);
        assert_eq!(tally.verdict(), Verdict::Lost);
        assert_eq!(members.group_of(ids[0]), 0);
        assert_eq!(members.group_of(ids[3]), 1);
    }
}
