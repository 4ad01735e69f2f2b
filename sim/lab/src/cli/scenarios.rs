//! The command `scenarios`.

mod table;

use std::path::{Path, PathBuf};

use clap::Args;

use super::recorded::Sharded;
use super::twice::Twice;
use super::{CliError, Form, InLane, say, say_json};
use crate::study::law::{Law, NamedCase};
use crate::study::results::Row;
use crate::study::runs::Cell;
use crate::study::scenario::{self, Depth, Judging, Scenario};
pub(super) use table::{Table, exit_code, expected, severity, verdict};

/// Run the simulator's scenarios or your own, and compare the results with what they expect.
#[derive(Debug, Args)]
pub(super) struct Scenarios {
    /// Run only the scenarios whose id begins with this text, or whose title contains it if no id does; or those of
    /// your own file or folder.
    filter: Option<String>,
    /// List the scenarios without running them.
    #[arg(long)]
    list: bool,
    /// Run all seeds, also of cases that break after few, and print how often they break.
    #[arg(long)]
    rates: bool,
    /// Run at most this many seeds of each case, for example because the lane turmoil is slow. A break that is too
    /// rare for so few seeds is reported as not shown, which is not a failure.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    seeds: Option<u64>,
    #[command(flatten)]
    sharded: Sharded,
    #[command(flatten)]
    lane: InLane,
    #[command(flatten)]
    twice: Twice,
    #[command(flatten)]
    form: Form,
}

impl Scenarios {
    pub(super) fn run(self) -> Result<u8, CliError> {
        let mut scenarios = chosen(self.filter.as_deref())?;
        for case in scenarios.iter_mut().flat_map(|s| &mut s.cases) {
            self.lane.put(&mut case.plan);
        }
        if self.list {
            return self.name(&scenarios);
        }
        let cases = named(scenarios);
        let (depth, most) = (self.depth(), self.seeds.unwrap_or(u64::MAX));
        let cells = cases.iter().map(|named| cell(named, depth, most));
        let mut judged: Vec<Judging<'_>> = cases
            .iter()
            .map(|named| Judging::new(&named.case, most))
            .collect();
        let mut take = |cell: usize, row: Row| {
            if let Some(judging) = judged.get_mut(cell) {
                judging.add(&row);
            }
        };
        let law = Law::Scenarios {
            depth,
            cases: cases.clone(),
        };
        let extent = self.sharded.run(
            cells.collect(),
            &law,
            &|run| Ok(self.twice.check(run)?),
            &mut take,
        )?;
        let judged = judged.into_iter().map(Judging::end);
        Table::of(cases.iter(), judged, depth).tell(extent, self.form)
    }

    fn depth(&self) -> Depth {
        match self.rates {
            true => Depth::AllSeeds,
            false => Depth::UntilFound,
        }
    }

    fn name(&self, scenarios: &[Scenario]) -> Result<u8, CliError> {
        if self.form.json {
            let names: Vec<(&str, &str)> = scenarios
                .iter()
                .map(|s| (s.id.as_str(), s.title.as_str()))
                .collect();
            say_json(&names)?;
            return Ok(0);
        }
        for scenario in scenarios {
            say(&format!("{:<6} {}", scenario.id, scenario.title));
        }
        Ok(0)
    }
}

/// Returns the scenarios of the catalog that a filter selects, or those of a file or folder.
pub(super) fn chosen(filter: Option<&str>) -> Result<Vec<Scenario>, CliError> {
    let Some(filter) = filter else {
        return Ok(scenario::built_in()?);
    };
    let path = Path::new(filter);
    if path.is_dir() {
        return of_folder(path);
    }
    if path.exists() || filter.contains(['/', '\\']) {
        return Ok(vec![scenario::read(path)?]);
    }
    let wanted = filter.to_lowercase();
    let mut scenarios = scenario::built_in()?;
    // An exact id selects only that scenario, not every id that begins with it. A prefix of ids selects only
    // those, not also every title that contains the text.
    let ids: Vec<String> = scenarios.iter().map(|s| s.id.to_lowercase()).collect();
    let is_id = ids.contains(&wanted);
    let begins_ids = ids.iter().any(|id| id.starts_with(&wanted));
    scenarios.retain(|scenario| {
        let id = scenario.id.to_lowercase();
        match (is_id, begins_ids) {
            (true, _) => id == wanted,
            (false, true) => id.starts_with(&wanted),
            (false, false) => scenario.title.to_lowercase().contains(&wanted),
        }
    });
    if scenarios.is_empty() {
        return Err(scenario::ScenarioError::Unknown(filter.to_owned()).into());
    }
    Ok(scenarios)
}

/// Returns all cases, each with what the table says of its scenario.
pub(super) fn named(scenarios: Vec<Scenario>) -> Vec<NamedCase> {
    let cases = scenarios.into_iter().flat_map(|scenario| {
        let (id, title) = (scenario.id, scenario.title);
        scenario.cases.into_iter().map(move |case| NamedCase {
            id: id.clone(),
            title: title.clone(),
            case,
        })
    });
    cases.collect()
}

fn cell(named: &NamedCase, depth: Depth, most: u64) -> Cell<'_> {
    named.case.cell(named.name(), depth, most)
}

/// Reads every scenario in a folder. A plan without a header is not a scenario.
fn of_folder(folder: &Path) -> Result<Vec<Scenario>, CliError> {
    let wrong = |error: std::io::Error| CliError::Other(format!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        if path.extension().is_some_and(|ext| ext == "toml") {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        let folder = folder.display();
        return Err(CliError::Other(format!(
            "{folder}: there is no scenario in this folder: add a file that ends in .toml"
        )));
    }
    let read = |file: &PathBuf| scenario::read(file).map_err(CliError::from);
    files.iter().map(read).collect()
}
