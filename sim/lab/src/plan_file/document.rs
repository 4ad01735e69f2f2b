//! TOML documents that can be changed before they are read, with the positions of their values.

use std::fmt;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// A table, with the positions of its values.
pub(crate) type DocumentPart<'a> = DeTable<'a>;

/// A position in a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The position of the character in its line, from 1.
    pub column: usize,
}

impl Position {
    /// Returns the position of a byte of a text.
    pub(super) fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or(before);
        Position {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// An error in a part of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Misfit {
    span: Range<usize>,
    why: String,
}

impl Misfit {
    pub(crate) fn new(span: Range<usize>, why: impl Into<String>) -> Self {
        let why = why.into();
        Misfit { span, why }
    }

    /// Creates the error for something that a text lacks, and that can be added at its end.
    pub(crate) fn missing(text: &str, why: impl Into<String>) -> Self {
        let end = text.trim_end().len();
        Misfit::new(end..end, why)
    }

    /// Converts the error to one with a position in this text.
    pub(crate) fn in_text(self, text: &str) -> Misreading {
        Misreading {
            at: Position::of(text, self.span.start),
            why: self.why,
        }
    }
}

/// An error in a text, with its position.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{why}")]
pub struct Misreading {
    /// The position of the error.
    pub at: Position,
    /// A description of the error, and how to correct it.
    pub why: String,
}

impl Misreading {
    fn of(text: &str, error: &toml::de::Error) -> Self {
        let span = error.span().unwrap_or_default();
        let mut why = error.message().trim().replace('\n', ", ");
        if let Some(meant) = meant(&why) {
            why = format!("{why}; did you mean `{meant}`?");
        }
        Misfit::new(span, why).in_text(text)
    }
}

/// Returns the expected word that is most similar to the unknown word, if one is similar enough.
fn meant(why: &str) -> Option<&str> {
    if !why.starts_with("unknown ") {
        return None;
    }
    let mut quoted = why.split('`').skip(1).step_by(2);
    nearest(quoted.next()?, quoted)
}

/// Returns the known word that is most similar to a word, if one is similar enough.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let far = |known: &str| strsim::damerau_levenshtein(word, known);
    let (distance, nearest) = known.map(|known| (far(known), known)).min()?;
    (distance <= 2.max(word.len() / 3)).then_some(nearest)
}

/// Parses the tables of a text.
pub(crate) fn parse(text: &str) -> Result<DocumentPart<'_>, Misreading> {
    let parsed = DeTable::parse(text);
    let parsed = parsed.map_err(|error| Misreading::of(text, &error))?;
    Ok(parsed.into_inner())
}

/// Reads a value from the keys of a document that stand above its tables. A missing one is reported at the first table, above which it can
/// be added.
pub(crate) fn read_header<T: DeserializeOwned>(
    text: &str,
    keys: DocumentPart<'_>,
) -> Result<T, Misreading> {
    read(text, keys).map_err(|wrong| match wrong.why.contains("missing field") {
        true => Misreading {
            at: Position::of(text, above_tables(text)),
            why: format!("{}: add it above all tables", wrong.why),
        },
        false => wrong,
    })
}

/// Returns where the first table of a text begins, behind its bracket, or the end of the text if it has none.
fn above_tables(text: &str) -> usize {
    let tables = parse(text).unwrap_or_default();
    let headers = tables.keys().map(|key| key.span().start);
    let headers = headers.filter(|at| text.get(..*at).is_some_and(|before| before.ends_with('[')));
    headers.min().unwrap_or(text.trim_end().len())
}

/// Reads a value from a table of a document.
pub(crate) fn read<T: DeserializeOwned>(
    text: &str,
    table: DocumentPart<'_>,
) -> Result<T, Misreading> {
    // A missing field is reported at the beginning of the table.
    let begins = table.iter().map(|(key, _)| key.span().start).min();
    let begins = begins.unwrap_or_default();
    let whole = Spanned::new(begins..begins, table.clone());
    T::deserialize(toml::Deserializer::from(whole)).map_err(|error| {
        let mut wrong = Misreading::of(text, &error);
        let field = error.span().and_then(|span| field_at(&table, span.start));
        if let Some(field) = field {
            wrong.why = format!("{field}: {}", wrong.why);
        }
        wrong
    })
}

