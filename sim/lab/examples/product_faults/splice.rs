//! Puts all faults into one source: a function with faults has its original body, and one body for each of them.
//!
//! One build then serves the whole list, and a number that is read when the program starts selects the fault.

use std::collections::BTreeMap;
use std::ops::Range;

/// The number of a fault, and the body of its function with that fault.
type Body = (usize, String);

/// A text that replaces another one.
pub(crate) struct Change<'a> {
    /// The number that selects it.
    pub(crate) number: usize,
    /// The text that is replaced. It occurs once in the source.
    pub(crate) find: &'a str,
    pub(crate) replace: &'a str,
}

/// Returns a source in which each changed function selects its body by `chosen`, a numeric expression.
///
/// # Errors
/// Returns an error if a change is not within the body of one function, or if its text does not occur exactly once.
pub(crate) fn splice(source: &str, changes: &[Change<'_>], chosen: &str) -> Result<String, String> {
    let functions = functions(source);
    let mut bodies: BTreeMap<usize, (&Function, Vec<Body>)> = BTreeMap::new();
    for change in changes {
        if source.matches(change.find).count() != 1 {
            return Err(format!("{:?} stands not once", change.find));
        }
        let at = source.find(change.find).unwrap_or_default();
        let (same, tail) = common(change.find, change.replace);
        let changed = at + same..at + change.find.len() - tail;
        let text = &change.replace[same..change.replace.len() - tail];
        let function = functions
            .iter()
            .filter(|function| {
                function.body.start < changed.start && changed.end < function.body.end
            })
            .min_by_key(|function| function.body.len())
            .ok_or_else(|| format!("{:?} is not in one function", change.find))?;
        let (before, after) = (
            &source[function.body.start..changed.start],
            &source[changed.end..function.body.end],
        );
        let body = format!("{before}{text}{after}");
        let entry = bodies.entry(function.body.start);
        let (_, alike) = entry.or_insert((function, Vec::new()));
        alike.push((change.number, body));
    }
    let mut spliced = String::new();
    let mut from = 0;
    for (function, with) in bodies.values() {
        if function.body.start < from {
            return Err("a function with a fault is within another".to_owned());
        }
        // The expression that selects a body is not constant, so the function must not be `const`.
        let head = &source[from..function.body.start];
        match &function.constant {
            Some(word) => {
                spliced.push_str(&source[from..word.start]);
                spliced.push_str(&source[word.end..function.body.start]);
            }
            None => spliced.push_str(head),
        }
        spliced.push_str(&format!("{{ match {chosen} {{\n"));
        for (number, body) in with {
            spliced.push_str(&format!("{number} => {body}\n"));
        }
        let as_it_is = &source[function.body.clone()];
        spliced.push_str(&format!("_ => {as_it_is}\n}} }}"));
        from = function.body.end;
    }
    spliced.push_str(&source[from..]);
    Ok(spliced)
}

/// Returns the lengths of the common prefix and the common suffix of two texts, in bytes.
fn common(a: &str, b: &str) -> (usize, usize) {
    let same = |a: &mut dyn Iterator<Item = char>, b: &mut dyn Iterator<Item = char>| {
        a.zip(b)
            .take_while(|(a, b)| a == b)
            .map(|(a, _)| a.len_utf8())
            .sum::<usize>()
    };
    let head = same(&mut a.chars(), &mut b.chars());
    let (a, b) = (&a[head..], &b[head..]);
    (head, same(&mut a.chars().rev(), &mut b.chars().rev()))
}

/// A function in a source.
struct Function {
    /// The range of the body, with its braces.
    body: Range<usize>,
    /// The range of the word `const`, if the function has it.
    constant: Option<Range<usize>>,
}

/// Returns the functions of a source that rustfmt has formatted.
fn functions(source: &str) -> Vec<Function> {
    let mut found = Vec::new();
    // The open blocks: where each begins, and the function whose body it is.
    let mut open: Vec<(usize, Option<Option<Range<usize>>>)> = Vec::new();
    // A function whose body has not begun: the number of open brackets at its start, and its `const`.
    let mut head: Option<(usize, Option<Range<usize>>)> = None;
    let mut brackets = 0_usize;
    let mut before: Option<Range<usize>> = None;
    for token in tokens(source) {
        let text = &source[token.clone()];
        match text {
            "fn" => {
                let constant = before
                    .clone()
                    .filter(|word| &source[word.clone()] == "const");
                head = Some((brackets, constant));
            }
            // In the type `fn(..)`, no name follows the word.
            "(" if before
                .as_ref()
                .is_some_and(|word| &source[word.clone()] == "fn") =>
            {
                head = None;
                brackets += 1;
            }
            "(" | "[" => brackets += 1,
            ")" | "]" => brackets = brackets.saturating_sub(1),
            ";" if head.as_ref().is_some_and(|(depth, _)| *depth == brackets) => head = None,
            "{" => {
                let is_body = head.as_ref().is_some_and(|(depth, _)| *depth == brackets);
                let constant = head.take_if(|_| is_body).map(|(_, constant)| constant);
                open.push((token.start, constant));
            }
            "}" => {
                if let Some((start, Some(constant))) = open.pop() {
                    let body = start..token.end;
                    found.push(Function { body, constant });
                }
            }
            _ => {}
        }
        before = Some(token);
    }
    found
}

/// Returns words and single punctuation marks, without comments and string literals.
fn tokens(source: &str) -> Vec<Range<usize>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(next) = source[at..].chars().next() {
        let rest = &source[at..];
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(raw) = raw_text(rest) {
            raw
        } else if next == '"' {
            quoted(rest, '"')
        } else if next == '\'' && is_character(rest) {
            quoted(rest, '\'')
        } else if is_word(next) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push(at..at + length);
            length
        } else {
            if !next.is_whitespace() {
                tokens.push(at..at + next.len_utf8());
            }
            next.len_utf8()
        };
        at += length;
    }
    tokens
}

/// Returns the length of a raw string literal.
fn raw_text(rest: &str) -> Option<usize> {
    let marks = rest.strip_prefix('r')?;
    let count = marks.len() - marks.trim_start_matches('#').len();
    if !marks[count..].starts_with('"') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(count));
    let begins = 1 + count + 1;
    let length = rest[begins..].find(&end)?;
    Some(begins + length + end.len())
}

/// Returns the length of a literal up to its closing mark.
fn quoted(rest: &str, mark: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == mark => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// Returns whether a quotation mark begins a character literal, and not a lifetime.
fn is_character(rest: &str) -> bool {
    let mut chars = rest.chars().skip(1);
    let first = chars.next();
    first == Some('\\') || chars.next() == Some('\'')
}
