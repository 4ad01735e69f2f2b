//! Locks in a table of a real PostgreSQL server. Without one they are listed as ignored.

#![allow(
    clippy::disallowed_methods,
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
#[path = "../../examples/checked_in.rs"]
#[allow(dead_code, reason = "the example has a main function of its own")]
mod shop;
#[path = "../support/mod.rs"]
mod support;

use std::future::poll_fn;
use std::process::ExitCode;

use libtest_mimic::Arguments;
use quorlock_testbed::postgres::{Postgres, missing};
use quorlock_testbed::trials::conclude;
use tokio_postgres::{AsyncMessage, NoTls};

use crate::databases::{SECOND, bare, database, patient, replicated, store, trials};

database!(Postgres);
replicated!(Postgres);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if_eq(customers::BUY).is_some() {
        check_in::customer(arguments);
        return ExitCode::SUCCESS;
    }
    let trials = trials![Postgres:
        databases::a_table_keeps_the_rules_of_a_store,
        databases::clients_of_one_table_exclude_each_other_and_are_woken,
        a_write_is_told_only_if_a_client_listens,
        databases::a_server_that_restarts_keeps_its_claims,
        databases::a_server_that_stands_still_ends_no_claim_early,
        databases::a_replica_takes_no_writes_and_is_another_process_once_promoted,
        databases::records_are_swept_and_no_version_comes_back,
        databases::a_majority_of_unlike_stores_survives_the_loss_of_one,
        databases::errors_say_what_to_do,
        databases::a_client_is_made_from_an_address,
        addresses::a_majority_of_a_table_a_file_and_a_redis_server_survives_the_loss_of_one,
        addresses::locks_of_several_stores_are_taken_together,
        addresses::what_is_wrong_with_an_address_is_said,
        addresses::what_is_wrong_with_a_database_is_said,
        addresses::a_record_that_is_none_is_said,
        addresses::an_address_of_redis_at_the_port_of_the_server_is_an_error,
        encrypted::a_server_under_tls_is_reached_by_the_connector_of_the_driver,
        check_in::a_holder_that_was_stopped_cannot_commit,
        check_in::without_the_check_a_piece_is_sold_twice,
        check_in::every_kind_of_lock_can_be_checked_in_and_none_that_is_gone,
        check_in::a_claim_that_is_checked_in_stays_until_the_commit,
        check_in::what_cannot_be_checked_in_is_said,
    ];
    conclude(&Arguments::from_args(), trials, missing()).exit_code()
}

/// The server commits transactions with messages one after another, so a write that no client waits for sends none.
async fn a_write_is_told_only_if_a_client_listens(server: Postgres) {
    let held = patient(store(&server).await);
    let waiting = patient(bare(&server));
    let (ear, mut connection) = tokio_postgres::connect(&server.address(), NoTls)
        .await
        .unwrap();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(notice) = message {
                let _ = tell.send(notice.payload().to_owned());
            }
        }
    });
    ear.batch_execute("LISTEN quorlock").await.unwrap();
    for _ in 0..3 {
        let guard = held.lock("a").acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    ear.batch_execute("NOTIFY quorlock, 'end'").await.unwrap();
    assert_eq!(told.recv().await.as_deref(), Some("end"));
    let guard = held.lock("a").acquire().await.unwrap();
    let waiter = tokio::spawn(async move { waiting.lock("a").acquire().await.unwrap() });
    let listens = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    while ear.query_one(listens, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::time::sleep(SECOND / 50).await;
    }
    guard.release().await.unwrap();
    assert!(told.recv().await.unwrap().starts_with("61 quorlock/1"));
    waiter.await.unwrap().release().await.unwrap();
}
