//! `quorlock doctor` on real servers that are healthy or not.

pub(crate) mod several;
pub(crate) mod trouble;

use std::process::Command;

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use serde_json::Value;

use super::support::{HeldElsewhere, end_of, quorlock};

server_tests![
    a_healthy_server_has_no_doubtful_line,
    only_what_a_lock_leaves_is_left,
    round_trips_are_compared_with_the_lease,
    a_slow_command_is_told_without_its_arguments,
    a_name_that_others_hold_is_not_wrong,
    the_page_shows_what_is_printed,
    the_page_shows_the_advice,
];

const PAGE: &str = include_str!("../../../../docs/src/how-to/doctor.md");

const LINES: [&str; 11] = [
    "connection",
    "version",
    "role",
    "persistence",
    "memory",
    "rights",
    "clock",
    "latency",
    "slow log",
    "connections",
    "trust",
];

/// What a healthy server needs to keep its claims.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// The objects that `doctor --json` prints: one for each node, and the last for all of them.
struct Examined {
    code: i64,
    nodes: Vec<Value>,
    whole: Value,
}

fn doctor(address: &str, words: &[&str]) -> Examined {
    let mut command = on(address);
    examined(command.arg("doctor").arg("--json").args(words))
}

fn examined(command: &mut Command) -> Examined {
    let (code, printed, said) = end_of(command);
    let lines = printed
        .lines()
        .map(|line| serde_json::from_str(line).expect(line));
    let mut nodes: Vec<Value> = lines.collect();
    let whole = nodes.pop().unwrap_or_else(|| panic!("{code}: {said}"));
    assert_eq!(said, "");
    assert_eq!(whole["code"], code);
    Examined {
        code: code.into(),
        nodes,
        whole,
    }
}

fn on(address: &str) -> Command {
    let mut command = quorlock();
    command.env("QUORLOCK_NODES", address);
    command
}

/// The line about a subject. Its text comes first, and what to do after it.
#[track_caller]
fn line(of: &Value, subject: &str) -> (String, String, Vec<String>) {
    let lines = of["lines"].as_array().unwrap();
    let found = lines.iter().find(|line| line["subject"] == subject);
    let found = found.unwrap_or_else(|| panic!("no line about {subject}: {of}"));
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let cures = found["do"].as_array().unwrap().iter().map(word);
    (word(&found["state"]), word(&found["text"]), cures.collect())
}

/// Checks the state of a line and some words of it.
#[track_caller]
fn says(of: &Value, subject: &str, state: &str, words: &str) {
    let (found, text, _) = line(of, subject);
    assert_eq!(found, state, "{subject}: {text}");
    assert!(text.contains(words), "{text}");
}

/// Sends the commands that a line says.
fn cure(server: &Server, of: &Value, subject: &str) {
    let (_, text, cures) = line(of, subject);
    assert!(!cures.is_empty(), "{text}");
    for cure in cures {
        server.command::<()>(&cure.split(' ').collect::<Vec<_>>());
    }
}

fn three() -> (Vec<Server>, String) {
    let servers: Vec<Server> = (0..3).map(|_| Server::start()).collect();
    let addresses: Vec<String> = servers.iter().map(Server::address).collect();
    (servers, addresses.join(","))
}

/// Has a lock held on new servers once, so that they are trusted from now on.
fn trusted(addresses: &str) {
    let mut run = on(addresses);
    let (code, _, said) = end_of(run.args(["run", "--trust-fresh-nodes", "a", "--", "true"]));
    assert_eq!(code, 0, "{said}");
}

async fn a_healthy_server_has_no_doubtful_line() {
    let server = Server::start_with(&DURABLE);
    let found = doctor(&server.address(), &[]);
    assert_eq!((found.code, found.nodes.len()), (0, 1));
    let node = &found.nodes[0];
    let lines = node["lines"].as_array().unwrap();
    let subjects: Vec<&Value> = lines.iter().map(|line| &line["subject"]).collect();
    assert_eq!(subjects, LINES.map(Value::from).iter().collect::<Vec<_>>());
    for line in lines.iter().chain(found.whole["lines"].as_array().unwrap()) {
        assert_eq!(line["state"], "ok", "{line}");
    }
    assert_eq!(
        (&node["state"], &found.whole["state"]),
        (&"ok".into(), &"ok".into())
    );
    says(
        &found.whole,
        "lock",
        "ok",
        "quorlock/doctor was acquired and released in",
    );
    says(
        &found.whole,
        "votes",
        "ok",
        "1 of 1 count; a lock needs 1: none may fail",
    );
    let facts = &node["servers"][0];
    assert_eq!(facts["round_trips"]["count"], 20);
    assert_eq!(facts["config"]["appendfsync"], "always");
    assert_eq!(facts["info"]["role"], "master");
    // Both clocks are that of this machine.
    let clock = &facts["clock"];
    let [ahead, within] = ["ahead_us", "within_us"].map(|field| clock[field].as_i64().unwrap());
    assert!(ahead.abs() <= within + 1_000, "{clock}");
    let [faster, within] = ["faster_ppm", "within_ppm"].map(|field| clock[field].as_i64().unwrap());
    assert!(faster.abs() <= within + 20_000, "{clock}");

    let (code, text, said) = end_of(on(&server.address()).arg("doctor"));
    assert_eq!((code, said.as_str()), (0, ""));
    assert!(
        !text.contains("doubtful") && !text.contains('\x1b'),
        "{text}"
    );
    assert!(
        text.contains("\n  ok        role         primary, without replicas\n"),
        "{text}"
    );
}

