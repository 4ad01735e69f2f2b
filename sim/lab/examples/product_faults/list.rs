//! The list of faults, and the page that shows it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Failure;

/// One fault: a change of one place in the source.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    pub(crate) name: String,
    pub(crate) what: String,
    /// The path of the file, from the root of the repository.
    pub(crate) file: String,
    /// The text that is replaced. It occurs once in the file, within one function.
    pub(crate) find: String,
    pub(crate) replace: String,
    /// What noticed it last: the name of a judge, which runs first, and what that judge found.
    pub(crate) noticed: Option<String>,
    /// Why it is harmless, with the test that shows it.
    pub(crate) harmless: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Faults {
    fault: Vec<Fault>,
}

fn list() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("product-faults.toml")
}

pub(crate) fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/campaigns.md")
}

/// Reads the list beside this package.
pub(crate) fn read() -> Result<Vec<Fault>, Failure> {
    let text = std::fs::read_to_string(list())?;
    let faults: Faults = toml::from_str(&text)?;
    Ok(faults.fault)
}

/// Returns the faults with these names; all faults without names.
pub(crate) fn choose<'a>(faults: &'a [Fault], names: &[String]) -> Result<Vec<&'a Fault>, Failure> {
    for name in names {
        if !faults.iter().any(|fault| fault.name == *name) {
            return Err(format!("no fault has the name {name:?}: see --list").into());
        }
    }
    let is_chosen = |fault: &&Fault| names.is_empty() || names.contains(&fault.name);
    Ok(faults.iter().filter(is_chosen).collect())
}

/// Writes what noticed each fault into the list, and the table of the list into the page.
pub(crate) fn record(found: &BTreeMap<String, String>) -> Result<(), Failure> {
    let text = std::fs::read_to_string(list())?;
    let mut recorded = String::new();
    let mut noticed = None;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("name = ") {
            noticed = found.get(name.trim_matches('"'));
        }
        if noticed.is_some() && line.starts_with("noticed = ") {
            continue;
        }
        recorded.push_str(line);
        recorded.push('\n');
        if line.starts_with("file = ")
            && let Some(noticed) = noticed
        {
            recorded.push_str(&format!("noticed = {noticed:?}\n"));
        }
    }
    std::fs::write(list(), recorded)?;
    let text = std::fs::read_to_string(page())?;
    let (before, after) = around_table(&text).ok_or("the page has no table of faults")?;
    let table = table(&read()?);
    Ok(std::fs::write(page(), format!("{before}{table}{after}"))?)
}

/// Returns the text before and after the table of a page.
pub(crate) fn around_table(page: &str) -> Option<(&str, &str)> {
    let begins = page.find("| fault | noticed by |")?;
    let length = page[begins..].find("\n\n")? + 1;
    Some((&page[..begins], &page[begins + length..]))
}

/// Returns a table of the faults, and of what noticed each.
pub(crate) fn table(faults: &[Fault]) -> String {
    let mut table = "| fault | noticed by |\n|---|---|\n".to_owned();
    for fault in faults {
        let by = match (&fault.noticed, &fault.harmless) {
            (Some(noticed), _) => noticed.clone(),
            (None, Some(why)) => format!("does no harm: {why}"),
            (None, None) => "no campaign".to_owned(),
        };
        let what = fault.what.trim_end_matches('.');
        table.push_str(&format!("| {what} | {by} |\n"));
    }
    table
}
