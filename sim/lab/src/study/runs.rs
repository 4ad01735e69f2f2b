//! Many runs, on all cores: cells of plans, each with a range of seeds, of which a shard is run.
//!
//! Every command that runs many runs is made of these. The rows that it receives are the same, in the same order within a
//! cell, on any number of threads and after any number of interruptions.

mod ordered;
mod session;
mod work;

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::time::Duration;

use serde::Serialize;

use crate::simulation::run;
use crate::study::failure::FileError;
use crate::study::measure::Measure;
use crate::study::pool::share_out;
use crate::study::progress::{self, Counting};
use crate::study::results::{CellSeeds, Manifest, Recorder, ResultsError, Row, Shard};
use ordered::Ordered;
use quorlock_sim_check::determinism::Difference;
use quorlock_sim_check::run::Run;
use quorlock_sim_plan::Plan;
pub use session::Session;
use work::{Piece, Work};

/// Cells of plans, with what of them is run.
#[derive(Debug)]
pub struct Runs<'a> {
    /// The cells.
    pub cells: Vec<Cell<'a>>,
    /// The part of the seeds of each cell that is run.
    pub shard: Shard,
    /// The number of threads.
    pub jobs: usize,
    /// After this time no further run begins.
    pub within: Option<Duration>,
}

/// Plans that differ in the seed alone, or are drawn from it.
pub struct Cell<'a> {
    /// The name of the cell in rows.
    pub name: String,
    /// The seeds of all shards.
    pub seeds: Range<u64>,
    /// Returns the plan of a seed.
    pub plan: Box<dyn Fn(u64) -> Plan + Sync + 'a>,
    /// A measurement that is made of each run.
    pub measure: Option<Measure>,
    /// Returns whether a row is the last of its cell: no later seed is asked for. `None` if all seeds are.
    pub is_last: Option<IsLast<'a>>,
}

impl fmt::Debug for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell")
            .field("name", &self.name)
            .field("seeds", &self.seeds)
            .finish_non_exhaustive()
    }
}

/// Returns whether no row behind this one is asked for.
pub type IsLast<'a> = Box<dyn Fn(&Row) -> bool + Sync + 'a>;

/// Where the rows are recorded.
#[derive(Debug)]
pub struct Target<'a> {
    /// The folder of results.
    pub folder: &'a Path,
    /// Whether there are results that are continued.
    pub start: Start,
    /// What runs.
    pub manifest: Manifest,
}

/// How results are begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// There are none yet.
    New,
    /// Those that are there are continued.
    Resumed,
}

/// Whether all runs have ended that were asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// All have.
    Complete,
    /// The time was over before all had.
    Partial,
}

/// The error of many runs.
#[derive(Debug, thiserror::Error)]
pub enum RunsError {
    /// The results cannot be read or written.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// A file of one run cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A run is not the same when it is made again.
    #[error(transparent)]
    Differs(#[from] Box<Difference>),
}

/// What is done with a run before its row counts.
pub type WithRun<'a> = &'a (dyn Fn(&Run) -> Result<(), RunsError> + Sync);

/// Receives the index of a cell, and a row of it.
pub type TakeRow<'a> = &'a mut (dyn FnMut(usize, Row) + Send);

/// The number of seeds that a thread takes at a time. It is small, because at the end all threads wait for the one that
/// took the last seeds.
const BATCH: u64 = 4;

/// The number of runs that tell builds apart.
const PROBES: usize = 4;

impl<'a> Runs<'a> {
    /// Creates runs of all seeds of cells.
    #[must_use]
    pub fn all(cells: Vec<Cell<'a>>, jobs: usize) -> Self {
        Runs {
            cells,
            shard: Shard::WHOLE,
            jobs,
            within: None,
        }
    }

    /// Runs everything that is asked for, and records nothing but what `take` does with the rows. It receives those of each
    /// cell in the order of their seeds.
    pub fn run(&self, take: TakeRow<'_>) {
        let done = self.record(None, &|_| Ok(()), take);
        done.expect("BUG: nothing is written");
    }