async fn only_what_a_lock_leaves_is_left() {
    let (servers, addresses) = three();
    let found = doctor(&addresses, &["--trust-fresh-nodes"]);
    assert_eq!(found.code, 0, "{}", found.whole);
    says(
        &found.whole,
        "votes",
        "ok",
        "3 of 3 count; a lock needs 2: 1 may fail",
    );
    says(&found.whole, "clocks", "ok", "apart");
    says(&found.whole, "trust", "doubtful", "trust_fresh_nodes is on");
    for server in &servers {
        let mut keys: Vec<String> = server.command(&["KEYS", "*"]);
        keys.sort();
        assert_eq!(
            keys,
            ["quorlock_marker", "redisson_lock_token:{quorlock/doctor}"]
        );
        for key in &keys {
            assert!(0 < server.command::<i64>(&["PTTL", key]), "{key}");
        }
    }
    // The nodes have their markers now, and another name is as good.
    let found = doctor(&addresses, &["--name", "orders/1"]);
    assert_eq!(found.code, 0);
    says(&found.nodes[0], "trust", "ok", "it votes");
    assert_eq!(found.whole["lock"]["name"], "orders/1");
    // New servers are not marked by a doctor that must not trust them.
    let (servers, addresses) = three();
    let found = doctor(&addresses, &[]);
    assert_eq!(found.code, 69);
    says(
        &found.whole,
        "votes",
        "wrong",
        "0 of 3 count, 3 in quarantine for 60 s",
    );
    says(
        &found.nodes[0],
        "trust",
        "doubtful",
        "it is new, or has forgotten everything",
    );
    for server in &servers {
        assert_eq!(server.command::<i64>(&["DBSIZE"]), 0);
    }
}

async fn round_trips_are_compared_with_the_lease() {
    let server = Server::start_with(&DURABLE);
    let found = doctor(&server.address(), &["--lease", "5ms"]);
    let (_, text, _) = line(&found.nodes[0], "latency");
    let words = "a server has 1.7 ms to answer, with a lease of 5 ms";
    assert!(text.contains(words), "{text}");
}

async fn a_slow_command_is_told_without_its_arguments() {
    let server = Server::start_with(&[&DURABLE[..], &["--slowlog-log-slower-than", "0"]].concat());
    server.command::<String>(&["PING"]);
    says(
        &doctor(&server.address(), &[]).nodes[0],
        "slow log",
        "ok",
        "the longest is ",
    );
    // A script that takes 30 ms, where a server has 25 ms to answer.
    let busy = "local t = redis.call('TIME') local e = t[1] * 1000000 + t[2] + 30000 repeat t = redis.call('TIME') \
                until t[1] * 1000000 + t[2] >= e";
    let _: Option<String> = server.command(&["EVAL", busy, "0"]);
    let found = doctor(&server.address(), &["--lease", "500ms"]);
    says(&found.nodes[0], "slow log", "doubtful", "EVAL took 3");
    let facts = &found.nodes[0]["servers"][0];
    assert_eq!(facts["slowest"]["command"], "EVAL");
    assert!(
        !found.nodes[0].to_string().contains("repeat"),
        "arguments may be secret"
    );
}

async fn a_name_that_others_hold_is_not_wrong() {
    let server = Server::start_with(&DURABLE);
    let _holder = HeldElsewhere::new(&server, "held");
    let found = doctor(&server.address(), &["--name", "held"]);
    assert_eq!(found.code, 0);
    says(&found.whole, "lock", "ok", "held is held by others");
}

/// Returns the block of the page that has this first line.
fn block(says: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&format!("```{says}\n")).expect(says);
    rest.split_once("```").unwrap().0
}

/// A text without its numbers and their units.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    for character in text.chars() {
        match character {
            '0'..='9' | '.' if shape.ends_with('#') => {}
            '0'..='9' => shape.push('#'),
            other => shape.push(other),
        }
    }
    for unit in ["µs", "ms", "s"] {
        shape = shape.replace(&format!("# {unit}"), "#");
    }
    shape.replace("-#", "+#")
}

async fn the_page_shows_what_is_printed() {
    let limited = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let server = Server::start_with(&limited);
    let (code, printed, said) = end_of(on(&server.address()).arg("doctor"));
    assert_eq!((code, said.as_str()), (0, ""));
    assert_eq!(shape(&printed), shape(block("text doctor")), "{printed}");
    let (_servers, addresses) = three();
    let (code, printed, _) = end_of(on(&addresses).arg("doctor"));
    assert_eq!(code, 69);
    let (_, together) = printed.split_once("\ntogether\n").unwrap();
    let together = format!("together\n{together}");
    assert_eq!(
        shape(&together),
        shape(block("text doctor new")),
        "{together}"
    );
}

async fn the_page_shows_the_advice() {
    let says = "text advise\n$ quorlock ";
    let (_, rest) = PAGE.split_once(&format!("```{says}")).expect(says);
    let (words, expected) = rest.split_once('\n').unwrap();
    let (expected, _) = expected.split_once("```").unwrap();
    let (code, printed, said) = end_of(quorlock().args(words.split(' ')));
    assert_eq!((code, said.as_str()), (0, ""));
    assert_eq!(printed, expected);
    let (code, table, _) = end_of(quorlock().arg("advise"));
    assert_eq!((code, table.contains("one Sentinel group")), (0, true));
    let (code, _, said) =
        end_of(quorlock().args(["advise", "--store", "sqlite", "--failover", "cluster"]));
    assert_eq!(code, 64, "{said}");
}
