//! How long a holder may rely on its lock.

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
    /// The shortest lease: 5 ms. Below it, two drift allowances (see [`Lease::drift`]) would leave almost nothing to
    /// rely on.
    pub const SHORTEST: Duration = Duration::from_millis(5);

    /// Returns a lease of this length, rounded up to whole milliseconds.
    ///
    /// # Errors
    /// [`LeaseTooShort`] if the length is below [`Lease::SHORTEST`].
    pub fn new(length: Duration) -> Result<Self, LeaseTooShort> {
        if length < Self::SHORTEST {
            return Err(LeaseTooShort { length });
        }
        Ok(Lease {
            millis: millis_of(length),
        })
    }

    /// Returns the length.
    #[must_use]
    pub const fn length(self) -> Duration {
        Duration::from_millis(self.millis)
    }

    /// Returns the length in milliseconds, as it is sent on the wire.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.millis
    }

    /// Returns the drift allowance: the time that a holder subtracts from the lease because clocks run at different
    /// rates. It is 1 % of the lease and 2 ms.
    ///
    /// 1 % covers two clocks that differ by 10,000 ppm (a crystal is within 50 ppm, a slewing NTP client within 1,000
    /// ppm), and 2 ms cover the precision with which a node expires keys, a millisecond. The formula is from the
    /// description of Redlock.
    #[must_use]
    pub fn drift(self) -> Duration {
        drift(self.length())
    }

    /// Returns until when the confirmation of a request sent at `sent` is valid: `sent + lease - drift`.
    #[must_use]
    pub fn term(self, sent: Time) -> Time {
        // The term counts from when the request was sent, because the node starts its TTL after that. If it counted
        // from the reply, and the reply took a second, A would rely on its claim for a second in which the node may
        // grant the name to B.
        sent + self.length().saturating_sub(self.drift())
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.length())
    }
}

/// Returns the drift allowance of a duration: 1 % and 2 ms.
#[must_use]
pub fn drift(span: Duration) -> Duration {
    // Drift: A's clock is 1 % slow. When it shows 9.95 s, 10.05 s have passed, the claim of 10 s has expired, and B
    // holds the name. With the allowance A has stopped at 9.9 s.
    span / 100 + Duration::from_millis(2)
}

/// The error for a lease that is so short that the drift allowance would use it up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseTooShort {
    /// The length that was passed to [`Lease::new`].
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

/// Returns the `nth` largest of a few values, counting from 1; `None` if there are fewer than `nth`.
pub(crate) fn largest<T: Ord>(values: impl Iterator<Item = T> + Clone, nth: usize) -> Option<T> {
    if values.clone().count() < nth {
        return None;
    }
    let is_among_them = |value: &T| nth <= values.clone().filter(|other| value <= other).count();
    values.clone().filter(is_among_them).max()
}

/// The term of each member, and until when the lock is valid as a result.
///
/// A member's term is the largest over its own confirmed requests. A group is valid until the threshold-th largest term
/// of its members, and the lock until the earliest of its groups. This time can move back when a member leaves. (It
/// would be wrong to credit every confirmation to the latest renewal: of three confirming members, two may have
/// confirmed the last renewal and the third only the one before.)
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Terms {
    members: Arc<Members>,
    terms: Vec<Option<Time>>,
    /// Until when each group is valid, computed from the terms of its members.
    groups: Vec<Time>,
    /// Until when the earliest of the groups is valid.
    valid_until: Time,
    /// How many groups end at `valid_until`.
    earliest: usize,
}

impl Terms {
    /// Returns terms in which no member has confirmed anything.
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

    /// Returns the members of the lock.
    #[must_use]
    pub fn members(&self) -> &Arc<Members> {
        &self.members
    }

    /// Records that the member confirmed a request, which is valid until `term`. From now on the member counts.
    pub fn confirm(&mut self, member: MemberId, term: Time) {
        if let Some(place) = member.get_mut(&mut self.terms) {
            *place = Some(place.map_or(term, |before| before.max(term)));
            self.change(member);
        }
    }

    /// Removes the member's term: the member no longer counts.
    pub fn leave(&mut self, member: MemberId) {
        if let Some(place) = member.get_mut(&mut self.terms) {
            *place = None;
            self.change(member);
        }
    }

    /// Returns whether the member counts.
    #[must_use]
    pub fn counts(&self, member: MemberId) -> bool {
        matches!(member.get(&self.terms), Some(Some(_)))
    }

    /// Returns whether every group has as many counting members as it needs, whatever their terms are.
    #[must_use]
    pub fn has_quorum(&self) -> bool {
        self.members.groups().all(|group| {
            let counting = group.members().filter(|m| self.counts(*m)).count();
            group.threshold().needed() <= counting
        })
    }

    /// Returns until when the holder may rely on the lease; [`Time::ZERO`] without a quorum.
    #[must_use]
    pub fn valid_until(&self) -> Time {
        self.valid_until
    }

    /// Updates `valid_until` after the term of a member has changed.
    ///
    /// A lock can have thousands of names, whose members answer one after the other. Therefore all groups are scanned
    /// only when the last of the earliest groups has moved to a later time.
    fn change(&mut self, member: MemberId) {
        let Some(group) = self.members.group(self.members.group_of(member)) else {
            return;
        };
        let terms = group.slice(&self.terms).iter().flatten().copied();
        // The threshold-th largest term: of nodes 1 to 5, 1 and 2 confirm A's last renewal, with terms until 30 s. Node
        // 3 confirms only the one before, until 20 s, and 4 and 5 none. After 20 s node 3 may grant the name to B, and
        // 4 and 5 do too: B has a majority. If the largest term counted, A would rely on the lock until 30 s.
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

    /// Every assignment of the terms 0 (none), 10, 20 and 30 to five members. The expected value is the third largest.
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

    /// After any change, in any order, the result equals that of a scan over all groups.
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
