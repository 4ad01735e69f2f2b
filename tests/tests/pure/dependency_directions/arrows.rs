//! Finds which file of a crate takes a name from which other file, by reading the text of its modules.
//!
//! An arrow is a `use`, or a path in the code that begins with `crate::`, `super::`, `self::` or the name of a child
//! module. A name that a module re-exports (`pub use`) is taken from where it is defined. A module and the files that
//! it is split into form one unit: what a child takes from its own parents by `super::` is not an arrow. Tests are
//! ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A module's place in its crate: `["link", "probe"]`; empty for `lib.rs`.
type Module = Vec<String>;

/// One file of a crate.
struct File {
    /// Path below the crate's `src`: `link/probe.rs`.
    path: String,
    /// The text without comments, literals and tests, with its lines unchanged.
    code: String,
}

/// A crate's files, by their modules.
#[derive(Default)]
pub(crate) struct Tree(BTreeMap<Module, File>);

/// A dependency: `from` takes a name from `to`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Arrow {
    pub(crate) from: String,
    pub(crate) line: usize,
    pub(crate) to: String,
}

/// One path of a `use` or of the code.
struct Named {
    line: usize,
    segments: Vec<String>,
    is_handed_on: bool,
    alias: Option<String>,
}

impl Tree {
    /// Reads the files under a crate's `src`.
    pub(crate) fn read(src: &Path) -> Tree {
        let mut tree = Tree::default();
        let mut folders = vec![src.to_path_buf()];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ending| ending == "rs") {
                    files.push(path);
                }
            }
        }
        // The files are sorted, so `lib.rs` comes before `main.rs`.
        files.sort();
        for path in files {
            let inside = path.strip_prefix(src).expect("under src");
            let inside = inside.to_str().expect("UTF-8").replace('\\', "/");
            tree.add(&inside, &std::fs::read_to_string(&path).expect("UTF-8"));
        }
        tree
    }

    /// Adds a file, unless it contains only tests.
    pub(crate) fn add(&mut self, path: &str, text: &str) {
        let module = path.trim_end_matches(".rs").trim_end_matches("/mod");
        let module: Module = match module {
            // Next to a library, `main.rs` is a program that uses it.
            "main" if self.0.contains_key(&Vec::new()) => vec!["main".to_owned()],
            "lib" | "main" => Vec::new(),
            module => module.split('/').map(str::to_owned).collect(),
        };
        if !module.iter().any(|segment| segment == "tests") {
            let (path, code) = (path.to_owned(), code_of(text));
            self.0.insert(module, File { path, code });
        }
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(|file| file.path.as_str())
    }

    pub(crate) fn arrows(&self) -> BTreeSet<Arrow> {
        let mut arrows = BTreeSet::new();
        for (module, file) in &self.0 {
            for named in self.named(module, file) {
                let target = self.target(module, &named.segments, 0);
                let target = target.filter(|target| !module.starts_with(target));
                if let Some(target) = target {
                    arrows.insert(Arrow {
                        from: file.path.clone(),
                        line: named.line,
                        to: self.0[&target].path.clone(),
                    });
                }
            }
        }
        arrows
    }

    /// Returns the module that defines the name of a path, if it is in the crate.
    fn target(&self, from: &Module, segments: &[String], hops: usize) -> Option<Module> {
        let mut at: Module = match segments.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => from.clone(),
            child => {
                let child = [from.as_slice(), &[child.to_owned()]].concat();
                self.0.contains_key(&child).then(|| from.clone())?
            }
        };
        let mut rest = segments.iter().peekable();
        while let Some(segment) = rest.peek() {
            match segment.as_str() {
                "crate" | "self" => {}
                "super" => {
                    at.pop()?;
                }
                name => {
                    let child = [at.as_slice(), &[name.to_owned()]].concat();
                    if !self.0.contains_key(&child) {
                        break;
                    }
                    at = child;
                }
            }
            rest.next();
        }
        // A cycle of re-exported names does not compile. The bound is for a text that does not compile.
        if let Some(name) = rest.next().filter(|_| hops < 8)
            && let Some(handed_on) = self.handed_on(&at, name)
        {
            return self.target(&at, &handed_on, hops + 1).or(Some(at));
        }
        Some(at)
    }

    /// Returns where a module takes a re-exported name from.
    fn handed_on(&self, module: &Module, name: &str) -> Option<Vec<String>> {
        let named = self.named(module, self.0.get(module)?);
        let mut handed_on = named.into_iter().filter(|named| named.is_handed_on);
        let found = handed_on.find(|named| {
            let last = named.alias.as_ref().or(named.segments.last());
            last.is_some_and(|last| last == name)
        })?;
        Some(found.segments)
    }

    fn named(&self, module: &Module, file: &File) -> Vec<Named> {
        let mut named = Vec::new();
        let words = words(&file.code);
        let mut at = 0;
        while let Some((line, word)) = words.get(at) {
            let is_first = at == 0 || words[at - 1].1 != "::";
            // `impl Sized + use<>` names lifetimes.
            let is_bound = words.get(at + 1).is_some_and(|(_, next)| next == "<");
            if word == "use" && !is_bound {
                let is_handed_on = at
                    .checked_sub(1)
                    .is_some_and(|before| matches!(words[before].1.as_str(), "pub" | ")"));
                at = read_use(&words, at + 1, &mut Vec::new(), is_handed_on, &mut named);
                continue;
            }
            let child = [module.as_slice(), std::slice::from_ref(word)].concat();
            let is_ours =
                matches!(word.as_str(), "crate" | "super" | "self") || self.0.contains_key(&child);
            let is_path = words.get(at + 1).is_some_and(|(_, next)| next == "::");
            if is_first && is_ours && is_path {
                let mut segments = vec![word.clone()];
                let line = *line;
                while let [(_, colons), (_, segment), ..] = &words[at + 1..]
                    && colons == "::"
                    && is_name(segment)
                {
                    segments.push(segment.clone());
                    at += 2;
                }
                named.push(Named {
                    line,
                    segments,
                    is_handed_on: false,
                    alias: None,
                });
            }
            at += 1;
        }
        named
    }
}

