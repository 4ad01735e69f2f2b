//! Finds which file of a crate takes a name from which other file, by reading the text of its modules.
//!
//! An arrow is a `use`, or a path in the code that begins with `crate::`, `super::`, `self::` or the name of a child
//! module. A name that a module re-exports (`pub use`) is taken from where it is defined. A module and the files that
//! it is split into form one unit: what a child takes from its own parents by `super::` is not an arrow. Tests are
//! ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quorlock_testbed::files::below;

/// A module's place in its crate: `["link", "probe"]`; empty for `lib.rs`.
type Module = Vec<String>;

/// One file of a crate.
struct File {
    /// Path below the crate's `src`: `link/probe.rs`.
    path: String,
    words: Vec<Word>,
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
        // The files are sorted, so `lib.rs` comes before `main.rs`.
        for path in below(src, "rs") {
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
            let (path, words) = (path.to_owned(), words(text));
            self.0.insert(module, File { path, words });
        }
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(|file| file.path.as_str())
    }

    pub(crate) fn arrows(&self) -> BTreeSet<Arrow> {
        let mut arrows = BTreeSet::new();
        let named = self.0.iter();
        let named = named.map(|(module, file)| (module, self.named(module, file)));
        let named: BTreeMap<&Module, Vec<Named>> = named.collect();
        for (module, file) in &self.0 {
            for name in &named[module] {
                let target = self.target(&named, module, &name.segments, 0);
                let target = target.filter(|target| !module.starts_with(target));
                if let Some(target) = target {
                    arrows.insert(Arrow {
                        from: file.path.clone(),
                        line: name.line,
                        to: self.0[&target].path.clone(),
                    });
                }
            }
        }
        arrows
    }

    /// Returns the module that defines the name of a path, if it is in the crate.
    fn target(
        &self,
        named: &BTreeMap<&Module, Vec<Named>>,
        from: &Module,
        segments: &[String],
        hops: usize,
    ) -> Option<Module> {
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
            && let Some(handed_on) = named.get(&at).and_then(|named| handed_on(named, name))
        {
            return self.target(named, &at, handed_on, hops + 1).or(Some(at));
        }
        Some(at)
    }

    fn named(&self, module: &Module, file: &File) -> Vec<Named> {
        let mut named = Vec::new();
        let words = &file.words;
        let mut at = 0;
        while let Some((line, word)) = words.get(at) {
            let is_first = at == 0 || words[at - 1].1 != "::";
            // `impl Sized + use<>` names lifetimes.
            let is_bound = words.get(at + 1).is_some_and(|(_, next)| next == "<");
            if word == "use" && !is_bound {
                let is_handed_on = at
                    .checked_sub(1)
                    .is_some_and(|before| matches!(words[before].1.as_str(), "pub" | ")"));
                at = read_use(words, at + 1, &mut Vec::new(), is_handed_on, &mut named);
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

/// Returns where a module takes a re-exported name from.
fn handed_on<'a>(named: &'a [Named], name: &str) -> Option<&'a [String]> {
    let mut handed_on = named.iter().filter(|named| named.is_handed_on);
    let found = handed_on.find(|named| {
        let last = named.alias.as_ref().or(named.segments.last());
        last.is_some_and(|last| last == name)
    })?;
    Some(&found.segments)
}

/// Reads one tree of a `use`, from `at` to its end.
fn read_use(
    words: &[Word],
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

/// One word of a file with its line: a name, a number, `::`, or any other single mark.
pub(crate) type Word = (usize, String);

/// Returns the words of a file, without its comments, its literals, and the code that is compiled only for tests.
pub(crate) fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let tokens: TokenStream = text.parse().expect("Rust");
    add_words(tokens, &mut words);
    words
}

fn add_words(tokens: TokenStream, words: &mut Vec<Word>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let line = token.span().start().line;
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => match tokens.peek().map(attribute) {
                Some(Attribute::Doc) => drop(tokens.next()),
                Some(Attribute::Test) => {
                    while tokens.next().is_some_and(|token| !ends_item(&token)) {}
                }
                Some(Attribute::Other) | None => words.push((line, "#".to_owned())),
            },
            TokenTree::Punct(mark) => match words.last_mut() {
                // The second half of `::`, which follows its first half without a space.
                Some((_, before)) if before == ":" && mark.as_char() == ':' => before.push(':'),
                _ => words.push((line, mark.to_string())),
            },
            TokenTree::Ident(name) => words.push((line, name.to_string())),
            TokenTree::Literal(_) => {}
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                words.push((line, open.to_owned()));
                add_words(group.stream(), words);
                words.push((group.span_close().start().line, close.to_owned()));
            }
        }
    }
}

enum Attribute {
    Doc,
    Test,
    Other,
}

/// What the brackets after a `#` contain.
fn attribute(brackets: &TokenTree) -> Attribute {
    let text = brackets.to_string().replace(' ', "");
    if text.starts_with("[doc=") {
        Attribute::Doc
    } else if text == "[cfg(test)]" {
        Attribute::Test
    } else {
        Attribute::Other
    }
}

fn ends_item(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => token.to_string() == ";",
    }
}
