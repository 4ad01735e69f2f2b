//! What still breaks, in small.

use std::fmt::Write as _;
use std::rc::Rc;

use super::contender::OURS;
use super::{Cell, Class, Matrix, Table};
use crate::plan_file::{self, PlanError};
use crate::report;
use crate::shrink::{Shrunk, shrink};
use crate::simulation::run_recorded;
use crate::story;

/// The first failure of RedLock under a class of fault, made small.
#[derive(Debug)]
pub struct Example {
    /// The class.
    pub class: Class,
    /// The seed of the failure that it was made of.
    pub seed: u64,
    /// What is left of it.
    pub shrunk: Shrunk,
}

impl Matrix {
    /// One example for each class of fault under which RedLock with its defaults broke. Each takes so many runs at most.
    #[must_use]
    pub fn examples(&self, table: &Table, runs: u32) -> Vec<Example> {
        let of_class = |class: &Class| {
            let cell = table.cell(OURS.id, class.id)?;
            let seed = first_seed(cell)?;
            let shrunk = shrink(&OURS.plan(class, seed), runs, &mut |_, _| {})?;
            let class = *class;
            Some(Example {
                class,
                seed,
                shrunk,
            })
        };
        self.classes.iter().filter_map(of_class).collect()
    }
}

fn first_seed(cell: &Cell) -> Option<u64> {
    cell.exclusion.first_seed.or(cell.fencing.first_seed)
}

impl Example {
    /// The name of its picture.
    #[must_use]
    pub fn file_name(&self) -> String {
        let words = self.class.id.split(|c: char| !c.is_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        format!("{}.svg", words.join("-"))
    }

    /// Its picture, in SVG.
    #[must_use]
    pub fn figure(&self) -> String {
        let plan = Rc::clone(&self.shrunk.run.plan);
        let (run, recording) = run_recorded(&plan);
        report::figure(&run, &recording)
    }

    /// What it is, its story and its plan, as Markdown; the picture lies in this folder.
    ///
    /// # Errors
    /// [`PlanError::Write`].
    pub fn markdown(&self, folder: &str) -> Result<String, PlanError> {
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
    use crate::matrix::CLASSES;
    use crate::simulation::Verdict;

    #[test]
    fn what_breaks_has_an_example_that_breaks_and_what_holds_has_none() {
        let is_asked = |class: &&Class| ["quiet", "eviction"].contains(&class.id);
        let matrix = Matrix {
            contenders: vec![OURS],
            classes: CLASSES.iter().filter(is_asked).copied().collect(),
            ..Matrix::new(120, 2)
        };
        let examples = matrix.examples(&matrix.run(), 60);
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
        let plan: crate::plan::Plan = toml::from_str(plan).unwrap();
        assert_eq!(plan, *example.shrunk.run.plan);
        assert!(example.figure().contains("<svg"));
    }
}
