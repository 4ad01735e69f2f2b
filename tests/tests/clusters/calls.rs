//! Calls of the adapter to a cluster.

use std::time::Instant;

use quorlock::redis::SharedConnection;
use quorlock_core::message::{AcquireReply, Mode, Renew, RenewReply, Reply, Request, Retention};
use quorlock_core::transport::{Call, Cause, Execution, Transport};
use quorlock_redis::RedisTransport;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::BOUND;
use quorlock_tests::clients::{hasty, settings, waiter};
use quorlock_tests::requests::{self, RETENTION};
use redis::cluster::ClusterClient;

use super::stage::{client, cluster, listens};

server_tests![
    a_renewal_of_names_on_all_shards_has_each_answer_in_its_place,
    nodes_that_send_a_request_back_and_forth_are_an_error_soon,
    a_slot_without_an_owner_is_an_error_until_it_has_one,
    a_connection_of_the_caller_carries_locks_on_all_shards,
];

async fn a_connection_of_the_caller_carries_locks_on_all_shards() {
    let cluster = cluster().await;
    let nodes: Vec<_> = cluster.nodes().iter().map(Server::address).collect();
    let theirs = ClusterClient::new(nodes).unwrap();
    let theirs = theirs.get_async_connection().await.unwrap();
    let node = SharedConnection::to_cluster(theirs, "cluster");
    let locks = settings().on_node(node).unwrap();
    let others = client(&cluster).await;
    for primary in cluster.primaries() {
        let name = cluster.name_on(primary, "shared/");
        let guard = locks.lock(&name).wait(BOUND).acquire().await.unwrap();
        assert!(others.lock(&name).try_acquire().await.unwrap().is_none());
        let waiting = waiter(&others.lock(&name));
        listens(&cluster, primary, &name).await;
        guard.release().await.unwrap();
        waiting.await.unwrap().0.release().await.unwrap();
    }
    let by_force = locks.force_release("shared/0").await.unwrap_err();
    assert!(by_force.to_string().contains("twice"), "{by_force}");
    let scattered = locks.lock("a}b{c").try_acquire().await.unwrap_err();
    assert!(scattered.to_string().contains("braces"), "{scattered}");
}

fn ask(transport: &RedisTransport, name: &str) -> Call {
    let name = requests::name(name);
    transport.call(Request::Acquire(requests::acquire(&name, 1)))
}

async fn a_renewal_of_names_on_all_shards_has_each_answer_in_its_place() {
    let cluster = cluster().await;
    let transport = RedisTransport::open(&cluster.address(), hasty()).unwrap();
    let names: Vec<_> = (0..30)
        .map(|n| requests::name(&format!("apart/{n}")))
        .collect();
    let mut claims = Vec::new();
    let mut expected = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let token = requests::take(&transport, name, 1).await;
        // Another owner requests every third name.
        let owner = if number % 3 == 0 { 2 } else { 1 };
        claims.push(requests::claim(name, owner, token));
        expected.push(match owner {
            1 => RenewReply::AlreadyYours { token },
            _ => RenewReply::NotYours,
        });
    }
    let renewal = transport.call(Request::Renew(Renew {
        mode: Mode::Plain,
        claims,
        retention: Retention::of(RETENTION),
    }));
    assert_eq!(renewal.await.unwrap(), Reply::Renew(expected));
    for name in &names {
        requests::release(&transport, name, 1, 0).await.unwrap();
    }
}

async fn nodes_that_send_a_request_back_and_forth_are_an_error_soon() {
    let cluster = cluster().await;
    let [a, b, _] = cluster.primaries()[..] else {
        panic!("there are three");
    };
    let name = cluster.name_on(a, "loop/");
    let slot = cluster.slot_of(&name).to_string();
    let transport = RedisTransport::open(&cluster.address(), hasty()).unwrap();
    let (node, other) = (&cluster.nodes()[a], &cluster.nodes()[b]);
    let own: String = node.command(&["CLUSTER", "MYID"]);
    let others: String = other.command(&["CLUSTER", "MYID"]);
    // The first node names the second node as the owner, and the second node names the first.
    node.command::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &others]);
    let began = Instant::now();
    let error = ask(&transport, &name).await.unwrap_err();
    assert_eq!(
        (error.cause, error.execution),
        (Cause::Cluster, Execution::Definite)
    );
    assert!(error.detail.contains("MOVED"), "{error}");
    assert!(began.elapsed() < hasty().call_bound());
    node.command::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &own]);
    let answer = ask(&transport, &name).await;
    assert!(matches!(
        answer,
        Ok(Reply::Acquire(AcquireReply::Granted { .. }))
    ));
    requests::release(&transport, &requests::name(&name), 1, 0)
        .await
        .unwrap();
}

async fn a_slot_without_an_owner_is_an_error_until_it_has_one() {
    let cluster = cluster().await;
    let [other, primary, third] = cluster.primaries()[..] else {
        panic!("there are three");
    };
    let name = cluster.name_on(primary, "nobody/");
    let elsewhere = cluster.name_on(other, "nobody/");
    let slot = cluster.slot_of(&name).to_string();
    let transport = RedisTransport::open(&cluster.address(), hasty()).unwrap();
    let set = |value: &str| {
        for node in cluster.nodes() {
            node.command::<()>(&["CONFIG", "SET", "cluster-require-full-coverage", value]);
        }
    };
    set("no");
    for index in [primary, other, third] {
        let node = &cluster.nodes()[index];
        let _ = node.try_command::<()>(&["CLUSTER", "DELSLOTS", &slot]);
    }
    for _ in 0..3 {
        let error = ask(&transport, &name).await.unwrap_err();
        assert_eq!(
            (error.cause, error.execution),
            (Cause::Cluster, Execution::Definite)
        );
    }
    // The other slots are still served.
    requests::take(&transport, &requests::name(&elsewhere), 1).await;
    let node = &cluster.nodes()[primary];
    node.command::<()>(&["CLUSTER", "ADDSLOTS", &slot]);
    let began = Instant::now();
    let answer = loop {
        match ask(&transport, &name).await {
            Ok(answer) => break answer,
            Err(error) => assert!(began.elapsed() < BOUND, "still: {error}"),
        }
    };
    set("yes");
    assert!(matches!(
        answer,
        Reply::Acquire(AcquireReply::Granted { .. })
    ));
    for name in [&name, &elsewhere] {
        requests::release(&transport, &requests::name(name), 1, 0)
            .await
            .unwrap();
    }
}
