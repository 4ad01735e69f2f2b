//! Locks in objects of a real server that speaks the protocol of S3. Without one they are listed as ignored.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

mod addresses;
mod conditions;
#[path = "../support/databases.rs"]
#[allow(dead_code, reason = "S3 has no tables, and no replicas to promote")]
mod databases;
mod encrypted;
mod failing;
#[path = "../support/faults.rs"]
mod faults;
#[path = "../support/locks.rs"]
mod locks;
#[path = "../support/mod.rs"]
mod support;

use std::process::{Command, ExitCode};

use libtest_mimic::Arguments;
use quorlock_testbed::s3::{S3, missing};
use quorlock_testbed::trials::conclude;

use crate::databases::{database, trials};
use crate::faults::copied;

database!(S3);
copied!(S3);

fn main() -> ExitCode {
    let has_keys = |(name, value)| std::env::var(name).is_ok_and(|it| it == value);
    if !S3::KEYS.into_iter().all(has_keys) {
        return with_keys();
    }
    let trials = trials![S3:
        databases::a_table_keeps_the_rules_of_a_store,
        databases::clients_of_one_table_exclude_each_other_and_are_woken,
        databases::a_server_that_restarts_keeps_its_claims,
        databases::a_server_that_stands_still_ends_no_claim_early,
        databases::a_majority_of_unlike_stores_survives_the_loss_of_one,
        addresses::what_is_wrong_with_an_address_is_said,
        addresses::what_is_wrong_with_a_bucket_is_said,
        addresses::a_client_is_made_from_an_address,
        addresses::two_prefixes_of_one_bucket_are_one_store,
        addresses::keys_are_listed,
        addresses::an_object_that_is_no_record_is_said_and_stays,
        conditions::a_service_that_ignores_a_condition_is_found_out,
        faults::a_write_without_a_reply_is_in_doubt,
        faults::a_write_to_a_server_that_is_down_was_not_executed,
        faults::a_write_to_a_server_that_stands_still_is_in_doubt,
        faults::a_write_whose_reply_is_lost_is_found_by_reading,
        faults::a_connection_that_has_ended_is_replaced,
        faults::a_copy_that_returns_makes_no_client_overwrite_a_claim,
        encrypted::a_service_under_tls_is_reached_by_an_authority_of_the_system,
        failing::another_process_is_noticed_after_a_minute,
        locks::every_kind_of_lock_works,
        locks::a_leader_resigns_and_another_one_is_elected,
        locks::a_dead_holder_is_replaced_by_what_was_observed,
    ];
    conclude(&Arguments::from_args(), trials, missing()).exit_code()
}

/// Runs this program again with the keys of the server in its environment, and nothing else for tools of AWS. The authorities that it trusts are
/// those of a file, in the place of the operating system's.
fn with_keys() -> ExitCode {
    let folder = tempfile::tempdir().unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AWS_")) {
        again.env_remove(name);
    }
    let again = again.args(std::env::args().skip(1)).envs(S3::KEYS);
    let again = again.envs(encrypted::prepare(folder.path()));
    match again.status().unwrap().success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
