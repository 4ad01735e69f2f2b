//! Random numbers: one seed, split into streams by purpose.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The purpose of a stream of random numbers. **Append only**: a new purpose must not change the numbers of the other
/// streams, so that a seed always leads to the same run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Purpose {
    /// The choices of the plan of a seed.
    Plan = 1,
    /// The latencies of one link.
    Latency = 2,
    /// The effects of a fault on the messages of one link.
    Fault = 3,
    /// The random numbers that one client process draws through its runtime.
    Client = 4,
    /// The choices in the workload of one client.
    Workload = 5,
    /// The initial readings of a process's clocks.
    Clock = 6,
    /// The identities of simulated servers.
    ServerIds = 7,
    /// The faults of a run of the matrix.
    Matrix = 8,
    /// The randomness inside turmoil, in the lane over sockets.
    Sockets = 9,
    /// The times of groups and their sentinels.
    Groups = 10,
    /// The faults of a storm on real servers.
    Storms = 11,
    /// The latencies and losses of messages to and from a user's own resources.
    Resources = 12,
    /// The outages of a user's own resources.
    Outages = 13,
    /// The times of clusters and their shards.
    Clusters = 14,
    /// The kinds of nodes that are stores.
    Stores = 15,
    /// The faults that strike at random times.
    Strikes = 16,
    /// The numbers of a plan that a study draws.
    Parameters = 17,
    /// The points of a study that fill a space.
    Points = 18,
    /// The branches of a run, which draw anew what follows an instant.
    Branches = 19,
}

/// A stream of random numbers that is the same on every platform.
#[derive(Clone, Debug)]
pub struct Draw(Xoshiro256PlusPlus);

impl Draw {
    /// Creates the `index`-th stream for a purpose.
    pub fn new(seed: u64, purpose: Purpose, index: u64) -> Self {
        Draw(Xoshiro256PlusPlus::seed_from_u64(stream(
            seed, purpose, index,
        )))
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number in `min..=max`.
    pub fn between(&mut self, min: u64, max: u64) -> u64 {
        scaled(self.bits(), min, max)
    }

    /// Goes on as another stream, which follows from this one and from a seed.
    pub fn branch_off(&mut self, seed: u64) {
        self.0 = Xoshiro256PlusPlus::seed_from_u64(branched(self.bits(), seed));
    }

    /// Returns a number in `min..=max`, which may be negative.
    pub fn signed(&mut self, min: i64, max: i64) -> i64 {
        let span = max.saturating_sub(min).unsigned_abs();
        min.saturating_add_unsigned(self.between(0, span))
    }

    /// Returns a number below `len`. `len` must not be 0.
    pub fn index(&mut self, len: usize) -> usize {
        let max = u64::try_from(len.saturating_sub(1)).unwrap_or(0);
        usize::try_from(self.between(0, max)).unwrap_or(0)
    }

    /// Returns `true` with a probability of `of_million` in a million.
    pub fn chance(&mut self, of_million: u32) -> bool {
        self.between(0, 999_999) < u64::from(of_million)
    }
}

/// Returns a number in `min..=max` that follows from random bits.
#[must_use]
pub fn scaled(bits: u64, min: u64, max: u64) -> u64 {
    let span = max.saturating_sub(min).saturating_add(1);
    let high = (u128::from(bits) * u128::from(span)) >> 64;
    min + u64::try_from(high).unwrap_or(0)
}

/// Returns other random bits, which follow from these and from a seed.
#[must_use]
pub const fn branched(bits: u64, seed: u64) -> u64 {
    mix(bits ^ mix(seed))
}

/// Returns the seed of the `index`-th stream for a purpose.
pub const fn stream(seed: u64, purpose: Purpose, index: u64) -> u64 {
    mix(mix(mix(seed) ^ (purpose as u64)) ^ index)
}

/// Mixes the bits of a number: the finalizer of SplitMix64, a bijection without visible patterns.
pub(crate) const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_the_same_for_ever() {
        let mut draw = Draw::new(1, Purpose::Latency, 0);
        let drawn: Vec<u64> = (0..3).map(|_| draw.between(0, 999)).collect();
        assert_eq!(drawn, DRAWN);
    }

    const DRAWN: [u64; 3] = [590, 246, 323];

    #[test]
    fn bounds_are_inclusive() {
        let mut draw = Draw::new(7, Purpose::Fault, 3);
        let mut seen = [0u32; 3];
        for _ in 0..300 {
            seen[draw.between(0, 2) as usize] += 1;
            assert!((-1..=1).contains(&draw.signed(-1, 1)));
        }
        assert!(seen.iter().all(|n| 60 < *n), "{seen:?}");
        assert_eq!(draw.between(5, 5), 5);
    }
}
