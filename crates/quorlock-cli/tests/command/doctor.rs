//! `quorlock doctor` on real servers that are healthy or not.

use std::process::Command;
use std::time::{Duration, Instant};

use quorlock_testbed::cluster::Cluster;
use quorlock_testbed::mysql::Mysql;
use quorlock_testbed::postgres::Postgres;
use quorlock_testbed::sentinels::SentinelGroup;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::wait_until;
use serde_json::Value;

use super::support::{Folder, HeldElsewhere, end_of, quorlock};

server_tests![
    a_healthy_server_has_no_doubtful_line,
    only_what_a_lock_leaves_is_left,
    a_replica_is_wrong_and_its_primary_doubtful,
    eviction_is_doubtful_until_it_is_cured,
    a_server_that_keeps_nothing_is_doubtful_until_it_is_cured,
    TOLD_RIGHTS: the_rule_that_is_printed_grants_what_is_missing,
    USERS: a_wrong_password_is_told_and_not_shown,
    a_dead_server_of_three_is_wrong_and_the_others_lock,
    a_server_that_was_restarted_is_in_quarantine,
    a_stopped_server_is_waited_for_within_bounds,
    two_addresses_of_one_server_are_wrong,
    round_trips_are_compared_with_the_lease,
    a_slow_command_is_told_without_its_arguments,
    a_name_that_others_hold_is_not_wrong,
    a_file_is_examined,
    POSTGRES: a_table_is_examined,
    MYSQL: a_table_of_mysql_is_examined,
    the_sentinels_of_a_group_are_asked,
    the_primaries_of_a_cluster_are_examined,
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

async fn a_replica_is_wrong_and_its_primary_doubtful() {
    let primary = Server::start_with(&DURABLE);
    let port = primary.port().to_string();
    let replica = Server::start_with(&["--replicaof", "127.0.0.1", &port]);
    wait_until("the replica is online", || {
        let info: String = primary.command(&["INFO", "replication"]);
        info.contains("state=online")
    });
    let found = doctor(&replica.address(), &[]);
    assert_eq!(found.code, 78);
    says(
        &found.nodes[0],
        "role",
        "wrong",
        &format!("a replica of 127.0.0.1:{port}"),
    );
    says(
        &found.nodes[0],
        "connection",
        "wrong",
        "give the address of its primary",
    );
    let found = doctor(&primary.address(), &[]);
    assert_eq!(found.code, 0);
    says(
        &found.nodes[0],
        "role",
        "doubtful",
        "primary, 1 replica, at most",
    );
    // Behind a majority that is watched, a failover costs votes alone.
    let (_others, addresses) = three();
    let found = doctor(
        &format!("{},{addresses}", primary.address()),
        &["--trust-fresh-nodes"],
    );
    let four = found
        .nodes
        .iter()
        .find(|node| node["node"].as_str().unwrap().contains(&port));
    says(four.unwrap(), "role", "ok", "for one longest lease");
    says(
        &found.whole,
        "votes",
        "doubtful",
        "no more than with 3 nodes",
    );
}

async fn eviction_is_doubtful_until_it_is_cured() {
    let evicting = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let server = Server::start_with(&[&DURABLE[..], &evicting].concat());
    let found = doctor(&server.address(), &[]);
    assert_eq!((found.code, &found.whole["state"]), (0, &"doubtful".into()));
    says(
        &found.nodes[0],
        "memory",
        "doubtful",
        "of 100.0 MiB used, allkeys-lru",
    );
    cure(&server, &found.nodes[0], "memory");
    let found = doctor(&server.address(), &[]);
    says(&found.nodes[0], "memory", "ok", "noeviction");
    server.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    let found = doctor(&server.address(), &[]);
    says(
        &found.nodes[0],
        "memory",
        "doubtful",
        "at the limit no new lock is granted",
    );
    assert_eq!(found.code, 69);
}

async fn a_server_that_keeps_nothing_is_doubtful_until_it_is_cured() {
    let server = Server::start();
    let found = doctor(&server.address(), &[]);
    assert_eq!(found.code, 0);
    says(
        &found.nodes[0],
        "persistence",
        "doubtful",
        "a restart forgets locks that are held",
    );
    cure(&server, &found.nodes[0], "persistence");
    says(
        &doctor(&server.address(), &[]).nodes[0],
        "persistence",
        "ok",
        "appendfsync always",
    );
    server.command::<()>(&["CONFIG", "SET", "appendfsync", "everysec"]);
    says(
        &doctor(&server.address(), &[]).nodes[0],
        "persistence",
        "doubtful",
        "appendfsync everysec",
    );
    // Of a user who may not read it, it is unknown, and not taken for safe.
    server.command::<()>(&[
        "ACL", "SETUSER", "jobs", "on", ">s3cret", "~*", "&*", "+@all", "-config", "-slowlog",
    ]);
    let address = server.address().replace("127.", "jobs:s3cret@127.");
    let found = doctor(&address, &[]);
    says(
        &found.nodes[0],
        "persistence",
        "doubtful",
        "appendfsync cannot be read",
    );
    says(
        &found.nodes[0],
        "report",
        "ok",
        "CONFIG GET, SLOWLOG GET cannot be read",
    );
}

async fn the_rule_that_is_printed_grants_what_is_missing() {
    let server = Server::start_with(&DURABLE);
    server.command::<()>(&[
        "ACL",
        "SETUSER",
        "jobs",
        "on",
        ">s3cret",
        "resetchannels",
        "~quorlock/doctor",
        "+@connection",
        "+info",
        "+eval",
        "+time",
    ]);
    let address = server.address().replace("127.", "jobs:s3cret@127.");
    let found = doctor(&address, &[]);
    assert_eq!(found.code, 78);
    let (state, text, cures) = line(&found.nodes[0], "rights");
    assert_eq!((state.as_str(), cures.len()), ("wrong", 1), "{text}");
    assert!(
        text.contains("redisson_lock_token:{quorlock/doctor}") && text.contains("HSET"),
        "{text}"
    );
    assert!(
        cures[0].starts_with("ACL SETUSER jobs ") && !text.contains("ACL"),
        "{cures:?}"
    );
    says(&found.nodes[0], "connection", "ok", "as the user jobs");
    cure(&server, &found.nodes[0], "rights");
    let found = doctor(&address, &[]);
    assert_eq!(found.code, 0, "{}", found.whole);
    says(&found.whole, "lock", "ok", "was acquired and released");
    says(
        &found.nodes[0],
        "rights",
        "ok",
        "all that plain locks need; not for fair locks",
    );
    says(
        &found.nodes[0],
        "wake-ups",
        "doubtful",
        "redisson_lock__channel:{quorlock/doctor}",
    );
    cure(&server, &found.nodes[0], "wake-ups");
    // What other locks need is printed, too.
    let (_, _, rules) = line(&doctor(&address, &[]).nodes[0], "rights");
    for rule in rules {
        let (_, rule) = rule.split_once(": ").unwrap();
        server.command::<()>(&rule.split(' ').collect::<Vec<_>>());
    }
    let found = doctor(&address, &[]);
    says(&found.nodes[0], "rights", "ok", "all that locks need");
    assert!(
        found.nodes[0]["lines"]
            .as_array()
            .unwrap()
            .iter()
            .all(|line| line["subject"] != "wake-ups")
    );
}

async fn a_wrong_password_is_told_and_not_shown() {
    let server = Server::start();
    server.command::<()>(&["CONFIG", "SET", "requirepass", "right"]);
    let folder = Folder::new();
    std::fs::write(folder.file("password"), "s3cret\n").unwrap();
    let in_address = server.address().replace("127.", ":s3cret@127.");
    for json in [&[][..], &["--json"]] {
        let (code, printed, said) = end_of(on(&in_address).arg("doctor").args(json));
        assert_eq!(code, 78, "{said}");
        assert!(
            printed.contains("wrong") && printed.contains("WRONGPASS"),
            "{printed}"
        );
        assert!(
            !printed.contains("s3cret") && !said.contains("s3cret"),
            "{printed}{said}"
        );
        let mut in_file = on(&server.address());
        in_file.env("QUORLOCK_PASSWORD_FILE", folder.file("password"));
        let (code, printed, said) = end_of(in_file.arg("doctor").args(json));
        assert_eq!(code, 78, "{said}");
        assert!(
            !printed.contains("s3cret") && !said.contains("s3cret"),
            "{printed}{said}"
        );
    }
    // The right one is not shown either.
    let right = server.address().replace("127.", ":right@127.");
    for json in [&[][..], &["--json"]] {
        let (code, printed, said) = end_of(on(&right).arg("doctor").args(json));
        assert_eq!(code, 0, "{said}");
        assert!(
            !printed.contains("right@") && !printed.contains(":right"),
            "{printed}"
        );
    }
}

async fn a_dead_server_of_three_is_wrong_and_the_others_lock() {
    let (servers, addresses) = three();
    trusted(&addresses);
    servers[1].kill();
    let found = doctor(&addresses, &[]);
    assert_eq!(found.code, 69);
    let dead = found
        .nodes
        .iter()
        .find(|node| node["state"] == "wrong")
        .unwrap();
    assert!(
        dead["node"]
            .as_str()
            .unwrap()
            .contains(&servers[1].port().to_string())
    );
    says(dead, "connection", "wrong", "check that the node runs");
    says(&found.whole, "lock", "ok", "was acquired");
    says(
        &found.whole,
        "votes",
        "doubtful",
        "2 of 3 count; a lock needs 2: none may fail",
    );
    servers[2].kill();
    let found = doctor(&addresses, &[]);
    assert_eq!(found.code, 69);
    says(
        &found.whole,
        "votes",
        "wrong",
        "1 of 3 count; a lock needs 2: no lock is granted now",
    );
}

async fn a_server_that_was_restarted_is_in_quarantine() {
    let (servers, addresses) = three();
    trusted(&addresses);
    servers[0].restart();
    let found = doctor(&addresses, &[]);
    assert_eq!((found.code, &found.whole["state"]), (0, &"doubtful".into()));
    let quarantined = found
        .nodes
        .iter()
        .find(|node| node["votes"] == false)
        .unwrap();
    assert!(
        quarantined["node"]
            .as_str()
            .unwrap()
            .contains(&servers[0].port().to_string())
    );
    says(
        quarantined,
        "trust",
        "doubtful",
        "quarantined: it is new, or has forgotten everything",
    );
    says(
        &found.whole,
        "votes",
        "doubtful",
        "2 of 3 count, 1 in quarantine for 60 s from the next client on",
    );
    // Another longest lease than the one of the markers is an error of the settings.
    let found = doctor(&addresses, &["--longest-lease", "45s"]);
    assert_eq!(found.code, 78, "{}", found.whole);
    says(&found.whole, "lock", "wrong", "longest_lease");
}

async fn a_stopped_server_is_waited_for_within_bounds() {
    let (servers, addresses) = three();
    trusted(&addresses);
    servers[0].pause();
    let began = Instant::now();
    let found = doctor(&addresses, &[]);
    assert_eq!(found.code, 69);
    says(&found.whole, "lock", "ok", "was acquired");
    let alone = doctor(&servers[0].address(), &[]);
    assert_eq!(alone.code, 69);
    says(
        &alone.nodes[0],
        "connection",
        "wrong",
        "the server or the network is slow or stopped",
    );
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    servers[0].resume();
}

async fn two_addresses_of_one_server_are_wrong() {
    let (servers, addresses) = three();
    trusted(&addresses);
    let twice = format!("{addresses},redis://localhost:{}", servers[0].port());
    let found = doctor(&twice, &[]);
    assert_eq!(found.code, 78);
    says(&found.whole, "servers", "wrong", "lead to one process");
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

/// Checks what is known of a store, and that nothing but a lock's record is left.
fn store(address: &str, version: &str) {
    let (code, _, said) = end_of(on(address).arg("init"));
    assert_eq!(code, 0, "{said}");
    let found = doctor(address, &[]);
    assert_eq!(found.code, 0, "{}", found.nodes[0]);
    says(
        &found.nodes[0],
        "connection",
        "ok",
        "the login is accepted, the records can be read",
    );
    says(&found.nodes[0], "version", "ok", version);
    says(&found.nodes[0], "clock", "ok", "no step is covered");
    says(&found.nodes[0], "latency", "ok", "of 5");
    says(&found.whole, "lock", "ok", "was acquired and released");
    assert!(
        !found.nodes[0].to_string().contains("right"),
        "{}",
        found.nodes[0]
    );
}

async fn a_file_is_examined() {
    let folder = Folder::new();
    let address = format!("sqlite:{}", folder.file("locks.db").display());
    let found = doctor(&address, &[]);
    assert_eq!(found.code, 78);
    says(
        &found.nodes[0],
        "connection",
        "wrong",
        "`quorlock init ADDRESS`",
    );
    store(&address, "SQLite 3");
}

async fn a_table_is_examined() {
    let mut server = Postgres::start();
    let found = doctor(&server.address(), &[]);
    assert_eq!(found.code, 78);
    says(
        &found.nodes[0],
        "connection",
        "wrong",
        "`quorlock init ADDRESS`",
    );
    store(&server.address(), "PostgreSQL 1");
    server.kill();
    assert_eq!(doctor(&server.address(), &[]).code, 69);
}

async fn a_table_of_mysql_is_examined() {
    let server = Mysql::start();
    store(&server.address(), "MariaDB");
}

async fn the_sentinels_of_a_group_are_asked() {
    let group = SentinelGroup::start_of(2, 3);
    let primary = group.settle();
    let found = doctor(&group.address(), &[]);
    assert_eq!(found.code, 0, "{} {}", found.nodes[0], found.whole);
    let named = format!("name 127.0.0.1:{}", group.servers()[primary].port());
    says(&found.nodes[0], "sentinels", "ok", &named);
    says(
        &found.nodes[0],
        "sentinels",
        "ok",
        "3 of 3 answer, quorum 2",
    );
    says(&found.nodes[0], "role", "doubtful", "a failover");
}

async fn the_primaries_of_a_cluster_are_examined() {
    let cluster = Cluster::start();
    let found = doctor(&cluster.address(), &[]);
    assert_eq!(found.code, 0, "{} {}", found.nodes[0], found.whole);
    assert_eq!(found.nodes[0]["servers"].as_array().unwrap().len(), 3);
    says(
        &found.nodes[0],
        "coverage",
        "ok",
        "cluster-require-full-coverage",
    );
    // The text names each of them.
    let (_, text, _) = end_of(on(&cluster.address()).arg("doctor"));
    assert_eq!(text.matches("ok        version").count(), 3, "{text}");
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
