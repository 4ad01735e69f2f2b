//! A server whose settings, user or password are not right.

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::wait_until;

use super::super::support::{Folder, end_of};
use super::{DURABLE, cure, doctor, line, on, says, three};

server_tests![
    a_replica_is_wrong_and_its_primary_doubtful,
    eviction_is_doubtful_until_it_is_cured,
    a_server_that_keeps_nothing_is_doubtful_until_it_is_cured,
    TOLD_RIGHTS: the_rule_that_is_printed_grants_what_is_missing,
    USERS: a_wrong_password_is_told_and_not_shown,
];

async fn a_replica_is_wrong_and_its_primary_doubtful() {
    let primary = Server::start_with(&DURABLE);
    let port = primary.port().to_string();
    let replica = Server::start_with(&["--replicaof", "127.0.0.1", &port]);
    // The replica still loads what it was sent when its primary calls it online: it answers no other command then.
    wait_until("the replica is online", || {
        [
            (&primary, "state=online"),
            (&replica, "master_link_status:up"),
        ]
        .iter()
        .all(|(server, shown)| {
            let info: String = server.command(&["INFO", "replication"]);
            info.contains(shown)
        })
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
