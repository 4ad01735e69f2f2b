//! How long a holder may believe.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::quorum::{MemberId, Members};
use crate::time::{Time, millis_of};

/// The length of a lease: whole milliseconds, at least [`Lease::SHORTEST`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    millis: u64,
}

impl Lease {
    /// The shortest lease: below it two drift allowances (see [`Lease::drift`]) would leave nothing to rely on.
    pub const SHORTEST: Duration = Duration::from_millis(5);

    /// Takes a length, rounded up to whole milliseconds.
    ///
    /// # Errors
    /// [`LeaseTooShort`] below [`Lease::SHORTEST`].
    pub fn new(length: Duration) -> Result<Self, LeaseTooShort> {
        if length < Self::SHORTEST {
            return Err(LeaseTooShort { length });
        }
        Ok(Lease {
            millis: millis_of(length),
        })
    }

    /// The length.
    #[must_use]
    pub const fn length(self) -> Duration {
        Duration::from_millis(self.millis)
    }

    /// The length in milliseconds, as it goes on the wire.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.millis
    }

    /// What is taken off a lease because clocks run at different rates: 1 % of it and 2 ms.
    ///
    /// 1 % covers two clocks that differ by 10,000 ppm (a crystal is within 50, a slewing NTP client within 1,000),
    /// 2 ms the precision with which Redis expires keys. The formula is that of the Redlock description.
    #[must_use]
    pub fn drift(self) -> Duration {
        drift(self.length())
    }

    /// Until when a confirmation of a request sent at `sent` carries: `sent + lease - drift`.
    #[must_use]
    pub fn term(self, sent: Time) -> Time {
        // From when the request was sent, as the node began to count after that. Counted from the reply, which was a second on its
        // way, A would rely on its claim for a second in which the node has given the name to B.
        sent + self.length().saturating_sub(self.drift())
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.length())
    }
}

/// The drift allowance of a span: 1 % and 2 ms.
#[must_use]
pub fn drift(span: Duration) -> Duration {
    // A's clock is slow by 1 %: when it shows 9.95 s, 10.05 s have passed, the claim of 10 s has expired, and B has the name. A
    // stopped at 9.9 s.
    span / 100 + Duration::from_millis(2)
}

/// A lease so short that the drift allowance would use it up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseTooShort {
    /// The length that was asked for.
    pub length: Duration,
}

impl fmt::Display for LeaseTooShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a lease of {:?} is too short: ask for at least {:?}, and for several round trips in practice",
            self.length,
            Lease::SHORTEST
        )
    }
}

impl std::error::Error for LeaseTooShort {}

/// The `nth` largest of a few values, from 1; `None` when there are not so many.
pub(crate) fn largest<T: Ord>(values: impl Iterator<Item = T> + Clone, nth: usize) -> Option<T> {
    if values.clone().count() < nth {
        return None;
    }
    let is_among_them = |value: &T| nth <= values.clone().filter(|other| value <= other).count();
    values.clone().filter(is_among_them).max()
}

/// Until when each member's confirmations carry, and what follows for the whole.
///
/// A member's term is the largest over its own confirmed requests. A group is valid until the threshold-th largest
/// term of its members, the whole until the earliest of its groups. It can move back when a member leaves.
/// (Crediting every confirmation to the latest pass would believe too long: of five members, two may have confirmed
/// the last renewal and one only the one before.)
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Terms {
    members: Arc<Members>,
    terms: Vec<Option<Time>>,
    /// Until when each group is valid, which follows from its members' terms.
    groups: Vec<Time>,
    /// The earliest of the groups.
    valid_until: Time,
    /// How many groups are the earliest.
    earliest: usize,
}

impl Terms {
    /// No member has confirmed anything.
    #[must_use]
    pub fn new(members: Arc<Members>) -> Self {
        let terms = vec![None; members.len()];
        let groups = vec![Time::ZERO; members.groups().count()];
        Terms {
            members,
            terms,
            earliest: groups.len(),
            groups,
            valid_until: Time::ZERO,
        }
    }

    /// The members these terms are of.
    #[must_use]
    pub fn members(&self) -> &Arc<Members> {
        &self.members
    }

    /// A request that the member confirmed carries until `term`: the member counts from now on.
    pub fn confirm(&mut self, member: MemberId, term: Time) {
        if let Some(place) = member.get_mut(&mut self.terms) {
            *place = Some(place.map_or(term, |before| before.max(term)));
            self.change(member);
        }
    }

    /// The member no longer counts.
    pub fn leave(&mut self, member: MemberId) {
        if let Some(place) = member.get_mut(&mut self.terms) {
            *place = None;
            self.change(member);
        }
    }

    /// Whether the member counts.
    #[must_use]
    pub fn counts(&self, member: MemberId) -> bool {
        matches!(member.get(&self.terms), Some(Some(_)))
    }

