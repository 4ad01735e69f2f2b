//! Several servers, groups, clusters and stores.

use std::time::{Duration, Instant};

use quorlock_testbed::cluster::Cluster;
use quorlock_testbed::mysql::Mysql;
use quorlock_testbed::postgres::Postgres;
use quorlock_testbed::sentinels::SentinelGroup;
use quorlock_testbed::server_tests;

use super::super::support::{Folder, end_of};
use super::{doctor, on, says, three, trusted};

server_tests![
    a_dead_server_of_three_is_wrong_and_the_others_lock,
    a_server_that_was_restarted_is_in_quarantine,
    a_stopped_server_is_waited_for_within_bounds,
    two_addresses_of_one_server_are_wrong,
    a_file_is_examined,
    POSTGRES: a_table_is_examined,
    MYSQL: a_table_of_mysql_is_examined,
    the_sentinels_of_a_group_are_asked,
    the_primaries_of_a_cluster_are_examined,
    a_shard_of_a_cluster_in_a_majority_needs_no_full_coverage,
];

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
    // A client may have another longest lease than the nodes, but gets no longer leases than they grant.
    let found = doctor(&addresses, &["--longest-lease", "45s"]);
    says(&found.whole, "lock", "ok", "was acquired");
    let longer = ["--longest-lease", "3m", "--lease", "2m"];
    let found = doctor(&addresses, &longer);
    says(
        &found.whole,
        "lock",
        "wrong",
        "the lease is longer than it grants",
    );
    assert_eq!(found.code, 69, "{}", found.whole);
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test is about how long it takes"
)]
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

async fn a_shard_of_a_cluster_in_a_majority_needs_no_full_coverage() {
    let cluster = Cluster::start();
    let (_servers, addresses) = three();
    let all = format!("{},{}", cluster.address(), addresses);
    for (value, state) in [("yes", "doubtful"), ("no", "ok")] {
        for node in cluster.nodes() {
            node.command::<()>(&["CONFIG", "SET", "cluster-require-full-coverage", value]);
        }
        let found = doctor(&all, &["--trust-fresh-nodes"]);
        assert_eq!(found.code, 0, "{}", found.whole);
        let shard = found.nodes.iter();
        let mut shard = shard.filter(|node| node["node"].as_str().unwrap().contains("quorlock-"));
        says(
            shard.next().unwrap(),
            "coverage",
            state,
            "cluster-require-full-coverage",
        );
    }
}
