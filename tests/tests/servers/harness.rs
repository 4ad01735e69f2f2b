//! Tests the code that starts servers for the tests.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use quorlock_testbed::server::{Server, wait_until_gone};
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::wait_until;

/// If this variable is set, this program starts a server, prints which, and waits to be killed.
const HOLD: &str = "QUORLOCK_TEST_HOLDS_A_SERVER";

server_tests![
    a_killed_test_process_leaves_no_server,
    a_killed_test_process_leaves_no_stopped_server,
    a_server_keeps_its_port_and_its_options_over_a_restart,
    a_server_keeps_its_data_over_a_restart_if_told_to,
    a_dropped_server_leaves_nothing,
    a_stopped_server_can_go_on,
    a_server_listens_on_a_unix_socket_too,
];

/// Runs a server until this process is killed, if the variable requests that: the other side of the first two tests.
pub(crate) fn hold_a_server_if_asked() {
    let Ok(how) = std::env::var(HOLD) else {
        return;
    };
    let server = Server::start();
    if how == "stopped" {
        server.pause();
    }
    println!("{} {}", server.pid(), server.dir().display());
    let _ = std::io::stdin().read(&mut [0]);
    unreachable!("this process is killed before its input ends");
}

async fn a_killed_test_process_leaves_no_server() {
    kill_a_process_that_holds_a_server("running");
}

async fn a_killed_test_process_leaves_no_stopped_server() {
    kill_a_process_that_holds_a_server("stopped");
}

fn kill_a_process_that_holds_a_server(how: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(HOLD, how)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let (pid, dir) = line.trim().split_once(' ').unwrap();
    let dir = PathBuf::from(dir);
    assert!(dir.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until_gone(pid.parse().unwrap());
    wait_until("its folder is gone, too", || !dir.exists());
}

async fn a_server_keeps_its_port_and_its_options_over_a_restart() {
    let server = Server::start_with(&["--maxmemory-policy", "allkeys-lru"]);
    let (port, pid) = (server.port(), server.pid());
    server.command::<()>(&["SET", "key", "value"]);
    server.restart();
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), pid);
    assert_eq!(server.command::<Option<String>>(&["GET", "key"]), None);
    let policy: Vec<String> = server.command(&["CONFIG", "GET", "maxmemory-policy"]);
    assert_eq!(policy[1], "allkeys-lru");
}

async fn a_server_keeps_its_data_over_a_restart_if_told_to() {
    let server = Server::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    server.command::<()>(&["SET", "key", "value"]);
    server.kill();
    server.restart();
    assert_eq!(server.command::<String>(&["GET", "key"]), "value");
}

async fn a_dropped_server_leaves_nothing() {
    let server = Server::start();
    let (pid, dir) = (server.pid(), server.dir());
    drop(server);
    wait_until_gone(pid);
    assert!(!dir.exists());
}

async fn a_stopped_server_can_go_on() {
    let server = Server::start();
    server.command::<()>(&["SET", "key", "value"]);
    server.pause();
    server.resume();
    assert_eq!(server.command::<String>(&["GET", "key"]), "value");
}

async fn a_server_listens_on_a_unix_socket_too() {
    let server = Server::start();
    let address = format!("unix://{}", server.socket().display());
    let mut connection = redis::Client::open(address)
        .unwrap()
        .get_connection()
        .unwrap();
    let answer: String = redis::cmd("PING").query(&mut connection).unwrap();
    assert_eq!(answer, "PONG");
}