    /// Whether every group has as many counting members as it needs, whatever their terms.
    #[must_use]
    pub fn has_quorum(&self) -> bool {
        self.members.groups().all(|group| {
            let counting = group.members().filter(|m| self.counts(*m)).count();
            group.threshold().needed() <= counting
        })
    }

    /// Until when the holder may rely on the lease; [`Time::ZERO`] without a quorum.
    #[must_use]
    pub fn valid_until(&self) -> Time {
        self.valid_until
    }

    /// The term of a member has changed. A lock can have thousands of names, whose members answer one after the other:
    /// all groups are looked at only when the last of the earliest has become later.
    fn change(&mut self, member: MemberId) {
        let Some(group) = self.members.group(self.members.group_of(member)) else {
            return;
        };
        let terms = group.slice(&self.terms).iter().flatten().copied();
        // Of the terms 30, 20 and 10 of three members, the second largest: at 20 two of them may free the name, and B needs two.
        let until = largest(terms, group.threshold().needed()).unwrap_or(Time::ZERO);
        let Some(place) = self.groups.get_mut(group.index()) else {
            return;
        };
        let before = std::mem::replace(place, until);
        if before == self.valid_until {
            self.earliest -= 1;
        }
        if until < self.valid_until {
            self.valid_until = until;
            self.earliest = 1;
        } else if until == self.valid_until {
            self.earliest += 1;
        }
        if self.earliest == 0 {
            self.valid_until = self.groups.iter().copied().min().unwrap_or(Time::ZERO);
            let earliest = self.groups.iter().filter(|at| **at == self.valid_until);
            self.earliest = earliest.count();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quorum::Threshold;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn leases_have_a_least_length() {
        assert!(Lease::new(Duration::ZERO).is_err());
        assert!(Lease::new(Duration::from_micros(4_999)).is_err());
        let shortest = Lease::new(Lease::SHORTEST).unwrap();
        assert!(shortest.drift() * 2 < shortest.length());
    }

    #[test]
    fn a_term_is_the_send_time_plus_lease_minus_drift() {
        let lease = Lease::new(Duration::from_secs(10)).unwrap();
        assert_eq!(lease.drift(), Duration::from_millis(102));
        assert_eq!(lease.term(ms(1_000)), ms(10_898));
    }

    /// Every assignment of terms 0 (none), 10, 20, 30 to five members: the answer is the third largest.
    #[test]
    fn a_majority_is_valid_until_its_threshold_th_largest_term() {
        let members = Arc::new(Members::new([Threshold::majority(5)]));
        for code in 0..4u32.pow(5) {
            let mut terms = Terms::new(members.clone());
            let mut given = Vec::new();
            for (i, member) in members.all().enumerate() {
                let term = u64::from(code / 4u32.pow(i as u32) % 4) * 10;
                if term > 0 {
                    terms.confirm(member, ms(term));
                    given.push(term);
                }
            }
            given.sort_unstable();
            let expected = if given.len() < 3 {
                0
            } else {
                given[given.len() - 3]
            };
            assert_eq!(terms.valid_until(), ms(expected));
            assert_eq!(terms.has_quorum(), 3 <= given.len());
        }
    }

    #[test]
    fn several_locks_are_valid_until_the_first_of_them_is_not() {
        let members = Arc::new(Members::new([Threshold::majority(3), Threshold::all(1)]));
        let mut terms = Terms::new(members.clone());
        for (member, term) in members.all().zip([30, 20, 10, 15]) {
            terms.confirm(member, ms(term));
        }
        assert_eq!(terms.valid_until(), ms(15));
        let first = members.all().next().unwrap();
        terms.leave(first);
        assert_eq!(terms.valid_until(), ms(10));
    }

    /// Whatever changes, in whatever order: it is what looking at all groups says.
    #[test]
    fn the_end_of_several_groups_is_that_of_the_earliest_after_every_change() {
        let members = Arc::new(Members::new([
            Threshold::majority(3),
            Threshold::all(1),
            Threshold::majority(2),
        ]));
        let mut terms = Terms::new(members.clone());
        let mut random = 1u64;
        for _ in 0..5_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let drawn = random >> 33;
            let member = members.at((drawn % 6) as usize).unwrap();
            match drawn / 6 % 3 {
                0 => terms.leave(member),
                _ => terms.confirm(member, ms(drawn / 18 % 5)),
            }
            let ends = members.groups().map(|group| {
                let of_group = group.slice(&terms.terms).iter().flatten().copied();
                largest(of_group, group.threshold().needed()).unwrap_or(Time::ZERO)
            });
            assert_eq!(Some(terms.valid_until()), ends.min());
        }
    }

    #[test]
    fn a_late_confirmation_of_an_early_request_does_not_shorten() {
        let members = Arc::new(Members::new([Threshold::all(1)]));
        let mut terms = Terms::new(members.clone());
        let only = members.all().next().unwrap();
        terms.confirm(only, ms(30));
        terms.confirm(only, ms(20));
        assert_eq!(terms.valid_until(), ms(30));
    }
}
