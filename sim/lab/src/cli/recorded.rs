//! The options of every command that runs many runs.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{CliError, Threads};
use crate::study::law::Law;
use crate::study::results::{Manifest, Shard};
use crate::study::runs::{Cell, Extent, Runs, Start, TakeRow, Target, WithRun};
use quorlock_sim_plan::time::SimTime;

/// The options of every command that runs many runs.
#[derive(Clone, Debug, Args)]
pub(super) struct Recorded {
    /// Write a row for each run, and what ran, to this folder: rows.jsonl.zst and manifest.json. A command that is killed
    /// loses the rows of the last second.
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Continue the results in this folder, with the same flags. The rows are those of a command that was not interrupted.
    #[arg(long, requires = "results")]
    resume: bool,
    /// Begin no further run after this time, for example 10m or 2h.
    #[arg(long = "for", value_name = "TIME")]
    within: Option<SimTime>,
    #[command(flatten)]
    threads: Threads,
}

/// The options of every command whose runs can be split over machines.
#[derive(Clone, Debug, Args)]
pub(super) struct Sharded {
    #[command(flatten)]
    recorded: Recorded,
    /// Run only part I of N of the seeds of each cell, with I from 0.
    #[arg(long, value_name = "I/N", value_parser = shard, default_value = "0/1")]
    shard: Shard,
}

impl Recorded {
    /// Returns the number of threads.
    pub(super) fn jobs(&self) -> usize {
        self.threads.count()
    }

    /// Returns after which time no further run begins.
    pub(super) fn within(&self) -> Option<Duration> {
        let nanos = self.within.map(SimTime::as_nanos);
        nanos.map(Duration::from_nanos)
    }

    /// Returns where rows are recorded. `manifest` receives the arguments of the command.
    pub(super) fn target(
        &self,
        manifest: impl FnOnce(Vec<String>) -> Manifest,
    ) -> Option<Target<'_>> {
        self.results.as_deref().map(|folder| Target {
            folder,
            start: if self.resume {
                Start::Resumed
            } else {
                Start::New
            },
            manifest: manifest(std::env::args().skip(1).collect()),
        })
    }
}

impl Sharded {
    /// Returns the options of every command that runs many runs.
    pub(super) fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// Returns the part of the seeds that is run.
    pub(super) fn shard(&self) -> Shard {
        self.shard
    }

    /// Returns whether results are continued.
    pub(super) fn is_resumed(&self) -> bool {
        self.recorded.resume
    }

    /// Runs what is asked for of the cells. `take` receives the index of the cell and each row, in the order of seeds.
    pub(super) fn run(
        &self,
        cells: Vec<Cell<'_>>,
        law: &Law,
        with_run: WithRun<'_>,
        take: TakeRow<'_>,
    ) -> Result<Extent, CliError> {
        let runs = Runs {
            cells,
            shard: self.shard,
            jobs: self.recorded.jobs(),
            within: self.recorded.within(),
        };
        let target = self.recorded.target(|flags| runs.manifest(law, flags));
        Ok(runs.record(target, with_run, take)?)
    }
}

/// Parses a shard, `I/N`, with I from 0.
pub(super) fn shard(text: &str) -> Result<Shard, String> {
    let wrong =
        || format!("{text:?} is not a shard: write I/N with I from 0 to N-1, for example 0/8");
    let (index, of) = text.split_once('/').ok_or_else(wrong)?;
    let index = index.parse().map_err(|_| wrong())?;
    let of = of.parse().map_err(|_| wrong())?;
    if of <= index {
        return Err(wrong());
    }
    Ok(Shard { index, of })
}
