//! Explores every order of events in a small world: the machines of `quorlock-core` under variants of Redlock, some of
//! which have a remedy.
//!
//! In [`model`] there are three nodes, two clients, a lease of three ticks, and one round for each client. In
//! [`connection`] there is one node, whose server is replaced. For a property that must hold, the search runs to the end.
//! For a property that must break, it returns the shortest trace. In the suite, time ends after three to five ticks.
//! With `QUORLOCK_EXHAUSTIVE=long`, it ends after eight, or six for one node. `--nocapture` prints the numbers of states
//! and the traces.

mod connection;
mod model;
mod variant;

use std::fmt::Debug;
use std::hash::Hash;

use connection::LeftOut;
use stateright::{Checker, Model, Path};
use variant::{Expected, Variant};

const ROUNDS: u8 = 1;
/// The property that two clients never believe at the same time that they hold the lock.
pub(crate) const EXCLUSION: &str = "exclusion";

fn is_long() -> bool {
    std::env::var("QUORLOCK_EXHAUSTIVE").is_ok_and(|mode| mode == "long")
}

fn ticks(variant: &Variant) -> u8 {
    if is_long() {
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
    let checked = model::Checked::new(variant, ticks(&variant), ROUNDS);
    let told = Told {
        id,
        title: variant.title,
        ticks: checked.ticks,
    };
    told.search(checked, variant.expected, &[model::CONTENTION]);
}

/// Searches a world with a client that relies on what its connection has shown.
fn check_connection(id: &str, title: &str, without: LeftOut) {
    let checked = connection::Checked::new(without, if is_long() { 6 } else { 5 });
    let expected = match without {
        LeftOut::Nothing => Expected::Holds,
        _ => Expected::Breaks,
    };
    let told = Told {
        id,
        title,
        ticks: checked.ticks,
    };
    told.search(
        checked,
        expected,
        &[connection::SPARED, connection::WATCHED],
    );
}

/// What the checker needs of states and actions.
trait Searched: Clone + PartialEq + Hash + Debug + Send + Sync {}

impl<T: Clone + PartialEq + Hash + Debug + Send + Sync> Searched for T {}

/// What a row of the page says of a search.
struct Told<'a> {
    id: &'a str,
    title: &'a str,
    ticks: u8,
}

impl Told<'_> {
    /// Searches all states. A world that never gets to what `seen` names would hold, too.
    fn search<M>(&self, checked: M, expected: Expected, seen: &[&'static str])
    where
        M: Model<State: Searched, Action: Searched> + Clone + Send + Sync + 'static,
    {
        let checker = checked.clone().checker().spawn_bfs().join();
        let states = checker.unique_state_count();
        let Told { id, title, ticks } = self;
        let told = format!("{id} ({title}), {ticks} ticks");
        for what in seen {
            assert!(checker.discovery(what).is_some(), "{told}: never {what}");
        }
        match (checker.discovery(EXCLUSION), expected) {
            (None, Expected::Holds) => {
                println!("{told}: holds in all of {states} states");
                assert_page_says(&format!("| {id} | {title} | {ticks} | holds | {states} |"));
            }
            (Some(path), Expected::Breaks) => {
                let actions = path.into_actions();
                let steps = actions.len();
                println!("{told}: breaks after {steps} actions, {states} states");
                for action in &actions {
                    println!("    {}", checked.format_action(action));
                }
                let row = format!("| {id} | {title} | {ticks} | breaks, {steps} steps |  |");
                assert_page_says(&row);
            }
            (found, expected) => {
                let found = found.map(Path::into_actions);
                panic!("{told}: expected {expected:?}, found {found:?}")
            }
        }
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

#[test]
fn a_connection_shows_the_process_for_a_longest_lease() {
    let title =
        "one node whose server is replaced; a connection shows the process for a longest lease";
    check_connection("V-M", title, LeftOut::Nothing);
}

#[test]
fn a_process_that_is_not_asked_for_again_breaks_it() {
    let title = "V-M, and the process is not asked for again";
    check_connection("V-N", title, LeftOut::AskingAgain);
}

#[test]
fn what_was_shown_and_is_dated_from_its_receipt_breaks_it() {
    let title = "V-M, and what was shown is dated from its receipt";
    check_connection("V-O", title, LeftOut::DatingFromSending);
}

#[test]
fn a_late_reply_that_is_believed_breaks_it() {
    let title = "V-M, and a reply is believed that comes after that time";
    check_connection("V-P", title, LeftOut::JudgingReplies);
}

#[test]
fn a_client_that_does_not_hear_of_replaced_data_breaks_it() {
    let title = "V-M, and the client does not hear that all data was replaced";
    check_connection("V-Q", title, LeftOut::Hearing);
}

#[test]
fn a_marker_that_is_not_looked_at_breaks_it() {
    let title = "V-M, and the marker is not looked at";
    check_connection("V-R", title, LeftOut::Marker);
}
