//! A cell of a study: the plans of one point and one lock.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use super::axis::{Axis, Setting};
use super::drawn::{self, Drawn};
use crate::plan_file::document::{self, DocumentPart, Misfit};
use crate::plan_file::{Misreading, PlanFileError, Position, plan_of};
use crate::study::rate::{Deployment, Strata, strike_by_law};
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::time::SimTime;

/// The plans of one point and one lock.
#[derive(Clone, Debug)]
pub(super) struct CellPlans<'t> {
    /// The index of the point.
    pub(super) point: usize,
    /// The index of the lock.
    pub(super) lock: usize,
    /// The text of the file.
    text: &'t str,
    /// The plan of the file with everything that the cell sets.
    document: DocumentPart<'t>,
    drawn: Vec<Drawn>,
    /// The processes by which faults strike, if there are any.
    law: Option<Deployment>,
}

/// Why the plans of a cell cannot be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CellMisfit {
    /// The place in the file, if it has what is wrong.
    pub(super) at: Option<Position>,
    pub(super) why: String,
}

impl From<Misreading> for CellMisfit {
    fn from(wrong: Misreading) -> Self {
        CellMisfit {
            at: Some(wrong.at),
            why: wrong.why,
        }
    }
}

impl From<PlanFileError> for CellMisfit {
    fn from(error: PlanFileError) -> Self {
        match error {
            PlanFileError::Syntax { error, .. } => error.into(),
            PlanFileError::InFile { at, error, .. } => CellMisfit {
                at,
                why: error.to_string(),
            },
            other => CellMisfit {
                at: None,
                why: other.to_string(),
            },
        }
    }
}

/// The largest number of numbers that are drawn. All corners of what they can be are checked.
const MOST_DRAWN: usize = 8;

impl<'t> CellPlans<'t> {
    /// Reads the plans of a cell. `document` has the tables `plan` and `process`, from this text.
    pub(super) fn read(
        (point, lock): (usize, usize),
        text: &'t str,
        mut document: DocumentPart<'t>,
        varied: impl Iterator<Item = (&'t Axis, &'t Setting)>,
    ) -> Result<Self, CellMisfit> {
        let misfit = |misfit: Misfit| misfit.in_text(text);
        for (axis, setting) in varied {
            for path in &axis.paths {
                put(&mut document, path, &setting.toml, &axis.span).map_err(misfit)?;
            }
        }
        let processes = document.remove("process");
        let drawn = drawn::all(&document, "").map_err(misfit)?;
        let mut cell = CellPlans {
            point,
            lock,
            text,
            document,
            drawn,
            law: None,
        };
        cell.check()?;
        if let Some(processes) = processes {
            cell.law = Some(cell.read_law(processes)?);
        }
        Ok(cell)
    }

    /// Checks the plans. What a plan must be is a comparison of sums of its numbers, so it holds everywhere if it holds at the
    /// corners of what is drawn.
    fn check(&self) -> Result<(), CellMisfit> {
        let many = self.drawn.len();
        if MOST_DRAWN < many {
            let why = format!("{many} numbers are drawn, and {MOST_DRAWN} is the most");
            let last = self.drawn.last().map_or(0..0, |drawn| drawn.span.clone());
            return Err(Misfit::new(last, why).in_text(self.text).into());
        }
        for corner in 0..1u32 << many {
            let numbers = self.drawn.iter().enumerate().map(|(index, drawn)| {
                let is_high = corner >> index & 1 == 1;
                drawn.at(if is_high { 1.0 - f64::EPSILON } else { 0.0 })
            });
            let numbers = numbers.collect::<Vec<String>>();
            let (plan, table) = self.with(&numbers)?;
            quorlock_sim_plan::check(&plan).map_err(|error| CellMisfit {
                at: error
                    .field()
                    .and_then(|field| document::locate(self.text, &table, &field)),
                why: error.to_string(),
            })?;
        }
        Ok(())
    }

    /// Reads the processes, with the plan in which each drawn number is in the middle.
    fn read_law(&self, mut processes: Spanned<DeValue<'t>>) -> Result<Deployment, CellMisfit> {
        if let DeValue::Array(items) = processes.get_mut() {
            let tables = items.iter_mut().map(Spanned::get_mut);
            for process in tables {
                if let DeValue::Table(process) = process {
                    process.remove("id");
                }
            }
        }
        let numbers: Vec<String> = self.drawn.iter().map(|drawn| drawn.at(0.5)).collect();
        let mut table = DocumentPart::new();
        table.extend(self.put_drawn(&numbers)?.remove_entry("plan"));
        table.insert(Spanned::new(0..0, "process".into()), processes);
        // Only the strikes are used: no horizon is asked for, and no clusters are run.
        table.extend(document::parse("horizon = \"1h\"\nlargest = 1")?);
        Ok(Deployment::of("".as_ref(), self.text, table)?)
    }

    /// Returns the document with these numbers in the places of what is drawn.
    fn put_drawn<'n>(&self, numbers: &'n [String]) -> Result<DocumentPart<'n>, Misreading>
    where
        't: 'n,
    {
        let mut document: DocumentPart<'n> = self.document.clone();
        for (drawn, number) in self.drawn.iter().zip(numbers) {
            put(&mut document, &drawn.path, number, &drawn.span)
                .map_err(|misfit| misfit.in_text(self.text))?;
        }
        Ok(document)
    }

    /// Returns the plan with these numbers, and its table.
    fn with<'n>(&self, numbers: &'n [String]) -> Result<(Plan, DocumentPart<'n>), Misreading>
    where
        't: 'n,
    {
        let mut document = self.put_drawn(numbers)?;
        let Some(plan) = document.remove("plan") else {
            return plan_of(self.text, Spanned::new(0..0, DocumentPart::new()));
        };
        let span = plan.span();
        let DeValue::Table(table) = plan.into_inner() else {
            let why = "`plan` is a table: write [plan]";
            return Err(Misfit::new(span, why).in_text(self.text));
        };
        plan_of(self.text, Spanned::new(span, table))
    }

    /// Returns the plan of a seed.
    pub(super) fn plan(&self, seed: u64) -> Plan {
        let numbers: Vec<String> = self.drawn.iter().map(|drawn| drawn.of(seed)).collect();
        let plan = self.with(&numbers);
        let (mut plan, _) = plan.expect("BUG: the corners of what is drawn were read");
        plan.seed = seed;
        if let Some(law) = &self.law {
            let law = Deployment {
                plan: plan.clone(),
                ..law.clone()
            };
            let ends = plan.duration;
            strike_by_law(&law, &Strata::of(&law), &mut plan, SimTime::ZERO, ends);
            plan.duration = ends.plus(law.longest);
        }
        plan
    }
}

/// Sets the value at a path. `span` is what sets it in the file.
fn put<'a>(
    document: &mut DocumentPart<'a>,
    path: &str,
    toml: &'a str,
    span: &Range<usize>,
) -> Result<(), Misfit> {
    let value = DeValue::parse(toml);
    let value = value.map_err(|error| Misfit::new(span.clone(), error.message()))?;
    document::put(document, path, value.into_inner(), span)
}
