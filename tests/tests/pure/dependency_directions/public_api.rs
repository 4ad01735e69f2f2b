//! Finds the types in a crate's public signatures, by reading their text.
//!
//! The public signatures are: functions, fields, constants and aliases with `pub`, everything in a `pub` trait or
//! enum, what a module re-exports by `pub use`, and the traits of a public type. Everything with `pub` in these crates
//! is reachable, which a lint checks.

use std::collections::BTreeSet;
use std::path::Path;

use quorlock_testbed::files::below;

use crate::dependency_directions::arrows::{Word, words};

/// A type of another crate in a public signature: the line, and the text from the signature's first word on.
#[derive(PartialEq, Eq, Debug)]
struct Shown {
    line: usize,
    signature: String,
}

/// Returns where a file's public signatures name a type of `krate`. `exported` are the crate's public types.
fn shown(text: &str, krate: &str, exported: &BTreeSet<String>) -> Vec<Shown> {
    let words = words(text);
    let names = names_from(&words, krate);
    let mut shown = Vec::new();
    let mut at = 0;
    while let Some((line, word)) = words.get(at) {
        let next = words.get(at + 1).map_or("", |(_, next)| next);
        let before = at.checked_sub(1).map_or(";", |before| &words[before].1);
        let signature = match word.as_str() {
            "pub" if next == "(" => None,
            "pub" if matches!(next, "trait" | "enum") => Some(block(&words, at)),
            "pub" => Some(item(&words, at)),
            "impl" if matches!(before, ";" | "}" | "]") => {
                let header = header(&words, at);
                let is_exported = header.iter().any(|(_, word)| exported.contains(word));
                let is_of_trait = header.iter().any(|(_, word)| word == "for");
                (is_exported && is_of_trait).then(|| of_impl(&words, at))
            }
            _ => None,
        };
        if let Some(signature) = signature
            && signature.iter().any(|(_, word)| names.contains(word))
        {
            let texts: Vec<_> = signature.iter().map(|(_, word)| word.as_str()).collect();
            shown.push(Shown {
                line: *line,
                signature: texts.join(" "),
            });
        }
        at += 1;
    }
    shown
}

/// Returns the crate's own name, the names that a file takes from it, and the file's aliases for them.
fn names_from(words: &[Word], krate: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::from([krate.to_owned()]);
    for at in 0..words.len() {
        let is_use =
            words[at].1 == "use" && words.get(at + 1).is_some_and(|(_, word)| word == krate);
        if is_use {
            let rest = &words[at + 1..];
            let end = rest.iter().position(|(_, word)| word == ";");
            let taken = rest[..end.unwrap_or(rest.len())].iter();
            names.extend(taken.map(|(_, word)| word.clone()).filter(|word| {
                word.starts_with(char::is_alphabetic) && word != "as" && word != "self"
            }));
        }
        if words[at].1 == "type" && words.get(at + 2).is_some_and(|(_, word)| word == "=") {
            let alias = item(words, at);
            if alias.iter().skip(3).any(|(_, word)| names.contains(word)) {
                names.insert(words[at + 1].1.clone());
            }
        }
    }
    names
}

