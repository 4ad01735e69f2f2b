//! Campaigns: many runs, on all cores.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use crate::simulation::run;
use crate::study::export;
use crate::study::failure::{Failure, FileError};
use crate::study::pool::share_out;
use crate::study::progress::{self, Counting};
use crate::study::time_limit::TimeLimit;
use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_plan::generator::PlanGenerator;

/// The configuration of a campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The generator of plans.
    pub generator: PlanGenerator,
    /// The range of seeds.
    pub seeds: Range<u64>,
    /// The part of the seeds that this campaign runs.
    pub shard: Shard,
    /// The number of threads.
    pub jobs: usize,
    /// What happens after a failure.
    pub after_failure: AfterFailure,
    /// The folder into which failures are written, or `None` to write none.
    pub out: Option<PathBuf>,
    /// The folder into which the history of every run is written, or `None` to write none.
    pub histories: Option<PathBuf>,
}

/// One of several parts of a campaign that is split over machines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// The index of the part, from 0.
    pub index: u64,
    /// The number of parts.
    pub of: u64,
}

impl Shard {
    /// Returns the number of seeds of this shard.
    pub(super) fn len(self, seeds: &Range<u64>) -> u64 {
        let all = seeds.end.saturating_sub(seeds.start);
        let before = self.index.min(all);
        (all - before).div_ceil(self.of.max(1))
    }
}

/// What a campaign does when a run fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterFailure {
    /// The campaign ends.
    Stop,
    /// The campaign continues to the last seed.
    GoOn,
}

/// The result of a campaign. Its size is independent of the number of runs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// The number of runs.
    pub runs: u64,
    /// The number of runs in which no client acquired anything.
    pub vacuous_runs: u64,
    /// The number of holds that were won.
    pub holds: u64,
    /// The number of requests that nodes executed.
    pub commands: u64,
    /// The number of acquires that were refused because of another owner's claim.
    pub refused: u64,
    /// For each property that was broken, the number of runs that broke it.
    pub violated: BTreeMap<String, u64>,
    /// The smallest seed that broke a property, with the name of the property.
    pub first: Option<(u64, String)>,
    /// Whether a safety property was broken.
    pub is_unsafe: bool,
    /// For each kind, the number of faults and the number of those that had an effect.
    pub faults: BTreeMap<String, (u64, u64)>,
    /// The files that were written.
    pub files: Vec<PathBuf>,
}

/// The largest number of failures that a campaign writes.
const MOST_FILES: usize = 100;

impl Summary {
    /// Adds the result of one run.
    pub fn add(&mut self, run: &Run) {
        self.runs += 1;
        self.holds += u64::from(run.history.holds);
        self.commands += run.counters.commands;
        self.refused += run.counters.refused;
        for (fault, effects) in run.plan.faults.iter().zip(&run.effects) {
            let entry = self.faults.entry(fault.kind().name().to_owned());
            let (drawn, effective) = entry.or_default();
            *drawn += 1;
            *effective += u64::from(0 < *effects);
        }
        match &run.verdict {
            Verdict::Holds => {}
            Verdict::Vacuous => self.vacuous_runs += 1,
            Verdict::Violated(violation) => {
                let property = violation.property;
                let name = property.name().to_owned();
                *self.violated.entry(name.clone()).or_default() += 1;
                self.is_unsafe |= !property.is_liveness();
                let seed = run.plan.seed;
                if self.first.as_ref().is_none_or(|(first, _)| seed < *first) {
                    self.first = Some((seed, name));
                }
            }
        }
    }

    /// Adds the summary of other runs. It does not check which runs they are: see `Part::merge`.
    pub fn merge(&mut self, other: Summary) {
        self.runs += other.runs;
        self.vacuous_runs += other.vacuous_runs;
        self.holds += other.holds;
        self.commands += other.commands;
        self.refused += other.refused;
        for (name, count) in other.violated {
            *self.violated.entry(name).or_default() += count;
        }
        for (name, (drawn, effective)) in other.faults {
            let entry = self.faults.entry(name).or_default();
            entry.0 += drawn;
            entry.1 += effective;
        }
        self.first = match (self.first.take(), other.first) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.is_unsafe |= other.is_unsafe;
        self.files.extend(other.files);
        self.files.truncate(MOST_FILES);
    }

    /// Returns the reason why the campaign shows nothing, if there is one: too few holds, no contention, or a kind of
    /// fault that never had an effect.
    #[must_use]
    pub fn vacuity(&self) -> Option<String> {
        if self.runs == 0 {
            return Some("no run".to_owned());
        }
        if self.holds < 2 * self.runs {
            return Some(format!("only {} holds in {} runs", self.holds, self.runs));
        }
        if self.refused == 0 {
            return Some("no acquire ever found the lock held by another client".to_owned());
        }
        let idle = self
            .faults
            .iter()
            // With fewer than 20 faults, it may be chance that none had an effect.
            .find(|(_, (drawn, done))| 20 <= *drawn && *done == 0);
        idle.map(|(kind, (drawn, _))| format!("{drawn} faults of kind {kind} never did anything"))
    }

