//! Measures what a Sentinel address costs without faults.

use quorlock_testbed::server_tests;
use quorlock_tests::clients::settings;
use quorlock_tests::steady::measure;

use super::stage::{client, group};

server_tests![in_the_steady_state_a_lock_costs_what_it_costs_at_a_plain_address];

async fn in_the_steady_state_a_lock_costs_what_it_costs_at_a_plain_address() {
    let group = group().await;
    let address = group.servers()[group.settle()].address();
    let plain = settings().connect(&address).await.unwrap();
    let control = settings().connect(&address).await.unwrap();
    let measured = measure(&[plain, client(&group).await, control]).await;
    measured.print("a Sentinel address");
    // A query to a sentinel for each lock would give a ratio of at least 2.
    assert!(measured.ratio < 1.3, "{measured:?}");
}
