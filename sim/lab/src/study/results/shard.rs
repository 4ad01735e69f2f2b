//! Parts of runs that are split over machines.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// One of several parts of runs that are split over machines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// The index of the part, from 0.
    pub index: u64,
    /// The number of parts.
    pub of: u64,
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl Shard {
    /// The only part.
    pub const WHOLE: Shard = Shard { index: 0, of: 1 };

    /// Returns the number of seeds of this shard.
    pub(in crate::study) fn len(self, seeds: &Range<u64>) -> u64 {
        let all = seeds.end.saturating_sub(seeds.start);
        let before = self.index.min(all);
        (all - before).div_ceil(self.of.max(1))
    }

    /// Returns a seed of this shard by its number, from 0.
    pub(in crate::study) fn seed(self, seeds: &Range<u64>, nth: u64) -> u64 {
        seeds.start + self.index + nth * self.of.max(1)
    }

    /// Returns the number of a seed in this shard, from 0, or `None` if it is not one of them.
    pub(in crate::study) fn nth(self, seeds: &Range<u64>, seed: u64) -> Option<u64> {
        let from = seed.checked_sub(seeds.start)?.checked_sub(self.index)?;
        let of = self.of.max(1);
        (seeds.contains(&seed) && from.is_multiple_of(of)).then_some(from / of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_share_the_seeds() {
        let all = 10..21;
        for of in 1..14 {
            let mut seeds = Vec::new();
            for index in 0..of {
                let shard = Shard { index, of };
                for nth in 0..shard.len(&all) {
                    let seed = shard.seed(&all, nth);
                    assert_eq!(shard.nth(&all, seed), Some(nth), "{seed} of {shard}");
                    seeds.push(seed);
                }
            }
            seeds.sort_unstable();
            assert_eq!(seeds, all.clone().collect::<Vec<_>>(), "{of}");
        }
        let second = Shard { index: 1, of: 3 };
        let others = [9, 10, 12, 21, 23].map(|seed| second.nth(&all, seed));
        assert_eq!(others, [None; 5]);
    }
}
