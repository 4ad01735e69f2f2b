//! Checks that every bug story has a test: a function whose name begins with the number of the story.

use std::collections::BTreeSet;
use std::path::Path;

use quorlock_testbed::files::below;

/// The numbers of all stories.
fn stories() -> impl Iterator<Item = u32> {
    1..=30
}

#[test]
fn every_bug_story_has_its_test() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut told = BTreeSet::new();
    for path in ["crates", "sim", "tests"]
        .map(|folder| below(workspace.join(folder), "rs"))
        .concat()
    {
        let source = std::fs::read_to_string(&path).expect("a source file in UTF-8");
        told.extend(source.lines().filter_map(story_of));
    }
    let missing: Vec<u32> = stories().filter(|story| !told.contains(story)).collect();
    assert!(missing.is_empty(), "stories without a test: {missing:?}");
}

/// Returns the number in a line like `async fn story_07_a_failed_round_leaves_no_keys() {`.
fn story_of(line: &str) -> Option<u32> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    let (number, name) = line.strip_prefix("fn story_")?.split_at_checked(2)?;
    name.starts_with('_').then(|| number.parse().ok())?
}

#[test]
fn a_story_is_told_by_a_function_and_not_by_a_mention() {
    assert_eq!(story_of("    async fn story_07_no_keys_stay() {"), Some(7));
    assert_eq!(story_of("fn story_30_modes_do_not_mix() {"), Some(30));
    assert_eq!(story_of("// fn story_08_is_missing"), None);
    assert_eq!(story_of("    story_08_is_listed,"), None);
    assert_eq!(story_of("fn story_1_has_one_digit() {"), None);
}