/// Returns the text from `at` to the end of a signature: `{` or `;`, or the `,` or bracket after a field.
fn item(words: &[Word], at: usize) -> Vec<Word> {
    let is_use = words.get(at + 1).is_some_and(|(_, word)| word == "use");
    let mut depth = 0_usize;
    let mut taken = Vec::new();
    for word in &words[at..] {
        match word.1.as_str() {
            ";" => break,
            "{" if !is_use => break,
            "," | ")" | "]" | "}" if depth == 0 => break,
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            // The `>` of an arrow is not a bracket.
            ">" if taken.last().is_none_or(|(_, before): &Word| before != "-") => {
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
        taken.push(word.clone());
    }
    taken
}

/// Returns the text from `at` to the `{` of its block.
fn header(words: &[Word], at: usize) -> &[Word] {
    let rest = &words[at..];
    let end = rest.iter().position(|(_, word)| word == "{");
    &rest[..end.unwrap_or(rest.len())]
}

/// Returns the text from `at` to the end of its block.
fn block(words: &[Word], at: usize) -> Vec<Word> {
    let mut depth = 0_usize;
    let mut taken = Vec::new();
    for word in &words[at..] {
        taken.push(word.clone());
        match word.1.as_str() {
            "{" => depth += 1,
            "}" if depth == 1 => break,
            "}" => depth -= 1,
            _ => {}
        }
    }
    taken
}

/// Returns the header of a trait's `impl`, with the signatures of its functions and types.
fn of_impl(words: &[Word], at: usize) -> Vec<Word> {
    let mut taken = header(words, at).to_vec();
    let block = block(words, at);
    for (index, (_, word)) in block.iter().enumerate() {
        if matches!(word.as_str(), "fn" | "type") {
            taken.extend(item(&block, index));
        }
    }
    taken
}

/// Returns the public types of a crate, which its `lib.rs` re-exports.
fn exported(lib: &str) -> BTreeSet<String> {
    let words = words(lib);
    let mut exported = BTreeSet::new();
    for at in 0..words.len() {
        if words[at].1 == "pub" && words.get(at + 1).is_some_and(|(_, word)| word == "use") {
            exported.extend(item(&words, at).into_iter().map(|(_, word)| word));
        }
    }
    exported.retain(|word| word.starts_with(char::is_uppercase));
    exported
}

#[test]
fn a_type_of_the_redis_crate_is_public_only_where_a_name_says_so() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/quorlock-redis/src");
    let lib = std::fs::read_to_string(src.join("lib.rs")).expect("UTF-8");
    let exported = exported(&lib);
    assert!(exported.contains("RedisTransport"), "{exported:?}");
    let mut found = Vec::new();
    for path in below(&src, "rs") {
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        let file = path.strip_prefix(&src).expect("under src");
        let shown = shown(&text, "redis", &exported).into_iter();
        found.extend(shown.map(|shown| format!("{}: {}", file.display(), shown.signature)));
    }
    found.sort();
    assert_eq!(
        found,
        [
            "credentials/streamed.rs: pub fn from_redis_provider ( provider : Arc < dyn RedisCredentialsProvider > ) - > Self",
            "credentials/streamed.rs: pub use redis :: StreamingCredentialsProvider as RedisCredentialsProvider",
            "lib.rs: pub use redis :: Client as RedisClient",
            "lib.rs: pub use redis :: aio :: ConnectionLike",
            "shared_connection.rs: impl < C : ConnectionLike + Clone + Send + Sync + ' static > Transport for \
             SharedConnection < C > fn call ( & self , request : Request ) - > Call fn subscribe ( & self , _ : & \
             Channel , _ : Arc < dyn Listener > ) - > Subscription fn attend ( & self , _ : Arc < dyn Witness > ) \
             - > Subscription fn slot ( & self , name : & Name ) - > Result < Slot , UnfitName > fn server ( & \
             self , _ : Slot ) - > ServerNumber fn address ( & self ) - > & str",
            "transport/from_client.rs: pub fn from_redis_client ( client : & redis :: Client , config : RedisConfig , ) \
             - > Result < Self , AddressError >",
        ]
    );
}

/// Returns public enums, and structs with public fields, without `#[non_exhaustive]`.
fn complete_types(text: &str) -> BTreeSet<String> {
    let words = words(text);
    let mut complete = BTreeSet::new();
    let mut may_grow = false;
    for (at, (_, word)) in words.iter().enumerate() {
        let next = |after: usize| words.get(at + after).map_or("", |(_, word)| word);
        match word.as_str() {
            "non_exhaustive" => may_grow = true,
            "pub" if matches!(next(1), "enum" | "struct") => {
                let body = block(&words, at);
                let is_public = |pair: &[Word]| pair[0].1 == "pub" && pair[1].1 != "(";
                let is_record = next(3) == "{" && body[4..].windows(2).any(is_public);
                if !may_grow && (next(1) == "enum" || is_record) {
                    complete.insert(next(2).to_owned());
                }
            }
            // The attributes of an item end with the item.
            "{" | "}" | ";" => may_grow = false,
            _ => {}
        }
    }
    complete
}

/// Types that are exhaustive on purpose. Everything in a request must reach the node. A transport that ignored an
/// unknown part would break a promise of the lock, so it must be changed when a part is added. The other types are
/// values with a complete set of parts.
const COMPLETE: [&str; 39] = [
    // Requests and their parts.
    "Access",
    "Acquire",
    "Act",
    "ClaimVersion",
    "Channel",
    "Check",
    "Claim",
    "ForceRelease",
    "Inspect",
    "ClockMargin",
    "ConfirmedMarker",
    "Figures",
    "OwnerId",
    "QueuePlace",
    "Release",
    "Renew",
    "Request",
    "Restarts",
    "Retention",
    // What a node reports about itself, and the specification of a node.
    "Applied",
    "Held",
    "KeyKind",
    "Lineage",
    "Marker",
    "ReadWrite",
    "MarkerState",
    "Shown",
    "ShownMarker",
    // Kinds of locks. Each place that handles them must decide what to do with a new kind.
    "Mode",
    // No other values are possible.
    "Execution",
    "Freshness",
    "Ttl",
    // What `quorlock doctor` judges. They are hidden, and their judge is tested with facts of every kind.
    "ClockFacts",
    "ExaminedServer",
    "RightsFacts",
    "RightsTold",
    "SentinelFacts",
    "ServerFacts",
    "SlowCommand",
];

/// The modules of the core that a transport to another kind of store uses directly.
const FOR_STORES: [&str; 4] = ["claim_version.rs", "marker.rs", "message.rs", "node.rs"];

#[test]
fn public_types_that_may_grow_say_so() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let handed_on = ["lib.rs", "operate.rs", "runtime.rs"].map(|file| {
        let file = crates.join("quorlock/src").join(file);
        exported(&std::fs::read_to_string(file).expect("UTF-8"))
    });
    let handed_on: BTreeSet<String> = handed_on.into_iter().flatten().collect();
    let mut found = BTreeSet::new();
    for krate in ["quorlock", "quorlock-core", "quorlock-redis"] {
        let src = crates.join(krate).join("src");
        let lib = std::fs::read_to_string(src.join("lib.rs")).expect("UTF-8");
        // Users use those parts of the core that the product re-exports.
        let public = if krate == "quorlock-core" {
            let for_stores = FOR_STORES
                .map(|file| exported(&std::fs::read_to_string(src.join(file)).expect("UTF-8")));
            handed_on
                .iter()
                .cloned()
                .chain(for_stores.into_iter().flatten())
                .collect()
        } else {
            exported(&lib)
        };
        for path in below(&src, "rs") {
            let complete = complete_types(&std::fs::read_to_string(&path).expect("UTF-8"));
            let is_for_stores = krate == "quorlock-core"
                && FOR_STORES
                    .iter()
                    .any(|file| path.ends_with(Path::new("src").join(file)));
            let is_public = |name: &String| is_for_stores || public.contains(name);
            found.extend(complete.into_iter().filter(is_public));
        }
    }
    assert_eq!(found, COMPLETE.map(str::to_owned).into());
}

