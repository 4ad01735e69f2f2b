//! Tests the errors for proxies that lead to several servers. The small servers of this file answer as those proxies do
//! (Envoy 1.2x by its `command_splitter_impl.cc`; Twemproxy 0.5 by its list of commands, and its log of an unknown
//! command).

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use quorlock::Locks;
use quorlock::errors::NodeProblem;
use quorlock::redis::NodeConnectError;
use quorlock_testbed::server_tests;

server_tests![
    envoy_is_named_as_a_proxy,
    a_server_whose_info_was_renamed_is_told_apart_from_nothing,
    twemproxy_is_named_as_a_proxy,
    a_port_that_ends_every_connection_is_no_proxy,
    a_server_that_is_started_while_a_client_connects_is_no_proxy,
];

/// Returns the answer to a command, by its name in lower case; `None` ends the connection.
type Manner = fn(&str) -> Option<String>;

fn serve(manner: Manner) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || answer(stream, manner));
        }
    });
    format!("redis://127.0.0.1:{port}/")
}

/// Reads commands as clients send them, until one ends the connection.
fn answer(mut stream: TcpStream, manner: Manner) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    loop {
        line.clear();
        lines.read_line(&mut line).ok().filter(|read| 0 < *read)?;
        let words: usize = line.trim().strip_prefix('*')?.parse().ok()?;
        let mut name = None;
        for _ in 0..words {
            line.clear();
            lines.read_line(&mut line).ok()?;
            let length: usize = line.trim().strip_prefix('$')?.parse().ok()?;
            let mut word = vec![0; length + 2];
            std::io::Read::read_exact(&mut lines, &mut word).ok()?;
            let word = String::from_utf8_lossy(&word).trim().to_lowercase();
            name.get_or_insert(word);
        }
        let answer = manner(&name?)?;
        stream.write_all(answer.as_bytes()).ok()?;
    }
}

fn envoy(name: &str) -> Option<String> {
    Some(match name {
        "ping" => "+PONG\r\n".to_owned(),
        name => format!("-unsupported command '{name}'\r\n"),
    })
}

/// The answers of a server some of whose commands were renamed.
fn renamed(name: &str) -> Option<String> {
    Some(match name {
        "ping" => "+PONG\r\n".to_owned(),
        name => format!("-ERR unknown command '{name}', with args beginning with: \r\n"),
    })
}

fn twemproxy(name: &str) -> Option<String> {
    (name == "ping").then(|| "+PONG\r\n".to_owned())
}

fn hanging_up(_: &str) -> Option<String> {
    None
}

async fn problem(manner: Manner) -> NodeConnectError {
    let error = Locks::connect(serve(manner)).await.unwrap_err();
    match error {
        quorlock::ConnectError::Nodes { mut problems, .. } => match problems.remove(0) {
            NodeProblem::Redis(problem) => problem,
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    }
}

fn assert_is_proxy(problem: &NodeConnectError) {
    assert!(
        matches!(problem, NodeConnectError::Proxy { .. }),
        "{problem:?}"
    );
    let text = problem.to_string();
    assert!(
        text.contains("give the address of the server behind it"),
        "{text}"
    );
}

async fn envoy_is_named_as_a_proxy() {
    let problem = problem(envoy).await;
    assert_is_proxy(&problem);
    assert!(
        problem.to_string().contains("unsupported command"),
        "{problem}"
    );
}

async fn a_server_whose_info_was_renamed_is_told_apart_from_nothing() {
    let problem = problem(renamed).await;
    assert_is_proxy(&problem);
    assert!(
        problem
            .to_string()
            .contains("the server has no command info"),
        "{problem}"
    );
}

async fn twemproxy_is_named_as_a_proxy() {
    assert_is_proxy(&problem(twemproxy).await);
}

async fn a_port_that_ends_every_connection_is_no_proxy() {
    let problem = problem(hanging_up).await;
    assert!(
        matches!(problem, NodeConnectError::Unreachable { .. }),
        "{problem:?}"
    );
    assert!(problem.to_string().contains("rediss://"), "{problem}");
}

/// A server that is started after the first connection was made, as a primary that takes over.
fn starting(name: &str) -> Option<String> {
    static IS_UP: AtomicBool = AtomicBool::new(false);
    IS_UP.swap(true, Ordering::Relaxed).then(|| match name {
        "ping" => "+PONG\r\n".to_owned(),
        _ => "-LOADING Redis is loading the dataset in memory\r\n".to_owned(),
    })
}

/// The error must not be final, so that clients that wait for their servers connect again.
async fn a_server_that_is_started_while_a_client_connects_is_no_proxy() {
    let problem = problem(starting).await;
    assert!(
        matches!(problem, NodeConnectError::Unreachable { .. }),
        "{problem:?}"
    );
    assert!(!problem.is_final(), "{problem}");
}
