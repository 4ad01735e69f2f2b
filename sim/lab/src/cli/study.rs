//! The command `study`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::recorded::Sharded;
use super::{CliError, Form, Printed, PrintedCell, complain, say, say_json, write_file};
use crate::study::experiment::picture::draw;
use crate::study::experiment::{
    Bounds, Expected, Experiment, Finished, Outcome, Paired, Sitting, compare, csv, markdown,
    pairs_csv,
};
use crate::study::law::Law;
use crate::study::results::Shard;
use crate::study::runs::{Extent, Session};

/// Vary or draw the numbers of a plan, and measure how often each lock breaks a property, with bounds, tables and pictures.
///
/// The exit code is 0 if every cell has its runs or bounds that are narrow enough, also where nothing broke; 2 if a lock broke of which
/// the file says that it holds; and 4 if the time was over first, or if no client of a cell acquired anything.
#[derive(Debug, Args)]
pub(super) struct Study {
    /// A study in TOML: `title`, `[plan]`, what is varied in `[grid]`, and a `[[lock]]` for each lock.
    file: PathBuf,
    /// Write tables as CSV and pictures as SVG to this folder. A shard writes none: `quorlock-sim merge --out DIR` does.
    #[arg(long, default_value = "study")]
    out: PathBuf,
    /// Run the seeds that the hash of a commit chooses, instead of those from 0, which development uses. Results that are published as
    /// evidence have such seeds.
    #[arg(long, value_name = "HASH", value_parser = first_seed, default_value = "0")]
    commit: u64,
    /// Run each cell at most this many times, instead of what the file says.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    runs: Option<u64>,
    #[command(flatten)]
    sharded: Sharded,
    #[command(flatten)]
    form: Form,
}

/// A cell with `--json`.
#[derive(Serialize)]
struct CellPrinted {
    settings: std::collections::BTreeMap<String, String>,
    lock: String,
    runs: u64,
    vacuous: u64,
    broken: u64,
    #[serde(flatten)]
    bounds: Bounds,
    requests_per_hold: Option<f64>,
}

/// Everything with `--json`.
#[derive(Serialize)]
struct StudyPrinted<'a> {
    #[serde(flatten)]
    cells: Printed<CellPrinted>,
    title: &'a str,
    pairs: &'a [Paired],
}

impl Study {
    pub(super) fn run(self) -> Result<u8, CliError> {
        let mut study = Experiment::read(&self.file)?;
        study.runs = self.runs.unwrap_or(study.runs);
        let sitting = Sitting {
            study: &study,
            first_seed: self.commit,
            shard: self.sharded.shard(),
            jobs: self.sharded.recorded().jobs(),
            within: self.sharded.recorded().within(),
        };
        let law = Law::Study {
            name: study.name(),
            study: study.text().to_owned(),
            runs: study.runs,
            first_seed: self.commit,
        };
        let manifest = |flags| {
            sitting
                .manifest(&law, flags)
                .expect("BUG: the file was checked")
        };
        let mut session = Session::open(self.sharded.recorded().target(manifest))?;
        let finished = sitting.run(&mut session)?;
        session.end(finished.extent)?;
        let code = tell(&study, &finished, self.form)?;
        // The tables of a shard would be taken for those of the whole.
        if self.sharded.shard() == Shard::WHOLE {
            write(&study, &finished.outcomes, &self.out)?;
        }
        Ok(code)
    }
}

/// Writes the tables and the pictures.
pub(super) fn write(
    study: &Experiment,
    outcomes: &[Outcome],
    folder: &std::path::Path,
) -> Result<(), CliError> {
    let name = study.name();
    let file = |ending: &str| folder.join(format!("{name}{ending}"));
    write_file(&file(".csv"), &csv(study, outcomes))?;
    let pairs = compare(study, outcomes);
    if !pairs.is_empty() {
        write_file(&file("-pairs.csv"), &pairs_csv(study, &pairs))?;
    }
    for kind in &study.pictures {
        match draw(*kind, study, outcomes) {
            Ok(picture) => write_file(&file(&format!("-{}.svg", kind.name())), &picture)?,
            Err(why) => complain(&format!("no picture: {why}")),
        }
    }
    Ok(())
}

/// Prints what was found. Returns the exit code.
pub(super) fn tell(study: &Experiment, finished: &Finished, form: Form) -> Result<u8, CliError> {
    let outcomes = &finished.outcomes;
    let pairs = compare(study, outcomes);
    match form.json {
        true => say_json(&StudyPrinted {
            cells: printed(study, finished),
            title: &study.title,
            pairs: &pairs,
        })?,
        false => say(&format!(
            "{}\n\n{}",
            study.title,
            markdown(study, outcomes, &pairs)
        )),
    }
    let mut code = 0;
    if finished.extent == Extent::Partial {
        complain("the time was over before all runs had ended");
        code = 4;
    }
    for outcome in outcomes {
        let name = study.cell_name(outcome.point, outcome.lock);
        if 0 < outcome.tally.runs && outcome.is_vacuous() {
            complain(&format!(
                "{name}: no client acquired anything, so it shows nothing"
            ));
            code = code.max(4);
        }
    }
    let holds = |outcome: &&Outcome| {
        let lock = study.locks.get(outcome.lock);
        lock.is_some_and(|lock| lock.expect == Expected::Holds) && !outcome.broken.is_empty()
    };
    for outcome in outcomes.iter().filter(holds) {
        let name = study.cell_name(outcome.point, outcome.lock);
        let seed = outcome.broken.first().map_or(0, |(seed, _)| *seed);
        complain(&format!(
            "{name}: it is expected to hold, but broke with seed {seed}"
        ));
        code = 2;
    }
    Ok(code)
}

fn printed(study: &Experiment, finished: &Finished) -> Printed<CellPrinted> {
    let cells = finished.outcomes.iter().map(|outcome| {
        let settings = study.points.get(outcome.point).into_iter().flatten();
        let named = study.axes.iter().zip(settings);
        let named = named.map(|(axis, setting)| (axis.name.clone(), setting.text.clone()));
        let lock = study.locks.get(outcome.lock);
        PrintedCell {
            cell: study.cell_name(outcome.point, outcome.lock),
            result: CellPrinted {
                settings: named.collect(),
                lock: lock.map_or(String::new(), |lock| lock.name.clone()),
                runs: outcome.tally.runs,
                vacuous: outcome.tally.vacuous,
                broken: outcome.broken.len() as u64,
                bounds: outcome.bounds(study),
                requests_per_hold: outcome.requests_per_hold(),
            },
        }
    });
    Printed {
        command: "study",
        is_complete: finished.extent == Extent::Complete,
        cells: cells.collect(),
    }
}

/// Returns the first of the seeds that a commit chooses, as `sim/commit-seeds.sh` does: beyond those of tests and pages. 0 chooses those
/// from 0 on.
pub(super) fn first_seed(hash: &str) -> Result<u64, String> {
    if hash == "0" {
        return Ok(0);
    }
    let wrong =
        || format!("{hash:?} is not the hash of a commit: give at least ten hexadecimal digits");
    let first = hash.get(..10).ok_or_else(wrong)?;
    let number = u64::from_str_radix(first, 16).map_err(|_| wrong())?;
    Ok(number + 100_000_000)
}
