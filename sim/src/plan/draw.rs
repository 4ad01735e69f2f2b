//! Randomness: one seed, split by purpose.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// What a stream of random numbers is for. **Append only**: a new purpose leaves the numbers of the others as they
/// are, so that a seed goes on telling the same story.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(crate) enum Purpose {
    /// The plan that a seed stands for.
    Plan = 1,
    /// Latencies of one link.
    Latency = 2,
    /// What a fault does to the messages of one link.
    Fault = 3,
    /// What one client process draws through its runtime.
    Client = 4,
    /// What the workload of one client draws.
    Workload = 5,
    /// Where the clocks of a process begin.
    Clock = 6,
    /// By what a simulated server is told from others.
    ServerIds = 7,
    /// The faults of a run of the matrix.
    Matrix = 8,
    /// What turmoil draws, in the lane of sockets.
    Sockets = 9,
    /// Groups and their sentinels.
    Groups = 10,
    /// The faults of a storm on real servers.
    Storms = 11,
    /// How long messages to and from resources of a user's own take, and which are lost.
    Resources = 12,
    /// What goes wrong with resources of a user's own.
    Outages = 13,
    /// Clusters and their shards.
    Clusters = 14,
}

/// A stream of random numbers that is the same on every platform.
#[derive(Clone, Debug)]
pub(crate) struct Draw(Xoshiro256PlusPlus);

impl Draw {
    /// The `index`-th stream for a purpose.
    pub(crate) fn new(seed: u64, purpose: Purpose, index: u64) -> Self {
        Draw(Xoshiro256PlusPlus::seed_from_u64(stream(
            seed, purpose, index,
        )))
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `least..=most`.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        let span = most.saturating_sub(least).saturating_add(1);
        let high = (u128::from(self.bits()) * u128::from(span)) >> 64;
        least + u64::try_from(high).unwrap_or(0)
    }

    /// A number in `least..=most`, of either sign.
    pub(crate) fn signed(&mut self, least: i64, most: i64) -> i64 {
        let span = most.saturating_sub(least).unsigned_abs();
        least.saturating_add_unsigned(self.between(0, span))
    }

    /// Below `len`, which is not 0.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        let most = u64::try_from(len.saturating_sub(1)).unwrap_or(0);
        usize::try_from(self.between(0, most)).unwrap_or(0)
    }

    /// True in `of_million` of a million cases.
    pub(crate) fn chance(&mut self, of_million: u32) -> bool {
        self.between(0, 999_999) < u64::from(of_million)
    }
}

/// The seed of the `index`-th stream for a purpose.
pub(crate) const fn stream(seed: u64, purpose: Purpose, index: u64) -> u64 {
    mix(mix(mix(seed) ^ (purpose as u64)) ^ index)
}

/// A bijection that leaves no pattern (the finaliser of SplitMix64).
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
