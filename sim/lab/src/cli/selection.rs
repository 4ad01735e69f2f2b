//! Selects a run, by a file or by the id of a scenario.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{CliError, InLane};
use crate::study::scenario::{self, Case, Depth, Scenario};
use crate::study::source::Source;
use quorlock_sim_plan::Plan;

/// The options that select one run, from a file or from the catalog.
#[derive(Clone, Debug, Args)]
pub(super) struct Chosen {
    /// A failure in JSON, a plan or a scenario in TOML, or the id of one of the simulator's scenarios.
    #[arg(value_name = "FILE|ID")]
    file: PathBuf,
    /// The case of a scenario. By default, the first.
    #[arg(long)]
    case: Option<String>,
    /// The seed of a plan. By default, a scenario runs with the first seed that shows its effect.
    #[arg(long)]
    seed: Option<u64>,
}

impl Chosen {
    /// Returns the name of the run, for titles.
    pub(super) fn name(&self) -> String {
        if !self.file.exists()
            && let Some(Ok(scenario)) = self.file.to_str().map(scenario::find)
        {
            return format!("{}: {}", scenario.id, scenario.title);
        }
        let name = self.file.file_name().map(|name| name.to_string_lossy());
        name.unwrap_or_default().into_owned()
    }

    pub(super) fn path(&self) -> &Path {
        &self.file
    }

    pub(super) fn read(&self) -> Result<Source, CliError> {
        read(
            &self.file,
            self.case.as_deref(),
            self.seed,
            InLane { lane: None },
        )
    }
}

/// Reads the run that the options select.
pub(super) fn read(
    path: &Path,
    case: Option<&str>,
    seed: Option<u64>,
    lane: InLane,
) -> Result<Source, CliError> {
    let scenario = match path.exists() {
        true if is_scenario(path) => Some(scenario::read(path)?),
        true => None,
        false => match path.to_str() {
            // A text that looks like a path is left to `Source`, which reports a missing file.
            Some(id) if !id.contains(['/', '\\', '.']) => Some(scenario::find(id)?),
            _ => None,
        },
    };
    let Some(scenario) = scenario else {
        if let Some(case) = case {
            let path = path.display();
            let why = format!("{path}: this is not a scenario, so it has no case {case:?}");
            return Err(CliError::Other(why));
        }
        let source = Source::read(path)?;
        if seed.is_none() && lane.lane.is_none() {
            return Ok(source);
        }
        let mut plan = source.plan().clone();
        plan.seed = seed.unwrap_or(plan.seed);
        lane.put(&mut plan);
        return Ok(Source::Plan(Box::new(plan)));
    };
    let mut case = one_case(&scenario, case)?.clone();
    lane.put(&mut case.plan);
    let first = || case.judge(Depth::UntilFound).first;
    let seed = seed.or_else(first).unwrap_or(0);
    Ok(Source::Plan(Box::new(Plan {
        seed,
        ..case.plan.clone()
    })))
}

/// Returns whether a file has a scenario: a plan has neither an identifier nor cases.
fn is_scenario(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let table: Result<toml::Table, _> = toml::from_str(&text);
    table.is_ok_and(|table| table.contains_key("id") || table.contains_key("case"))
}

fn one_case<'a>(scenario: &'a Scenario, name: Option<&str>) -> Result<&'a Case, CliError> {
    let mut cases = scenario.cases.iter();
    let found = match name {
        Some(name) => cases.find(|case| case.name == name),
        None => cases.next(),
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = scenario.cases.iter().map(|c| c.name.as_str()).collect();
        let (id, asked) = (&scenario.id, name.unwrap_or_default());
        let names = names.join(", ");
        CliError::Other(format!("{id} has no case {asked:?}: use one of {names}"))
    })
}
