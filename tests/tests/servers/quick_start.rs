//! Runs the program of the README, word for word.

use std::process::{Command, Output};

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_tests::page::{block, masked};

server_tests![
    the_readme_shows_this_program,
    the_quick_start_prints_what_the_readme_says,
    the_quick_start_without_a_server_says_so,
];

const README: &str = include_str!("../../../README.md");

fn run(address: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_quick_start");
    Command::new(program).arg(address).output().unwrap()
}

async fn the_readme_shows_this_program() {
    let program = include_str!("../../src/bin/quick_start.rs");
    let (_, code) = program.split_once("\n\n").unwrap();
    assert_eq!(block(README, "rust,no_run"), code);
}

async fn the_quick_start_prints_what_the_readme_says() {
    let server = Server::start();
    let output = run(&server.address());
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(masked(&printed), masked(block(README, "text quick start")));
}

async fn the_quick_start_without_a_server_says_so() {
    let server = Server::start();
    let address = server.address();
    server.kill();
    let output = run(&address);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = String::from_utf8(output.stderr).unwrap();
    let said = block(README, "text without a server");
    assert_eq!(masked(&printed), masked(said));
}
