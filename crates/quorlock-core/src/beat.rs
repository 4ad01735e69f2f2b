//! Leases that do not trust a node's clock: margin, beat, and take-over by observation.
//!
//! Redis expires keys by its wall clock, and a forward step of it would end a claim before its time. With a margin a
//! node keeps a claim for that much longer than its lease. So that a dead holder does not block its name for as long,
//! the claim has the holder's *beat*: the number of its last request, and the lease that it stated.
//! A contender to which the same beat was shown for that lease, on its own clock, knows that the holder's lease is over
//! and may replace the claim.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::lease::{Lease, drift};
use crate::name::Name;
use crate::owner::OwnerId;
use crate::time::Time;

/// How a claim is kept beyond its lease.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Keep {
    /// For how much longer.
    pub margin_millis: u64,
    /// The number of the request among those of its owner, never given to a second one. The node keeps the largest
    /// that it executed.
    pub number: u64,
}

impl Keep {
    /// The beat that the request gives the claim.
    #[must_use]
    pub fn beat(self, owner: OwnerId, lease: Lease) -> Beat {
        Beat {
            owner,
            number: self.number,
            lease_millis: lease.millis(),
        }
    }
}

/// The beat of a claim, as a refusal shows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Beat {
    /// Whose claim it is.
    pub owner: OwnerId,
    /// The largest number of its requests that was executed.
    pub number: u64,
    /// The lease that this request stated.
    pub lease_millis: u64,
}

/// What one node has shown to one client of the claims in its way.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Observations {
    seen: BTreeMap<Name, Seen>,
}

/// A beat, and when it was first shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Seen {
    beat: Beat,
    since: Time,
}

impl Seen {
    /// When the holder has certainly stopped to rely on the claim, unless another beat is shown.
    fn ends(self) -> Time {
        let lease = Duration::from_millis(self.beat.lease_millis);
        self.since + lease + drift(lease)
    }
}

impl Observations {
    /// How many claims are remembered of one node.
    pub const MOST: usize = 1024;

    /// Nothing was shown.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A refusal that was received now shows the beat of the claim in the way, or that it has none. Returns when the
    /// claim may be replaced.
    pub fn handle_refused(&mut self, now: Time, name: &Name, beat: Option<Beat>) -> Option<Time> {
        let Some(beat) = beat else {
            self.forget(name);
            return None;
        };
        if let Some(seen) = self.seen.get_mut(name) {
            if seen.beat != beat {
                *seen = Seen { beat, since: now };
            }
            return Some(seen.ends());
        }
        if Self::MOST <= self.seen.len() {
            let mut all = self.seen.iter();
            let first = all.next().map(|(name, seen)| (name, seen.since));
            let oldest = all.fold(first, |oldest, (name, seen)| match oldest {
                Some((_, since)) if since <= seen.since => oldest,
                _ => Some((name, seen.since)),
            });
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                self.seen.remove(&name);
            }
        }
        let seen = Seen { beat, since: now };
        self.seen.insert(name.clone(), seen);
        Some(seen.ends())
    }

    /// The beat whose claim a request that is sent now may replace.
    #[must_use]
    pub fn replaceable(&self, now: Time, name: &Name) -> Option<Beat> {
        let seen = self.seen.get(name)?;
        (seen.ends() <= now).then_some(seen.beat)
    }

    /// The claim is no longer in the way.
    pub fn forget(&mut self, name: &Name) {
        self.seen.remove(name);
    }

    /// What was shown may have been shown by another server, or before it forgot something.
    pub fn clear(&mut self) {
        self.seen.clear();
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

    fn beat(number: u64) -> Beat {
        let client = ClientId::from_random(1);
        Beat {
            owner: OwnerId { client, number: 1 },
            number,
            lease_millis: 10_000,
        }
    }

    #[test]
    fn a_beat_that_stays_the_same_for_its_lease_and_drift_may_be_replaced() {
        let mut observed = Observations::new();
        for at in [5, 900, 10_000] {
            let ends = observed.handle_refused(ms(at), &name("a"), Some(beat(1)));
            assert_eq!(ends, Some(ms(10_107)));
        }
        assert_eq!(observed.replaceable(ms(10_106), &name("a")), None);
        assert_eq!(observed.replaceable(ms(10_107), &name("a")), Some(beat(1)));
        assert_eq!(observed.replaceable(ms(99_999), &name("b")), None);
    }

    #[test]
    fn another_beat_begins_anew_and_none_or_a_gap_ends_it() {
        let longer = Beat {
            lease_millis: 20_000,
            ..beat(1)
        };
        for between in [Some(beat(2)), Some(longer), None] {
            let mut observed = Observations::new();
            observed.handle_refused(ms(0), &name("a"), Some(beat(1)));
            observed.handle_refused(ms(9_000), &name("a"), between);
            observed.handle_refused(ms(9_500), &name("a"), Some(beat(1)));
            assert_eq!(observed.replaceable(ms(19_601), &name("a")), None);
            assert_eq!(observed.replaceable(ms(19_602), &name("a")), Some(beat(1)));
            observed.clear();
            assert_eq!(observed.replaceable(ms(99_999), &name("a")), None);
        }
    }

    #[test]
    fn the_claim_that_was_seen_first_is_forgotten_first() {
        let mut observed = Observations::new();
        for number in 0..=Observations::MOST as u64 {
            let name = name(&format!("{:04}", 7_919 * number % 10_000));
            observed.handle_refused(ms(number), &name, Some(beat(1)));
        }
        assert_eq!(observed.seen.len(), Observations::MOST);
        assert!(!observed.seen.contains_key(&name("0000")));
        assert!(observed.seen.contains_key(&name("7919")));
    }
}