/// Returns the path of the field whose value begins at this byte, such as `faults[3].client`. Returns `None` for
/// tables and lists.
fn field_at(table: &DocumentPart<'_>, byte: usize) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let rest = below(value, byte)?;
        Some(format!("{}{rest}", key.get_ref()))
    })
}

fn below(value: &Spanned<DeValue<'_>>, byte: usize) -> Option<String> {
    match value.get_ref() {
        DeValue::Table(table) => field_at(table, byte).map(|field| format!(".{field}")),
        DeValue::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            let rest = below(item, byte)?;
            Some(format!("[{index}]{rest}"))
        }),
        _ => (value.span().start == byte).then(String::new),
    }
}

/// Returns the position of the field at a path such as `faults[3].client` or `faults.3.client`. If the path does not exist, this is
/// the position of its last part that does.
pub(crate) fn locate(text: &str, table: &DocumentPart<'_>, place: &str) -> Option<Position> {
    let path = place.replace('[', ".").replace(']', "");
    let mut found = None;
    let mut inside = Inside::Table(table);
    for step in path.split('.') {
        let value = match inside {
            Inside::Table(table) => {
                let Some((key, value)) = table.get_key_value(step) else {
                    break;
                };
                // A key that a study has added is nowhere in the file.
                if !key.span().is_empty() {
                    found = Some(key.span().start);
                }
                value
            }
            Inside::List(items) => {
                let Some(item) = step.parse().ok().and_then(|index: usize| items.get(index)) else {
                    break;
                };
                found = Some(item.span().start);
                item
            }
        };
        inside = match value.get_ref() {
            DeValue::Table(table) => Inside::Table(table),
            DeValue::Array(items) => Inside::List(items),
            _ => break,
        };
    }
    found.map(|byte| Position::of(text, byte))
}

/// Where the next step of a path is looked up.
enum Inside<'t, 'a> {
    Table(&'t DocumentPart<'a>),
    List(&'t DeArray<'a>),
}

/// Overwrites the values of a table with those of another one, recursively. A table that stands for a list changes the
/// list.
pub(crate) fn merge<'a>(
    into: &mut DocumentPart<'a>,
    changes: DocumentPart<'a>,
) -> Result<(), Misfit> {
    for (key, change) in changes {
        let span = change.span();
        let known = into.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut);
        match (known, change.into_inner()) {
            (Some(DeValue::Table(inner)), DeValue::Table(change)) => merge(inner, change)?,
            (Some(DeValue::Array(items)), DeValue::Table(change)) => {
                let taken = std::mem::replace(items, DeArray::new());
                let mut list: Items<'a> = taken.into_iter().collect();
                change_list(&mut list, change)?;
                *items = list.into_iter().collect();
            }
            (None, DeValue::Table(change)) if is_change_of_list(&change) => {
                let mut list = Vec::new();
                change_list(&mut list, change)?;
                let list = DeValue::Array(list.into_iter().collect());
                into.insert(key, Spanned::new(span, list));
            }
            (_, change) => {
                // If the old key stayed in the table, it would keep its position in the old text.
                into.remove(key.get_ref().as_ref());
                into.insert(key, Spanned::new(span, change));
            }
        }
    }
    Ok(())
}

const CHANGES: [&str; 3] = ["change", "remove", "add"];

fn is_change_of_list(table: &DocumentPart<'_>) -> bool {
    !table.is_empty()
        && table
            .keys()
            .all(|key| CHANGES.contains(&key.get_ref().as_ref()))
}

type Items<'a> = Vec<Spanned<DeValue<'a>>>;

/// Changes some elements of a list, then removes some, then adds some. Names and numbers refer to the elements of the
/// list before these changes.
fn change_list<'a>(items: &mut Items<'a>, mut changes: DocumentPart<'a>) -> Result<(), Misfit> {
    let changed = changes.remove("change");
    let removed = changes.remove("remove");
    let added = changes.remove("add");
    if let Some((key, _)) = changes.iter().next() {
        let why = format!(
            "a list has no `{}`: it is changed by `change`, `remove` and `add`, or replaced by a list",
            key.get_ref()
        );
        return Err(Misfit::new(key.span(), why));
    }
    if let Some(changed) = changed {
        let span = changed.span();
        let DeValue::Table(changed) = changed.into_inner() else {
            let why =
                "`change` is a table: the name or number of each element, and what changes of it";
            return Err(Misfit::new(span, why));
        };
        for (which, change) in changed {
            let index = find(items, which.get_ref(), which.span())?;
            let item = items.get_mut(index).map(Spanned::get_mut);
            match (item, change.into_inner()) {
                (Some(DeValue::Table(item)), DeValue::Table(change)) => merge(item, change)?,
                _ => {
                    let why = "only a table is changed: remove the element, and add another one";
                    return Err(Misfit::new(which.span(), why));
                }
            }
        }
    }
    let mut gone = Vec::new();
    for item in list_of(removed, "remove")? {
        let word = word_of(item.get_ref()).unwrap_or_default();
        gone.push(find(items, word, item.span())?);
    }
    let mut index = 0..;
    items.retain(|_| !index.next().is_some_and(|index| gone.contains(&index)));
    items.extend(list_of(added, "add")?);
    Ok(())
}

