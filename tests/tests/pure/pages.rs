//! Compares the statements about the code on the pages of the documentation with the code.

use std::collections::BTreeSet;
use std::path::Path;

use quorlock_testbed::files::below;

const ERROR_PAGES: &str = concat!(
    include_str!("../../../docs/src/reference/errors.md"),
    include_str!("../../../docs/src/reference/config-errors.md"),
);
const SETTINGS_PAGES: &str = concat!(
    include_str!("../../../docs/src/reference/settings.md"),
    include_str!("../../../docs/src/reference/addresses.md"),
);
const ERRORS: &str = concat!(
    include_str!("../../../crates/quorlock/src/error.rs"),
    include_str!("../../../crates/quorlock/src/error/config.rs"),
);
const RENEWAL: &str = include_str!("../../../crates/quorlock-core/src/renewal.rs");
/// The sources whose methods are settings.
const SETTINGS: [&str; 5] = [
    include_str!("../../../crates/quorlock/src/builder.rs"),
    include_str!("../../../crates/quorlock/src/connect.rs"),
    include_str!("../../../crates/quorlock/src/lock.rs"),
    include_str!("../../../crates/quorlock-core/src/acquisition/retry.rs"),
    include_str!("../../../crates/quorlock-redis/src/config.rs"),
];

/// Returns the variants of an enum, read from its source.
fn variants<'a>(source: &'a str, name: &str) -> Vec<&'a str> {
    let begin = format!("pub enum {name} {{\n");
    let (_, body) = source.split_once(&begin).expect("the enum");
    let (body, _) = body.split_once("\n}").expect("its end");
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    let variants = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    let names = variants.filter_map(|line| line.split(|c: char| !c.is_alphanumeric()).next());
    names.collect()
}

/// Returns the first cells of a page's tables.
fn first_cells(page: &str) -> String {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    cells.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_error_is_on_its_page() {
    let cells = first_cells(ERROR_PAGES);
    let named = |text: &str| cells.contains(&format!("`{text}`"));
    for name in [
        "AcquireError",
        "ReleaseError",
        "ConfirmError",
        "ConfigError",
    ] {
        let variants = variants(ERRORS, name);
        assert!(1 < variants.len(), "{name}");
        for variant in variants {
            assert!(named(&format!("{name}::{variant}")), "{name}::{variant}");
        }
    }
    for variant in variants(RENEWAL, "Lost") {
        assert!(named(variant), "Lost::{variant}");
    }
}

/// Returns the settings in a source: its methods that take `mut self`, without hidden ones.
fn settings(source: &str) -> Vec<&str> {
    let items = source.split("\n\n");
    let items = items.filter(|item| !item.contains("#[doc(hidden)]"));
    let names = items.filter_map(|item| {
        let (head, _) = item.split_once("(mut self")?;
        head.rsplit("fn ").next()
    });
    // `Lock::and` is no setting.
    names.filter(|name| *name != "and").collect()
}

#[test]
fn every_setting_is_on_its_page() {
    let cells = first_cells(SETTINGS_PAGES);
    for source in SETTINGS {
        let settings = settings(source);
        assert!(!settings.is_empty());
        for setting in settings {
            assert!(cells.contains(&format!("`{setting}`")), "{setting}");
        }
    }
}

/// A page that is not in the list of `quorlock_tests` is not compiled.
#[test]
fn the_code_of_every_page_is_compiled() {
    let (_, list) = include_str!("../../src/lib.rs")
        .split_once("pages! {")
        .unwrap();
    let (list, _) = list.split_once('}').unwrap();
    let mut listed = BTreeSet::new();
    for part in list.trim().trim_end_matches(';').split(';') {
        let (part, pages) = part.split_once(':').unwrap();
        let folder = part.split('"').nth(1).unwrap();
        let pages = pages.split(',').map(str::trim);
        listed.extend(pages.map(|page| format!("{folder}{page}")));
    }
    let mut there = BTreeSet::new();
    let book = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src");
    for path in below(book, "md") {
        let page = std::fs::read_to_string(&path).unwrap();
        assert!(!page.contains("```rust,ignore"), "{}", path.display());
        let name = path.strip_prefix(book).unwrap().with_extension("");
        there.insert(name.to_str().unwrap().to_owned());
    }
    there.remove("SUMMARY");
    // `where` is no name of a module. The page has no code.
    there.remove("where");
    assert!(!include_str!("../../../docs/src/where.md").contains("```"));
    assert_eq!(there, listed);
}

/// Each of the ten decisions must be made where the page states, with its reason next to it.
#[test]
fn each_decision_is_made_where_the_architecture_says() {
    let page = include_str!("../../../docs/src/architecture.md");
    let (_, table) = page.split_once("<!-- decisions -->").expect("the table");
    let (table, _) = table.split_once("<!-- end -->").expect("its end");
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| **"))
        .collect();
    assert_eq!(rows.len(), 10);
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let places = cells.last().expect("the last cell");
        for place in places.trim_end_matches(" |").split("; ") {
            let (file, function) = place.split_once(", ").expect(place);
            let source = std::fs::read_to_string(crates.join(file.trim_matches('`')));
            let source = source.unwrap_or_else(|error| panic!("{file}: {error}"));
            let head = format!("{}(", function.trim_matches('`'));
            let (before, after) = source
                .split_once(&head)
                .unwrap_or_else(|| panic!("{place}"));
            let (body, _) = after.split_once("\n    }\n").unwrap_or((after, ""));
            let docs = before.rsplit("\n\n").next().unwrap_or_default();
            let is_there = [docs, body].iter().any(|text| text.contains("//"));
            assert!(is_there, "{place} has no reason beside it");
        }
    }
}

/// Each file that an acquire passes through, according to the architecture, exists.
#[test]
fn the_path_of_an_acquire_leads_through_files_that_exist() {
    let page = include_str!("../../../docs/src/architecture.md");
    let (_, path) = page
        .split_once("### The path of one acquire")
        .expect("the path");
    let rows = path.lines().skip_while(|line| !line.starts_with("| 1 |"));
    let rows = rows.take_while(|line| line.starts_with('|'));
    let rows: Vec<&str> = rows.collect();
    assert_eq!(rows.len(), 17);
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let places = cells.last().expect("the last cell").split('`');
        for place in places.filter(|place| place.ends_with(".rs") || place.ends_with(".lua")) {
            let (package, file) = place.split_once('/').expect(place);
            let file = match package {
                "core" | "redis" => format!("quorlock-{package}/src/{file}"),
                "quorlock" => format!("quorlock/src/{file}"),
                _ => place.to_owned(),
            };
            assert!(crates.join(&file).is_file(), "{file}");
        }
    }
}
