//! Runs the conformance files of the protocol on our scripts, on a real server and on the embedded interpreter.

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_tests::conformance::files::{ServerBench, agree_on, read};
use quorlock_tests::simulated::Simulated;

server_tests![
    the_scripts_on_a_real_server_do_what_the_files_say,
    the_scripts_in_the_embedded_interpreter_do_what_the_files_say,
];

async fn the_scripts_on_a_real_server_do_what_the_files_say() {
    let server = Server::start();
    all_agree(server.port()).await;
}

async fn the_scripts_in_the_embedded_interpreter_do_what_the_files_say() {
    let server = Simulated::start();
    all_agree(server.ports()[0]).await;
}

async fn all_agree(port: u16) {
    let mut bench = ServerBench::at(port);
    let mut run = 0;
    for (topic, sequences) in read() {
        for sequence in sequences {
            let agreed = agree_on(&sequence, &mut bench).await;
            let is_run = agreed.unwrap_or_else(|error| panic!("{topic}.json: {error}"));
            assert!(is_run, "a server can run every sequence");
            run += 1;
        }
    }
    println!("{run} sequences");
    assert!(100 <= run, "{run}");
}
