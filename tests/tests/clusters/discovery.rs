//! Tests how a client discovers a cluster, and its errors if there is none.

use std::time::Instant;

use quorlock::redis::{RedisTransport, Tls};
use quorlock::transport::{Cause, Execution, Request, Transport};
use quorlock::{ConfigError, ConnectError, Locks, NodeTrust};
use quorlock_testbed::certificates::{Authority, Validity};
use quorlock_testbed::cluster::{Cluster, ClusterSetup};
use quorlock_testbed::server::{Door, Server};
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::{hasty, patient_client, settings};
use quorlock_tests::requests;

use super::stage::cluster;

server_tests![
    every_node_leads_to_all_of_them,
    a_first_node_that_is_dead_or_stopped_does_no_harm,
    nodes_that_are_all_dead_are_told,
    what_is_no_cluster_is_told_by_name,
    a_login_that_is_wrong_is_told_without_it,
    a_user_with_exact_rights_is_enough,
    nodes_are_found_however_they_call_themselves,
    a_wrong_port_that_a_node_announces_is_told_with_the_setting_to_correct,
    one_node_that_announces_an_unused_port_does_no_harm_to_the_others,
    votes_of_one_cluster_are_not_watched,
    a_cluster_is_spoken_to_under_tls,
];

async fn locks_everywhere(cluster: &Cluster, locks: &Locks) {
    for primary in cluster.primaries() {
        let lock = locks.lock(cluster.name_on(primary, "found/"));
        let guard = lock.acquire().await.unwrap();
        guard.release().await.unwrap();
    }
}

async fn every_node_leads_to_all_of_them() {
    let cluster = cluster().await;
    for node in cluster.nodes() {
        let locks = patient_client(&cluster.address_by(&[node])).await;
        locks_everywhere(&cluster, &locks).await;
    }
}

async fn a_first_node_that_is_dead_or_stopped_does_no_harm() {
    let cluster = cluster().await;
    let (dead, silent) = (Server::start(), Server::start());
    dead.kill();
    // The node accepts connections and answers nothing.
    silent.pause();
    let last = cluster.nodes().last().unwrap();
    for seeds in [[&dead, &silent, last], [&silent, &dead, last]] {
        let began = Instant::now();
        let patient = settings().redis(hasty().connect_timeout(BOUND));
        let locks = patient.connect(cluster.address_by(&seeds)).await.unwrap();
        assert!(began.elapsed() < BOUND, "it waited for the silent node");
        locks_everywhere(&cluster, &locks).await;
    }
}

async fn nodes_that_are_all_dead_are_told() {
    let dead = [Server::start(), Server::start()];
    dead.iter().for_each(Server::kill);
    let [one, two] = dead.each_ref().map(Server::port);
    let address = format!("redis+cluster://u:s3cret@127.0.0.1:{one},127.0.0.1:{two}");
    let error = settings().connect(&address).await.unwrap_err();
    let text = format!("{error} {error:?}");
    let (one, two) = (format!("127.0.0.1:{one}: "), format!("127.0.0.1:{two}: "));
    for says in [&one, &two, "refused", "check that the node runs"] {
        assert!(text.contains(says), "{text}");
    }
    assert!(!text.contains("s3cret"), "{text}");
}

