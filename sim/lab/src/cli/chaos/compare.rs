//! The command `chaos compare`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use super::super::{CliError, Threads, complain, say, write_file};
use super::asked::{Asked, classes};
use super::lock_ids;
use super::other_library::{self, Library};
use super::storms::Storms;
use crate::study::matrix::StormWork;
use crate::study::predicted::{Compared, PrintedMatrix, Results, Simulated};
use crate::study::progress::{self, Counting};

/// Compare the simulator's predictions with real servers, class by class.
///
/// The locks of a class run side by side for some minutes. The results of each class are saved at once, so an
/// interrupted comparison continues where it stopped: a class is not run again if the file has results for it with the
/// same seed and at least the same length.
#[derive(Debug, Args)]
pub(super) struct Compare {
    /// Run only this class; may be given several times.
    #[arg(long, value_parser = PossibleValuesParser::new(classes().map(|class| class.id)))]
    class: Vec<String>,
    /// Run only this lock; may be given several times. By default, the lock on one server, the lock on a majority, and
    /// the control of the class.
    #[arg(long, value_parser = PossibleValuesParser::new(lock_ids()))]
    lock: Vec<String>,
    /// The work of the clients.
    #[arg(long, value_enum, default_value_t)]
    workload: StormWork,
    /// Make every second client one of this library, on the same names.
    #[arg(long, value_enum)]
    beside: Option<Library>,
    /// How long each class runs, in minutes. Rare breaks need half an hour.
    #[arg(long, default_value_t = 30.0, value_parser = super::storms::minutes)]
    minutes: f64,
    /// The seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many storms of the same class and length to simulate.
    #[arg(long, default_value_t = 50)]
    simulated: u64,
    /// Run nothing on real servers: simulate the storms of the finished cells again, after a change of the simulator.
    #[arg(long, conflicts_with_all = ["minutes", "seed"])]
    only_simulate: bool,
    #[command(flatten)]
    threads: Threads,
    /// Save the results to this file.
    #[arg(long, default_value = "docs/results/chaos.json")]
    results: PathBuf,
    /// The JSON file that the command matrix wrote.
    #[arg(long, default_value = "docs/results/matrix.json")]
    matrix: PathBuf,
}

impl Compare {
    pub(super) fn run(self) -> Result<u8, CliError> {
        let matrix = read_matrix(&self.matrix)?;
        let mut results = Results::read(&self.results).map_err(CliError::Other)?;
        if self.only_simulate {
            return self.simulate_again(results, &matrix);
        }
        let mut code = 0;
        let mut is_any_asked = false;
        let mut refused = None;
        self.prepare()?;
        for class in classes().filter(|class| self.has(class.id)) {
            let storms = self.storms(class.id);
            // Classes that real machines do not support are left out, unless they are named.
            let asked = match storms.asked(&["ours", "ours, one node"]) {
                Ok(asked) => asked,
                Err(why) if self.class.is_empty() => {
                    refused = Some(why);
                    continue;
                }
                Err(trouble) => return Err(trouble),
            };
            is_any_asked = true;
            if asked.iter().all(|asked| self.is_there(&results, asked)) {
                continue;
            }
            let observed = storms.side_by_side(&asked)?;
            for (asked, observed) in asked.iter().zip(observed) {
                let cell = Compared {
                    class: asked.class.clone(),
                    lock: asked.lock.clone(),
                    seed: self.seed,
                    scale: SCALE,
                    expected: asked.expected,
                    commit: commit(),
                    simulated: self.simulate(&storms, asked),
                    observed,
                };
                if let Some((of_it, what)) = cell.wrong() {
                    complain(&format!(
                        "{}, {}, seed {}: {what}",
                        cell.lock, cell.class, cell.seed
                    ));
                    code = if code == 2 { 2 } else { of_it };
                }
                results.put(cell);
            }
            self.keep(&mut results, &matrix)?;
        }
        // A lock or a work that no class has would look like a comparison in which everything is as expected.
        if let Some(why) = refused.filter(|_| !is_any_asked) {
            return Err(why);
        }
        results.command = format!(
            "quorlock-sim chaos compare --minutes {} --seed {}",
            self.minutes, self.seed
        );
        self.keep(&mut results, &matrix)?;
        say_figures(&results);
        Ok(code)
    }

    fn simulate(&self, storms: &Storms, asked: &Asked) -> Simulated {
        let plans = storms.simulated(asked, self.simulated);
        Simulated::of(self.threads.count(), plans)
    }