/// Reads one tree of a `use`, from `at` to its end.
fn read_use(
    words: &[(usize, String)],
    mut at: usize,
    prefix: &mut Vec<String>,
    is_handed_on: bool,
    named: &mut Vec<Named>,
) -> usize {
    let depth = prefix.len();
    let mut line = words.get(at).map_or(0, |(line, _)| *line);
    let mut alias = None;
    let mut is_leaf = false;
    let mut push = |prefix: &[String], line, alias| {
        named.push(Named {
            line,
            segments: prefix.to_vec(),
            is_handed_on,
            alias,
        });
    };
    while let Some((here, word)) = words.get(at) {
        match word.as_str() {
            "::" => {}
            "as" => {
                at += 1;
                alias = words.get(at).map(|(_, word)| word.clone());
            }
            "{" => {
                at += 1;
                while words.get(at).is_some_and(|(_, word)| word != "}") {
                    at = read_use(words, at, prefix, is_handed_on, named);
                    if words.get(at).is_some_and(|(_, word)| word == ",") {
                        at += 1;
                    }
                }
                at += 1;
                prefix.truncate(depth);
                return at + usize::from(depth == 0);
            }
            "," | "}" | ";" => break,
            "*" => is_leaf = true,
            // The module itself: `timer::{self, Instant}`.
            "self" if 0 < depth => is_leaf = true,
            segment => {
                (line, is_leaf) = (*here, true);
                prefix.push(segment.to_owned());
            }
        }
        at += 1;
    }
    if is_leaf {
        push(prefix, line, alias);
    }
    prefix.truncate(depth);
    at
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Removes comments, literals and code that is compiled only for tests. Line numbers do not change.
pub(crate) fn code_of(text: &str) -> String {
    without_tests(&without_words(text))
}

/// Returns the words of a text with their lines. Words are names, `::`, and any other single mark.
pub(crate) fn words(code: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    for (index, text) in code.lines().enumerate() {
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let length = if is_part(first) {
                rest.find(|c| !is_part(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            let (word, after) = rest.split_at(length);
            words.push((index + 1, word.to_owned()));
            rest = after.trim_start();
        }
    }
    words
}

/// Removes comments and literals. Line numbers do not change.
fn without_words(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = raw_literal(rest) {
            length
        } else if first == '"' {
            literal(rest)
        } else if first == '\'' {
            character(rest)
        } else {
            0
        };
        if skipped == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            code.extend(rest[..skipped].chars().filter(|c| *c == '\n'));
            code.push(' ');
            rest = &rest[skipped..];
        }
    }
    code
}

/// Returns the length of a raw string that begins here.
fn raw_literal(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("br").or(text.strip_prefix('r'))?;
    let hashes = inner.len() - inner.trim_start_matches('#').len();
    let body = inner[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = body.find(&end)? + end.len();
    Some(text.len() - body.len() + length)
}

/// Returns the length of a string that begins here.
fn literal(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of a character literal that begins here. For a lifetime, returns the length of its quote.
fn character(text: &str) -> usize {
    let inner = &text[1..];
    if let Some(escaped) = inner.strip_prefix('\\') {
        let end = escaped.char_indices().skip(1).find(|(_, c)| *c == '\'');
        return end.map_or(1, |(at, _)| at + 3);
    }
    let mut chars = inner.chars();
    let (one, quote) = (chars.next(), chars.next());
    match (one, quote) {
        (Some(one), Some('\'')) => one.len_utf8() + 2,
        _ => 1,
    }
}

/// Removes code that is compiled only for tests. Line numbers do not change.
fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find(MARK) {
        kept.push_str(&rest[..at]);
        let item = &rest[at..];
        let mut depth = 0_usize;
        let end = item.char_indices().skip(MARK.len()).find(|(_, c)| {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && matches!(c, ';' | '}')
        });
        let end = end.map_or(item.len(), |(at, _)| at + 1);
        kept.extend(item[..end].chars().filter(|c| *c == '\n'));
        rest = &item[end..];
    }
    kept + rest
}
