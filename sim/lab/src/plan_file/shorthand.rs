//! Shorthand in files: defaults for faults, and names with which a case can change a fault.

use toml::Spanned;
use toml::de::DeValue;

use super::document::{DocumentPart, Misfit, nearest, word_of};
use quorlock_sim_plan::fault::Kind;

/// Expands the shorthand in a plan: applies the defaults of each kind of fault, and removes the names of faults. What a
/// picture shows is removed, too.
pub(crate) fn spell_out(plan: &mut DocumentPart<'_>) -> Result<(), Misfit> {
    let defaults = take_defaults(plan)?;
    plan.remove("picture");
    let faults = plan.get_mut("faults").map(Spanned::get_mut);
    let Some(DeValue::Array(faults)) = faults else {
        return Ok(());
    };
    let mut names: Vec<String> = Vec::new();
    for fault in faults.iter_mut() {
        let DeValue::Table(fault) = fault.get_mut() else {
            continue;
        };
        if let Some((key, name)) = fault.remove_entry("id") {
            let Some(name) = name.get_ref().as_str() else {
                return Err(Misfit::new(name.span(), "the `id` of a fault is a text"));
            };
            if names.iter().any(|known| known == name) {
                let why = format!("another fault has the `id` {name:?}: give each its own");
                return Err(Misfit::new(key.span(), why));
            }
            names.push(name.to_owned());
        }
        let kind = fault.get("kind").and_then(|kind| word_of(kind.get_ref()));
        let own = kind.and_then(|kind| defaults.as_ref()?.get(kind)?.get_ref().as_table());
        let own = own.cloned().unwrap_or_default();
        for (key, value) in own {
            if !fault.contains_key(key.get_ref().as_ref()) {
                fault.insert(key, value);
            }
        }
    }
    Ok(())
}

/// Removes the defaults for faults from the plan and returns them, kind by kind.
fn take_defaults<'a>(plan: &mut DocumentPart<'a>) -> Result<Option<DocumentPart<'a>>, Misfit> {
    let Some((key, defaults)) = plan.remove_entry("defaults") else {
        return Ok(None);
    };
    let DeValue::Table(defaults) = defaults.into_inner() else {
        let why = "`defaults` is a table: write for example [defaults.pause-client]";
        return Err(Misfit::new(key.span(), why));
    };
    let names = || Kind::ALL.into_iter().map(Kind::name);
    for (kind, fields) in &defaults {
        let word = kind.get_ref();
        if !names().any(|name| name == *word) {
            let mut why = format!("`{word}` is not a kind of fault");
            if let Some(meant) = nearest(word, names()) {
                why += &format!("; did you mean `{meant}`?");
            }
            return Err(Misfit::new(kind.span(), why));
        }
        if !fields.get_ref().is_table() {
            let why = format!("the defaults of a kind are a table: write [defaults.{word}]");
            return Err(Misfit::new(kind.span(), why));
        }
    }
    Ok(Some(defaults))
}
