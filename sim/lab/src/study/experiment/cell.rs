//! A cell of a study: the plans of one point and one lock.

use toml::Spanned;
use toml::de::DeValue;

use super::axis::{Axis, Setting};
use super::drawn::{self, Drawn};
use crate::plan_file::document::{self, DocumentPart, Misfit};
use crate::plan_file::plan_of;
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
    /// The plan of the file with everything that the cell sets.
    document: DocumentPart<'t>,
    drawn: Vec<Drawn>,
    /// The processes by which faults strike, if there are any.
    law: Option<Deployment>,
}

/// Why the plans of a cell cannot be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CellMisfit {
    /// The path of the wrong field in the file, such as `plan.faults.0.at`, if the error is about a field.
    pub(super) field: Option<String>,
    pub(super) why: String,
}

impl From<String> for CellMisfit {
    fn from(why: String) -> Self {
        CellMisfit { field: None, why }
    }
}

/// The largest number of numbers that are drawn. All corners of what they can be are checked.
const MOST_DRAWN: usize = 8;

impl<'t> CellPlans<'t> {
    /// Reads the plans of a cell. `document` has the tables `plan` and `process`.
    pub(super) fn read(
        (point, lock): (usize, usize),
        mut document: DocumentPart<'t>,
        axes: &[Axis],
        settings: &'t [Setting],
    ) -> Result<Self, CellMisfit> {
        for (axis, setting) in axes.iter().zip(settings) {
            for path in &axis.paths {
                put(&mut document, path, &setting.toml)?;
            }
        }
        let processes = document.remove("process");
        let drawn = drawn::all(&document, "").map_err(why)?;
        let mut cell = CellPlans {
            point,
            lock,
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
            return Err(why.into());
        }
        for corner in 0..1u32 << many {
            let numbers = self.drawn.iter().enumerate().map(|(index, drawn)| {
                let is_high = corner >> index & 1 == 1;
                drawn.at(if is_high { 1.0 - f64::EPSILON } else { 0.0 })
            });
            let plan = self.with(&numbers.collect::<Vec<String>>())?;
            quorlock_sim_plan::check(&plan).map_err(|error| CellMisfit {
                field: error.field().map(|field| {
                    let path = field.replace('[', ".").replace(']', "");
                    format!("plan.{path}")
                }),
                why: error.to_string(),
            })?;
        }
        Ok(())
    }

    /// Reads the processes, with the plan in which each drawn number is in the middle.
    fn read_law(&self, mut processes: Spanned<DeValue<'t>>) -> Result<Deployment, String> {
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
        put(&mut table, "horizon", "\"1h\"")?;
        put(&mut table, "largest", "1")?;
        Deployment::of("".as_ref(), "", table).map_err(|error| error.to_string())
    }

    /// Returns the document with these numbers in the places of what is drawn.
    fn put_drawn<'n>(&self, numbers: &'n [String]) -> Result<DocumentPart<'n>, String>
    where
        't: 'n,
    {
        let mut document: DocumentPart<'n> = self.document.clone();
        for (drawn, number) in self.drawn.iter().zip(numbers) {
            put(&mut document, &drawn.path, number)?;
        }
        Ok(document)
    }

    fn with(&self, numbers: &[String]) -> Result<Plan, String> {
        let mut document = self.put_drawn(numbers)?;
        let table = match document.remove("plan").map(Spanned::into_inner) {
            Some(DeValue::Table(table)) => table,
            _ => DocumentPart::new(),
        };
        Ok(plan_of("", table).map_err(|error| error.why)?.0)
    }

    /// Returns the plan of a seed.
    pub(super) fn plan(&self, seed: u64) -> Plan {
        let numbers: Vec<String> = self.drawn.iter().map(|drawn| drawn.of(seed)).collect();
        let plan = self.with(&numbers);
        let mut plan = plan.expect("BUG: the corners of what is drawn were read");
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

/// Sets the value at a path.
fn put<'a>(document: &mut DocumentPart<'a>, path: &str, toml: &'a str) -> Result<(), String> {
    let value = DeValue::parse(toml).map_err(|error| error.message().to_owned())?;
    let place = document::at_mut(document, path).map_err(why)?;
    *place = value.into_inner();
    Ok(())
}

fn why(misfit: Misfit) -> String {
    misfit.in_text("").why
}