    /// Returns the exit code of the command.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        if self.is_unsafe {
            2
        } else if !self.violated.is_empty() {
            3
        } else if self.vacuity().is_some() {
            4
        } else {
            0
        }
    }

    fn sort(&mut self) {
        self.files.sort();
    }
}

/// The number of seeds that a thread takes at a time. It is small, because at the end all threads wait for the one
/// that took the last seeds.
const BATCH: u64 = 4;

impl Campaign {
    /// Runs the campaign.
    ///
    /// # Errors
    /// Returns [`FileError`] if a failure cannot be written.
    pub fn run(&self) -> Result<Summary, FileError> {
        let len = self.len();
        let bar = progress::bar(len, Counting::Runs);
        let files = AtomicUsize::new(0);
        let limit = TimeLimit::new();
        let mut summary = Summary::default();
        let mut trouble = None;
        let work = |batch| {
            let nths = batch * BATCH..len.min((batch + 1) * BATCH);
            let steps = nths.end - nths.start;
            let part = self.batch(nths, &files, &limit);
            bar.inc(steps);
            part
        };
        let take = |part| match part {
            Ok((part, flow)) => {
                summary.merge(part);
                flow
            }
            Err(error) => {
                trouble = Some(error);
                ControlFlow::Break(())
            }
        };
        share_out(self.jobs, 0..len.div_ceil(BATCH), work, take);
        bar.finish_and_clear();
        if let Some(trouble) = trouble {
            return Err(trouble);
        }
        summary.sort();
        Ok(summary)
    }

    /// Runs some seeds of this shard. Returns `Break` after a failure that ends the campaign.
    fn batch(
        &self,
        nths: Range<u64>,
        files: &AtomicUsize,
        limit: &TimeLimit,
    ) -> Result<(Summary, ControlFlow<()>), FileError> {
        let mut summary = Summary::default();
        for nth in nths {
            let seed = self.seed(nth);
            let ended = limit.with(seed, || run(&Rc::new(self.generator.plan(seed))));
            summary.add(&ended);
            if let Some(folder) = &self.histories {
                export::write(&ended, folder)?;
            }
            if let Verdict::Violated(_) = &ended.verdict {
                summary.files.extend(self.write(&ended, files)?);
                if self.after_failure == AfterFailure::Stop {
                    return Ok((summary, ControlFlow::Break(())));
                }
            }
        }
        Ok((summary, ControlFlow::Continue(())))
    }

    /// Writes a failure, unless no failures are written or the limit is reached.
    fn write(&self, run: &Run, files: &AtomicUsize) -> Result<Option<PathBuf>, FileError> {
        let Some(out) = &self.out else {
            return Ok(None);
        };
        // Count before writing. Otherwise several threads could each see 99 files, and all of them write one.
        if MOST_FILES <= files.fetch_add(1, Ordering::Relaxed) {
            return Ok(None);
        }
        Failure::of(run).write(out).map(Some)
    }

    /// Returns the seed and the trace hash of every run, in the order of seeds. A change that must not alter behaviour
    /// leaves the hashes as they are. Failures are neither checked nor written.
    #[must_use]
    pub fn traces(&self) -> Vec<(u64, u64)> {
        let len = self.len();
        let bar = progress::bar(len, Counting::Runs);
        let mut traces = Vec::new();
        let work = |nth| {
            let seed = self.seed(nth);
            let trace = run(&Rc::new(self.generator.plan(seed))).trace;
            bar.inc(1);
            (seed, trace)
        };
        let take = |trace| {
            traces.push(trace);
            ControlFlow::Continue(())
        };
        share_out(self.jobs, 0..len, work, take);
        bar.finish_and_clear();
        traces.sort_unstable();
        traces
    }

    /// Returns the number of seeds of this shard.
    fn len(&self) -> u64 {
        self.shard.len(&self.seeds)
    }

    fn seed(&self, nth: u64) -> u64 {
        self.seeds.start + self.shard.index + nth * self.shard.of.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn campaign(index: u64, of: u64) -> Campaign {
        Campaign {
            generator: PlanGenerator::default(),
            seeds: 10..21,
            shard: Shard { index, of },
            jobs: 1,
            after_failure: AfterFailure::GoOn,
            out: None,
            histories: None,
        }
    }

    #[test]
    fn shards_share_the_seeds() {
        for of in 1..14 {
            let mut seeds: Vec<u64> = (0..of)
                .flat_map(|index| {
                    let campaign = campaign(index, of);
                    (0..campaign.len()).map(move |nth| campaign.seed(nth))
                })
                .collect();
            seeds.sort_unstable();
            assert_eq!(seeds, (10..21).collect::<Vec<_>>(), "{of}");
        }
    }
}
