//! Campaigns: plans that are drawn from seeds.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use crate::study::export;
use crate::study::failure::{Failure, FileError};
use crate::study::law::Law;
use crate::study::results::{Row, RowVerdict, Tally};
use crate::study::runs::Cell;
use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_plan::LockKind;
use quorlock_sim_plan::generator::PlanGenerator;
use quorlock_sim_plan::property::Property;

/// A campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The generator of plans.
    pub generator: PlanGenerator,
    /// The range of seeds.
    pub seeds: Range<u64>,
    /// What happens after a failure.
    pub after_failure: AfterFailure,
}

/// What a campaign does when a run fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterFailure {
    /// The campaign ends: no later seed counts.
    Stop,
    /// The campaign continues to the last seed.
    GoOn,
}

impl Campaign {
    /// Returns from what the plans follow.
    #[must_use]
    pub fn law(&self) -> Law {
        Law::Explore {
            drawn: flags(&self.generator),
            goes_on: self.after_failure == AfterFailure::GoOn,
        }
    }

    /// Returns the one cell of the campaign.
    #[must_use]
    pub fn cell(&self) -> Cell<'_> {
        let fails = |row: &Row| row.verdict == RowVerdict::Violated;
        Cell {
            name: cell_name(&self.generator),
            seeds: self.seeds.clone(),
            plan: Box::new(|seed| self.generator.plan(seed)),
            measure: None,
            is_last: match self.after_failure {
                AfterFailure::Stop => Some(Box::new(fails)),
                AfterFailure::GoOn => None,
            },
        }
    }
}

fn cell_name(generator: &PlanGenerator) -> String {
    let lock = match generator.lock {
        LockKind::Single => "single",
        LockKind::Multi => "multi",
        LockKind::Redlock => "redlock",
    };
    lock.to_owned()
}

/// Returns the flags of `explore` that choose the plans.
fn flags(generator: &PlanGenerator) -> String {
    let PlanGenerator {
        faults,
        lane,
        deployment,
        lock,
        variant,
        nodes,
        clients,
        workload,
        duration,
    } = generator;
    let mut flags = format!(
        "--lock {lock:?} --deployment {deployment:?} --lane {lane:?} --variant {variant} --faults {faults}"
    );
    let optional = [
        ("nodes", nodes.map(|nodes| nodes.to_string())),
        ("clients", clients.map(|clients| clients.to_string())),
        ("workload", workload.map(|work| work.name().to_owned())),
        ("duration", duration.map(|duration| duration.to_string())),
    ];
    for (flag, value) in optional {
        flags.extend(value.map(|value| format!(" --{flag} {value}")));
    }
    flags.to_lowercase()
}

/// The files of a campaign: failures, and histories for other checkers.
#[derive(Debug)]
pub struct Files {
    /// The folder into which failures are written.
    failures: PathBuf,
    /// The folder into which the history of every run is written, or `None` to write none.
    histories: Option<PathBuf>,
    /// The number of failures that were written, and of those that would have been.
    written: AtomicUsize,
}

/// The largest number of failures that a campaign writes.
const MOST_FILES: usize = 100;

impl Files {
    /// Creates the files of a campaign.
    #[must_use]
    pub fn new(failures: PathBuf, histories: Option<PathBuf>) -> Self {
        Files {
            failures,
            histories,
            written: AtomicUsize::new(0),
        }
    }

    /// Counts the failures that are there, which a campaign that is resumed has written.
    pub fn resume(&mut self) {
        let files = fs::read_dir(&self.failures).map_or(0, Iterator::count);
        self.written = AtomicUsize::new(files);
    }

    /// Writes what is asked for of a run.
    ///
    /// # Errors
    /// Returns [`FileError`] if a file cannot be written.
    pub fn write(&self, run: &Run) -> Result<(), FileError> {
        if let Some(folder) = &self.histories {
            export::write(run, folder)?;
        }
        // Count before writing. Otherwise several threads could each see 99 files, and all of them write one.
        if matches!(run.verdict, Verdict::Violated(_))
            && self.written.fetch_add(1, Ordering::Relaxed) < MOST_FILES
        {
            Failure::of(run).write(&self.failures)?;
        }
        Ok(())
    }

    /// Returns the file of a failure, if it was written.
    #[must_use]
    pub fn of(&self, campaign: &Campaign, seed: u64) -> Option<PathBuf> {
        let name = format!("{}-seed-{seed}.json", cell_name(&campaign.generator));
        let file = self.failures.join(name);
        file.exists().then_some(file)
    }
}

/// What the runs of a campaign show.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Summary {
    /// The sum of the rows.
    #[serde(flatten)]
    pub tally: Tally,
    /// The reason why the campaign shows nothing, if there is one.
    pub vacuity: Option<String>,
}

impl Summary {
    /// Creates the summary of a campaign.
    #[must_use]
    pub fn of(tally: Tally) -> Self {
        let vacuity = vacuity(&tally);
        Summary { tally, vacuity }
    }

    /// Returns the smallest seed that failed, with its property.
    #[must_use]
    pub fn first(&self) -> Option<(u64, Property)> {
        let failed = self.tally.failed.iter();
        failed
            .map(|(property, count)| (count.first_seed, *property))
            .min()
    }

    /// Returns the exit code of the command.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        let mut failed = self.tally.failed.keys();
        if failed.clone().any(|property| !property.is_liveness()) {
            2
        } else if failed.next().is_some() {
            3
        } else if self.vacuity.is_some() {
            4
        } else {
            0
        }
    }
}

/// Returns the reason why runs show nothing, if there is one: too few holds, no contention, or a kind of fault that never
/// had an effect.
fn vacuity(tally: &Tally) -> Option<String> {
    if tally.runs == 0 {
        return Some("no run".to_owned());
    }
    if tally.holds < 2 * tally.runs {
        return Some(format!("only {} holds in {} runs", tally.holds, tally.runs));
    }
    if tally.refused == 0 {
        return Some("no acquire ever found the lock held by another client".to_owned());
    }
    // With fewer than 20 faults, it may be chance that none had an effect.
    let mut faults = tally.faults.iter();
    let idle = faults.find(|(_, count)| 20 <= count.drawn && count.effective == 0);
    idle.map(|(kind, count)| format!("{} faults of kind {kind} never did anything", count.drawn))
}
