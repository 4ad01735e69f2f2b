//! Explores every order of events in a small world: the machines of `quorlock-core` under variants of Redlock, some of
//! which have a remedy.
//!
//! There are three nodes, two clients, a lease of three ticks, and one round for each client. For a property that must
//! hold, the search runs to the end. For a property that must break, it returns the shortest trace. In the suite, time
//! ends after four ticks, or after three if nodes restart. With `QUORLOCK_EXHAUSTIVE=long`, it ends after eight.
//! `--nocapture` prints the numbers of states and the traces.

mod model;
mod variant;

use model::{CONTENTION, Checked, EXCLUSION};
use stateright::{Checker, Model};
use variant::{Expected, Variant};

const ROUNDS: u8 = 1;

fn ticks(variant: &Variant) -> u8 {
    if std::env::var("QUORLOCK_EXHAUSTIVE").is_ok_and(|mode| mode == "long") {
        8
    } else if 0 < variant.crashes && variant.expected == Expected::Holds {
        3
    } else {
        4
    }
}

/// Checks that the page has the figures of the suite, unless the figures are being regenerated or time ends later.
fn assert_page_says(row: &str) {
    let is_written = std::env::var("QUORLOCK_FIGURES").is_ok();
    if !is_written && std::env::var("QUORLOCK_EXHAUSTIVE").is_err() {
        let page = include_str!("../../docs/src/exhaustive.md");
        assert!(page.contains(row), "docs/regenerate.sh exhaustive: {row}");
    }
}

fn check(id: &str) {
    let found = variant::ALL.into_iter().find(|variant| variant.id == id);
    let variant = found.expect("there is such a variant");
    let checked = Checked::new(variant, ticks(&variant), ROUNDS);
    let checker = checked.clone().checker().spawn_bfs().join();
    let (states, ticks) = (checker.unique_state_count(), checked.ticks);
    let told = format!("{id} ({}), {ticks} ticks", variant.title);
    // A world in which clients never compete would pass, too.
    assert!(checker.discovery(CONTENTION).is_some(), "{told}: vacuous");
    match (checker.discovery(EXCLUSION), variant.expected) {
        (None, Expected::Holds) => {
            println!("{told}: holds in all of {states} states");
            assert_page_says(&format!(
                "| {id} | {} | {ticks} | holds | {states} |",
                variant.title
            ));
        }
        (Some(path), Expected::Breaks) => {
            let actions = path.into_actions();
            println!(
                "{told}: breaks after {} actions, {states} states",
                actions.len()
            );
            for action in &actions {
                println!("    {}", checked.format_action(action));
            }
            let (title, steps) = (variant.title, actions.len());
            assert_page_says(&format!(
                "| {id} | {title} | {ticks} | breaks, {steps} steps |  |"
            ));
        }
        (found, expected) => panic!("{told}: expected {expected:?}, found {found:?}"),
    }
}

#[test]
fn a_lagging_clock_and_a_holder_without_deadline_break_it() {
    check("V-A");
}

#[test]
fn a_holder_without_deadline_breaks_it() {
    check("V-B");
}

#[test]
fn a_holder_that_looks_at_its_deadline_keeps_it() {
    check("V-C");
}

#[test]
fn lost_requests_do_not_break_it() {
    check("V-D");
}

#[test]
fn a_round_that_is_not_checked_at_its_end_does_not_break_it() {
    check("V-E");
}

#[test]
fn a_lagging_clock_breaks_it() {
    check("V-F");
}

#[test]
fn a_jump_of_a_clock_breaks_it_where_requests_are_lost() {
    check("V-G");
}

#[test]
fn a_jump_of_a_clock_breaks_it_where_none_are() {
    check("V-H");
}

#[test]
fn a_jump_within_the_margin_does_not_where_requests_are_lost() {
    check("V-G+");
}

#[test]
fn a_jump_within_the_margin_does_not_where_none_are() {
    check("V-H+");
}

#[test]
fn a_node_that_forgets_breaks_it() {
    check("V-I");
}

#[test]
fn a_node_that_forgets_and_stays_away_for_a_lease_does_not() {
    check("V-J");
}

#[test]
fn a_node_that_restarts_with_its_data_does_not() {
    check("V-K");
}

#[test]
fn two_nodes_that_forget_and_stay_away_for_a_lease_do_not() {
    check("V-L");
}
