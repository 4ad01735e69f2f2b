//! The command `scenarios`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::stopwatch::Watch;
use super::{CliError, Form, InLane, Threads, say, say_json};
use crate::study::pool::share_out;
use crate::study::progress::{self, Counting};
use crate::study::scenario::{self, Case, CaseVerdict, Depth, Expect, Interval, Judged, Scenario};

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
    threads: Threads,
    #[command(flatten)]
    lane: InLane,
    #[command(flatten)]
    form: Form,
}

/// The result of one case.
#[derive(Serialize)]
struct ScenarioRow {
    id: String,
    case: String,
    title: String,
    expected: String,
    #[serde(flatten)]
    judged: Judged,
    /// How often the case breaks, if it is expected to break.
    rate: Option<Interval>,
    milliseconds: u64,
}

impl Scenarios {
    pub(super) fn run(self) -> Result<u8, CliError> {
        let mut scenarios = self.chosen()?;
        for case in scenarios.iter_mut().flat_map(|s| &mut s.cases) {
            self.lane.put(&mut case.plan);
        }
        if self.list {
            return self.name(&scenarios);
        }
        let cases: Vec<(&Scenario, &Case)> = scenarios
            .iter()
            .flat_map(|scenario| scenario.cases.iter().map(move |case| (scenario, case)))
            .collect();
        let rows = self.judge(&cases);
        if self.form.json {
            say_json(&rows)?;
        } else {
            self.tell(&rows);
        }
        Ok(rows
            .iter()
            .map(exit_code)
            .max_by_key(|code| severity(*code))
            .unwrap_or(4))
    }

    fn chosen(&self) -> Result<Vec<Scenario>, CliError> {
        let Some(filter) = &self.filter else {
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
            return Err(scenario::ScenarioError::Unknown(filter.clone()).into());
        }
        Ok(scenarios)
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

    fn judge(&self, cases: &[(&Scenario, &Case)]) -> Vec<ScenarioRow> {
        let depth = match self.rates {
            true => Depth::AllSeeds,
            false => Depth::UntilFound,
        };
        let bar = progress::bar(cases.len() as u64, Counting::Cases);
        let mut rows = Vec::new();
        let work = |(index, (scenario, case)): (usize, &(&Scenario, &Case))| {
            let watch = Watch::start();
            let judged = case.judge_within(depth, self.seeds.unwrap_or(u64::MAX));
            let row = ScenarioRow::of(scenario, case, judged, watch.elapsed());
            bar.set_message(format!("{} {}", row.id, row.case));
            bar.inc(1);
            (index, row)
        };
        let take = |row| {
            rows.push(row);
            ControlFlow::Continue(())
        };
        share_out(self.threads.count(), cases.iter().enumerate(), work, take);
        bar.finish_and_clear();
        rows.sort_by_key(|(index, _)| *index);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    fn tell(&self, rows: &[ScenarioRow]) {
        let names = rows.iter().map(|row| row.case.chars().count());
        let wide = names.max().unwrap_or_default().max("case".len());
        say(&format!(
            "  {:<wide$}  {:<20} {:>5} {:>6} {:>8}  verdict",
            "case", "expected", "runs", "first", "time"
        ));
        let mut id = "";
        for row in rows {
            if row.id != id {
                id = &row.id;
                say(&format!("{id}  {}", row.title));
            }
            let first = row
                .judged
                .first
                .map_or("-".to_owned(), |seed| seed.to_string());
            let time = format!("{} ms", row.milliseconds);
            say(&format!(
                "  {:<wide$}  {:<20} {:>5} {:>6} {:>8}  {}",
                row.case,
                row.expected,
                row.judged.runs,
                first,
                time,
                verdict(&row.judged.verdict)
            ));
            if let Some(rate) = row.rate.filter(|_| self.rates) {
                say(&format!("    breaks in {rate} of runs"));
            }
            if let Some(measured) = row.judged.measured {
                let share = Interval::of(measured.lost, measured.acknowledged);
                let all = measured.acknowledged;
                say(&format!("    lost {share} of {all} acknowledged"));
            }
        }
        let wrong = rows.iter().filter(|row| exit_code(row) != 0).count();
        let is_left_out =
            |row: &&ScenarioRow| matches!(row.judged.verdict, CaseVerdict::NotInLane(_));
        let left_out = rows.iter().filter(is_left_out).count();
        let runs: u64 = rows.iter().map(|row| row.judged.runs).sum();
        let is_short =
            |row: &&ScenarioRow| matches!(row.judged.verdict, CaseVerdict::TooFewSeeds { .. });
        let short = rows.iter().filter(is_short).count();
        let mut others = String::new();
        if 0 < left_out {
            others += &format!(", {left_out} not in this lane");
        }
        if 0 < short {
            others += &format!(", {short} not shown with so few seeds");
        }
        say(&format!(
            "{} cases, {runs} runs: {} as expected, {wrong} not{others}",
            rows.len(),
            rows.len() - wrong - left_out - short
        ));
    }
}

impl ScenarioRow {
    fn of(scenario: &Scenario, case: &Case, judged: Judged, took: Duration) -> Self {
        let property = case.expect.property();
        ScenarioRow {
            id: scenario.id.clone(),
            case: case.name.clone(),
            title: scenario.title.clone(),
            expected: match &case.expect {
                Expect::Holds => "holds".to_owned(),
                Expect::Breaks(property, _) => format!("breaks {property}"),
            },
            rate: property.map(|property| judged.rate(property)),
            judged,
            milliseconds: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }
    }
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

fn verdict(verdict: &CaseVerdict) -> String {
    match verdict {
        CaseVerdict::AsExpected => "as expected".to_owned(),
        CaseVerdict::Broken(property) => format!("BROKEN: {property}"),
        CaseVerdict::NotFound(property) => format!("NOT FOUND: {property}"),
        CaseVerdict::Vacuous(why) => format!("VACUOUS: {why}"),
        CaseVerdict::OtherFigure(why) => format!("OTHER FIGURE: {why}"),
        CaseVerdict::NotInLane(why) => format!("not in this lane: {why}"),
        CaseVerdict::TooFewSeeds { needs, given } => {
            format!("not shown: needs {needs} seeds, was given {given}")
        }
    }
}

/// Returns the exit code of a case, with the same meanings as for a single run. If a known break is not found, nothing
/// was shown. This is no failure if the command line allowed fewer seeds than the case needs.
fn exit_code(row: &ScenarioRow) -> u8 {
    match &row.judged.verdict {
        CaseVerdict::AsExpected | CaseVerdict::NotInLane(_) | CaseVerdict::TooFewSeeds { .. } => 0,
        CaseVerdict::Broken(property) if property.is_liveness() => 3,
        CaseVerdict::Broken(_) => 2,
        CaseVerdict::NotFound(_) | CaseVerdict::Vacuous(_) | CaseVerdict::OtherFigure(_) => 4,
    }
}

/// Orders exit codes: a broken property is worse than a break that was not shown.
fn severity(code: u8) -> u8 {
    match code {
        2 => 3,
        3 => 2,
        4 => 1,
        _ => 0,
    }
}
