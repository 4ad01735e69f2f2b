//! Locks in keys of a real etcd cluster. Without one they are listed as ignored.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

mod addresses;
mod clusters;
#[path = "../support/databases.rs"]
#[allow(dead_code, reason = "etcd has no tables, and no replicas to promote")]
mod databases;
mod encrypted;
mod failing;
#[path = "../support/faults.rs"]
#[allow(dead_code, reason = "the version of a key is no number of its writer")]
mod faults;
#[path = "../support/locks.rs"]
mod locks;
#[path = "../support/members.rs"]
mod members;
mod restored;
#[path = "../support/mod.rs"]
mod support;
mod users;
mod watching;

use std::process::ExitCode;

use etcd_client::Client;
use libtest_mimic::Arguments;
use quorlock_testbed::etcd::{Etcd, OfEtcd, installed, missing};
use quorlock_testbed::trials::conclude;

use crate::databases::{database, trials};

database!(Etcd);

impl members::Cluster for OfEtcd {
    fn three() -> Etcd {
        Etcd::three()
    }
}

fn main() -> ExitCode {
    let mut trials = trials![Etcd:
        databases::a_table_keeps_the_rules_of_a_store,
        databases::clients_of_one_table_exclude_each_other_and_are_woken,
        databases::a_server_that_restarts_keeps_its_claims,
        databases::a_server_that_stands_still_ends_no_claim_early,
        databases::a_majority_of_unlike_stores_survives_the_loss_of_one,
        addresses::what_is_wrong_with_an_address_is_said,
        addresses::what_is_wrong_with_a_server_is_said,
        addresses::a_client_is_made_from_an_address,
        addresses::a_majority_of_unlike_stores_is_made_from_addresses,
        addresses::keys_are_listed_in_pages,
        addresses::a_value_that_is_no_record_is_said_and_stays,
        members::a_hold_survives_the_death_of_the_leader,
        members::a_leader_that_stands_still_is_left,
        members::no_two_clients_hold_while_leaders_die,
        members::without_a_majority_no_claim_is_granted_and_that_is_said,
        clusters::without_a_majority_a_read_says_so,
        faults::a_write_without_a_reply_is_in_doubt,
        faults::a_write_to_a_server_that_is_down_was_not_executed,
        faults::a_write_to_a_server_that_stands_still_is_in_doubt,
        faults::a_write_whose_reply_is_lost_is_found_by_reading,
        faults::a_connection_that_has_ended_is_replaced,
        encrypted::a_server_under_tls_is_reached_by_the_options_of_the_driver,
        failing::a_server_that_stood_still_during_a_write_is_asked_what_became_of_it,
        failing::a_full_database_is_said,
        failing::what_is_told_of_writes_that_fill_the_database_is_true,
        failing::a_record_that_is_too_large_is_a_definite_error,
        locks::every_kind_of_lock_works,
        locks::a_leader_resigns_and_another_one_is_elected,
        locks::a_dead_holder_is_replaced_by_what_was_observed,
        restored::a_copy_that_returns_makes_no_client_overwrite_a_claim,
        users::what_is_wrong_with_a_user_is_said,
        users::a_token_that_a_restart_has_ended_is_replaced,
        watching::a_waiter_is_woken_at_once,
        watching::one_stream_reports_all_keys,
        watching::a_restart_is_a_gap,
        watching::a_stream_without_news_is_not_ended,
        watching::a_compaction_loses_no_report,
        watching::a_watch_that_the_server_ends_begins_again,
    ];
    let restored = databases::trial::<Etcd, _>(
        "a_cluster_that_is_restored_is_another_process",
        restored::a_cluster_that_is_restored_is_another_process,
    );
    trials.push(match installed("etcdctl") {
        Some(_) => restored,
        None => restored
            .with_kind("needs etcdctl: run tests/stores.sh")
            .with_ignored_flag(true),
    });
    conclude(&Arguments::from_args(), trials, missing()).exit_code()
}

/// Returns the driver, as an operator uses it.
async fn operator(server: &Etcd) -> Client {
    let place = format!("127.0.0.1:{}", server.port());
    Client::connect([place], None).await.unwrap()
}