#[test]
fn a_type_that_does_not_say_that_it_may_grow_is_noticed() {
    for text in [
        "pub enum Ours { A, B }",
        "#[derive(Debug)]\npub struct Ours {\n    pub a: u8,\n}",
        "#[non_exhaustive]\npub enum Other { A }\n\npub enum Ours { B }",
    ] {
        assert_eq!(
            complete_types(text),
            BTreeSet::from(["Ours".to_owned()]),
            "{text}"
        );
    }
    for text in [
        "#[non_exhaustive]\n#[derive(Debug)]\npub enum Ours { A, B }",
        "pub struct Ours { a: u8 }",
        "pub struct Ours(pub u64);",
        "enum Ours { A }",
    ] {
        assert_eq!(complete_types(text), BTreeSet::new(), "{text}");
    }
}

#[test]
fn each_place_of_a_public_type_is_noticed() {
    let exported = BTreeSet::from(["Ours".to_owned()]);
    for (text, line) in [
        ("pub fn f(value: redis::Value) {}", 1),
        (
            "use redis::{Cmd, Value};\n\npub fn f() -> Result<(), Vec<Value>> {}",
            3,
        ),
        (
            "use redis::Value as Theirs;\npub async fn f(a: u8, b: Theirs);",
            2,
        ),
        (
            "pub struct Ours {\n    pub a: u8,\n    pub b: Option<redis::Value>,\n}",
            3,
        ),
        ("pub struct Ours(pub redis::Value);", 1),
        ("pub enum Ours {\n    A(u8),\n    B(redis::Value),\n}", 1),
        (
            "pub trait Ask {\n    fn ask(&self, cmd: &redis::Cmd);\n}",
            1,
        ),
        ("struct X;\nimpl From<redis::Value> for Ours {\n}", 2),
        (
            "use redis::Value;\nimpl TryFrom<u8> for Ours {\n    type Error = Value;\n}",
            2,
        ),
        (
            "type Theirs = redis::Value;\npub const A: fn(Theirs) = f;",
            2,
        ),
        ("pub use redis::Value;", 1),
        ("pub use redis;", 1),
    ] {
        let shown = shown(text, "redis", &exported);
        assert!(
            shown.iter().any(|shown| shown.line == line),
            "{text}: {shown:?}"
        );
    }
}

#[test]
fn what_is_not_public_is_let_pass() {
    let exported = BTreeSet::from(["Ours".to_owned()]);
    for text in [
        "use redis::Value;\npub fn f() { let a: Value = g(); }",
        "pub(crate) fn f(value: redis::Value) {}",
        "struct Ours { value: redis::Value }",
        "pub struct Ours { a: redis::Value, pub b: u8 }",
        "struct X;\nimpl From<redis::Value> for Theirs {\n}",
        "struct X;\nimpl Ours {\n    fn f(value: redis::Value) {}\n}",
        "/// Of [`redis::Value`].\npub fn f() {}",
        "#[cfg(test)]\nmod tests {\n    pub fn f(value: redis::Value) {}\n}",
    ] {
        assert_eq!(shown(text, "redis", &exported), [], "{text}");
    }
}
