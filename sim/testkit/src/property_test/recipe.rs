//! The file of a test's failure: its seed, the settings from which its plan is drawn, and the candidates that shrinking
//! accepted.
//!
//! The plan follows from these, so it is not written itself.

use std::fmt::{self, Write};
use std::fs;
use std::path::Path;
use std::str::FromStr;

use std::rc::Rc;

use super::TEST_FAILURE;
use super::settings::{Drawn, Outages, Settings};
use crate::shrink::{Taken, shrink_again};
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{LockKind, Plan};

/// The version of this simulator. Only the version that wrote a file can repeat the run.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A failure of a test, with everything that determines its run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Recipe {
    pub(super) test: String,
    pub(super) seed: u64,
    pub(super) drawn: Drawn,
    /// The property that was broken.
    pub(super) property: Property,
    /// The number of candidates that shrinking ran, or 0 if the failure was not shrunk.
    pub(super) runs: u32,
    pub(super) taken: Vec<Taken>,
    /// The trace hash of the run that is repeated.
    pub(super) trace: u64,
}

/// The reason why a run cannot be repeated from a file.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecipeError {
    /// The operating system returned an error.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file was written by another version.
    #[error("written by version {0}, but this is {VERSION}: replay it with version {0}")]
    OtherVersion(String),
    /// The file is not a failure of a test.
    #[error("not a failure of a test of this simulator: {0}")]
    Foreign(String),
}

impl Recipe {
    /// Returns the plan of the run that is repeated.
    pub(super) fn plan(&self, settings: &Settings) -> Result<Rc<Plan>, RecipeError> {
        let foreign = |error: String| RecipeError::Foreign(error);
        let settings = settings.drawing(&self.drawn).map_err(foreign)?;
        let plan = settings.try_plan(self.seed);
        let plan = plan.map_err(|error| foreign(error.to_string()))?;
        if self.taken.is_empty() {
            return Ok(Rc::new(plan));
        }
        let least = least_nodes(&plan);
        Ok(shrink_again(
            &plan,
            least,
            self.runs,
            self.property,
            &self.taken,
        ))
    }

    /// Reads a recipe from a file.
    pub(super) fn read(path: &Path) -> Result<Self, RecipeError> {
        fs::read_to_string(path)?.parse()
    }
}

/// Returns the smallest number of nodes to which a plan shrinks. A majority of one node would be a different
/// deployment.
pub(super) fn least_nodes(plan: &Plan) -> u16 {
    match plan.lock {
        LockKind::Redlock => plan.nodes.count.min(3),
        _ => 1,
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{TEST_FAILURE}")?;
        writeln!(
            f,
            "# QUORLOCK_REPLAY=<this file> cargo test .. runs it again."
        )?;
        writeln!(f, "version = {VERSION:?}")?;
        writeln!(f, "test = {:?}", self.test)?;
        writeln!(f, "seed = {}", self.seed)?;
        let Drawn {
            clients,
            nodes,
            faults,
            outages,
            duration,
        } = &self.drawn;
        writeln!(f, "clients = {clients}")?;
        writeln!(f, "nodes = {nodes}")?;
        writeln!(f, "faults = {faults:?}")?;
        writeln!(f, "outages = {:?}", outages.name())?;
        if let Some(duration) = duration {
            writeln!(f, "duration = \"{duration}\"")?;
        }
        writeln!(f, "property = \"{}\"", self.property)?;
        writeln!(f, "trace = \"{:016x}\"", self.trace)?;
        writeln!(
            f,
            "# The candidates that shrinking took, each with the time of its failure in nanoseconds."
        )?;
        writeln!(f, "runs = {}", self.runs)?;
        let mut taken = String::new();
        for one in &self.taken {
            write!(taken, "{}@{} ", one.attempt, one.at.as_nanos())?;
        }
        writeln!(f, "taken = {:?}", taken.trim_end())
    }
}

