//! Leases that do not depend on a node's clock: margin, claim version, and take-over by observation.
//!
//! A node expires claims by its wall clock, so a forward step of that clock could end a claim too early. With a margin,
//! a node keeps a claim for that much longer than its lease. A dead holder must not block its name for as long. Each
//! claim therefore carries the holder's *claim version*: the number of its last request, and the lease that this
//! request stated. A contender that was shown the same claim version for the length of that lease, on its own clock,
//! can conclude that the holder's lease is over, and may replace the claim.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::lease::{Lease, drift};
use crate::name::Name;
use crate::owner::OwnerId;
use crate::time::Time;

/// How long a node keeps a claim beyond its lease, and the number of the request that states it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClockMargin {
    /// How much longer than its lease the node keeps the claim, in milliseconds.
    pub margin_millis: u64,
    /// The number of the request among the requests of its owner. The node keeps the largest that it executed. No two
    /// requests of an owner have the same number, and a later statement of the lease has a larger one. Otherwise a
    /// renewal for 1 s could replace the version of an extension for 5 s, and B would replace the claim after 1 s.
    pub number: u64,
}

impl ClockMargin {
    /// Returns the claim version that the request gives the claim.
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
    /// Owner of the claim.
    pub owner: OwnerId,
    /// The largest number of the owner's requests that the node executed.
    pub number: u64,
    /// The lease that this request stated, in milliseconds.
    pub lease_millis: u64,
}

/// The claim versions that one node has shown to one client.
///
/// The memory is bounded in bytes, so that names cannot fill the memory of a client. When the bound is reached, the
/// claims that can be replaced soonest are kept. If a new claim displaced an older one, it could not be taken over
/// any sooner than that one. With more names than there is room for, no claim would then be observed for the whole
/// length of its lease.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Observations {
    seen: BTreeMap<Name, Seen>,
    /// The same names, ordered by [`Seen::useful_until`].
    order: BTreeSet<(Time, Name)>,
    bytes: usize,
}

/// A claim version, and when it was first shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Seen {
    version: ClaimVersion,
    since: Time,
    /// From this time on, the observation is dropped to make room for another.
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

    /// Returns when the holder has certainly stopped relying on the claim, unless another claim version is shown
    /// before.
    fn ends(self) -> Time {
        // The observation counts from the receipt of the first refusal that showed this version: A's term counts from
        // when A sent the request, which is earlier. The drift is a second allowance, for a fast clock of B; A's term
        // is already shorter than the lease by one allowance.
        let lease = Duration::from_millis(self.version.lease_millis);
        self.since + lease + drift(lease)
    }
}

/// How long an observation is kept after its claim may be replaced, or after it was last shown if that is later. A
/// waiter asks as soon as the claim may be replaced. An unused observation belongs to a contender that has given up
/// or to a claim that was released, and would otherwise stay in the list for ever.
const KEPT: Duration = Duration::from_secs(60);

/// Size of an observation in memory without its name, in bytes: the entries of two trees, which are half full at worst.
const ENTRY: usize = 2 * (size_of::<(Name, Seen)>() + size_of::<(Time, Name)>());

fn bytes_of(name: &Name) -> usize {
    ENTRY + name.as_bytes().len()
}

impl Observations {
    /// Upper bound of the memory for the observations of one node, in bytes: about 20,000 names of 20 bytes.
    pub const MOST_BYTES: usize = 4 * 1024 * 1024;

    /// Returns an empty list of observations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles a refusal that was received now and shows the claim version of the claim in the way, or that it has
    /// none. Returns when the claim may be replaced.
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
        // Take-over: A renews between two refusals that B receives, and the second one shows another version. If B
        // still counted from the first one, it would replace a claim that A relies on. Therefore only the same version
        // continues the observation, and any other one restarts it.
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

    /// Drops observations that are no longer useful, and then those that end last, until there is room for one more.
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

    /// Stores the observation if there is room.
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

    /// Returns the claim version that a request sent now may replace.
    #[must_use]
    pub fn replaceable(&self, now: Time, name: &Name) -> Option<ClaimVersion> {
        // Before this time A may still rely on the claim: its last renewal is less than a lease old.
        let seen = self.seen.get(name)?;
        (seen.ends() <= now).then_some(seen.version)
    }

    /// Drops the observation, because the claim is no longer in the way.
    pub fn forget(&mut self, name: &Name) {
        self.remove(name);
    }

    /// Drops all observations: they may be those of another server, or of this one before it lost data.
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

    /// Two clocks that are each wrong by 5,000 ppm differ by what one allowance covers. The allowance that the holder's
    /// term subtracts from the lease is enough by itself; the allowance of the contender is a second one.
    #[test]
    fn a_term_ends_before_a_lease_has_passed_on_another_clock_that_is_off_by_the_bound() {
        // In one second of true time, the slow clock shows 995 ms and the fast one 1,005 ms.
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
        // A contender still asks for this one: other nodes do not answer it.
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
