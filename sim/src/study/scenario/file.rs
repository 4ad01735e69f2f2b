//! Scenarios in TOML.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Table, Value};

use super::{Case, Expect, Figure, Least, Scenario};
use crate::checker::Property;
use crate::plan::Plan;
use crate::plan::file::{self, PlanError};

/// The keys that a scenario has and a plan has not.
const HEADER: [&str; 7] = ["id", "title", "reason", "source", "seeds", "least", "case"];

/// How many seeds are run if nobody says.
const SEEDS: u64 = 100;

/// Why a file is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{path}: {error}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is no scenario.
    #[error("{path}: {place}{error}")]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// In which part of it.
        place: String,
        /// Where and why.
        error: Box<toml::de::Error>,
    },
    /// Something in it is impossible.
    #[error("{path}: {place}: {why}")]
    Impossible {
        /// Which file.
        path: PathBuf,
        /// Which part of it.
        place: String,
        /// Why.
        why: String,
    },
    /// Its plan, or that of a case, cannot be run.
    #[error("{path}: {place}{error}")]
    Plan {
        /// Which file.
        path: PathBuf,
        /// In which part of it.
        place: String,
        /// Why.
        error: Box<PlanError>,
    },
    /// There is none of that name.
    #[error(
        "there is no scenario {0:?}: `quorlock-sim scenarios --list` names all of them, and a file is given by its path"
    )]
    Unknown(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    id: String,
    title: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    seeds: Option<u64>,
    #[serde(default)]
    least: Least,
    #[serde(default)]
    case: Vec<CaseHeader>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseHeader {
    #[serde(default)]
    name: Option<String>,
    expect: Word,
    #[serde(default)]
    property: Option<Property>,
    /// What may be broken as well.
    #[serde(default)]
    beside: Vec<Property>,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    fast_only: Option<String>,
    #[serde(default)]
    seeds: Option<u64>,
    #[serde(default)]
    least: Option<Least>,
    #[serde(default)]
    figure: Option<Figure>,
    /// What is different from the scenario's plan.
    #[serde(default)]
    plan: Table,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Word {
    Holds,
    Breaks,
}

/// Whether a text has a header, so that it is a scenario and not only a plan.
pub(crate) fn has_header(table: &Table) -> bool {
    table.contains_key("id") || table.contains_key("case")
}

/// The plan of a scenario's text, without its header.
pub(crate) fn without_header(mut table: Table) -> Table {
    for key in HEADER {
        table.remove(key);
    }
    table
}

/// Reads a scenario.
///
/// # Errors
/// [`ScenarioError`], which names the file and the place in it.
pub fn read(path: &Path) -> Result<Scenario, ScenarioError> {
    let text = fs::read_to_string(path).map_err(|error| ScenarioError::Io {
        path: path.to_owned(),
        error,
    })?;
    parse(path, &text)
}

/// The same from a text that has been read from a file.
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, text: &str) -> Result<Scenario, ScenarioError> {
    let syntax = |error| ScenarioError::Syntax {
        path: path.to_owned(),
        place: String::new(),
        error: Box::new(error),
    };
    let whole: Table = toml::from_str(text).map_err(syntax)?;
    let mut header = Table::new();
    for key in HEADER {
        if let Some(value) = whole.get(key) {
            header.insert(key.to_owned(), value.clone());
        }
    }
    let plan = without_header(whole);
    let header: Header = header.try_into().map_err(syntax)?;
    if header.case.is_empty() {
        return Err(impossible(path, "case", "a scenario has at least one"));
    }
    let cases = header.case.iter().zip(0..);
    let cases = cases.map(|(case, index)| one_case(path, &header, case, index, &plan));
    Ok(Scenario {
        cases: cases.collect::<Result<_, _>>()?,
        id: header.id,
        title: header.title,
        reason: header.reason.trim().to_owned(),
        source: header.source,
    })
}

fn impossible(path: &Path, place: impl Into<String>, why: impl Into<String>) -> ScenarioError {
    ScenarioError::Impossible {
        path: path.to_owned(),
        place: place.into(),
        why: why.into(),
    }
}

fn one_case(
    path: &Path,
    header: &Header,
    case: &CaseHeader,
    index: usize,
    plan: &Table,
) -> Result<Case, ScenarioError> {
    let place = format!("case[{index}]: ");
    let mut changed = plan.clone();
    merge(&mut changed, &case.plan);
    let plan: Plan = changed.try_into().map_err(|error| ScenarioError::Syntax {
        path: path.to_owned(),
        place: place.clone(),
        error: Box::new(error),
    })?;
    file::check(&plan).map_err(|error| ScenarioError::Plan {
        path: path.to_owned(),
        place: place.clone(),
        error: Box::new(error),
    })?;
    let at = |field: &str| format!("case[{index}].{field}");
    let expect = match (case.expect, case.property) {
        (Word::Holds, None) if case.beside.is_empty() => Expect::Holds,
        (Word::Holds, _) => {
            let why = "a case that holds breaks no property: leave it out";
            return Err(impossible(path, at("property"), why));
        }
        (Word::Breaks, Some(property)) => Expect::Breaks(property, case.beside.clone()),
        (Word::Breaks, None) => {
            let why = "which property breaks? For example property = \"exclusion\"";
            return Err(impossible(path, at("property"), why));
        }
    };
    let seeds = case.seeds.or(header.seeds).unwrap_or(SEEDS);
    if seeds == 0 {
        return Err(impossible(path, at("seeds"), "at least one is run"));
    }
    let name = case.name.clone();
    Ok(Case {
        name: name.unwrap_or_else(|| plan.variant.name().to_owned()),
        expect,
        reason: case.reason.trim().to_owned(),
        fast_only: case.fast_only.clone(),
        seeds,
        least: case.least.unwrap_or(header.least),
        figure: case.figure.clone(),
        plan,
    })
}

/// Puts what a case says in the place of what the scenario says, table by table.
fn merge(plan: &mut Table, changes: &Table) {
    for (key, change) in changes {
        match (plan.get_mut(key), change) {
            (Some(Value::Table(inner)), Value::Table(change)) => merge(inner, change),
            _ => {
                plan.insert(key.clone(), change.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::variant::Variant;

    fn text(cases: &str) -> Result<Scenario, ScenarioError> {
        let head = "id = \"X1\"\ntitle = \"t\"\nclients = 2\n[nodes]\ncount = 3\n";
        parse(Path::new("x.toml"), &format!("{head}{cases}"))
    }

    #[test]
    fn a_case_is_the_plan_with_its_own_changes() {
        let two = "[[case]]\nexpect = \"holds\"\n[[case]]\nexpect = \"breaks\"\n\
                   property = \"exclusion\"\nplan = { variant = \"wall-clock\", nodes = { persistence = \"memory\" } }\n";
        let scenario = text(two).unwrap();
        let [product, other] = scenario.cases.as_slice() else {
            panic!("{scenario:?}")
        };
        assert_eq!(product.name, "product");
        assert_eq!(other.name, "wall-clock");
        assert_eq!(other.plan.variant, Variant::WallClock);
        assert_eq!(other.plan.nodes.count, 3);
        assert_eq!(other.plan.clients, 2);
        assert_ne!(other.plan.nodes, product.plan.nodes);
        assert_eq!(other.expect, Expect::Breaks(Property::Exclusion, vec![]));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (cases, place) in [
            ("", "case"),
            ("[[case]]\n", "expect"),
            ("[[case]]\nexpect = \"perhaps\"", "perhaps"),
            ("[[case]]\nexpect = \"breaks\"", "case[0].property"),
            (
                "[[case]]\nexpect = \"holds\"\nproperty = \"usage\"",
                "case[0].property",
            ),
            ("[[case]]\nexpect = \"holds\"\nseeds = 0", "case[0].seeds"),
            ("[[case]]\nexpect = \"holds\"\nwhat = 0", "what"),
            (
                "[[case]]\nexpect = \"holds\"\nplan = { clients = 0 }",
                "case[0]: clients",
            ),
            (
                "[[case]]\nexpect = \"holds\"\nplan = { colour = 0 }",
                "case[0]: ",
            ),
            (
                "[[faults]]\nkind = \"dance\"\n[[case]]\nexpect = \"holds\"",
                "dance",
            ),
        ] {
            let error = text(cases).unwrap_err().to_string();
            assert!(error.starts_with("x.toml: "), "{error}");
            assert!(error.contains(place), "{cases}: {error}");
        }
    }
}
