//! Commands that share the permits of a semaphore.

use std::process::Stdio;

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use serde_json::Value;

use super::support::{HeldElsewhere, all_end_well, end_of, quorlock, quorlock_on, run};

server_tests![
    of_twenty_commands_at_most_three_run_at_once,
    a_command_gets_the_name_and_the_token_of_its_permit,
    permits_that_others_hold_are_75_and_are_waited_for,
    a_permit_is_found_and_freed_by_its_name,
    numbers_and_options_that_do_not_fit_are_64,
];

/// Each of three folders cannot be created twice. A command that finds none to create ends with 99.
const ONE_OF_THREE: &str = "for place in 1 2 3; do
  if mkdir $place 2>/dev/null; then sleep 0.05; rmdir $place; exit 0; fi
done
exit 99";

async fn of_twenty_commands_at_most_three_run_at_once() {
    let server = Server::start();
    all_end_well(20, &server, &["--permits", "3", "load"], ONE_OF_THREE);
}

async fn a_command_gets_the_name_and_the_token_of_its_permit() {
    let server = Server::start();
    let script = "echo \"$QUORLOCK_NAME $QUORLOCK_FENCING_TOKEN\"";
    let mut command = run(&server, &["--json", "--permits", "1", "load"], script);
    let (code, printed, said) = end_of(&mut command);
    assert_eq!(code, 0, "{said}");
    let events = said
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let acquired = events
        .into_iter()
        .find(|event| event["event"] == "acquired")
        .unwrap();
    assert_eq!(acquired["name"], "{load}:permit:0");
    assert_eq!(
        printed,
        format!("{{load}}:permit:0 {}\n", acquired["token"])
    );
}

async fn permits_that_others_hold_are_75_and_are_waited_for() {
    let server = Server::start();
    let permits = ["{load}:permit:0", "{load}:permit:1"];
    let [first, _second] = permits.map(|permit| HeldElsewhere::new(&server, permit));
    let words = ["-n", "--permits", "2", "load"];
    let (code, printed, said) = end_of(&mut run(&server, &words, "echo inside"));
    let text = "quorlock: load: others hold all 2 permits\n";
    assert_eq!((code, printed.as_str(), said.as_str()), (75, "", text));
    let words = ["-w", "200ms", "-E", "3", "--permits", "2", "load"];
    let (code, _, said) = end_of(&mut run(&server, &words, "echo inside"));
    assert_eq!(code, 3);
    assert!(
        said.contains("all 2 permits of \"load\": held by others"),
        "{said}"
    );
    // A larger number counts at once.
    let words = ["-n", "--permits", "3", "load"];
    let (code, printed, _) = end_of(&mut run(&server, &words, "echo $QUORLOCK_NAME"));
    assert_eq!((code, printed.as_str()), (0, "{load}:permit:2\n"));
    let mut waits = run(
        &server,
        &["-w", "1m", "--permits", "2", "load"],
        "echo inside",
    );
    let waits = waits.stdout(Stdio::piped()).spawn().unwrap();
    drop(first);
    assert_eq!(waits.wait_with_output().unwrap().stdout, b"inside\n");
}

async fn a_permit_is_found_and_freed_by_its_name() {
    let server = Server::start();
    let inside = format!(
        "{q} inspect \"$QUORLOCK_NAME\"; {q} list; {q} force-release \"$QUORLOCK_NAME\"",
        q = env!("CARGO_BIN_EXE_quorlock")
    );
    let words = ["--on-loss", "ignore", "--permits", "1", "load"];
    let (code, printed, said) = end_of(&mut run(&server, &words, &inside));
    assert_eq!(code, 76, "{said}");
    assert!(printed.contains("{load}:permit:0: held by "), "{printed}");
    let (code, _, said) = end_of(quorlock_on(&server).args(["inspect", "{load}:permit:0"]));
    assert!(code == 0 || code == 75, "{said}");
}

async fn numbers_and_options_that_do_not_fit_are_64() {
    for words in [
        &["--permits", "0"][..],
        &["--permits", "1001"],
        &["--permits", "some"],
        &["--permits", "2", "--fair"],
        &["--permits", "2", "--read"],
        &["--permits", "2", "--write"],
        &["--permits", "2", "--also", "b"],
    ] {
        let mut command = quorlock();
        let command = command.arg("run").args(words);
        let (code, _, said) = end_of(command.args(["a", "--", "true"]));
        assert_eq!(code, 64, "{words:?}: {said}");
        assert!(said.contains("--permits"), "{words:?}: {said}");
    }
    let server = Server::start();
    let long = "x".repeat(500);
    let (code, _, said) = end_of(&mut run(&server, &["--permits", "2", &long], "true"));
    assert_eq!(code, 64, "{said}");
    assert!(said.contains("at most 499 are allowed"), "{said}");
}