impl FromStr for Recipe {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<Self, RecipeError> {
        let fields = Fields(text);
        let version = fields.text("version")?;
        if version != VERSION {
            return Err(RecipeError::OtherVersion(version.to_owned()));
        }
        let duration = fields.text("duration").ok();
        let taken = fields.text("taken")?;
        let wrong = |name: &str| RecipeError::Foreign(format!("{name} is not what it writes"));
        Ok(Recipe {
            test: fields.text("test")?.to_owned(),
            seed: fields.value("seed")?,
            drawn: Drawn {
                clients: fields.value("clients")?,
                nodes: fields.value("nodes")?,
                faults: fields.text("faults")?.to_owned(),
                outages: Outages::named(fields.text("outages")?).ok_or_else(|| wrong("outages"))?,
                duration: duration
                    .map(str::parse)
                    .transpose()
                    .map_err(|_| wrong("duration"))?,
            },
            property: Property::named(fields.text("property")?).ok_or_else(|| wrong("property"))?,
            runs: fields.value("runs")?,
            taken: taken
                .split_whitespace()
                .map(|one| {
                    let (attempt, at) = one.split_once('@')?;
                    Some(Taken {
                        attempt: attempt.parse().ok()?,
                        at: SimTime::nanos(at.parse().ok()?),
                    })
                })
                .collect::<Option<_>>()
                .ok_or_else(|| wrong("taken"))?,
            trace: u64::from_str_radix(fields.text("trace")?, 16).map_err(|_| wrong("trace"))?,
        })
    }
}

/// Lines of the form `name = value`.
struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    fn raw(&self, name: &str) -> Result<&'a str, RecipeError> {
        let fields = self.0.lines().filter_map(|line| line.split_once(" = "));
        let mut values = fields.filter(|(known, _)| *known == name);
        let value = values.next().map(|(_, value)| value);
        value.ok_or_else(|| RecipeError::Foreign(format!("it has no {name}")))
    }

    fn value<T: FromStr>(&self, name: &str) -> Result<T, RecipeError> {
        let value = self.raw(name)?.parse();
        value.map_err(|_| RecipeError::Foreign(format!("{name} is not a valid number")))
    }

    fn text(&self, name: &str) -> Result<&'a str, RecipeError> {
        let value = self.raw(name)?;
        let inner = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
        inner.ok_or_else(|| RecipeError::Foreign(format!("{name} is not a string")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe() -> Recipe {
        Recipe {
            test: "orders::ships".to_owned(),
            seed: 20,
            drawn: Drawn {
                clients: 3,
                nodes: 5,
                faults: "cut,loss".to_owned(),
                outages: Outages::None,
                duration: Some(SimTime::millis(1_500)),
            },
            property: Property::Always,
            runs: 4_271,
            taken: vec![
                Taken {
                    attempt: 0,
                    at: SimTime::millis(3),
                },
                Taken {
                    attempt: 17,
                    at: SimTime::micros(2),
                },
            ],
            trace: 0xab,
        }
    }

    #[test]
    fn a_recipe_reads_back_as_it_was_written() {
        assert_eq!(recipe().to_string().parse::<Recipe>().unwrap(), recipe());
        let whole = Recipe {
            drawn: Drawn {
                duration: None,
                ..recipe().drawn
            },
            runs: 0,
            taken: Vec::new(),
            ..recipe()
        };
        assert_eq!(whole.to_string().parse::<Recipe>().unwrap(), whole);
    }

    #[test]
    fn another_version_and_other_files_are_refused() {
        let text = recipe().to_string();
        let older = text.replace(VERSION, "0.0.9").parse::<Recipe>();
        let says = "written by version 0.0.9, but this is";
        assert!(older.unwrap_err().to_string().starts_with(says));
        for wrong in [
            text.replace("seed = 20", "seed = many"),
            text.replace("17@", "17-"),
            text.replace("\"always\"", "\"often\""),
            "{}".to_owned(),
        ] {
            let error = wrong.parse::<Recipe>().unwrap_err();
            assert!(matches!(error, RecipeError::Foreign(_)), "{error}");
        }
    }
}
