//! `quorlock-sim serve`, as used from a terminal.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// A command that serves. It is killed if the test fails. Otherwise it ends by itself.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorlock-sim"));
    command.arg("serve").args(arguments);
    command
}

fn serve(arguments: &[&str]) -> (Serving, BufReader<ChildStdout>) {
    let mut child = command(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let said = BufReader::new(child.stdout.take().expect("its output"));
    (Serving(child), said)
}

fn line(said: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    said.read_line(&mut line).expect("text");
    line
}

fn ask(port: u64, request: &str, len: usize) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", u16::try_from(port).expect("a port")))
        .expect("it listens");
    stream.write_all(request.as_bytes()).expect("it listens");
    let mut answer = vec![0; len];
    stream.read_exact(&mut answer).expect("it answers");
    String::from_utf8(answer).expect("text")
}

fn refused(arguments: &[&str]) -> String {
    let Output { status, stderr, .. } = command(arguments).output().expect("it starts");
    assert_eq!(status.code(), Some(1));
    String::from_utf8(stderr).expect("text")
}

#[cfg(unix)]
#[test]
fn it_prints_its_ports_answers_and_ends_when_it_is_interrupted() {
    use rustix::process::{Pid, Signal, kill_process};
    let (mut serving, mut said) = serve(&["--nodes", "2", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&line(&mut said)).unwrap();
    let ports = told["ports"].as_array().unwrap();
    assert_eq!(ports.len(), 2);
    for port in ports {
        let port = port.as_u64().unwrap();
        assert_eq!(ask(port, "SET a 1\r\nGET a\r\n", 12), "+OK\r\n$1\r\n1\r\n");
    }
    let pid = Pid::from_raw(i32::try_from(serving.0.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(serving.0.wait().unwrap().code(), Some(0));
}

#[test]
fn it_tells_what_goes_wrong() {
    let (_serving, mut said) = serve(&[
        "--fault",
        "kind = 'flush', at = '1ms'",
        "--password",
        "hunter2",
    ]);
    let node = line(&mut said);
    let address = node
        .trim()
        .strip_prefix("node 0: redis://127.0.0.1:")
        .unwrap();
    let port = address.trim_end_matches('/').parse().unwrap();
    assert_eq!(
        line(&mut said),
        "1ms: node 0 loses all its keys (FLUSHALL)\n"
    );
    assert_eq!(
        ask(port, "PING\r\nAUTH hunter2\r\nPING\r\n", 46)
            .lines()
            .last(),
        Some("+PONG")
    );
}

#[test]
fn what_cannot_be_served_is_refused() {
    assert!(
        refused(&["--fault", "kind = 'earthquake', at = '1s'"]).contains("kind = 'pause-node'")
    );
    assert!(
        refused(&["--fault", "kind = 'flush', at = '1s', node = 1"]).contains("there is no node 1")
    );
    assert!(refused(&["--port", "65535", "--nodes", "2"]).contains("2 nodes need 2 ports"));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    assert!(refused(&["--port", &port]).contains("choose another --port"));
}
