//! The command `matrix`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::recorded::Sharded;
use super::{CliError, Form, Printed, PrintedCell, complain, say, say_json, write_file};
use crate::study::matrix::{CLASSES, Class, Example, Matrix, MatrixTable, contenders};
use crate::study::results::Tallies;
use crate::study::runs::Extent;

/// Run every lock against every class of fault, and count how often exclusion and fencing break.
#[derive(Debug, Args)]
pub(super) struct MatrixRun {
    /// The number of runs for each pair of a lock and a class; a lock on a Sentinel group gets a tenth of it.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    runs: u64,
    /// Run only this lock; may be given several times.
    #[arg(long, value_parser = PossibleValuesParser::new(contenders().iter().map(|lock| lock.id)))]
    lock: Vec<String>,
    /// Run only this class of fault; may be given several times.
    #[arg(long, value_parser = PossibleValuesParser::new(CLASSES.iter().map(|class| class.id)))]
    class: Vec<String>,
    /// Run the seeds that the hash of a commit chooses, instead of those from 0, which development uses. Results that are published as
    /// evidence have such seeds.
    #[arg(long, value_name = "HASH", value_parser = super::study::first_seed, default_value = "0")]
    commit: u64,
    #[command(flatten)]
    sharded: Sharded,
    /// Write matrix.md and matrix.csv to this folder.
    #[arg(long, default_value = "matrix")]
    out: PathBuf,
    /// Also shrink one failure of RedLock under each class, and write breaks.md, which describes them, and a figure of
    /// each to breaks/.
    #[arg(long)]
    examples: bool,
    #[command(flatten)]
    form: Form,
}

/// The number of runs for shrinking one failure.
const SHRINKING: u32 = 2_000;

/// The text above the examples.
const BREAKS: &str = "# What still breaks

This page is for readers who decide whether a lock is enough for their data, and for researchers: it shows how RedLock with its
defaults fails under faults that exceed its assumptions.

For each class of the matrix in which a property broke, it has a failure that is shrunk to the fewest faults, clients and events
that still break the same property on at least three nodes. A failure that breaks the same property by the same kinds of fault as
an earlier one is left out. To run a failure again, save its plan as a file and run `quorlock-sim run FILE`, or
`quorlock-sim report FILE -o page.html` to explore it.

";

impl MatrixRun {
    pub(super) fn run(self) -> Result<u8, CliError> {
        let mut matrix = Matrix::new(self.runs);
        matrix.first_seed = self.commit;
        let is_asked =
            |asked: &[String], id: &str| asked.is_empty() || asked.iter().any(|a| a == id);
        matrix
            .contenders
            .retain(|lock| is_asked(&self.lock, lock.id));
        matrix
            .classes
            .retain(|class| is_asked(&self.class, class.id));
        let cells = matrix.cells();
        let mut tallies = Tallies::new(cells.len());
        let mut take = |cell, row| tallies.add(cell, &row);
        let extent = self
            .sharded
            .run(cells, &matrix.law(), &|_| Ok(()), &mut take)?;
        let table = matrix.table(tallies);
        write_file(&self.out.join("matrix.md"), &table.markdown())?;
        write_file(&self.out.join("matrix.csv"), &table.csv())?;
        let code = tell(&table, extent, self.form)?;
        if self.examples {
            self.write_examples(&table, &matrix.examples(&table, SHRINKING))?;
        }
        Ok(code)
    }

    fn write_examples(&self, table: &MatrixTable, examples: &[Example]) -> Result<(), CliError> {
        let mut text = BREAKS.to_owned();
        for example in examples {
            text += &example.markdown("breaks")?;
            let figure = self.out.join("breaks").join(example.file_name());
            write_file(&figure, &example.figure())?;
        }
        let broke = |class: &&Class| {
            let cell = table.cell("ours", class.id);
            cell.is_some_and(|cell| 0 < cell.exclusion.violations + cell.fencing.violations)
        };
        for class in CLASSES.iter().filter(broke) {
            if !examples.iter().any(|e| e.class.id == class.id) {
                text += &format!(
                    "Under \"{}\" the first failures show nothing that is not above.\n\n",
                    class.id
                );
            }
        }
        write_file(&self.out.join("breaks.md"), &text)
    }
}

/// Prints a table and what in it was not expected. Returns the exit code.
pub(super) fn tell(table: &MatrixTable, extent: Extent, form: Form) -> Result<u8, CliError> {
    if form.json {
        let cells = table.cells.iter().map(|cell| PrintedCell {
            cell: cell.name(),
            result: cell,
        });
        say_json(&Printed {
            command: "matrix",
            is_complete: extent == Extent::Complete,
            cells: cells.collect(),
        })?;
    } else {
        say(&table.markdown());
    }
    let mut code = 0;
    for cell in table.cells.iter() {
        if let Some(seed) = cell.endless() {
            complain(&format!("{} does not end with seed {seed}", cell.name()));
            code = 3;
        }
    }
    for cell in table.surprises() {
        let first = cell.exclusion.first_seed.or(cell.fencing.first_seed);
        complain(&format!(
            "{} is claimed to hold, but broke with seed {}",
            cell.name(),
            first.unwrap_or(0)
        ));
        code = 2;
    }
    Ok(code)
}