    /// Runs everything that is asked for. `take` receives the rows of each cell in the order of their seeds, also those
    /// that were there before.
    ///
    /// # Errors
    /// Returns [`RunsError`] if results cannot be read or written, or for an error of `with_run`.
    pub fn record(
        &self,
        target: Option<Target<'_>>,
        with_run: WithRun<'_>,
        take: TakeRow<'_>,
    ) -> Result<Extent, RunsError> {
        let mut ordered = Ordered::new(self, take);
        let recorder = target.map(|target| match target.start {
            Start::New => Recorder::begin(target.folder, target.manifest),
            Start::Resumed => {
                Recorder::resume(target.folder, target.manifest, |row| ordered.push_read(row))
            }
        });
        let mut recorder = recorder.transpose()?;
        let extent = self.drive(ordered, &mut recorder, with_run)?;
        if let Some(recorder) = recorder {
            recorder.end(extent == Extent::Complete)?;
        }
        Ok(extent)
    }

    /// Runs what is not there, and records it.
    fn drive<'r>(
        &'r self,
        ordered: Ordered<'r>,
        recorder: &mut Option<Recorder>,
        with_run: WithRun<'r>,
    ) -> Result<Extent, RunsError> {
        let bar = progress::bar(self.total(), Counting::Runs);
        bar.set_position(ordered.settled());
        bar.reset_eta();
        let work = Work::new(self, with_run, ordered, recorder);
        let piece = |piece| {
            work.run(&piece);
            bar.set_position(work.settled());
        };
        std::thread::scope(|scope| {
            let (until_dropped, is_dropped) = channel::<()>();
            scope.spawn(|| work.flush_until(is_dropped));
            let go_on = |()| ControlFlow::Continue(());
            share_out(self.jobs, self.pieces().into_iter(), piece, go_on);
            drop(until_dropped);
        });
        bar.finish_and_clear();
        work.end()
    }

    /// Returns the pieces of work. A cell that may end early is one piece if there are other cells, so that nothing behind
    /// its last row is run in vain.
    fn pieces(&self) -> Vec<Piece> {
        let is_alone = self.cells.len() == 1;
        let mut pieces = Vec::new();
        for (index, cell) in self.cells.iter().enumerate() {
            let len = self.shard.len(&cell.seeds);
            let is_whole = cell.is_last.is_some() && !is_alone;
            let batch = if is_whole { len.max(1) } else { BATCH };
            pieces.extend((0..len.div_ceil(batch)).map(|nth| Piece {
                cell: index,
                nths: nth * batch..len.min((nth + 1) * batch),
            }));
        }
        pieces
    }

    /// Returns the number of runs if no cell ends early.
    fn total(&self) -> u64 {
        let lens = self.cells.iter().map(|cell| self.shard.len(&cell.seeds));
        lens.sum()
    }

    /// Returns the manifest of these runs. Runs a few of them, which tell builds apart.
    #[must_use]
    pub fn manifest(&self, law: &impl Serialize, flags: Vec<String>) -> Manifest {
        let cells = self.cells.iter().map(|cell| CellSeeds {
            cell: cell.name.clone(),
            seeds: cell.seeds.clone(),
        });
        Manifest::new(law, cells.collect(), self.shard, &self.probe(), flags)
    }

    /// Returns the traces of a few runs. Builds that behave differently have others.
    fn probe(&self) -> Vec<u8> {
        let cells = self.cells.iter().filter(|cell| !cell.seeds.is_empty());
        let cells: Vec<&Cell<'_>> = cells.collect();
        let step = cells.len().div_ceil(PROBES).max(1);
        let seeds = PROBES.div_ceil(cells.len().max(1));
        let probed = cells.into_iter().step_by(step).flat_map(|cell| {
            let seeds = cell.seeds.clone().take(seeds);
            seeds.map(|seed| run(&Rc::new((cell.plan)(seed))).trace)
        });
        probed.flat_map(u64::to_le_bytes).collect()
    }
}

#[cfg(test)]
mod tests;
