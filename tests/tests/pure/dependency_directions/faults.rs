//! Finds errors in a crate's arrows: files without a floor, arrows that run upwards, and cycles.

use std::collections::{BTreeMap, BTreeSet};

use crate::dependency_directions::arrows::{Arrow, Tree};

/// The floors of a crate from the top down, each a few files or folders (`link/`). A longer path takes precedence:
/// `subscription/registry.rs` may be on another floor than the rest of `subscription/`.
pub(crate) type Floors = &'static [&'static [&'static str]];

/// Returns the errors in a crate's arrows, one line each.
pub(crate) fn faults(tree: &Tree, floors: Floors) -> Vec<String> {
    let mut faults = Vec::new();
    for path in tree.paths() {
        if floor(floors, path).is_none() {
            faults.push(format!(
                "{path} is on no floor: give it a place in the list"
            ));
        }
    }
    let arrows = tree.arrows();
    for Arrow { from, line, to } in &arrows {
        if floor(floors, to) < floor(floors, from) {
            faults.push(format!("{from}:{line} -> {to} runs upwards"));
        }
    }
    for circle in circles(&arrows) {
        let files: Vec<_> = circle.iter().copied().collect();
        let inside = |path: &String| circle.contains(path.as_str());
        let ties = arrows
            .iter()
            .filter(|arrow| inside(&arrow.from) && inside(&arrow.to));
        let ties: Vec<_> = ties
            .map(|a| format!("{}:{} -> {}", a.from, a.line, a.to))
            .collect();
        faults.push(format!(
            "a circle of {}: {}",
            files.join(", "),
            ties.join("; ")
        ));
    }
    faults
}

/// Returns the floor of a file, counted from the top.
fn floor(floors: Floors, path: &str) -> Option<usize> {
    let has = |place: &&str| place == &path || (place.ends_with('/') && path.starts_with(place));
    let by_place = floors.iter().enumerate().flat_map(|(floor, places)| {
        places
            .iter()
            .filter(|place| has(place))
            .map(move |place| (place.len(), floor))
    });
    by_place.max().map(|(_, floor)| floor)
}

/// Returns the sets of files in which each file reaches all others.
fn circles(arrows: &BTreeSet<Arrow>) -> BTreeSet<BTreeSet<&str>> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for arrow in arrows {
        next.entry(&arrow.from).or_default().insert(&arrow.to);
    }
    let reached_from = |start: &str| {
        let mut reached = BTreeSet::new();
        let mut open = vec![start];
        while let Some(file) = open.pop() {
            for to in next.get(file).into_iter().flatten() {
                if reached.insert(*to) {
                    open.push(*to);
                }
            }
        }
        reached
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> = next
        .keys()
        .map(|file| (*file, reached_from(file)))
        .collect();
    let mut circles = BTreeSet::new();
    for (file, ends) in &reached {
        if ends.contains(file) {
            let is_back = |other: &&str| reached.get(other).is_some_and(|ends| ends.contains(file));
            circles.insert(ends.iter().copied().filter(is_back).collect());
        }
    }
    circles
}

/// Two floors: an interface, and its parts.
const PLANTED: Floors = &[&["face.rs"], &["ground/", "lib.rs"]];

fn planted(files: &[(&str, &str)]) -> Vec<String> {
    let mut tree = Tree::default();
    for (path, text) in files {
        tree.add(path, text);
    }
    faults(&tree, PLANTED)
}

#[test]
fn an_arrow_that_runs_upwards_is_noticed_wherever_it_stands() {
    let face = ("face.rs", "use crate::ground::stone::Stone;");
    for (text, line) in [
        ("use crate::face::Face;", 1),
        (
            "\nuse crate::{\n    ground::sand,\n    face::{self, Face},\n};",
            4,
        ),
        ("use super::super::face::Face as Other;", 1),
        (
            "/// Not `crate::ground`.\nfn f() -> crate::face::Face {}",
            2,
        ),
        (
            "const C: char = '\"';\nfn f<'a>(s: &'a str) { super::super::face::f(\"}\") }",
            2,
        ),
        ("use crate::Face;", 1),
    ] {
        let lib = ("lib.rs", "mod face;\nmod ground;");
        let handing_on = ("lib.rs", "pub use face::Face;");
        let lib = if text.contains("crate::Face") {
            handing_on
        } else {
            lib
        };
        let found = planted(&[lib, ("ground/stone.rs", text), face]);
        let upwards = format!("ground/stone.rs:{line} -> face.rs runs upwards");
        assert!(found.contains(&upwards), "{text}: {found:?}");
    }
}

#[test]
fn an_arrow_that_runs_down_or_is_none_is_let_pass() {
    for text in [
        "use crate::ground::sand::Sand;",
        "// use crate::face::Face;\nconst S: &str = \"crate::face\";",
        "const R: &str = r#\"use \"crate::face\"; {\"#;",
        "#[cfg(test)]\nmod tests {\n    use crate::face::Face;\n}",
        "use std::face::Face;",
        "fn f() -> impl Sized + use<> {\n    stone();\n}\nfn stone() {}",
    ] {
        let found = planted(&[
            ("ground/stone.rs", text),
            ("ground/sand.rs", ""),
            ("face.rs", ""),
        ]);
        assert_eq!(found, Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_circle_on_one_floor_is_noticed_and_a_child_of_its_own_parent_is_not() {
    let found = planted(&[
        ("ground/stone.rs", "use super::sand::Sand;"),
        ("ground/sand.rs", "use super::clay;"),
        ("ground/clay.rs", "\nuse super::stone::Stone;"),
    ]);
    assert_eq!(
        found,
        [
            "a circle of ground/clay.rs, ground/sand.rs, ground/stone.rs: \
          ground/clay.rs:2 -> ground/stone.rs; ground/sand.rs:1 -> ground/clay.rs; \
          ground/stone.rs:1 -> ground/sand.rs"
        ]
    );
    let found = planted(&[
        ("ground/stone.rs", "mod vein;\nuse self::vein::Vein;"),
        ("ground/stone/vein.rs", "use super::Stone;"),
    ]);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_file_on_no_floor_is_noticed() {
    let found = planted(&[("attic.rs", "")]);
    assert_eq!(
        found,
        ["attic.rs is on no floor: give it a place in the list"]
    );
}
