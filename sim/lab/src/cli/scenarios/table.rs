//! The table of cases with their verdicts.

use serde::Serialize;

use super::super::{CliError, Form, Printed, PrintedCell, say, say_json};
use crate::study::interval::Interval;
use crate::study::law::NamedCase;
use crate::study::runs::Extent;
use crate::study::scenario::{Case, CaseVerdict, Depth, Expect, Judged};

/// The table of cases with their verdicts.
pub(in crate::cli) struct Table {
    rows: Vec<ScenarioRow>,
    depth: Depth,
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
}

impl Table {
    pub(in crate::cli) fn of<'a>(
        cases: impl Iterator<Item = &'a NamedCase>,
        judged: impl Iterator<Item = Judged>,
        depth: Depth,
    ) -> Self {
        let rows = cases.zip(judged);
        Table {
            rows: rows
                .map(|(case, judged)| ScenarioRow::of(case, judged))
                .collect(),
            depth,
        }
    }

    /// Prints the table. Returns the exit code.
    pub(in crate::cli) fn tell(self, extent: Extent, form: Form) -> Result<u8, CliError> {
        let codes = self.rows.iter().map(|row| exit_code(&row.judged.verdict));
        let code = codes.max_by_key(|code| severity(*code)).unwrap_or(4);
        if form.json {
            let cells = self.rows.into_iter().map(|row| PrintedCell {
                cell: format!("{}: {}", row.id, row.case),
                result: row,
            });
            say_json(&Printed {
                command: "scenarios",
                is_complete: extent == Extent::Complete,
                cells: cells.collect(),
            })?;
            return Ok(code);
        }
        self.print();
        if extent == Extent::Partial {
            say("the time was over before all runs had ended");
        }
        Ok(code)
    }

    fn print(&self) {
        let rows = &self.rows;
        let names = rows.iter().map(|row| row.case.chars().count());
        let wide = names.max().unwrap_or_default().max("case".len());
        say(&format!(
            "  {:<wide$}  {:<20} {:>5} {:>6}  verdict",
            "case", "expected", "runs", "first"
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
            say(&format!(
                "  {:<wide$}  {:<20} {:>5} {:>6}  {}",
                row.case,
                row.expected,
                row.judged.runs,
                first,
                verdict(&row.judged.verdict)
            ));
            if let Some(rate) = row.rate.filter(|_| self.depth == Depth::AllSeeds) {
                say(&format!("    breaks in {rate} of runs"));
            }
            if let Some(measured) = row.judged.measured {
                let share = Interval::of(measured.lost, measured.acknowledged);
                let all = measured.acknowledged;
                say(&format!("    lost {share} of {all} acknowledged"));
            }
        }
        let wrong = rows
            .iter()
            .filter(|row| exit_code(&row.judged.verdict) != 0);
        let wrong = wrong.count();
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
    fn of(named: &NamedCase, judged: Judged) -> Self {
        let property = named.case.expect.property();
        ScenarioRow {
            id: named.id.clone(),
            case: named.case.name.clone(),
            title: named.title.clone(),
            expected: expected(&named.case),
            rate: property.map(|property| judged.rate(property)),
            judged,
        }
    }
}

/// Returns what a case expects, in words.
pub(in crate::cli) fn expected(case: &Case) -> String {
    match &case.expect {
        Expect::Holds => "holds".to_owned(),
        Expect::Breaks(property, _) => format!("breaks {property}"),
    }
}

/// Returns whether a result is as expected, in words.
pub(in crate::cli) fn verdict(verdict: &CaseVerdict) -> String {
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
pub(in crate::cli) fn exit_code(verdict: &CaseVerdict) -> u8 {
    match verdict {
        CaseVerdict::AsExpected | CaseVerdict::NotInLane(_) | CaseVerdict::TooFewSeeds { .. } => 0,
        CaseVerdict::Broken(property) if property.is_liveness() => 3,
        CaseVerdict::Broken(_) => 2,
        CaseVerdict::NotFound(_) | CaseVerdict::Vacuous(_) | CaseVerdict::OtherFigure(_) => 4,
    }
}

/// Orders exit codes: a broken property is worse than a break that was not shown.
pub(in crate::cli) fn severity(code: u8) -> u8 {
    match code {
        2 => 3,
        3 => 2,
        4 => 1,
        _ => 0,
    }
}