/// Returns the value at a path such as `plan.faults.pause.lasts`, in which an element of a list has its name or number. Tables and the
/// value itself are added if they are not there.
pub(crate) fn at_mut<'t, 'a>(
    table: &'t mut DocumentPart<'a>,
    path: &str,
) -> Result<&'t mut DeValue<'a>, Misfit> {
    let (step, rest) = match path.split_once('.') {
        Some((step, rest)) => (step, Some(rest)),
        None => (path, None),
    };
    let key = || Spanned::new(0..0, step.to_owned().into());
    let empty = || Spanned::new(0..0, DeValue::Table(DocumentPart::new()));
    let value = table.entry(key()).or_insert_with(empty).get_mut();
    let Some(rest) = rest else { return Ok(value) };
    match value {
        DeValue::Table(inner) => at_mut(inner, rest),
        DeValue::Array(items) => {
            let (which, rest) = rest.split_once('.').unwrap_or((rest, ""));
            let list: Items<'_> = items.iter().cloned().collect();
            let index = find(&list, which, 0..0)?;
            let item = items.get_mut(index).map(Spanned::get_mut);
            match (item, rest) {
                (Some(item), "") => Ok(item),
                (Some(DeValue::Table(inner)), rest) => at_mut(inner, rest),
                _ => Err(Misfit::new(0..0, format!("{path}: this is no table"))),
            }
        }
        _ => Err(Misfit::new(0..0, format!("{path}: this is no table"))),
    }
}

fn list_of<'a>(value: Option<Spanned<DeValue<'a>>>, name: &str) -> Result<Items<'a>, Misfit> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let span = value.span();
    match value.into_inner() {
        DeValue::Array(items) => Ok(items.into_iter().collect()),
        _ => Err(Misfit::new(span, format!("`{name}` is a list"))),
    }
}

/// Returns the index of the element with this name or number. In a list without tables, it is the element that equals
/// `which`.
fn find(items: &Items<'_>, which: &str, span: Range<usize>) -> Result<usize, Misfit> {
    let called = |item: &Spanned<DeValue<'_>>| match item.get_ref().as_table() {
        Some(table) => table.get("id").and_then(|id| word_of(id.get_ref())) == Some(which),
        None => word_of(item.get_ref()) == Some(which),
    };
    let are_tables = items.iter().any(|item| item.get_ref().is_table());
    let by_number = || {
        which
            .parse()
            .ok()
            .filter(|n| are_tables && *n < items.len())
    };
    let found = items.iter().position(called).or_else(by_number);
    found.ok_or_else(|| {
        let names = items
            .iter()
            .filter_map(|item| match item.get_ref().as_table() {
                Some(table) => word_of(table.get("id")?.get_ref()),
                None => word_of(item.get_ref()),
            });
        let names: Vec<String> = names.map(|name| format!("{name:?}")).collect();
        let mut why = format!("there is no {which:?} in the list");
        match (names.is_empty(), are_tables) {
            (true, false) => why += ", which is empty",
            (true, true) => why += &format!(": use a number below {}", items.len()),
            (false, false) => why += &format!(": it has {}", names.join(", ")),
            (false, true) => {
                why += &format!(
                    ": use {}, or a number below {}",
                    names.join(", "),
                    items.len()
                );
            }
        }
        Misfit::new(span, why)
    })
}

/// Returns a string or a number as it is written in the document.
pub(crate) fn word_of<'v>(value: &'v DeValue<'_>) -> Option<&'v str> {
    match value {
        DeValue::String(text) => Some(text),
        DeValue::Integer(number) => Some(number.as_str()),
        _ => None,
    }
}
