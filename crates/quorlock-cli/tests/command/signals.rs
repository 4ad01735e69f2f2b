//! Signals are passed to the command, and end a wait.

use std::process::Stdio;

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::wait_until;
use rustix::process::Signal;

use super::support::{Folder, HeldElsewhere, lives, pid_of, quorlock_on, run, send, stat};

server_tests![
    every_signal_is_passed_on,
    a_command_that_dies_of_a_signal_that_was_passed_on_says_so,
    a_wait_ends_with_the_signal,
    what_nohup_ignores_stays_ignored,
    a_group_that_is_stopped_goes_on,
];

async fn every_signal_is_passed_on() {
    let server = Server::start();
    let folder = Folder::new();
    let script = "for s in INT TERM HUP QUIT USR1 USR2; do trap \"echo $s >$s\" $s; done
        trap 'exit 6' WINCH
        echo $$ >command; while :; do sleep 0.01; done";
    let mut command = run(&server, &["a"], script);
    let mut wrapper = command.current_dir(folder.path()).spawn().unwrap();
    folder.pid("command");
    for (signal, name) in [
        (Signal::INT, "INT"),
        (Signal::TERM, "TERM"),
        (Signal::HUP, "HUP"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
    ] {
        send(pid_of(&wrapper), signal);
        assert_eq!(folder.line(name), name);
    }
    send(pid_of(&wrapper), Signal::WINCH);
    assert_eq!(wrapper.wait().unwrap().code(), Some(6));
}

async fn a_command_that_dies_of_a_signal_that_was_passed_on_says_so() {
    let server = Server::start();
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let folder = Folder::new();
        let mut command = quorlock_on(&server);
        command.args([
            "run",
            "a",
            "--",
            "sh",
            "-c",
            "echo $$ >command; exec sleep 100",
        ]);
        let mut wrapper = command.current_dir(folder.path()).spawn().unwrap();
        folder.pid("command");
        send(pid_of(&wrapper), signal);
        assert_eq!(wrapper.wait().unwrap().code(), Some(code));
        assert_eq!(server.command::<i64>(&["EXISTS", "a"]), 0);
    }
}

async fn a_wait_ends_with_the_signal() {
    let server = Server::start();
    let _holder = HeldElsewhere::new(&server, "a");
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut command = run(&server, &["--json", "a"], "echo inside");
        let mut waits = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufReader::new(waits.stderr.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
        assert!(line.contains("waiting"), "{line}");
        send(pid_of(&waits), signal);
        let output = waits.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), output.stdout),
            (Some(code), Vec::new())
        );
    }
}

async fn what_nohup_ignores_stays_ignored() {
    let server = Server::start();
    let folder = Folder::new();
    let mut command = std::process::Command::new("sh");
    command
        .env("QUORLOCK_NODES", server.address())
        .args([
            "-c",
            "trap '' HUP; exec \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_quorlock"),
        ])
        .args(["run", "a", "--", "sh", "-c"])
        .arg("echo $$ >command; while ! [ -e end ]; do sleep 0.01; done; exit 3");
    let mut wrapper = command.current_dir(folder.path()).spawn().unwrap();
    let group = folder.pid("command");
    send(pid_of(&wrapper), Signal::HUP);
    send(group, Signal::HUP);
    std::fs::write(folder.file("end"), "").unwrap();
    assert_eq!(wrapper.wait().unwrap().code(), Some(3));
}

async fn a_group_that_is_stopped_goes_on() {
    let server = Server::start();
    let folder = Folder::new();
    // The script starts no other program while it waits: a shell does not stop between `vfork` and `exec`.
    let script = "mkfifo end; echo $$ >command; read -r line <end; exit 3";
    let mut command = run(&server, &["a"], script);
    let mut wrapper = command.current_dir(folder.path()).spawn().unwrap();
    let group = folder.pid("command");
    let state = || stat(group.as_raw_nonzero().get()).map(|process| process.state);
    send(group, Signal::STOP);
    wait_until("it is stopped", || state() == Some('T'));
    send(pid_of(&wrapper), Signal::CONT);
    wait_until("it continues", || state() != Some('T'));
    assert!(lives(group));
    std::fs::write(folder.file("end"), "\n").unwrap();
    assert_eq!(wrapper.wait().unwrap().code(), Some(3));
}