    /// Simulates the storms of the selected cells again, each with its length and its seed.
    fn simulate_again(self, mut results: Results, matrix: &PrintedMatrix) -> Result<u8, CliError> {
        let named = classes().map(|class| class.id).filter(|id| self.has(id));
        let mut selected: Vec<(Storms, Compared)> = Vec::new();
        for class in named {
            let label = self.storms(class).label(class);
            let is_named = |lock: &String| self.lock.is_empty() || self.lock.contains(lock);
            let cells = results.cells.iter();
            let cells = cells.filter(|cell| cell.class == label && is_named(&cell.lock));
            selected.extend(cells.map(|cell| {
                let storms = Storms {
                    lock: vec![cell.lock.clone()],
                    minutes: cell.observed.seconds as f64 / 60.0,
                    scale: cell.scale,
                    seed: cell.seed,
                    ..self.storms(class)
                };
                (storms, cell.clone())
            }));
        }
        if selected.is_empty() {
            let file = self.results.display();
            let why = format!("{file} has no finished cell of these classes, locks and work");
            return Err(CliError::Other(why));
        }
        let bar = progress::bar(selected.len() as u64, Counting::Cases);
        for (storms, mut cell) in selected {
            bar.set_message(format!("{}, {}", cell.class, cell.lock));
            for asked in storms.asked(&[])? {
                cell.simulated = self.simulate(&storms, &asked);
            }
            results.put(cell);
            self.keep(&mut results, matrix)?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        say_figures(&results);
        Ok(0)
    }

    /// Returns whether a class is compared.
    fn has(&self, class: &str) -> bool {
        self.class.is_empty() || self.class.iter().any(|id| id == class)
    }

    fn storms(&self, class: &str) -> Storms {
        Storms {
            class: vec![class.to_owned()],
            work: self.workload,
            beside: self.beside,
            lock: self.lock.clone(),
            minutes: self.minutes,
            scale: SCALE,
            seed: self.seed,
        }
    }

    /// Builds the other library's program before the first class runs, so that the error names every class.
    fn prepare(&self) -> Result<(), CliError> {
        let named = classes().filter(|class| self.has(class.id));
        let asked = named.filter_map(|class| self.storms(class.id).asked(&[]).ok());
        let asked: Vec<Asked> = asked.flatten().collect();
        other_library::prepare(&asked).map(drop)
    }

    fn is_there(&self, results: &Results, asked: &Asked) -> bool {
        let seconds = (self.minutes * 60.0) as u64;
        let cell = results.cell(&asked.class, &asked.lock);
        cell.is_some_and(|cell| cell.seed == self.seed && seconds <= cell.observed.seconds)
    }

    fn keep(&self, results: &mut Results, matrix: &PrintedMatrix) -> Result<(), CliError> {
        let mut labels = Vec::new();
        for beside in [None, Some(Library::Redisson)] {
            for work in StormWork::value_variants() {
                labels.extend(classes().map(|class| other_library::label(beside, *work, class.id)));
            }
        }
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        results.print(matrix, &labels);
        env!("CARGO_PKG_VERSION").clone_into(&mut results.version);
        results.commit = commit();
        let text = serde_json::to_string_pretty(&results);
        let text = text.map_err(|error| CliError::Other(error.to_string()))?;
        write_file(&self.results, &(text + "\n"))
    }
}

fn say_figures(results: &Results) {
    let figure = |key: &str| results.figures.get(key).cloned().unwrap_or_default();
    say(&figure("table"));
    say(&format!("\n{}", figure("disagreements")));
}

/// The factor by which times are longer than in the plan: a lease of 150 ms becomes 1.5 s.
const SCALE: u32 = 10;

/// Reads the matrix. Its tables are copied into the results as they were printed.
fn read_matrix(path: &Path) -> Result<PrintedMatrix, CliError> {
    #[derive(serde::Deserialize)]
    struct Printed {
        figures: BTreeMap<String, String>,
    }
    let wrong =
        |error: &dyn std::fmt::Display| CliError::Other(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let printed: Printed = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    let tables = printed.figures.get("tables").map(String::as_str);
    Ok(PrintedMatrix::read(tables.unwrap_or_default()))
}

/// Returns the commit that is checked out here, if there is one.
fn commit() -> String {
    let output = Command::new("git")
        .args(["rev-parse", "--short", "HEAD"])
        .output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_default()
}
