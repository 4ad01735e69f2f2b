//! The public face: how many names a user meets in `quorlock`, and what the core may know.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use quorlock_testbed::files::below;

use crate::dependency_directions::arrows::words;

/// The largest number of names at the root of `quorlock`, with its modules.
const MOST_AT_ROOT: usize = 40;

/// The largest number of names in each of its modules.
const MOST_IN_MODULE: usize = 30;

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates")
}

/// Returns the public names that a file has at its root, as `""`, and in each module that is written in it.
fn names(lib: &str) -> BTreeMap<String, BTreeSet<String>> {
    let words = words(lib);
    let word = |at: usize| words.get(at).map_or("", |(_, word)| word.as_str());
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (mut module, mut at) = (String::new(), 0);
    while at < words.len() {
        match (word(at), word(at + 1)) {
            ("pub", "mod") => {
                let name = word(at + 2).to_owned();
                names
                    .entry(module.clone())
                    .or_default()
                    .insert(name.clone());
                if word(at + 3) == "{" {
                    module = name;
                }
                at += 3;
            }
            ("pub", "use") => {
                let end = (at..words.len())
                    .find(|at| word(*at) == ";")
                    .expect("a `;`");
                let last = (at..end).filter(|at| matches!(word(at + 1), "," | "}" | ";"));
                let taken = last.map(word).filter(|word| *word != "," && *word != "}");
                names
                    .entry(module.clone())
                    .or_default()
                    .extend(taken.map(str::to_owned));
                at = end;
            }
            ("pub", "struct" | "enum" | "trait" | "type") => {
                let name = word(at + 2).to_owned();
                names.entry(module.clone()).or_default().insert(name);
            }
            ("}", _) => module.clear(),
            _ => {}
        }
        at += 1;
    }
    names
}

/// Returns the public names of `quorlock`, also in the modules that have files.
fn face() -> BTreeMap<String, BTreeSet<String>> {
    let read = |file: String| std::fs::read_to_string(crates().join("quorlock/src").join(file));
    let mut face = names(&read("lib.rs".into()).expect("UTF-8"));
    for module in face[""].clone() {
        if !face.contains_key(&module)
            && let Ok(text) = read(format!("{module}.rs"))
        {
            face.extend(names(&text).remove("").map(|names| (module, names)));
        }
    }
    face
}

#[test]
fn a_user_meets_few_names() {
    for (module, names) in face() {
        let most = if module.is_empty() {
            MOST_AT_ROOT
        } else {
            MOST_IN_MODULE
        };
        assert!(
            names.len() <= most,
            "quorlock::{module} has {} names, at most {most} are allowed: {names:?}",
            names.len()
        );
    }
}

#[test]
fn what_users_of_redis_need_is_in_a_module_of_its_own() {
    let face = face();
    for name in [
        "RedisConfig",
        "RedisTransport",
        "Credentials",
        "Tls",
        "Wait",
        "AddressError",
    ] {
        assert!(face["redis"].contains(name), "{name}");
    }
    assert!(face["operate"].contains("Summary") && face["runtime"].contains("Timer"));
}

#[test]
fn a_name_has_one_place() {
    let mut places: BTreeMap<&String, Vec<&String>> = BTreeMap::new();
    let mut face = face();
    // The same types for code without `async`, under the same names.
    let blocking = face.remove("blocking").expect("a module");
    assert!(blocking.is_subset(&face[""]), "{blocking:?}");
    for (module, names) in &face {
        for name in names {
            places.entry(name).or_default().push(module);
        }
    }
    places.retain(|_, places| 1 < places.len());
    assert_eq!(places, BTreeMap::new());
}

#[test]
fn each_way_to_make_a_name_public_is_counted() {
    let face = names(
        "mod a;\npub mod b;\nmod c { pub(crate) use d::E; }\npub use f::G;\npub use h::{I, j::K, L as M};\n\
         pub mod n {\n    pub use o::{P, Q};\n    #[cfg(feature = \"r\")]\n    pub use s::T;\n}\npub use u::V;\n\
         pub struct W;\nimpl W {\n    pub fn f() {}\n}",
    );
    let sorted = |names: &str| names.split(' ').map(str::to_owned).collect::<BTreeSet<_>>();
    assert_eq!(face[""], sorted("G I K M V W b n"));
    assert_eq!(face["n"], sorted("P Q T"));
}

/// Returns the files of a crate's `src`, sorted by name, with their texts.
fn sources(krate: &str) -> BTreeMap<String, String> {
    let src = crates().join(krate).join("src");
    let mut sources = BTreeMap::new();
    for path in below(&src, "rs") {
        let file = path.strip_prefix(&src).expect("under src").display();
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        sources.insert(file.to_string(), text);
    }
    sources
}

/// Returns the lines of a text with a word of Redis: the name of the server, of one like it, or of its parts.
fn lines_about_redis(text: &str) -> Vec<usize> {
    let is_about_redis = |line: &str| {
        let line = line.to_lowercase();
        let mut words = line.split(|letter: char| !letter.is_alphanumeric());
        words.any(|word| {
            ["redis", "valkey", "sentinel"]
                .iter()
                .any(|name| word.starts_with(name))
                || ["lua", "flushall", "evalsha", "acl"].contains(&word)
        }) || line.contains("script kill")
    };
    let lines = text.lines().zip(1..);
    lines
        .filter(|(line, _)| is_about_redis(line))
        .map(|(_, number)| number)
        .collect()
}

/// Other stores come next: what Redis says, and how it stores a lock, is known to its adapter alone.
#[test]
fn the_core_knows_no_redis() {
    let mut found = Vec::new();
    for (file, text) in sources("quorlock-core") {
        let lines = lines_about_redis(&text);
        found.extend(lines.iter().map(|line| format!("{file}:{line}")));
    }
    assert_eq!(found, Vec::<String>::new());
}

/// An error of the adapter says what to do: one file makes them all, with their advice.
#[test]
fn each_error_of_the_adapter_has_advice() {
    let makers = ["new", "definite", "indeterminate"];
    let mut found = Vec::new();
    for (file, text) in sources("quorlock-redis") {
        let words = words(&text);
        let makes = words.windows(4).any(|of| {
            let [kind, colons, maker, open] = [0, 1, 2, 3].map(|at| of[at].1.as_str());
            (kind, colons, open) == ("TransportError", "::", "(") && makers.contains(&maker)
        });
        if makes {
            found.push(file);
        }
    }
    assert_eq!(found, ["failure.rs"]);
}

#[test]
fn a_line_about_redis_is_noticed() {
    for line in [
        "//! As Redis stores it.",
        "const TOKEN: &str = \"redisson_lock_token\";",
        "/// The Lua scripts give the same answers.",
        "\"SCRIPT KILL ends it\"",
        "/// The sentinels of a group.",
    ] {
        assert_eq!(lines_about_redis(line), [1], "{line}");
    }
    assert_eq!(lines_about_redis("/// Evaluates a slot of a node."), [0; 0]);
}
