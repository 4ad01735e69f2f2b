//! Tests invalid majorities, and their errors.

use quorlock::{AcquireError, ConfigError, ConnectError, NodeTrust};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;

use super::stage::{LONGEST, cluster, shards, watching};

server_tests![
    a_number_of_shards_that_cannot_be_is_told,
    what_is_no_cluster_has_no_shards,
    one_cluster_under_two_addresses_is_refused,
    a_cluster_in_a_majority_is_watched,
    a_name_that_shards_cannot_keep_is_refused,
];

async fn wrong(address: &str, shards: usize) -> ConnectError {
    let connected = watching(LONGEST).majority_of_shards(address, shards).await;
    connected.unwrap_err()
}

fn config(error: &ConnectError) -> &ConfigError {
    match error {
        ConnectError::Config(error) => error,
        other => panic!("{other}"),
    }
}

async fn a_number_of_shards_that_cannot_be_is_told() {
    let cluster = cluster().await;
    for count in [0, 1, 2, 4, usize::MAX - 1] {
        let error = wrong(&cluster.address(), count).await;
        assert!(matches!(config(&error), ConfigError::ShardCount { shards } if *shards == count));
        assert!(error.to_string().contains("an odd number"), "{error}");
    }
    for count in [5, usize::MAX] {
        let error = wrong(&cluster.address(), count).await;
        let ConfigError::TooFewPrimaries { primaries: 3, .. } = config(&error) else {
            panic!("{error}")
        };
        assert!(error.to_string().contains("add primaries"), "{error}");
    }
}

async fn what_is_no_cluster_has_no_shards() {
    let cluster = cluster().await;
    let server = Server::start();
    for address in [server.address(), "redis+sentinel://h/name".to_owned()] {
        let error = wrong(&address, 3).await;
        assert!(matches!(config(&error), ConfigError::NoCluster { .. }));
        assert!(error.to_string().contains("redis+cluster://"), "{error}");
    }
    // A server that is addressed as a cluster, a node that is addressed as a server, a database number, and no server.
    let called = format!("redis+cluster://127.0.0.1:{}", server.port());
    let error = wrong(&called, 3).await;
    assert!(error.to_string().contains("not a cluster node"), "{error}");
    let node = cluster.nodes()[0].address();
    let others = [Server::start(), Server::start()];
    let [one, two] = others.each_ref().map(Server::address);
    let error = watching(LONGEST)
        .quorum([node, one, two])
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("write redis+cluster://"),
        "{error}"
    );
    let error = wrong(&(cluster.address() + "/1"), 3).await;
    assert!(
        error.to_string().contains("a cluster has none but 0"),
        "{error}"
    );
    let dead = Server::start();
    dead.kill();
    let gone = format!("redis+cluster://u:s3cret@127.0.0.1:{}", dead.port());
    let error = wrong(&gone, 3).await;
    assert!(matches!(
        error,
        ConnectError::Nodes {
            reachable: 0,
            needed: 2,
            of: 3,
            ..
        }
    ));
    let text = format!("{error} {error:?}");
    assert!(
        text.contains("check that the node runs") && !text.contains("s3cret"),
        "{text}"
    );
}

async fn one_cluster_under_two_addresses_is_refused() {
    let cluster = cluster().await;
    let other = Server::start();
    let [one, two] = [0, 4].map(|node| cluster.address_by(&[&cluster.nodes()[node]]));
    let refused = watching(LONGEST).quorum([one, other.address(), two]).await;
    let refused = refused.unwrap_err();
    assert!(
        matches!(config(&refused), ConfigError::SameServer { .. }),
        "{refused}"
    );
    let again = [cluster.address(), other.address(), cluster.address()];
    let refused = watching(LONGEST).quorum(again).await.unwrap_err();
    assert!(
        matches!(config(&refused), ConfigError::SameNode { .. }),
        "{refused}"
    );
}

async fn a_cluster_in_a_majority_is_watched() {
    let cluster = cluster().await;
    let others = [Server::start(), Server::start()];
    for trust in [NodeTrust::Unwatched, NodeTrust::AssertedDurable] {
        let settings = || watching(LONGEST).node_trust(trust);
        let refused = settings().majority_of_shards(cluster.address(), 3).await;
        let [one, two] = others.each_ref().map(Server::address);
        let mixed = settings().quorum([cluster.address(), one, two]).await;
        for refused in [refused.unwrap_err(), mixed.unwrap_err()] {
            assert!(
                matches!(config(&refused), ConfigError::ClusterTrust { .. }),
                "{refused}"
            );
            assert!(
                refused.to_string().contains("leave node_trust out"),
                "{refused}"
            );
        }
    }
}

async fn a_name_that_shards_cannot_keep_is_refused() {
    let cluster = cluster().await;
    let locks = shards(&cluster).await;
    let long = "x".repeat(500);
    for (name, says) in [
        ("{orders}:42", "lock orders:42 instead"),
        (long.as_str(), "name a hash of it instead"),
        ("x:1:rwlock_timeout:1", "take another name"),
    ] {
        let AcquireError::Config(error) = locks.lock(name).acquire().await.unwrap_err() else {
            panic!("{name}")
        };
        assert!(matches!(error, ConfigError::UnfitName { .. }), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let settings = watching(LONGEST).key_prefix("{app}:");
    let tagged = settings
        .majority_of_shards(cluster.address(), 3)
        .await
        .unwrap();
    let error = tagged.lock("n").acquire().await.unwrap_err();
    assert!(error.to_string().contains("lock app:n instead"), "{error}");
    // Braces without a tag are ordinary characters.
    for name in ["a}b", "a{b", "{}x"] {
        let guard = locks.lock(name).acquire().await.unwrap();
        guard.release().await.unwrap();
    }
}
