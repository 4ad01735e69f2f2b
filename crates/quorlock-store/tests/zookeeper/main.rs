//! Locks in znodes of a real ZooKeeper ensemble. Without one they are listed as ignored.

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
    reason = "ZooKeeper has no tables, and no replicas to promote"
)]
mod databases;
mod failing;
#[path = "../support/faults.rs"]
#[allow(dead_code, reason = "a session goes on when a server is back")]
mod faults;
#[path = "../support/members.rs"]
mod members;
#[path = "../support/mod.rs"]
mod support;
mod watching;

use std::process::ExitCode;

use libtest_mimic::Arguments;
use quorlock_testbed::trials::conclude;
use quorlock_testbed::zookeeper::{OfZookeeper, Zookeeper, missing};
use zookeeper_client::Client;

use crate::databases::{database, trials};
use crate::faults::copied;

database!(Zookeeper);
copied!(Zookeeper);

impl members::Cluster for OfZookeeper {
    fn three() -> Zookeeper {
        Zookeeper::three()
    }
}

fn main() -> ExitCode {
    let trials = trials![Zookeeper:
        databases::a_table_keeps_the_rules_of_a_store,
        databases::clients_of_one_table_exclude_each_other_and_are_woken,
        databases::a_server_that_restarts_keeps_its_claims,
        databases::a_server_that_stands_still_ends_no_claim_early,
        databases::a_majority_of_unlike_stores_survives_the_loss_of_one,
        addresses::what_is_wrong_with_an_address_is_said,
        addresses::what_is_wrong_with_a_server_is_said,
        addresses::a_client_is_made_from_an_address,
        addresses::two_prefixes_of_one_ensemble_are_one_store,
        addresses::a_user_keeps_its_znodes_to_itself,
        addresses::keys_are_listed_in_pages,
        addresses::a_znode_that_is_no_record_is_said_and_stays,
        members::a_hold_survives_the_death_of_the_leader,
        members::a_leader_that_stands_still_is_left,
        members::no_two_clients_hold_while_leaders_die,
        members::without_a_majority_no_claim_is_granted_and_that_is_said,
        faults::a_write_without_a_reply_is_in_doubt,
        faults::a_write_whose_reply_is_lost_is_found_by_reading,
        faults::a_connection_that_has_ended_is_replaced,
        faults::a_copy_that_returns_makes_no_client_overwrite_a_claim,
        failing::a_session_that_has_expired_is_replaced,
        failing::a_prefix_that_was_deleted_is_made_again,
        failing::a_record_that_was_deleted_makes_no_client_overwrite_a_claim,
        watching::a_waiter_is_woken_at_once,
        watching::a_change_during_a_restart_is_reported,
        watching::a_deletion_is_reported,
    ];
    conclude(&Arguments::from_args(), trials, missing()).exit_code()
}

/// Returns the driver, as an operator uses it.
async fn operator(server: &Zookeeper) -> Client {
    let members = server.address();
    let members = members.trim_start_matches("zk://");
    Client::connect(members).await.unwrap()
}
