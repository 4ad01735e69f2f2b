//! The commands for operators.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use serde_json::Value;

use super::support::{HeldElsewhere, end_of, quorlock, quorlock_on, run};

server_tests![
    inspect_says_who_holds_a_name,
    inspect_says_when_too_few_answer,
    a_holder_is_named_by_its_label_or_its_host_and_process,
    force_release_frees_a_name,
    list_has_what_is_held_and_nothing_else,
    list_keeps_to_a_pattern_and_a_prefix,
    list_asks_several_servers,
    watch_tells_of_changes,
    completions_and_man_pages_are_there,
];

fn json(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

async fn inspect_says_who_holds_a_name() {
    let server = Server::start();
    let script = format!(
        "{q} inspect --json a; {q} inspect a; echo $QUORLOCK_OWNER $QUORLOCK_FENCING_TOKEN",
        q = env!("CARGO_BIN_EXE_quorlock")
    );
    let (code, printed, said) = end_of(&mut run(&server, &["a"], &script));
    assert_eq!(code, 0, "{said}");
    let lines: Vec<&str> = printed.lines().collect();
    let (owner, token) = lines.last().unwrap().split_once(' ').unwrap();
    let seen: Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(
        (&seen["state"], &seen["owner"]),
        (&"held".into(), &owner.into())
    );
    assert_eq!(seen["nodes"][0]["token"].to_string(), token);
    assert!(seen["nodes"][0]["left_ms"].as_u64().unwrap() <= 30_000);
    assert!(
        lines[1].starts_with(&format!("a: held by {owner} on 1 of 1 nodes")),
        "{printed}"
    );
    let (code, printed, _) = end_of(quorlock_on(&server).args(["inspect", "--json", "a", "b"]));
    assert_eq!(code, 0);
    let states: Vec<Value> = json(&printed)
        .iter()
        .map(|seen| seen["state"].clone())
        .collect();
    assert_eq!(states, ["free", "free"]);
}

/// In `inspect`, in its JSON, and to one that does not get the lock.
async fn a_holder_is_named_by_its_label_or_its_host_and_process() {
    let server = Server::start();
    let script = format!(
        "{q} inspect a --json; {q} inspect a; {q} list; timeout 1 {q} watch a; {q} run -n a -- true",
        q = env!("CARGO_BIN_EXE_quorlock")
    );
    let (_, printed, said) = end_of(&mut run(&server, &["--label", "import", "a"], &script));
    let (json, text) = printed.split_once('\n').unwrap();
    let seen: Value = serde_json::from_str(json).unwrap();
    let client = seen["nodes"][0]["client"].as_str().unwrap();
    assert!(client.starts_with("import at 127.0.0.1:"), "{json}");
    let shown = text
        .lines()
        .filter(|line| line.contains("import at 127.0.0.1:"));
    assert_eq!(shown.count(), 3, "{text}");
    assert!(said.contains("a: others hold it (import at "), "{said}");

    let script = format!(
        "{} inspect a; ps -o ppid= -p $PPID",
        env!("CARGO_BIN_EXE_quorlock")
    );
    let (_, printed, _) = end_of(&mut run(&server, &["a"], &script));
    let (text, wrapper) = printed.trim_end().rsplit_once('\n').unwrap();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let label = format!("({}:{} at ", host.trim(), wrapper.trim());
    assert!(text.contains(&label), "{label} {text}");
}

async fn inspect_says_when_too_few_answer() {
    let server = Server::start();
    server.kill();
    let (code, _, said) = end_of(quorlock_on(&server).args(["inspect", "a"]));
    assert_eq!(code, 69, "{said}");
    let (code, _, _) = end_of(quorlock_on(&server).args(["inspect"]));
    assert_eq!(code, 64);
}

async fn force_release_frees_a_name() {
    let server = Server::start();
    server.command::<i64>(&["HSET", "a", "gone:1", "1"]);
    let mut force = quorlock_on(&server);
    let (code, printed, _) = end_of(force.args(["force-release", "--json", "a", "b"]));
    assert_eq!(code, 0);
    let released = json(&printed);
    assert_eq!(
        (&released[0]["freed"], &released[1]["freed"]),
        (&1.into(), &0.into())
    );
    assert_eq!(server.command::<i64>(&["EXISTS", "a"]), 0);
    let (_, printed, _) = end_of(quorlock_on(&server).args(["force-release", "a"]));
    assert!(printed.starts_with("a: freed on 0 of 1 nodes"), "{printed}");
}

/// Returns the names in the output of `list`.
fn names(server: &Server, words: &[&str]) -> Vec<String> {
    let mut list = quorlock_on(server);
    let (code, printed, said) = end_of(list.args(["list", "--json"]).args(words));
    assert_eq!(code, 0, "{said}");
    let listed = json(&printed);
    let names = listed.iter().map(|seen| seen["name"].as_str().unwrap());
    names.map(String::from).collect()
}

async fn list_has_what_is_held_and_nothing_else() {
    let server = Server::start();
    // Keys of other programs, so many that SCAN needs more than one step.
    let mut many = vec!["MSET".to_owned()];
    many.extend((0..2_000).flat_map(|n| [format!("text/{n}"), "x".to_owned()]));
    server.command::<()>(&many.iter().map(String::as_str).collect::<Vec<_>>());
    server.command::<i64>(&["HSET", "session/1", "user", "bob", "cart", "7"]);
    server.command::<i64>(&["EXPIRE", "session/1", "100"]);
    server.command::<i64>(&["HSET", "settings", "a", "1"]);
    assert!(names(&server, &[]).is_empty());
    let _holders = ["orders/1", "orders/2", "report"].map(|name| HeldElsewhere::new(&server, name));
    assert_eq!(names(&server, &[]), ["orders/1", "orders/2", "report"]);
    let (_, printed, _) = end_of(quorlock_on(&server).arg("list"));
    assert_eq!(printed.lines().count(), 4, "{printed}");
    assert!(printed.starts_with("NAME"), "{printed}");
    let stats: String = server.command(&["INFO", "commandstats"]);
    assert!(
        stats.contains("cmdstat_scan") && !stats.contains("cmdstat_keys"),
        "{stats}"
    );
}

async fn list_keeps_to_a_pattern_and_a_prefix() {
    let server = Server::start();
    let _holders =
        ["orders/1", "report", "app:report"].map(|name| HeldElsewhere::new(&server, name));
    assert_eq!(names(&server, &["orders/*"]), ["orders/1"]);
    assert_eq!(names(&server, &["--key-prefix", "app:"]), ["app:report"]);
    // What Redisson or a client without namespace holds there is listed, too: it is the same key.
    assert_eq!(names(&server, &["--namespace", "app:"]), ["app:report"]);
    assert_eq!(
        names(
            &server,
            &["--namespace", "app:", "--key-prefix", "re", "p*t"]
        ),
        ["app:report"]
    );
}

async fn list_asks_several_servers() {
    let servers: Vec<Server> = (0..3).map(|_| Server::start()).collect();
    let addresses: Vec<String> = servers.iter().map(Server::address).collect();
    let addresses = addresses.join(",");
    let script = format!(
        "{} list --nodes {addresses} --trust-fresh-nodes --json",
        env!("CARGO_BIN_EXE_quorlock")
    );
    let mut command = quorlock();
    command.args([
        "run",
        "--nodes",
        &addresses,
        "--trust-fresh-nodes",
        "a",
        "--",
        "sh",
        "-c",
    ]);
    let (code, printed, said) = end_of(command.arg(&script));
    assert_eq!(code, 0, "{said}");
    let listed = json(&printed);
    assert_eq!(listed.len(), 1, "{printed}");
    assert_eq!(
        (&listed[0]["state"], &listed[0]["needed"]),
        (&"held".into(), &2.into())
    );
}

async fn watch_tells_of_changes() {
    let server = Server::start();
    let mut command = quorlock_on(&server);
    command.args(["watch", "--json", "--interval", "50ms", "a"]);
    let mut watch = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["state"], "free");
    let mut last = 0;
    for _ in 0..2 {
        let holder = HeldElsewhere::new(&server, "a");
        let held = next();
        assert_eq!(held["state"], "held");
        let token = held["token"].as_u64().unwrap();
        assert!(last < token);
        last = token;
        drop(holder);
        assert_eq!(next()["state"], "free");
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
    let (code, _, said) = end_of(quorlock_on(&server).args(["watch", "--interval", "1ms", "a"]));
    assert_eq!(code, 64, "{said}");
}

async fn completions_and_man_pages_are_there() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, printed, _) = end_of(quorlock().args(["completions", shell]));
        assert_eq!(code, 0);
        assert!(
            printed.contains("force-release") && !printed.contains("launch"),
            "{shell}"
        );
    }
    let folder = super::support::Folder::new();
    let mut man = quorlock();
    let (code, _, said) = end_of(man.args(["man", "--out"]).arg(folder.path()));
    assert_eq!(code, 0, "{said}");
    assert!(
        folder
            .read("quorlock-run.1")
            .contains("QUORLOCK_FENCING_TOKEN")
    );
    assert!(folder.read("quorlock-leader.1").contains("QUORLOCK_TERM"));
    let mut pages: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    assert!(pages.contains(&"quorlock-list.1".to_owned()), "{pages:?}");
    assert!(
        !pages
            .iter()
            .any(|page| page.contains("launch") || page.contains("guard")),
        "{pages:?}"
    );
    let (_, printed, _) = end_of(quorlock().arg("man"));
    assert!(printed.contains(".TH"), "{printed}");
}
