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

/// Returns where the first table of a text begins, behind its bracket, or the end of the text if it has none.
fn above_tables(text: &str) -> usize {
    let tables = parse(text).unwrap_or_default();
    let headers = tables.keys().map(|key| key.span().start);
    let headers = headers.filter(|at| text.get(..*at).is_some_and(|before| before.ends_with('[')));
    headers.min().unwrap_or(text.trim_end().len())
}

/// Reads a value from the keys of a document that stand above its tables.
pub(crate) fn read_whole<T: DeserializeOwned>(
    text: &str,
    table: DocumentPart<'_>,
) -> Result<T, Misreading> {
    read(text, Spanned::new(0..0, table))
}

/// Reads a value from a table of a document. What the table lacks is reported where it can be added.
pub(crate) fn read<T: DeserializeOwned>(
    text: &str,
    part: Spanned<DocumentPart<'_>>,
) -> Result<T, Misreading> {
    let whole = part.span();
    let table = part.get_ref().clone();
    T::deserialize(toml::Deserializer::from(part)).map_err(|error| {
        let mut wrong = Misreading::of(text, &error);
        let span = error.span().unwrap_or(whole.clone());
        let is_whole = span == whole;
        let inner = is_whole.then_some(&table).or(table_at(&table, &span));
        if let Some(inner) = inner {
            wrong.at = Position::of(text, culprit(text, &span, inner, &wrong.why));
            if span.is_empty() && wrong.why.starts_with("missing field") {
                wrong.why += ": add it above all tables";
            }
        } else if let Some(field) = field_at(&table, span.start) {
            wrong.why = format!("{field}: {}", wrong.why);
        }
        wrong
    })
}

/// Returns the place of an error about a whole table: that of the key that the error names, or of its value, or else the one where a
/// missing key can be added.
fn culprit(text: &str, span: &Range<usize>, table: &DocumentPart<'_>, why: &str) -> usize {
    let words = why.split(['`', ':']).map(str::trim);
    let mut named = words.filter_map(|word| table.get_key_value(word));
    match named.next() {
        Some((key, _)) if why.contains("has no field") => key.span().start,
        Some((_, value)) if !value.span().is_empty() => value.span().start,
        _ => end_of_own(text, span, table),
    }
}

/// Returns the end of what stands in a table itself, not in tables below it. `span` is that of its header or braces, and empty for
/// the keys above all tables.
pub(crate) fn end_of_own(text: &str, span: &Range<usize>, table: &DocumentPart<'_>) -> usize {
    let own = table.iter().filter_map(|(key, value)| {
        // Defaults of faults stand elsewhere.
        let between = text.get(span.end..key.span().start)?;
        let is_below = between.starts_with('[') || between.contains("\n[");
        let is_own = !is_below || span.contains(&key.span().start);
        (is_own && !value.span().is_empty()).then(|| value.span().end)
    });
    match own.max() {
        Some(end) => end,
        None if span.is_empty() => above_tables(text),
        None => span.end,
    }
}

/// Returns the table with this span in a table.
fn table_at<'t, 'a>(
    table: &'t DocumentPart<'a>,
    span: &Range<usize>,
) -> Option<&'t DocumentPart<'a>> {
    table.iter().find_map(|(_, value)| value_at(value, span))
}

fn value_at<'t, 'a>(
    value: &'t Spanned<DeValue<'a>>,
    span: &Range<usize>,
) -> Option<&'t DocumentPart<'a>> {
    match value.get_ref() {
        DeValue::Table(inner) if value.span() == *span => Some(inner),
        DeValue::Table(inner) => table_at(inner, span),
        DeValue::Array(items) => items.iter().find_map(|item| value_at(item, span)),
        _ => None,
    }
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
        // What was added to the text is nowhere in it.
        _ => (value.span().start == byte && !value.span().is_empty()).then(String::new),
    }
}

/// Returns the position of the value at a path such as `faults[3].client` or `faults.3.client`. If the path does not exist, this is
/// the position of its last part that does. A fault as a whole is at its kind.
pub(crate) fn locate(text: &str, table: &DocumentPart<'_>, place: &str) -> Option<Position> {
    let path = place.replace('[', ".").replace(']', "");
    let mut found = None;
    let mut inside = Inside::Table(table);
    for step in path.split('.') {
        let value = match inside {
            // Several targets are in a list: `client` or `clients`.
            Inside::Table(table) => table
                .get(step)
                .or_else(|| table.get(format!("{step}s").as_str())),
            Inside::List(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
        };
        let Some(value) = value else { break };
        found = Some(value);
        inside = match value.get_ref() {
            DeValue::Table(table) => Inside::Table(table),
            DeValue::Array(items) => Inside::List(items),
            _ => break,
        };
    }
    let kind = found.and_then(|value| value.get_ref().as_table()?.get("kind"));
    let span = kind.or(found)?.span();
    (!span.is_empty()).then(|| Position::of(text, span.start))
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

/// Sets the value at a path such as `plan.faults.pause.lasts`, in which an element of a list has its name or number. Tables are added if
/// they are not there. `span` is what sets the value in the text.
pub(crate) fn put<'a>(
    table: &mut DocumentPart<'a>,
    path: &str,
    value: DeValue<'a>,
    span: &Range<usize>,
) -> Result<(), Misfit> {
    let (step, rest) = match path.split_once('.') {
        Some((step, rest)) => (step, Some(rest)),
        None => (path, None),
    };
    let refused = || Misfit::new(span.clone(), format!("{path}: this is no table"));
    let key = Spanned::new(span.clone(), step.to_owned().into());
    let Some(rest) = rest else {
        table.insert(key, Spanned::new(span.clone(), value));
        return Ok(());
    };
    let empty = || Spanned::new(span.clone(), DeValue::Table(DocumentPart::new()));
    match table.entry(key).or_insert_with(empty).get_mut() {
        DeValue::Table(inner) => put(inner, rest, value, span),
        DeValue::Array(items) => {
            let (which, rest) = rest.split_once('.').unwrap_or((rest, ""));
            let list: Items<'_> = items.iter().cloned().collect();
            let index = find(&list, which, span.clone())?;
            let item = items.get_mut(index).ok_or_else(refused)?;
            match (item.get_mut(), rest) {
                (_, "") => *item = Spanned::new(span.clone(), value),
                (DeValue::Table(inner), rest) => put(inner, rest, value, span)?,
                _ => return Err(refused()),
            }
            Ok(())
        }
        _ => Err(refused()),
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
