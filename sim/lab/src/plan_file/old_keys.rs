//! Former names of keys in plans and scenarios.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use super::document::{DocumentPart, Misfit, Misreading, Position, parse};

/// The former and the current names of keys. Former names are accepted until version 1.0.
const RENAMED: [(&str, &str); 7] = [
    ("hold_least", "hold_min"),
    ("hold_most", "hold_max"),
    ("least", "min"),
    ("looks", "checks"),
    ("most", "max"),
    ("think_least", "think_min"),
    ("think_most", "think_max"),
];

/// A former name of a key, found in a plan.
///
/// `Display` writes the text of a warning: the place, both names, and until when the former name is accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OldKey {
    /// The position of the key in the text.
    pub at: Position,
    /// The former name, as it is written in the text.
    pub old: &'static str,
    /// The name to use.
    pub new: &'static str,
}

impl fmt::Display for OldKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OldKey { at, old, new } = self;
        write!(
            f,
            "{at}: `{old}` is called `{new}` now: the old name is read until version 1.0"
        )
    }
}

/// Returns the former names of keys in the text of a plan or a scenario, in the order of the text. Returns none if the
/// text is not TOML.
#[must_use]
pub fn old_keys(text: &str) -> Vec<OldKey> {
    let found = parse(text).map(|mut table| take_new_names(&mut table).unwrap_or_default());
    let mut found = found.unwrap_or_default();
    found.sort_by_key(|key| key.span.start);
    found
        .into_iter()
        .map(|Found { span, old, new }| OldKey {
            at: Position::of(text, span.start),
            old,
            new,
        })
        .collect()
}

/// Parses a document and replaces former names of keys by the current ones.
pub(crate) fn parse_with_new_names(text: &str) -> Result<DocumentPart<'_>, Misreading> {
    let mut table = parse(text)?;
    take_new_names(&mut table).map_err(|misfit| misfit.in_text(text))?;
    Ok(table)
}

/// A former name of a key, with its range of bytes in the text.
#[derive(Debug)]
struct Found {
    span: Range<usize>,
    old: &'static str,
    new: &'static str,
}

/// Replaces the former names of keys in a document, at every depth. Returns the former names that were found.
fn take_new_names(table: &mut DocumentPart<'_>) -> Result<Vec<Found>, Misfit> {
    let mut found = Vec::new();
    rename(table, &mut found)?;
    Ok(found)
}

fn rename(table: &mut DocumentPart<'_>, found: &mut Vec<Found>) -> Result<(), Misfit> {
    for (old, new) in RENAMED {
        let Some((key, value)) = table.remove_entry(old) else {
            continue;
        };
        let span = key.span();
        if table.contains_key(new) {
            let why = format!("`{old}` is the old name of `{new}`, which is there as well");
            return Err(Misfit::new(span, why));
        }
        table.insert(Spanned::new(span.clone(), Cow::Borrowed(new)), value);
        found.push(Found { span, old, new });
    }
    for (_, value) in table.iter_mut() {
        rename_below(value.get_mut(), found)?;
    }
    Ok(())
}

fn rename_below(value: &mut DeValue<'_>, found: &mut Vec<Found>) -> Result<(), Misfit> {
    match value {
        DeValue::Table(table) => rename(table, found),
        DeValue::Array(items) => items
            .iter_mut()
            .try_for_each(|item| rename_below(item.get_mut(), found)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::old_keys;
    use crate::plan_file::parse;

    const OLD: &str = "[network]\nleast = '2ms'\nmost = '3ms'\n[workload]\nhold_least = '1ms'\nhold_most = '9ms'\nlooks = 4\n[[faults]]\nkind = 'delay'\nat = '1s'\nlasts = '1s'\nleast = '1ms'\nmost = '2ms'\n[defaults.reorder]\nmost = '3ms'\n";

    #[test]
    fn an_old_key_means_what_it_meant_and_its_new_name_is_told() {
        let new = OLD
            .replace("hold_least", "hold_min")
            .replace("hold_most", "hold_max")
            .replace("looks", "checks")
            .replace("least", "min")
            .replace("most", "max");
        let path = Path::new("plan.toml");
        assert_eq!(parse(path, OLD).unwrap(), parse(path, &new).unwrap());
        assert_eq!(old_keys(&new), []);
        let told: Vec<String> = old_keys(OLD).iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 8, "{told:?}");
        assert_eq!(
            told[4],
            "7:1: `looks` is called `checks` now: the old name is read until version 1.0"
        );
    }

    #[test]
    fn an_old_key_beside_its_new_name_is_refused() {
        let text = "[workload]\nlooks = 4\nchecks = 3\n";
        let error = parse(Path::new("plan.toml"), text).unwrap_err();
        assert_eq!(
            error.to_string(),
            "plan.toml:2:1: `looks` is the old name of `checks`, which is there as well"
        );
    }
}
