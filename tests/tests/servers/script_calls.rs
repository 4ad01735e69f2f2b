//! Lists the commands of each script on each of its paths, as on the page `scripts.md`, with a reason for each.

use std::fmt::Write as _;

use futures_util::future::join_all;
use quorlock_core::transport::Transport as _;
use quorlock_redis::{RedisConfig, RedisTransport};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_tests::polls::on_one_thread;
use quorlock_tests::requests::owner;
use redis::Value;

use self::paths::{MOST_NAMES, Path, name_of};
use self::reasons::{Reason, reason};

mod paths;
mod reasons;

server_tests![each_script_asks_of_a_server_what_the_page_says_and_each_call_has_a_reason];

/// Every script, in the order of the page.
const SCRIPTS: [&str; 15] = [
    "acquire",
    "check",
    "renew",
    "release",
    "batch",
    "fair_acquire",
    "fair_release",
    "read_acquire",
    "read_renew",
    "read_release",
    "write_acquire",
    "write_renew",
    "write_release",
    "inspect",
    "force_release",
];

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/scripts.md");

/// The beginning of the page.
const HEAD: &str = "\
# What the scripts ask of a server

This page is for operators who want to know the load of the scripts on a server, and for contributors who change a script.

It lists each Lua script of Quorlock, each of its usual paths, and each command on that path with its reason. *lease* is the lease of
a reader; *alive* and *timeouts* belong to the waiters for a fair lock; [claim version](glossary.md#claim-version),
[clock margin](glossary.md#clock-margin), [marker](glossary.md#marker) and [take-over](glossary.md#take-over) are words of the glossary. A
test runs every path on a real server, reads `MONITOR`, and compares the commands with this page:

```text
cargo test -p quorlock-tests --test servers -- each_script_asks
QUORLOCK_FIGURES=1 cargo test -p quorlock-tests --test servers -- each_script_asks    # writes this page
```

[Performance](performance.md#group-commit) describes the cost of a command. The page is about Redis 7 and newer. On an older server a
renewal also reads the TTL of the claim.
";

async fn each_script_asks_of_a_server_what_the_page_says_and_each_call_has_a_reason() {
    let server = Server::start();
    if major_version(&server) < 7 {
        // The page describes newer servers.
        return;
    }
    let page = on_one_thread(async || page(&server).await);
    if std::env::var("QUORLOCK_FIGURES").is_ok() {
        std::fs::write(PAGE, page).unwrap();
        return;
    }
    let stored = std::fs::read_to_string(PAGE).unwrap();
    for (line, stored) in page.lines().zip(stored.lines()) {
        assert_eq!(
            line, stored,
            "the page differs: write it again with QUORLOCK_FIGURES=1"
        );
    }
    assert_eq!(page, stored);
}

/// Returns the page that this server produces.
async fn page(server: &Server) -> String {
    let config = RedisConfig::default().only_scripts(true);
    let transport = RedisTransport::open(&server.address(), config).unwrap();
    let (mut page, mut unexplained) = (HEAD.to_owned(), Vec::new());
    let all = paths::all(process(server));
    for script in SCRIPTS {
        writeln!(page, "\n## `{script}.lua`").unwrap();
        let own: Vec<_> = all.iter().filter(|path| path.script == script).collect();
        assert!(!own.is_empty(), "{script} has no path");
        for path in own {
            write!(page, "\n{}:\n\n", path.when).unwrap();
            page.push_str("| call | times | why |\n|---|---:|---|\n");
            for (call, times) in calls_of(server, &transport, path).await {
                let why = reason(script, &call);
                if why.is_none() {
                    unexplained.push(format!("{script}, {}: {call}", path.when));
                }
                writeln!(page, "| `{call}` | {times} | {} |", why.unwrap_or_default()).unwrap();
            }
        }
    }
    assert!(unexplained.is_empty(), "no reason: {unexplained:#?}");
    for Reason { script, call, .. } in reasons::all() {
        let mut sections = page.split("\n## ");
        let own = sections.find(|section| section.starts_with(&format!("`{script}.lua`")));
        let is_used = own.is_some_and(|own| own.contains(&format!("| `{call}` |")));
        assert!(is_used, "{script}: {call} has a reason, but is on no path");
    }
    page
}

fn major_version(server: &Server) -> u64 {
    let info: String = server.command(&["INFO", "server"]);
    let version = info.split("redis_version:").nth(1).unwrap();
    version.split('.').next().unwrap().parse().unwrap()
}

/// Returns the first 52 bits of the id by which scripts identify the process.
fn process(server: &Server) -> u64 {
    let info: String = server.command(&["INFO", "replication"]);
    let id = info.split("master_replid:").nth(1).unwrap();
    u64::from_str_radix(&id[..13], 16).unwrap()
}

/// Returns the commands of the script for the requests of a path, in the order of their first occurrence, and how often
/// each occurs.
async fn calls_of(
    server: &Server,
    transport: &RedisTransport,
    path: &Path,
) -> Vec<(String, usize)> {
    server.command::<()>(&["FLUSHALL"]);
    for request in &path.before {
        transport.call(request.clone()).await.unwrap();
    }
    for command in &path.planted {
        server.command::<Value>(command);
    }
    let mut monitor = server.connect().unwrap();
    redis::cmd("MONITOR").exec(&mut monitor).unwrap();
    let asked = path.requests.iter().map(|r| transport.call(r.clone()));
    for answer in join_all(asked).await {
        answer.unwrap();
    }
    server.command::<String>(&["ECHO", "the path ends"]);
    let mut calls: Vec<(String, usize)> = Vec::new();
    let (mut scripts, mut is_new) = (0, false);
    let (mut declared, mut executed) = (Vec::new(), Vec::new());
    loop {
        let Value::SimpleString(line) = monitor.recv_response().unwrap() else {
            panic!("a line of MONITOR");
        };
        if line.contains("the path ends") {
            assert_eq!(scripts, 1, "{}: the requests go as one call", path.when);
            assert_declared(server, path, &declared, &executed);
            return calls;
        }
        let Some((_, words)) = line.split_once(" lua] ") else {
            is_new = true;
            declared = keys_of_call(&line).unwrap_or(declared);
            continue;
        };
        executed.push(words.to_owned());
        // A script that the server has not loaded is sent twice, and executed once.
        scripts += usize::from(is_new);
        is_new = false;
        let call = shown(words);
        match calls.iter_mut().find(|(before, _)| *before == call) {
            Some((_, times)) => *times += 1,
            None => calls.push((call, 1)),
        }
    }
}

/// The scripts that make up the names of keys: those of the readers' leases. No client knows all readers before the call.
const MAKE_UP_LEASES: [&str; 7] = [
    "read_acquire",
    "read_renew",
    "read_release",
    "write_acquire",
    "write_release",
    "inspect",
    "force_release",
];

/// Checks that a script has used no key that its call does not name, except readers' leases. Dragonfly and the proxies of
/// some services refuse others.
fn assert_declared(server: &Server, path: &Path, declared: &[String], executed: &[String]) {
    let keys = executed.iter().flat_map(|words| keys_of(server, words));
    let keys: Vec<String> = keys.collect();
    assert!(!keys.is_empty(), "{}, {}", path.script, path.when);
    for key in keys {
        let is_made_up = MAKE_UP_LEASES.contains(&path.script) && kind_of(&key) == Some("lease");
        assert!(
            is_made_up || declared.contains(&key),
            "{}, {}: {key} is not among {declared:?}",
            path.script,
            path.when
        );
    }
}

/// Returns the keys that a line of MONITOR names in the call of a script.
fn keys_of_call(line: &str) -> Option<Vec<String>> {
    let (_, words) = line.split_once("] ")?;
    let words = words_of(words);
    if !matches!(words.first(), Some(&("EVALSHA" | "EVAL"))) {
        return None;
    }
    let count: usize = words.get(2)?.parse().ok()?;
    let keys = words.iter().skip(3).take(count);
    Some(keys.map(|key| (*key).to_owned()).collect())
}

/// Returns the keys of a command. The server's answer to a command without keys is an error.
fn keys_of(server: &Server, words: &str) -> Vec<String> {
    let question = [&["COMMAND", "GETKEYS"][..], &words_of(words)[..]].concat();
    server.try_command(&question).unwrap_or_default()
}

/// Splits a command as MONITOR shows it.
fn words_of(words: &str) -> Vec<&str> {
    words.trim_matches('"').split("\" \"").collect()
}

/// Returns the command with its keys and channels by their kinds, each kind once.
fn shown(words: &str) -> String {
    let words = words_of(words);
    let mut shown = vec![words[0]];
    for word in &words[1..] {
        if let Some(what) = kind_of(word)
            && !shown.contains(&what)
        {
            shown.push(what);
        }
    }
    shown.join(" ")
}

/// Returns what the page calls a key or a channel.
fn kind_of(word: &str) -> Option<&'static str> {
    let mut word = word.to_owned();
    for number in 1..=2 {
        word = word.replace(&owner(number).to_string(), "OWNER");
    }
    for number in (1..=MOST_NAMES).rev() {
        word = word.replace(&*name_of(number).text(), "NAME");
    }
    let what = KEYS.iter().find(|(key, _)| *key == word);
    what.map(|(_, what)| *what)
}

/// The keys and channels of a name, and the marker, each with its kind on the page.
const KEYS: [(&str, &str); 10] = [
    ("NAME", "claim"),
    ("redisson_lock_token:{NAME}", "counter"),
    ("redisson_lock_queue:{NAME}", "queue"),
    ("redisson_lock_timeout:{NAME}", "timeouts"),
    ("quorlock_lock_alive:{NAME}", "alive"),
    ("{NAME}:OWNER:rwlock_timeout:1", "lease"),
    ("redisson_lock__channel:{NAME}", "channel"),
    ("redisson_lock__channel:{NAME}:OWNER", "waiter's channel"),
    ("redisson_rwlock:{NAME}", "readers' channel"),
    ("quorlock_marker", "marker"),
];
