//! Leases that do not trust a node's clock: margin, claim version, and take-over by observation.
//!
//! Redis expires keys by its wall clock, and a forward step of it would end a claim before its time. With a margin a
//! node keeps a claim for that much longer than its lease. So that a dead holder does not block its name for as long,
//! the claim has the holder's *claim version*: the number of its last request, and the lease that it stated.
//! A contender to which the same claim version was shown for that lease, on its own clock, knows that the holder's lease is over
//! and may replace the claim.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::lease::{Lease, drift};
use crate::name::Name;
use crate::owner::OwnerId;
use crate::time::Time;

/// How a claim is kept beyond its lease.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClockMargin {
    /// For how much longer.
    pub margin_millis: u64,
    /// The number of the request among those of its owner, never given to a second one. The node keeps the largest
    /// that it executed.
    pub number: u64,
}

impl ClockMargin {
    /// The claim version that the request gives the claim.
    #[must_use]
    pub fn version(self, owner: OwnerId, lease: Lease) -> ClaimVersion {
        ClaimVersion {
            owner,
            number: self.number,
            lease_millis: lease.millis(),
        }
    }
}

/// The claim version of a claim, as a refusal shows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClaimVersion {
    /// Whose claim it is.
    pub owner: OwnerId,
    /// The largest number of its requests that was executed.
    pub number: u64,
    /// The lease that this request stated.
    pub lease_millis: u64,
}

/// What one node has shown to one client of the claims in its way.
///
/// It has a bound in bytes, so that names cannot fill the memory of a client. When it is reached, the claims that can be
/// replaced soonest are kept: a new one that takes the place of an older one would be taken over no sooner than the older
/// one, and with more names than there is room for none at all would be watched for as long as its lease.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Observations {
    seen: BTreeMap<Name, Seen>,
    /// The same names, in the order of [`Seen::useful_until`].
    order: BTreeSet<(Time, Name)>,
    bytes: usize,
}

/// A claim version, and when it was first shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Seen {
    version: ClaimVersion,
    since: Time,
    /// From then on it goes to make room for another.
    useful_until: Time,
}

impl Seen {
    fn new(now: Time, version: ClaimVersion) -> Self {
        let mut seen = Seen {
            version,
            since: now,
            useful_until: now,
        };
        seen.useful_until = seen.ends() + KEPT;
        seen
    }

    /// When the holder has certainly stopped to rely on the claim, unless another claim version is shown.
    fn ends(self) -> Time {
        let lease = Duration::from_millis(self.version.lease_millis);
        self.since + lease + drift(lease)
    }
}

/// For how long an observation is kept after its claim may be replaced, or was last shown after that. A waiter asks as
/// soon as that time comes; an observation that is not used is that of a contender that has given up, or of a claim that
/// was released, and would fill the list for ever.
const KEPT: Duration = Duration::from_secs(60);

/// What an observation takes in memory besides its name: the entries of two trees, which are half full at worst.
const ENTRY: usize = 2 * (size_of::<(Name, Seen)>() + size_of::<(Time, Name)>());

fn bytes_of(name: &Name) -> usize {
    ENTRY + name.as_bytes().len()
}

impl Observations {
    /// How many bytes of memory the claims that are remembered of one node may take: about 20,000 names of 20 bytes.
    pub const MOST_BYTES: usize = 4 * 1024 * 1024;

    /// Nothing was shown.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A refusal that was received now shows the claim version of the claim in the way, or that it has none. Returns when the
    /// claim may be replaced.
    pub fn handle_refused(
        &mut self,
        now: Time,
        name: &Name,
        version: Option<ClaimVersion>,
    ) -> Option<Time> {
        let Some(version) = version else {
            self.forget(name);
            return None;
        };
        let seen = match self.remove(name) {
            Some(seen) if seen.version == version => Seen {
                useful_until: seen.useful_until.max(now + KEPT),
                ..seen
            },
            _ => Seen::new(now, version),
        };
        self.make_room(now, name, seen);
        self.insert(name, seen);
        Some(seen.ends())
    }

