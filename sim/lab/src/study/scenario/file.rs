//! Reading scenarios in TOML.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;
use toml::de::DeValue;

use super::{Case, Expect, Figure, Least, Scenario};
use crate::plan_file::document::{self, DocumentPart, Misfit, word_of};
use crate::plan_file::{self, Misreading, Position};
use quorlock_sim_plan::PlanError;
use quorlock_sim_plan::property::Property;

/// The keys of a scenario that a plan does not have.
const HEADER: [&str; 6] = ["id", "title", "reason", "source", "seeds", "min"];

/// A small scenario.
const SMALL: &str = "\
id = \"X1\"
title = \"A server forgets everything\"
[[faults]]
kind = \"flush\"
at = \"1s\"
node = 0
[[case]]
expect = \"holds\"
";

/// The number of seeds if the file does not set one.
const SEEDS: u64 = 100;

/// An error of a file that is not a valid scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The file contains no scenario.
    #[error("{path}:{}: {case}{error}", error.at)]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The case that has the error, or an empty string.
        case: String,
        /// The place in the file, and the reason.
        error: Misreading,
    },
    /// The file is empty.
    #[error("{path}: the file is empty; this is a small scenario:\n\n{SMALL}")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The plan of the scenario, or of a case, cannot be run.
    #[error("{}: {case}{error}", plan_file::place(path, *at))]
    Plan {
        /// The file.
        path: PathBuf,
        /// The case that has the error.
        case: String,
        /// The place in the file, if the file sets the wrong field.
        at: Option<Position>,
        /// The error of the plan.
        error: Box<PlanError>,
    },
    /// There is no scenario with this id.
    #[error(
        "there is no scenario {0:?}: `quorlock-sim scenarios --list` prints all of them; name a file by its path"
    )]
    Unknown(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioHeader {
    id: String,
    title: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    seeds: Option<u64>,
    #[serde(default)]
    min: Least,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseHeader {
    #[serde(default)]
    name: Option<String>,
    expect: Word,
    #[serde(default)]
    property: Option<Property>,
    /// Further properties that may be broken.
    #[serde(default)]
    beside: Vec<Property>,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    fast_only: Option<String>,
    #[serde(default)]
    seeds: Option<u64>,
    #[serde(default)]
    min: Option<Least>,
    #[serde(default)]
    figure: Option<Figure>,
}

impl CaseHeader {
    /// Returns what is expected of the case, or why its property does not fit.
    fn expectation(&self) -> Result<Expect, &'static str> {
        match (self.expect, self.property) {
            (Word::Holds, None) if self.beside.is_empty() => Ok(Expect::Holds),
            (Word::Holds, _) => Err("a case that holds breaks no property: leave it out"),
            (Word::Breaks, Some(property)) => Ok(Expect::Breaks(property, self.beside.clone())),
            (Word::Breaks, None) => {
                Err("which property breaks? For example property = \"exclusion\"")
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Word {
    Holds,
    Breaks,
}

/// Reads a scenario from a file.
///
/// # Errors
/// Returns [`ScenarioError`] with the file and the place in it.
pub fn read(path: &Path) -> Result<Scenario, ScenarioError> {
    let text = fs::read_to_string(path).map_err(|error| ScenarioError::Io {
        path: path.to_owned(),
        error,
    })?;
    parse(path, &text)
}

/// Reads a scenario from the text of a file.
///
/// # Errors
/// Returns the same errors as [`read`].
pub fn parse(path: &Path, text: &str) -> Result<Scenario, ScenarioError> {
    let reading = Reading { path, text };
    let mut plan = document::parse(text).map_err(|error| reading.wrong("", error))?;
    if plan.is_empty() {
        return Err(ScenarioError::Empty {
            path: path.to_owned(),
        });
    }
    let cases = plan.remove("case");
    let mut header = DocumentPart::new();
    for key in HEADER {
        header.extend(plan.remove_entry(key));
    }
    let header: ScenarioHeader =
        document::read_whole(text, header).map_err(|error| reading.wrong("", error))?;
    let mut read: Vec<Case> = Vec::new();
    for part in cases.into_iter().flat_map(items) {
        let span = part.span();
        let case = reading.case(&header, part, plan.clone())?;
        if read.iter().any(|known| known.name == case.name) {
            let why = format!(
                "another case is called {:?}: give each a `name` of its own",
                case.name
            );
            return Err(reading.misfit("", Misfit::new(span, why)));
        }
        read.push(case);
    }
    if read.is_empty() {
        let why = "a scenario has at least one case: add [[case]] with expect = \"holds\"";
        return Err(reading.misfit("", Misfit::missing(text, why)));
    }
    Ok(Scenario {
        cases: read,
        id: header.id,
        title: header.title,
        reason: header.reason.trim().to_owned(),
        source: header.source,
    })
}

/// Returns the elements of a list.
fn items(list: Spanned<DeValue<'_>>) -> Vec<Spanned<DeValue<'_>>> {
    match list.into_inner() {
        DeValue::Array(items) => items.into_iter().collect(),
        _ => Vec::new(),
    }
}

/// A file that is being read.
#[derive(Clone, Copy)]
struct Reading<'a> {
    path: &'a Path,
    text: &'a str,
}

impl<'a> Reading<'a> {
    fn wrong(self, case: &str, error: Misreading) -> ScenarioError {
        ScenarioError::Syntax {
            path: self.path.to_owned(),
            case: case.to_owned(),
            error,
        }
    }

    fn misfit(self, case: &str, misfit: Misfit) -> ScenarioError {
        self.wrong(case, misfit.in_text(self.text))
    }

    /// Changes the plan of the scenario to that of a case.
    fn change(
        self,
        name: Option<&str>,
        plan: &mut DocumentPart<'a>,
        changes: Option<DeValue<'a>>,
        span: Range<usize>,
    ) -> Result<(), ScenarioError> {
        match changes {
            Some(DeValue::Table(changes)) => {
                let before = told(name, plan);
                let merged = document::merge(plan, changes);
                merged.map_err(|misfit| self.misfit(&before, misfit))
            }
            Some(_) => {
                let why = "`plan` is a table of what is different";
                Err(self.misfit(&told(name, plan), Misfit::new(span, why)))
            }
            None => Ok(()),
        }
    }

    /// Reads one case of a scenario from its part of the text and the plan of the scenario.
    fn case(
        self,
        header: &ScenarioHeader,
        part: Spanned<DeValue<'a>>,
        mut plan: DocumentPart<'a>,
    ) -> Result<Case, ScenarioError> {
        let span = part.span();
        let DeValue::Table(mut part) = part.into_inner() else {
            return Err(self.misfit("", Misfit::new(span, "a case is a table: write [[case]]")));
        };
        let changes = part.remove("plan").map(Spanned::into_inner);
        let name = part.get("name").and_then(|name| word_of(name.get_ref()));
        let name = name.map(str::to_owned);
        let name = name.as_deref();
        let places = part.clone();
        self.change(name, &mut plan, changes, span.clone())?;
        let case = told(name, &plan);
        let own: CaseHeader = document::read(self.text, Spanned::new(span.clone(), part))
            .map_err(|error| self.wrong(&case, error))?;
        let (plan, table) = plan_file::plan_of(self.text, Spanned::new(0..0, plan))
            .map_err(|error| self.wrong(&case, error))?;
        quorlock_sim_plan::check(&plan).map_err(|error| ScenarioError::Plan {
            path: self.path.to_owned(),
            case: case.clone(),
            at: error
                .field()
                .and_then(|field| document::locate(self.text, &table, &field)),
            error: Box::new(error),
        })?;
        let refused = |field: &str, why: &str| {
            let end = document::end_of_own(self.text, &span, &places);
            let place = places.get(field).map_or(end..end, Spanned::span);
            self.misfit(&case, Misfit::new(place, format!("{field}: {why}")))
        };
        let expect = own.expectation().map_err(|why| refused("property", why))?;
        let seeds = own.seeds.or(header.seeds).unwrap_or(SEEDS);
        if seeds == 0 {
            return Err(refused("seeds", "at least one is run"));
        }
        Ok(Case {
            name: own.name.unwrap_or_else(|| plan.variant.name().to_owned()),
            expect,
            reason: own.reason.trim().to_owned(),
            fast_only: own.fast_only,
            seeds,
            min: own.min.unwrap_or(header.min),
            figure: own.figure,
            plan,
        })
    }
}

/// Returns how errors name a case: by its own name, or by its variant.
fn told(name: Option<&str>, plan: &DocumentPart<'_>) -> String {
    let variant = plan.get("variant");
    let variant = variant.and_then(|variant| word_of(variant.get_ref()));
    let name = name.or(variant).unwrap_or("product");
    format!("case {name:?}: ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorlock_sim_plan::variant::Variant;

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
    fn a_case_changes_a_list_without_repeating_it() {
        let faults = "[[faults]]\nid = \"first\"\nkind = \"flush\"\nat = \"1s\"\nnode = 0\n\
                      [[faults]]\nkind = \"flush\"\nat = \"1.1s\"\nnode = 1\n\
                      [[faults]]\nid = \"last\"\nkind = \"flush\"\nat = \"1.2s\"\nnode = 2\n";
        let case = "[[case]]\nexpect = \"holds\"\n\
                    [case.plan.faults]\nremove = [\"first\"]\nchange.1.at = \"900ms\"\nchange.last.node = 1\n\
                    add = [{ kind = \"flush\", at = \"2s\", node = 0 }]\n\
                    [case.plan.not_demanded]\nadd = [\"fencing\"]\n";
        let scenario = text(&format!("{faults}{case}")).unwrap();
        let [case] = scenario.cases.as_slice() else {
            panic!("{scenario:?}")
        };
        let told = case.plan.faults.iter();
        let told: Vec<String> = told
            .map(|fault| format!("{} {fault}", fault.when))
            .collect();
        let flushed =
            |at: &str, node: u16| format!("{at} node {node} loses all its keys (FLUSHALL)");
        assert_eq!(
            told,
            [flushed("900ms", 1), flushed("1.2s", 1), flushed("2s", 0)]
        );
        assert_eq!(case.plan.not_demanded, [Property::Fencing]);
    }

    const FAULTS: &str = "[[faults]]\nid = \"a\"\nkind = \"flush\"\nat = \"1s\"\nnode = 0\n";

    /// Checks what is said of each text of cases.
    fn are_said(wrong: &[(&str, &str)]) {
        let other = wrong.iter().filter_map(|(cases, told)| {
            let error = text(cases).unwrap_err().to_string();
            (error != format!("x.toml:{told}")).then(|| (cases.to_string(), error))
        });
        let other: Vec<_> = other.collect();
        assert!(other.is_empty(), "{other:#?}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_its_column_and_its_case() {
        are_said(&[
            (
                "",
                "5:10: a scenario has at least one case: add [[case]] with expect = \"holds\"",
            ),
            (
                "[[case]]\nname = \"x\"\n",
                "7:11: case \"x\": missing field `expect`",
            ),
            (
                "[[case]]\nexpect = \"hold\"",
                "7:10: case \"product\": expect: unknown variant `hold`, expected `holds` or `breaks`; did you mean `holds`?",
            ),
            (
                "[[case]]\nexpect = \"breaks\"",
                "7:18: case \"product\": property: which property breaks? For example property = \"exclusion\"",
            ),
            (
                "[[case]]\nexpect = \"holds\"\nproperty = \"usage\"",
                "8:12: case \"product\": property: a case that holds breaks no property: leave it out",
            ),
            (
                "[[case]]\nexpect = \"holds\"\nseeds = 0",
                "8:9: case \"product\": seeds: at least one is run",
            ),
            (
                "[[case]]\nexpect = \"holds\"\nplan = { variant = \"published\", clients = 0 }",
                "8:43: case \"published\": clients: 0 is not between 1 and 60",
            ),
            (
                "[[case]]\nname = \"grey\"\nexpect = \"holds\"\nplan = { nodes = { cuont = 3 } }",
                "9:20: case \"grey\": unknown field `cuont`, expected one of `count`, `kinds`, `persistence`, `replicas`, \
                 `replication_lag`, `wait`, `min_replicas`, `sentinels`, `cluster`; did you mean `count`?",
            ),
            (
                "[[case]]\nexpect = \"holds\"\n[[case]]\nexpect = \"holds\"\n",
                "8:1: another case is called \"product\": give each a `name` of its own",
            ),
        ]);
    }

    #[test]
    fn what_is_wrong_with_a_changed_list_is_said_with_its_place() {
        let of_list = |change: &str| {
            format!("{FAULTS}[[case]]\nexpect = \"holds\"\n[case.plan.faults]\n{change}")
        };
        are_said(&[
            (
                &of_list("remove = [\"b\"]"),
                "14:11: case \"product\": there is no \"b\" in the list: use \"a\", or a number below 1",
            ),
            (
                &of_list("change = { 7 = { at = \"2s\" } }"),
                "14:12: case \"product\": there is no \"7\" in the list: use \"a\", or a number below 1",
            ),
            (
                &of_list("drop = [\"a\"]"),
                "14:1: case \"product\": a list has no `drop`: it is changed by `change`, `remove` and `add`, or \
                 replaced by a list",
            ),
            (
                &of_list("change.a.node = 7"),
                "14:17: case \"product\": faults[0].node: there is no node 7, only 3",
            ),
        ]);
    }
}
