//! The command `merge`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::scenarios::Table;
use super::{CliError, Form, explore, matrix, rate, study};
use crate::study::campaign::Summary;
use crate::study::experiment::{Experiment, Finished};
use crate::study::law::{Law, NamedCase};
use crate::study::matrix::Matrix;
use crate::study::rate::{Deployment, Found};
use crate::study::results::{Stored, Tallies, each_row, merge, together};
use crate::study::runs::Extent;
use crate::study::scenario::{Depth, Judging};

/// Add up the results of shards, which any command wrote with --results. Shards of other runs or builds, one that is given
/// twice, one that is not complete, and a missing one are refused.
///
/// The table and the exit code are those that one command without shards would have had.
#[derive(Debug, Args)]
pub(super) struct Merge {
    /// The folders of results, one per shard.
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Write the rows of all shards to this folder, as results. Those of a study also get their tables and pictures there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
}

impl Merge {
    pub(super) fn run(self) -> Result<u8, CliError> {
        let stored = self.folders.iter().map(|folder| Stored::read(folder));
        let shards = together(stored.collect::<Result<_, _>>()?)?;
        let Some(first) = shards.first() else {
            return Ok(0);
        };
        let out = self.out.as_deref();
        if let Some(folder) = out {
            merge(&shards, folder)?;
        }
        tell(first, &shards, out, self.form)
    }
}

/// Prints the results as the command does that wrote them, and writes the tables and pictures of a study. Returns its exit code.
fn tell(first: &Stored, shards: &[Stored], out: Option<&Path>, form: Form) -> Result<u8, CliError> {
    let cells = &first.manifest.cells;
    match Law::of(first)? {
        Law::Explore { .. } => {
            let Tallies(mut tallies) = Tallies::read(shards)?;
            let name = cells.first().map(|cell| cell.cell.as_str());
            let summary = Summary::of(tallies.pop().unwrap_or_default());
            explore::tell(&summary, name.unwrap_or_default(), Extent::Complete, form)?;
            Ok(summary.exit_code())
        }
        Law::Matrix {
            locks,
            classes,
            runs,
            first_seed,
        } => {
            let matrix = Matrix::of(&locks, &classes, runs, first_seed);
            let table = matrix.table(Tallies::read(shards)?);
            matrix::tell(&table, Extent::Complete, form)
        }
        Law::Study {
            name, study, runs, ..
        } => {
            let mut study = Experiment::parse(format!("{name}.toml").as_ref(), &study)?;
            study.runs = runs;
            let finished = Finished::read(&study, shards)?;
            if let Some(folder) = out {
                study::write(&study, &finished.outcomes, folder)?;
            }
            study::tell(&study, &finished, form)
        }
        Law::Scenarios { depth, cases } => {
            let most = cells.iter().map(|cell| cell.seeds.end);
            let cases: Vec<_> = cases.into_iter().zip(most).collect();
            scenarios(shards, depth, &cases, form)
        }
        Law::Rate {
            deployment,
            lock,
            split,
            ..
        } => {
            let path = "the deployment of the results".as_ref();
            let deployment = Deployment::of_lock(path, &deployment, lock.as_deref())?;
            let found = Found::read(&deployment, shards)?;
            let enough = split.map_or(rate::ENOUGH, |split| split.relative_error);
            rate::tell_found(&deployment, &found, enough, form)
        }
    }
}

/// Prints the table of cases, each with the number of its seeds that were asked for.
fn scenarios(
    shards: &[Stored],
    depth: Depth,
    cases: &[(NamedCase, u64)],
    form: Form,
) -> Result<u8, CliError> {
    let mut judged: Vec<Judging<'_>> = cases
        .iter()
        .map(|(named, most)| Judging::new(&named.case, *most))
        .collect();
    each_row(shards, &mut |cell, row| {
        if let Some(judging) = judged.get_mut(cell) {
            judging.add(&row);
        }
    })?;
    let judged = judged.into_iter().map(Judging::end);
    let cases = cases.iter().map(|(named, _)| named);
    Table::of(cases, judged, depth).tell(Extent::Complete, form)
}
