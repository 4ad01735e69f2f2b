//! Locks in documents of a real server that speaks the protocol of MongoDB. Without one they are listed as ignored.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

mod addresses;
#[path = "../support/databases.rs"]
#[allow(
    dead_code,
    reason = "MongoDB has no tables, and the server no replicas"
)]
mod databases;
mod encrypted;
mod failing;
#[path = "../support/faults.rs"]
#[allow(dead_code, reason = "the server keeps no data")]
mod faults;
#[path = "../support/locks.rs"]
mod locks;
#[path = "../support/mod.rs"]
mod support;

use std::process::ExitCode;

use libtest_mimic::Arguments;
use mongodb::bson::Document;
use mongodb::{Client, Collection};
use quorlock_testbed::mongodb::{Mongodb, missing};
use quorlock_testbed::trials::conclude;

use crate::databases::{database, trials};

database!(Mongodb);

fn main() -> ExitCode {
    let trials = trials![Mongodb:
        databases::a_table_keeps_the_rules_of_a_store,
        databases::clients_of_one_table_exclude_each_other_and_are_woken,
        databases::a_server_that_stands_still_ends_no_claim_early,
        databases::a_majority_of_unlike_stores_survives_the_loss_of_one,
        addresses::what_is_wrong_with_an_address_is_said,
        addresses::what_is_wrong_with_a_server_is_said,
        addresses::a_client_is_made_from_an_address,
        addresses::two_addresses_of_one_database_are_one_store,
        addresses::keys_are_listed,
        addresses::a_document_that_is_no_record_is_said_and_stays,
        encrypted::a_server_under_tls_is_reached_by_an_authority_of_its_own,
        faults::a_write_without_a_reply_is_in_doubt,
        faults::a_write_to_a_server_that_is_down_was_not_executed,
        faults::a_write_to_a_server_that_stands_still_is_in_doubt,
        faults::a_write_whose_reply_is_lost_is_found_by_reading,
        failing::a_connection_that_has_ended_is_replaced,
        failing::a_server_that_has_forgotten_is_another_process,
        failing::a_record_that_was_deleted_makes_no_client_overwrite_a_claim,
        failing::of_clients_that_write_at_once_one_succeeds,
        locks::every_kind_of_lock_works,
        locks::a_leader_resigns_and_another_one_is_elected,
        locks::a_dead_holder_is_replaced_by_what_was_observed,
    ];
    conclude(&Arguments::from_args(), trials, missing()).exit_code()
}

/// Returns the records, as an operator uses them.
async fn records(server: &Mongodb) -> Collection<Document> {
    let client = Client::with_uri_str(server.address()).await.unwrap();
    client.database("locks").collection("quorlock")
}
