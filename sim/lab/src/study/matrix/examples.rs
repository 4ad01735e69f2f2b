//! Small examples of faults that still break the product's lock.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::rc::Rc;

use super::contender::OURS;
use super::{Cell, Class, Matrix, MatrixTable};
use crate::plan_file::{self, PlanFileError};
use crate::simulation::{run, run_recorded};
use crate::study::shrink::shrink_to;
use quorlock_sim::report;
use quorlock_sim::shrink::Shrunk;
use quorlock_sim_check::run::Verdict;
use quorlock_sim_check::story;
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::property::Property;

/// A shrunk failure of RedLock under a class of fault.
#[derive(Debug)]
pub struct Example {
    /// The class of fault.
    pub class: Class,
    /// The seed of the original failure.
    pub seed: u64,
    /// The shrunk failure.
    pub shrunk: Shrunk,
}

impl Matrix {
    /// Returns one example for each class of fault under which RedLock with its defaults broke, unless another example
    /// shows the same. Each failure is shrunk with at most this many runs.
    #[must_use]
    pub fn examples(&self, table: &MatrixTable, runs: u32) -> Vec<Example> {
        let mut examples: Vec<Example> = Vec::new();
        for class in &self.classes {
            let broken = table.cell(OURS.id, class.id).and_then(first_seed);
            let Some(first) = broken else { continue };
            let failures = (first..self.first_seed + self.runs)
                .filter(|seed| breaks(&OURS.plan(class, *seed)));
            let shrunk = failures.take(TRIED).filter_map(|seed| {
                let shrunk = shrink_to(&OURS.plan(class, seed), MAJORITY, runs, &mut |_, _| {})?;
                let class = *class;
                Some(Example {
                    class,
                    seed,
                    shrunk,
                })
            });
            // In a class that contains other classes, the first failure usually belongs to one of those.
            let mut new = shrunk.filter(|example| {
                let mut told = examples.iter();
                told.all(|other| other.shows() != example.shows())
            });
            let example = new.next();
            examples.extend(example);
        }
        examples
    }
}

/// The smallest number of nodes that still have a majority when one of them is missing.
const MAJORITY: u16 = 3;

/// The number of failures of a class that are tried.
const TRIED: usize = 12;

fn first_seed(cell: &Cell) -> Option<u64> {
    let seeds = [cell.exclusion.first_seed, cell.fencing.first_seed];
    seeds.into_iter().flatten().min()
}

fn breaks(plan: &Plan) -> bool {
    let run = run(&Rc::new(plan.clone()));
    matches!(run.verdict, Verdict::Violated(violation) if !violation.property.is_liveness())
}

impl Example {
    /// Returns what the example shows: the broken property, the number of nodes, and the kinds of fault.
    fn shows(&self) -> (&Property, u16, BTreeSet<&'static str>) {
        let plan = &self.shrunk.run.plan;
        let kinds = plan.faults.iter().map(|fault| fault.kind().name());
        let property = &self.shrunk.identity.property;
        (property, plan.nodes.count, kinds.collect())
    }

    /// Returns the file name of the example's picture.
    #[must_use]
    pub fn file_name(&self) -> String {
        let words = self.class.id.split(|c: char| !c.is_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        format!("{}.svg", words.join("-"))
    }

    /// Returns the example's picture as SVG.
    #[must_use]
    pub fn figure(&self) -> String {
        let plan = Rc::clone(&self.shrunk.run.plan);
        let (run, recording) = run_recorded(&plan);
        report::figure(&run, &recording)
    }

    /// Returns the description, the story and the plan of the example as Markdown. The picture is in `folder`.
    ///
    /// # Errors
    /// Returns [`PlanFileError::Write`] if the plan cannot be written.
    pub fn markdown(&self, folder: &str) -> Result<String, PlanFileError> {
        let Shrunk {
            run, before, after, ..
        } = &self.shrunk;
        let mut text = format!("## {}\n\n", capitalised(self.class.id));
        let _ = writeln!(
            text,
            "{}. Of seed {}, shrunk from {} faults, {} clients and {} events to {}, {} and {}.\n\n\
             ![Who believed what, and which node had what]({folder}/{})\n",
            capitalised(self.class.title),
            self.seed,
            before.faults,
            before.clients,
            before.events,
            after.faults,
            after.clients,
            after.events,
            self.file_name()
        );
        let _ = writeln!(text, "```text\n{}\n```\n", story::tell(run).join("\n"));
        let _ = writeln!(text, "```toml\n{}```\n", plan_file::write(&run.plan)?);
        Ok(text)
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::matrix::CLASSES;

    #[test]
    fn every_example_is_a_majority_and_none_is_shown_twice() {
        let asked = ["suspend, clock stops", "everything", "everything, amnesia"];
        let matrix = Matrix {
            contenders: vec![OURS],
            classes: CLASSES
                .iter()
                .filter(|class| asked.contains(&class.id))
                .copied()
                .collect(),
            ..Matrix::new(150)
        };
        let table = matrix.run(2);
        let broken = |id: &&str| table.cell("ours", id).and_then(first_seed).is_some();
        assert!(2 <= asked.iter().filter(|id| broken(id)).count());
        let examples = matrix.examples(&table, 150);
        assert!(!examples.is_empty());
        for (nth, example) in examples.iter().enumerate() {
            assert!(MAJORITY <= example.shrunk.run.plan.nodes.count);
            for other in &examples[..nth] {
                assert_ne!(example.shows(), other.shows());
            }
        }
    }

    #[test]
    fn what_breaks_has_an_example_that_breaks_and_what_holds_has_none() {
        let is_asked = |class: &&Class| ["quiet", "eviction"].contains(&class.id);
        let matrix = Matrix {
            contenders: vec![OURS],
            classes: CLASSES.iter().filter(is_asked).copied().collect(),
            ..Matrix::new(120)
        };
        let examples = matrix.examples(&matrix.run(2), 60);
        let [example] = examples.as_slice() else {
            panic!("{examples:?}");
        };
        assert_eq!(example.class.id, "eviction");
        assert!(matches!(example.shrunk.run.verdict, Verdict::Violated(_)));
        assert!(example.shrunk.after.faults <= example.shrunk.before.faults);
        let text = example.markdown("breaks").unwrap();
        assert!(text.contains("(breaks/eviction.svg)"), "{text}");
        let plan = text.split("```toml\n").nth(1).unwrap();
        let plan = plan.split("```").next().unwrap();
        let plan: quorlock_sim_plan::Plan = toml::from_str(plan).unwrap();
        assert_eq!(plan, *example.shrunk.run.plan);
        assert!(example.figure().contains("<svg"));
    }
}
