//! The list of faults.

use std::path::Path;

use serde::Deserialize;

use crate::Failure;

/// One change of one place.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    pub(crate) name: String,
    pub(crate) what: String,
    /// From the top of the repository.
    pub(crate) file: String,
    /// Stands once in the file.
    pub(crate) find: String,
    pub(crate) replace: String,
    /// What noticed it last: the name of a judge, tried first.
    pub(crate) noticed: Option<String>,
    /// Why it can do no harm, and the test that shows it.
    pub(crate) harmless: Option<String>,
}

impl Fault {
    /// The product as it is.
    pub(crate) fn none() -> Self {
        let name = "mod lease;".to_owned();
        Fault {
            name: "control".to_owned(),
            what: "Nothing is planted.".to_owned(),
            file: "crates/quorlock-core/src/lib.rs".to_owned(),
            find: name.clone(),
            replace: name,
            noticed: None,
            harmless: None,
        }
    }
}

#[derive(Debug, Deserialize)]
struct Faults {
    fault: Vec<Fault>,
}

/// Reads the list beside this package.
pub(crate) fn read() -> Result<Vec<Fault>, Failure> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("product-faults.toml");
    let text = std::fs::read_to_string(path)?;
    let faults: Faults = toml::from_str(&text)?;
    Ok(faults.fault)
}

/// Those with these names; all without names.
pub(crate) fn choose<'a>(faults: &'a [Fault], names: &[String]) -> Result<Vec<&'a Fault>, Failure> {
    for name in names {
        if !faults.iter().any(|fault| fault.name == *name) {
            return Err(
                format!("no fault has the name {name:?}: --list tells which there are").into(),
            );
        }
    }
    let is_chosen = |fault: &&Fault| names.is_empty() || names.contains(&fault.name);
    Ok(faults.iter().filter(is_chosen).collect())
}
