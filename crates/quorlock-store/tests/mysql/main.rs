//! Locks in a table of a real MariaDB server. Without one they are listed as ignored.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

mod addresses;
mod check_in;
#[path = "../support/customers.rs"]
mod customers;
#[path = "../support/databases.rs"]
mod databases;
mod encrypted;
mod settings;
mod shop;
#[path = "../support/mod.rs"]
mod support;

use std::process::ExitCode;

use libtest_mimic::Arguments;
use quorlock_testbed::mysql::{Mysql, missing};
use quorlock_testbed::trials::conclude;

use crate::databases::{database, replicated, trials};

database!(Mysql);
replicated!(Mysql);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if_eq(customers::BUY).is_some() {
        check_in::customer(arguments);
        return ExitCode::SUCCESS;
    }
    let trials = trials![Mysql:
        databases::a_table_keeps_the_rules_of_a_store,
        databases::clients_of_one_table_exclude_each_other_and_are_woken,
        databases::a_server_that_restarts_keeps_its_claims,
        databases::a_server_that_stands_still_ends_no_claim_early,
        databases::a_replica_takes_no_writes_and_is_another_process_once_promoted,
        databases::records_are_swept_and_no_version_comes_back,
        databases::a_majority_of_unlike_stores_survives_the_loss_of_one,
        databases::errors_say_what_to_do,
        databases::a_client_is_made_from_an_address,
        addresses::what_is_wrong_with_an_address_is_said,
        addresses::what_is_wrong_with_a_database_is_said,
        addresses::a_socket_may_be_named,
        encrypted::a_server_under_tls_is_reached_by_the_options_of_the_driver,
        settings::what_a_server_is_set_to_changes_nothing,
        settings::a_server_that_may_lose_commits_is_refused,
        settings::a_server_that_becomes_read_only_is_said,
        settings::idle_connections_that_the_server_has_ended_are_replaced,
        settings::a_row_that_another_transaction_keeps_is_a_definite_error,
        settings::a_write_without_a_reply_is_in_doubt,
        settings::a_hold_of_a_name_that_is_remembered_is_two_statements,
        check_in::a_holder_that_was_stopped_cannot_commit,
        check_in::without_the_check_a_piece_is_sold_twice,
        check_in::every_kind_of_lock_can_be_checked_in_and_none_that_is_gone,
        check_in::a_claim_that_is_checked_in_stays_until_the_commit,
        check_in::what_cannot_be_checked_in_is_said,
    ];
    conclude(&Arguments::from_args(), trials, missing()).exit_code()
}
