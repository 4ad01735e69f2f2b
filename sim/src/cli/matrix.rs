//! `matrix`.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::Args;

use super::{Form, Trouble, complain, say, say_json, write_file};
use crate::matrix::Matrix;

/// Run every lock against every class of fault.
#[derive(Debug, Args)]
pub(super) struct MatrixRun {
    /// How many runs for each pair.
    #[arg(long, default_value = "500")]
    runs: NonZeroU64,
    /// On how many threads; on all cores without.
    #[arg(long)]
    jobs: Option<NonZeroUsize>,
    /// Write matrix.md, matrix.csv and matrix.json into this folder.
    #[arg(long, default_value = "matrix")]
    out: PathBuf,
    #[command(flatten)]
    form: Form,
}

impl MatrixRun {
    pub(super) fn run(self) -> Result<u8, Trouble> {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let jobs = self.jobs.map_or(cores, NonZeroUsize::get);
        let table = Matrix::new(self.runs.get(), jobs).run();
        let markdown = table.markdown();
        let json = serde_json::to_string_pretty(&table)
            .map_err(|error| Trouble::Other(error.to_string()))?;
        write_file(&self.out.join("matrix.md"), &markdown)?;
        write_file(&self.out.join("matrix.csv"), &table.csv())?;
        write_file(&self.out.join("matrix.json"), &json)?;
        if self.form.json {
            say_json(&table)?;
        } else {
            say(&markdown);
        }
        let mut code = 0;
        for cell in table.surprises() {
            let first = cell.exclusion.first_seed.or(cell.fencing.first_seed);
            complain(&format!(
                "{} under {} is claimed to hold, and broke: seed {}",
                cell.lock,
                cell.class,
                first.unwrap_or(0)
            ));
            code = 2;
        }
        Ok(code)
    }
}
