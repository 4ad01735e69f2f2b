//! Runs the conformance files of the protocol on nodes in memory, and compares their rules with those of the page.

use std::collections::{BTreeMap, BTreeSet};

use quorlock_core::name::Name;
use quorlock_tests::conformance::files::{ArmBench, Bench, Sequence, agree_on, read};
use quorlock_tests::conformance::{EmbeddedArm, SpecArm, StoreArm};
use quorlock_tests::requests::wall_clock;

const PAGE: &str = include_str!("../../../docs/src/protocol.md");

/// Runs all files. Returns how many sequences ran.
async fn all_agree<B: Bench>(bench: impl Fn(&[Name]) -> B) -> usize {
    let mut run = 0;
    for (topic, sequences) in read() {
        for sequence in sequences {
            let mut bench = bench(&names(&sequence));
            let agreed = agree_on(&sequence, &mut bench).await;
            let is_run = agreed.unwrap_or_else(|error| panic!("{topic}.json: {error}"));
            run += usize::from(is_run);
        }
    }
    run
}

/// Returns the names in a sequence, and the default name.
fn names(sequence: &Sequence) -> Vec<Name> {
    let names: BTreeSet<_> = sequence.names().into_iter().collect();
    let usual = Name::new("orders/42").unwrap();
    names
        .into_iter()
        .chain([usual])
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

#[tokio::test]
async fn the_specification_does_what_the_files_say() {
    let now = wall_clock();
    let bench = |names: &[Name]| ArmBench::new(SpecArm::new(now), names, now.0);
    let run = all_agree(bench).await;
    assert!(100 <= run, "{run}");
}

#[tokio::test]
async fn the_embedded_node_does_what_the_files_say() {
    let now = wall_clock();
    let bench = |names: &[Name]| ArmBench::new(EmbeddedArm::new(now, names), names, now.0);
    let run = all_agree(bench).await;
    assert!(100 <= run, "{run}");
}

#[tokio::test]
async fn a_store_in_memory_does_what_the_files_say() {
    let now = wall_clock();
    let bench = |names: &[Name]| ArmBench::new(StoreArm::new(now, names), names, now.0);
    // The sequences never yield, and tokio's channels end a task's turn after some polls.
    let run = tokio::task::unconstrained(all_agree(bench)).await;
    assert!(100 <= run, "{run}");
}

/// A file cites rules by their numbers. On the page, each rule of a node begins a line with its number.
#[test]
fn each_rule_of_a_node_is_shown_by_a_file_and_each_that_is_cited_stands_on_the_page() {
    let rules = PAGE.lines().filter_map(|line| line.strip_prefix("- **"));
    let rules = rules.filter_map(|line| line.split_once(".**"));
    let rules: BTreeSet<&str> = rules.map(|(number, _)| number).collect();
    assert!(60 < rules.len(), "{rules:?}");
    let mut cited: BTreeMap<String, usize> = BTreeMap::new();
    let mut said = BTreeSet::new();
    for (topic, sequences) in read() {
        assert!(
            PAGE.contains(&format!("`{topic}.json`")),
            "{topic} is not named"
        );
        for sequence in sequences {
            assert!(
                said.insert(sequence.name.clone()),
                "{} twice",
                sequence.name
            );
            for rule in sequence.rules {
                assert!(rules.contains(rule.as_str()), "{}: {rule}", sequence.name);
                *cited.entry(rule).or_default() += 1;
            }
        }
    }
    // A sequence of requests to one node cannot show the rules between clients.
    let of_nodes = rules.iter().filter(|rule| !rule.starts_with('C'));
    let not_shown: Vec<_> = of_nodes
        .filter(|rule| !cited.contains_key(**rule))
        .collect();
    assert!(not_shown.is_empty(), "{not_shown:?}");
    let stated = format!("{} sequences", said.len());
    assert!(PAGE.contains(&stated), "the page does not say: {stated}");
}