    /// Drops what is of no use any more, and then what is of use last, until there is room for one more.
    fn make_room(&mut self, now: Time, name: &Name, seen: Seen) {
        while let Some((until, _)) = self.order.first()
            && *until <= now
            && let Some((_, useless)) = self.order.pop_first()
        {
            self.remove(&useless);
        }
        while Self::MOST_BYTES < self.bytes + bytes_of(name)
            && let Some((until, _)) = self.order.last()
            && seen.useful_until < *until
            && let Some((_, last)) = self.order.pop_last()
        {
            self.remove(&last);
        }
    }

    /// Keeps the observation if there is room.
    fn insert(&mut self, name: &Name, seen: Seen) {
        let bytes = bytes_of(name);
        if Self::MOST_BYTES < self.bytes + bytes {
            return;
        }
        self.bytes += bytes;
        self.order.insert((seen.useful_until, name.clone()));
        self.seen.insert(name.clone(), seen);
    }

    fn remove(&mut self, name: &Name) -> Option<Seen> {
        let seen = self.seen.remove(name)?;
        self.order.remove(&(seen.useful_until, name.clone()));
        self.bytes -= bytes_of(name);
        Some(seen)
    }

    /// The claim version whose claim a request that is sent now may replace.
    #[must_use]
    pub fn replaceable(&self, now: Time, name: &Name) -> Option<ClaimVersion> {
        let seen = self.seen.get(name)?;
        (seen.ends() <= now).then_some(seen.version)
    }

    /// The claim is no longer in the way.
    pub fn forget(&mut self, name: &Name) {
        self.remove(name);
    }

