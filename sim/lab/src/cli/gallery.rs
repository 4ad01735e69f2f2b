//! The command `gallery`.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;
use serde::Serialize;

use super::scenarios::{chosen, exit_code, expected, named, severity, verdict};
use super::{CliError, Form, Threads, say, say_json, write_file};
use crate::plan_file;
use crate::simulation::run_recorded;
use crate::study::gallery::{Exhibit, NoPage, Page, file_name, index};
use crate::study::law::NamedCase;
use crate::study::runs::Runs;
use crate::study::scenario::{Depth, Judged, Judging};
use quorlock_sim::report::page;
use quorlock_sim_plan::{Lane, Plan};

/// Write a page for the browser of every case of the scenarios, and an index of them.
///
/// Exit codes are those of `scenarios`: a result that is not as expected is marked in the index.
#[derive(Debug, Args)]
pub(super) struct Gallery {
    /// Write the pages and index.html to this folder.
    folder: PathBuf,
    /// Only the scenarios whose id begins with this text, or whose title contains it if no id does; or those of your own
    /// file or folder.
    filter: Option<String>,
    /// Run at most this many seeds of each case. A break that is too rare for so few seeds is reported as not shown.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    seeds: Option<u64>,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    form: Form,
}

#[derive(Serialize)]
struct GalleryOutput<'a> {
    index: &'a Path,
    scenarios: usize,
    cases: usize,
    pages: usize,
    wrong: usize,
}

impl Gallery {
    pub(super) fn run(self) -> Result<u8, CliError> {
        let scenarios = chosen(self.filter.as_deref())?;
        let reasons: Vec<String> = scenarios
            .iter()
            .flat_map(|scenario| scenario.cases.iter().map(|_| scenario.reason.clone()))
            .collect();
        let count = scenarios.len();
        let cases = named(scenarios);
        let judged = self.judge(&cases);
        let codes = judged.iter().map(|judged| exit_code(&judged.verdict));
        let code = codes.max_by_key(|code| severity(*code)).unwrap_or(4);
        let mut exhibits = Vec::new();
        for ((named, judged), reason) in cases.iter().zip(&judged).zip(reasons) {
            exhibits.push(Exhibit {
                id: named.id.clone(),
                title: named.title.clone(),
                reason,
                case: named.case.name.clone(),
                expected: expected(&named.case),
                verdict: verdict(&judged.verdict),
                is_wrong: exit_code(&judged.verdict) != 0,
                runs: judged.runs,
                page: self.write_page(named, judged)?,
            });
        }
        let path = self.folder.join("index.html");
        write_file(&path, &index(&exhibits))?;
        let output = GalleryOutput {
            index: &path,
            scenarios: count,
            cases: exhibits.len(),
            pages: exhibits.iter().filter(|one| one.page.is_ok()).count(),
            wrong: exhibits.iter().filter(|one| one.is_wrong).count(),
        };
        match self.form.json {
            true => say_json(&output)?,
            false => {
                say(&format!(
                    "{} scenarios, {} cases: {} pages, {} not as expected",
                    output.scenarios, output.cases, output.pages, output.wrong
                ));
                say(&format!("{}", path.display()));
            }
        }
        Ok(code)
    }

    /// Runs the cases, each until its effect is found.
    fn judge(&self, cases: &[NamedCase]) -> Vec<Judged> {
        let most = self.seeds.unwrap_or(u64::MAX);
        let cells = cases
            .iter()
            .map(|named| named.case.cell(named.name(), Depth::UntilFound, most));
        let judging = cases.iter().map(|named| Judging::new(&named.case, most));
        let mut judged: Vec<Judging<'_>> = judging.collect();
        let runs = Runs::all(cells.collect(), self.threads.count());
        runs.run(&mut |cell, row| {
            if let Some(judging) = judged.get_mut(cell) {
                judging.add(&row);
            }
        });
        judged.into_iter().map(Judging::end).collect()
    }

    /// Writes the page of a case, if its lane has pages.
    fn write_page(
        &self,
        named: &NamedCase,
        judged: &Judged,
    ) -> Result<Result<Page, NoPage>, CliError> {
        if named.case.plan.lane != Lane::Fast {
            return Ok(Err(NoPage));
        }
        let seed = judged.first.unwrap_or(0);
        let plan = Plan {
            seed,
            ..named.case.plan.clone()
        };
        let (run, recording) = run_recorded(&Rc::new(plan));
        let title = format!(
            "{}: {} ({}; expected: {})",
            named.id,
            named.title,
            named.case.name,
            expected(&named.case)
        );
        let text = page(&run, &recording, &title, &plan_file::write(&run.plan)?);
        let file = file_name(&named.id, &named.case.name);
        write_file(&self.folder.join(&file), &text)?;
        Ok(Ok(Page { file, seed }))
    }
}
