//! Runs the example of the page "Lock behind Sentinel", word for word.

use std::process::Command;

use quorlock_testbed::server_tests;
use quorlock_tests::page::{block, masked};

use super::stage::group;

server_tests![the_example_of_the_page_runs_on_a_group];

const PAGE: &str = include_str!("../../../docs/src/how-to/sentinel.md");

async fn the_example_of_the_page_runs_on_a_group() {
    let program = include_str!("../../src/bin/behind_sentinels.rs");
    let (_, code) = program.split_once("\n\n").unwrap();
    assert_eq!(block(PAGE, "rust,no_run"), code);
    let group = group().await;
    let program = env!("CARGO_BIN_EXE_behind_sentinels");
    let output = Command::new(program).arg(group.address()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        masked(&printed),
        masked(block(PAGE, "text behind sentinels"))
    );
}