async fn what_is_no_cluster_is_told_by_name() {
    let plain = Server::start();
    let as_cluster = format!("redis+cluster://127.0.0.1:{}", plain.port());
    let node = Server::start_in_cluster(&[]);
    let as_plain = node.address();
    let no_slots = format!("redis+cluster://127.0.0.1:{}", node.port());
    for (address, says) in [
        (as_cluster, "write redis://"),
        (as_plain, "write redis+cluster://"),
        (no_slots, "redis-cli --cluster create"),
    ] {
        let error = settings().connect(&address).await.unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
}

async fn a_login_that_is_wrong_is_told_without_it() {
    let cluster = Cluster::alone(&[]);
    cluster.nodes()[0].command::<()>(&["CONFIG", "SET", "requirepass", "right"]);
    let address = |login: &str| cluster.address().replace("://", &format!("://{login}"));
    for login in ["", ":s3cret@", "bob:s3cret@"] {
        let error = settings().connect(address(login)).await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(text.contains("check the user and the password"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
    let locks = patient_client(&address(":right@")).await;
    let guard = locks.lock("n").acquire().await.unwrap();
    guard.release().await.unwrap();
    assert!(!format!("{locks:?}").contains("right"));
}

/// The rights that a plain lock needs on a single server.
const RIGHTS: &str = "~* &redisson_lock__channel:* +evalsha +eval +exists +pttl +hmget +hset +pexpire +get +set +del +time \
                      +publish +subscribe +unsubscribe +ping";

async fn a_user_with_exact_rights_is_enough() {
    let cluster = Cluster::alone(&[]);
    let node = &cluster.nodes()[0];
    let rights = ["ACL", "SETUSER", "bob", "on", ">pw"].into_iter();
    let rights: Vec<&str> = rights.chain(RIGHTS.split_whitespace()).collect();
    node.command::<()>(&rights);
    let address = cluster.address().replace("://", "://bob:pw@");
    let error = settings().connect(&address).await.unwrap_err();
    assert!(error.to_string().contains("+cluster|slots"), "{error}");
    node.command::<()>(&["ACL", "SETUSER", "bob", "+cluster|slots", "+asking"]);
    let locks = patient_client(&address).await;
    let guard = locks.lock("n").acquire().await.unwrap();
    guard.release().await.unwrap();
}

async fn nodes_are_found_however_they_call_themselves() {
    let kind = "--cluster-preferred-endpoint-type";
    for options in [
        [kind, "ip"].as_slice(),
        &[kind, "hostname"],
        &[kind, "hostname", "--cluster-announce-hostname", "localhost"],
        &[kind, "unknown-endpoint"],
        &["--cluster-announce-ip", "127.0.0.1"],
    ] {
        let cluster = Cluster::alone(options);
        let locks = patient_client(&cluster.address()).await;
        let guard = locks.lock("n").acquire().await.unwrap();
        guard.release().await.unwrap();
    }
}

/// Returns a port at which no server listens.
fn unused_port() -> String {
    let server = Server::start();
    server.kill();
    server.port().to_string()
}

async fn a_wrong_port_that_a_node_announces_is_told_with_the_setting_to_correct() {
    // This server accepts connections and answers nothing, like a host behind a firewall.
    let silent = Server::start();
    silent.pause();
    for wrong in [unused_port(), silent.port().to_string()] {
        let cluster = Cluster::alone(&["--cluster-announce-port", &wrong]);
        let address = cluster.address();
        let began = Instant::now();
        let error = settings().connect(&address).await.unwrap_err();
        assert!(began.elapsed() < 2 * hasty().call_bound());
        assert!(matches!(error, ConnectError::Nodes { .. }), "{error:?}");
        let text = error.to_string();
        for says in [wrong.as_str(), "the cluster names", "cluster-announce-port"] {
            assert!(text.contains(says), "{text}");
        }
        cluster.nodes()[0].command::<()>(&["CONFIG", "SET", "cluster-announce-port", "0"]);
        let locks = patient_client(&address).await;
        let guard = locks.lock("n").acquire().await.unwrap();
        guard.release().await.unwrap();
    }
}

async fn one_node_that_announces_an_unused_port_does_no_harm_to_the_others() {
    let cluster = cluster().await;
    let [wrong, other, _] = cluster.primaries()[..] else {
        panic!("there are three");
    };
    let unused = unused_port();
    let announce = |port: &str| {
        let words = ["CONFIG", "SET", "cluster-announce-port", port];
        cluster.nodes()[wrong].command::<()>(&words);
    };
    announce(&unused);
    let asked = &cluster.nodes()[other];
    // All of them, because the client queries another node when it cannot reach this one.
    until("all nodes have the wrong port", || {
        cluster.nodes().iter().all(|node| {
            let nodes: String = node.command(&["CLUSTER", "NODES"]);
            nodes.contains(&format!(":{unused}@"))
        })
    })
    .await;
    let transport = RedisTransport::open(&cluster.address_by(&[asked]), hasty()).unwrap();
    let there = requests::name(&cluster.name_on(other, "announced/"));
    requests::take(&transport, &there, 1).await;
    let name = requests::name(&cluster.name_on(wrong, "announced/"));
    let ask = || transport.call(Request::Acquire(requests::acquire(&name, 1)));
    let began = Instant::now();
    let error = ask().await.unwrap_err();
    assert!(began.elapsed() < hasty().call_bound());
    assert_eq!(
        (error.cause, error.execution),
        (Cause::Unreachable, Execution::Definite)
    );
    for says in [
        unused.as_str(),
        "the cluster names",
        "cluster-announce-port",
    ] {
        assert!(error.detail.contains(says), "{error}");
    }
    announce("0");
    let began = Instant::now();
    while let Err(error) = ask().await {
        assert!(began.elapsed() < BOUND, "still: {error}");
    }
    for name in [there, name] {
        requests::release(&transport, &name, 1, 0).await.unwrap();
    }
}

async fn votes_of_one_cluster_are_not_watched() {
    let cluster = cluster().await;
    let is_told = |error: &ConnectError| {
        assert!(matches!(
            error,
            ConnectError::Config(ConfigError::WatchedCluster { .. })
        ));
        assert!(error.to_string().contains("majority_of_shards"), "{error}");
    };
    let watched = settings().node_trust(NodeTrust::Watched);
    is_told(&watched.connect(cluster.address()).await.unwrap_err());
}

async fn a_cluster_is_spoken_to_under_tls() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let certificate = authority.sign(&["127.0.0.1"], Validity::Now);
    let files = certificate.write(folder.path(), "node");
    let believed = folder.path().join("believed.pem");
    std::fs::write(&believed, authority.pem()).unwrap();
    let text = |path: &std::path::Path| path.display().to_string();
    let (certificate, key, believed) =
        (text(&files.certificate), text(&files.key), text(&believed));
    let cluster = Cluster::start_by(&ClusterSetup {
        door: Door::Tls,
        ..ClusterSetup::alone(&[
            "--tls-cert-file",
            &certificate,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &believed,
            "--tls-auth-clients",
            "no",
            // Without this option, nodes announce their other ports to clients that speak TLS.
            "--tls-cluster",
            "yes",
        ])
    });
    let port = cluster.nodes()[0].tls_port();
    let address = format!("rediss+cluster://127.0.0.1:{port}");
    let tls = || hasty().tls(Tls::new().roots_pem(authority.pem()));
    let locks = settings().redis(tls()).connect(&address).await.unwrap();
    let guard = locks.lock("n").acquire().await.unwrap();
    guard.release().await.unwrap();
    let error = settings().connect(&address).await.unwrap_err();
    assert!(error.to_string().contains("authority"), "{error}");
    let plain = address.replace("rediss", "redis");
    let error = settings().redis(tls()).connect(&plain).await.unwrap_err();
    assert!(error.to_string().contains("write rediss://"), "{error}");
}
