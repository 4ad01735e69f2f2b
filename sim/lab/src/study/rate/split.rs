//! A search whose runs are split over machines.
//!
//! What a search runs next depends on what it has found, and shards do not know what the others find. So each shard first runs the same
//! small *pilot*, a search of `PILOT` looks a stratum, and continues it on paper: each further look is assumed to break as often as the
//! runs of the pilot did. This says up to which look each stratum is run, and all shards come to the same numbers. The shards split
//! these runs. Every stratum ends at one of the looks at which its bounds hold (see [`super`]), so the bounds of the sum are as valid
//! as those of a search on one machine; the forecast only decides where runs are spent.

use super::deployment::Deployment;
use super::estimate::{Counts, Estimate, FIRST};
use super::search::{Found, QUIET, Quiet, Stage};
use super::strata::Strata;
use crate::study::results::{MergeError, ResultsError, Stored};
use crate::study::runs::{Cell, Extent, Runs, RunsError, Session};

/// The number of first looks that the pilot has, for each stratum.
const PILOT: u64 = 4;

impl Stage<'_> {
    /// Runs the part of a shard. The rows of the pilot are recorded by the first shard alone.
    pub(super) fn run_shard(&self, session: &mut Session) -> Result<Found, RunsError> {
        let shard = self.search.shard;
        let mut unrecorded = Session::default();
        let of_pilot = if shard.index == 0 {
            &mut *session
        } else {
            &mut unrecorded
        };
        if let Some(seed) = self.run_quiet(of_pilot)?.broken {
            return Ok(Found::BreaksAlone(seed));
        }
        let pilot = PILOT * FIRST * self.strata.all.len() as u64;
        let (before, extent) = self.search(of_pilot, pilot.min(self.search.most_runs))?;
        if extent == Extent::Partial {
            return Ok(Found::Shard(extent));
        }
        let runs = Runs {
            shard,
            ..Runs::all(self.rest(&before, &self.forecast(&before)), 1)
        };
        Ok(Found::Shard(self.run(session, runs, &mut |_, _| {})?))
    }

    /// Returns the counts with which the search would end if strata went on to break as often as they did.
    fn forecast(&self, before: &[Counts]) -> Vec<Counts> {
        let mut counts = before.to_vec();
        loop {
            let estimate = self.estimate(&counts);
            let next = self.search.next(&estimate, &counts, self.search.most_runs);
            let Some(counts) = next.and_then(|next| counts.get_mut(next)) else {
                return counts;
            };
            let runs = counts.next();
            counts.broken = (counts.broken * runs).div_ceil(counts.runs.max(1));
            counts.runs = runs;
            counts.looks += 1;
        }
    }

    /// Returns the cells of the runs between two counts.
    fn rest(&self, before: &[Counts], after: &[Counts]) -> Vec<Cell<'_>> {
        let pairs = before.iter().zip(after).enumerate();
        let cells =
            pairs.map(|(index, (before, after))| self.cell_of(index, before.runs..after.runs));
        cells.collect()
    }
}

impl Found {
    /// Reads what shards have found, which must be all shards of one search.
    ///
    /// # Errors
    /// Returns [`MergeError`] if a file has something else than rows of the deployment.
    pub fn read(deployment: &Deployment, shards: &[Stored]) -> Result<Self, MergeError> {
        let strata = Strata::of(deployment);
        let mut counts = vec![Counts::default(); strata.all.len()];
        let mut quiet = Quiet::default();
        for stored in shards {
            stored.rows(|row| {
                let is_broken = deployment.is_broken(&row);
                let mut names = strata.all.iter().map(|stratum| stratum.name.as_str());
                let index = names.position(|name| name == row.cell);
                match index.and_then(|index| counts.get_mut(index)) {
                    Some(counts) => counts.add(&row, is_broken),
                    None if row.cell == QUIET => quiet.add(&row, is_broken),
                    None => return Err(format!("{:?} is no stratum of the deployment", row.cell)),
                }
                Ok(())
            })?;
        }
        for counts in &mut counts {
            counts.looks = looks(counts.runs).ok_or_else(|| incomplete(shards, counts.runs))?;
        }
        Ok(match quiet.broken {
            Some(seed) => Found::BreaksAlone(seed),
            None => {
                let estimate = Estimate::of(deployment, &strata, &counts, &quiet.served);
                Found::Estimate(estimate)
            }
        })
    }
}

/// Returns how many times a stratum was looked at when it had this many runs: 64, 128 and so on. `None` for any other number.
fn looks(runs: u64) -> Option<u32> {
    let is_look = runs.is_multiple_of(FIRST) && (runs / FIRST).is_power_of_two();
    match runs {
        0 => Some(0),
        _ => is_look.then(|| (runs / FIRST).ilog2() + 1),
    }
}

fn incomplete(shards: &[Stored], runs: u64) -> ResultsError {
    let path = shards.first().map(|stored| stored.folder.clone());
    ResultsError::Foreign {
        path: path.unwrap_or_default(),
        reason: format!("a stratum has {runs} runs, which is no number at which bounds hold"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_at_doubled_numbers_of_runs() {
        let all = [0, 64, 128, 65_536, 63, 192].map(looks);
        assert_eq!(all, [Some(0), Some(1), Some(2), Some(11), None, None]);
    }
}