    /// What was shown may have been shown by another server, or before it forgot something.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::ClientId;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn version(number: u64) -> ClaimVersion {
        let client = ClientId::from_random(1);
        ClaimVersion {
            owner: OwnerId { client, number: 1 },
            number,
            lease_millis: 10_000,
        }
    }

    #[test]
    fn a_beat_that_stays_the_same_for_its_lease_and_drift_may_be_replaced() {
        let mut observed = Observations::new();
        for at in [5, 900, 10_000] {
            let ends = observed.handle_refused(ms(at), &name("a"), Some(version(1)));
            assert_eq!(ends, Some(ms(10_107)));
        }
        assert_eq!(observed.replaceable(ms(10_106), &name("a")), None);
        assert_eq!(
            observed.replaceable(ms(10_107), &name("a")),
            Some(version(1))
        );
        assert_eq!(observed.replaceable(ms(99_999), &name("b")), None);
    }

    /// Two clocks that are each wrong by 5,000 ppm differ by what one allowance covers. The holder's allowance, which its term
    /// leaves out of the lease, is enough by itself: the one of the contender is a second one.
    #[test]
    fn a_term_ends_before_a_lease_has_passed_on_another_clock_that_is_off_by_the_bound() {
        // Of a second of true time, the slow clock shows 995 ms and the fast one 1,005 ms.
        let (slow, fast) = (995, 1_005);
        for millis in 5..20_000 {
            let lease = Lease::new(Duration::from_millis(millis)).unwrap();
            let sent = ms(100);
            let term = lease.term(sent).since(sent).as_nanos();
            let seen = lease.length().as_nanos();
            assert!(term * fast <= seen * slow, "{lease:?}");
        }
    }

    #[test]
    fn another_beat_begins_anew_and_none_or_a_gap_ends_it() {
        let longer = ClaimVersion {
            lease_millis: 20_000,
            ..version(1)
        };
        for between in [Some(version(2)), Some(longer), None] {
            let mut observed = Observations::new();
            observed.handle_refused(ms(0), &name("a"), Some(version(1)));
            observed.handle_refused(ms(9_000), &name("a"), between);
            observed.handle_refused(ms(9_500), &name("a"), Some(version(1)));
            assert_eq!(observed.replaceable(ms(19_601), &name("a")), None);
            assert_eq!(
                observed.replaceable(ms(19_602), &name("a")),
                Some(version(1))
            );
            observed.clear();
            assert_eq!(observed.replaceable(ms(99_999), &name("a")), None);
        }
    }

    fn numbered(number: u64) -> Name {
        name(&format!("{:05}", 7_919 * number % 100_000))
    }

    /// How many names like those of [`numbered`] there is room for.
    fn most() -> u64 {
        (Observations::MOST_BYTES / bytes_of(&numbered(0))) as u64
    }

    #[test]
    fn the_claims_that_were_seen_first_are_remembered_and_replaceable_in_time() {
        let mut observed = Observations::new();
        let names = 2 * most();
        for round in 0..5 {
            for number in 0..names {
                // A waiter for each name asks again and again.
                let now = ms(100 * round + number / 1_000);
                observed.handle_refused(now, &numbered(number), Some(version(1)));
            }
        }
        let now = ms(10_102 + names / 1_000);
        let replaceable = |number: &u64| observed.replaceable(now, &numbered(*number)).is_some();
        assert_eq!((0..names).filter(replaceable).count() as u64, most());
        assert!((0..most()).all(|number| replaceable(&number)));
    }

    #[test]
    fn the_next_ones_come_in_when_those_are_replaced() {
        let mut observed = Observations::new();
        for number in 0..most() {
            observed.handle_refused(ms(0), &numbered(number), Some(version(1)));
        }
        let late = name("late!");
        assert_eq!(
            observed.handle_refused(ms(1), &late, Some(version(1))),
            Some(ms(10_103))
        );
        assert_eq!(observed.replaceable(ms(99_999), &late), None);
        observed.forget(&numbered(0));
        observed.handle_refused(ms(10_200), &late, Some(version(1)));
        assert_eq!(observed.replaceable(ms(20_302), &late), Some(version(1)));
    }

    #[test]
    fn what_ends_sooner_takes_the_place_of_what_ends_last() {
        let mut observed = Observations::new();
        for number in 0..most() {
            observed.handle_refused(ms(number), &numbered(number), Some(version(1)));
        }
        let short = ClaimVersion {
            lease_millis: 1_000,
            ..version(1)
        };
        let now = ms(most());
        observed.handle_refused(now, &name("short"), Some(short));
        let later = now + Duration::from_secs(11);
        assert_eq!(observed.replaceable(later, &name("short")), Some(short));
        assert_eq!(observed.replaceable(later, &numbered(most() - 1)), None);
        assert!(observed.replaceable(later, &numbered(0)).is_some());
    }

    #[test]
    fn what_is_not_looked_at_any_more_does_not_fill_the_list_for_ever() {
        let mut observed = Observations::new();
        for number in 0..most() {
            observed.handle_refused(ms(0), &numbered(number), Some(version(1)));
        }
        // A contender still looks at this one: other nodes do not answer it.
        observed.handle_refused(ms(50_000), &numbered(3), Some(version(1)));
        let over = ms(10_102) + KEPT;
        observed.handle_refused(over, &name("a"), Some(version(1)));
        assert_eq!(observed.seen.len(), 2);
        assert!(observed.replaceable(over, &numbered(3)).is_some());
        assert_eq!(observed.order.len(), 2);
    }

    #[test]
    fn the_bound_is_one_of_bytes() {
        let mut observed = Observations::new();
        let most = Observations::MOST_BYTES / bytes_of(&name(&"x".repeat(512)));
        for number in 0..2 * most as u64 {
            let long = name(&format!("{number:0512}"));
            observed.handle_refused(ms(number), &long, Some(version(1)));
            assert!(observed.bytes <= Observations::MOST_BYTES);
        }
        let bytes: usize = observed.seen.keys().map(bytes_of).sum();
        assert_eq!(bytes, observed.bytes);
        assert_eq!(observed.seen.len(), most);
        for name in observed.seen.clone().keys() {
            observed.forget(name);
        }
        assert_eq!(observed, Observations::new());
    }
}
