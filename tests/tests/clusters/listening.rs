//! Tests the two ways in which releases are published and received on a cluster. Redisson uses one of them at a time.

use std::time::{Duration, Instant};

use quorlock::redis::RedisTransport;
use quorlock::transport::{Channel, Transport};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::{hasty, waiter};
use quorlock_tests::heard::Heard;

use super::stage::{client, cluster, listeners, listens_in_both_ways, release_channel, statistic};

server_tests![
    a_release_is_heard_in_whichever_way_it_is_published,
    a_release_of_ours_is_published_in_both_ways_and_heard_once,
    listeners_follow_a_slot_that_moves_without_being_asked,
    listeners_return_with_a_slot_that_was_away_for_a_moment,
    listeners_return_with_a_slot_that_no_node_served,
    a_user_who_may_not_listen_to_shards_hears_the_rest,
];

/// A lease that is longer than a test, so that only a message wakes a waiter.
const LEASE: Duration = Duration::from_secs(60);

async fn a_release_is_heard_in_whichever_way_it_is_published() {
    let cluster = cluster().await;
    let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
    let primary = cluster.primaries()[0];
    for verb in ["PUBLISH", "SPUBLISH"] {
        let name = cluster.name_on(primary, &format!("{verb}/"));
        ours.lock(&name)
            .lease(LEASE)
            .acquire()
            .await
            .unwrap()
            .leak();
        let waiter = waiter(&theirs.lock(&name));
        listens_in_both_ways(&cluster, primary, &name).await;
        // This is how Redisson releases.
        let node = &cluster.nodes()[primary];
        node.command::<()>(&["DEL", &name]);
        let released = Instant::now();
        node.command::<()>(&[verb, &release_channel(&name), "0"]);
        let (next, served) = waiter.await.unwrap();
        println!("{verb}; served {:?} after that", served - released);
        assert!(served < released + Duration::from_secs(1));
        next.release().await.unwrap();
    }
}

/// A connection of another client that listens to a channel.
fn listener(node: &Server, verb: &str, name: &str) -> redis::Connection {
    let mut connection = node.connect().unwrap();
    connection.set_read_timeout(Some(BOUND)).unwrap();
    let packed = redis::cmd(verb)
        .arg(release_channel(name))
        .get_packed_command();
    connection.send_packed_command(&packed).unwrap();
    connection.recv_response().unwrap();
    connection
}

fn hears(connection: &mut redis::Connection) -> Vec<String> {
    redis::from_redis_value(connection.recv_response().unwrap()).unwrap()
}

async fn a_release_of_ours_is_published_in_both_ways_and_heard_once() {
    let cluster = cluster().await;
    let primary = cluster.primaries()[1];
    let node = &cluster.nodes()[primary];
    let ours = client(&cluster).await;
    let transport = RedisTransport::open(&cluster.address(), hasty()).unwrap();
    let name = cluster.name_on(primary, "both/");
    let heard = Heard::nothing();
    let subscribed = Channel::from(quorlock::Name::new(&name).unwrap());
    let subscription = transport.subscribe(&subscribed, heard.clone());
    listens_in_both_ways(&cluster, primary, &name).await;
    let mut others = [
        ("SUBSCRIBE", "message", listener(node, "SUBSCRIBE", &name)),
        (
            "SSUBSCRIBE",
            "smessage",
            listener(node, "SSUBSCRIBE", &name),
        ),
    ];
    for round in 1..=20 {
        let guard = ours.lock(&name).acquire().await.unwrap();
        guard.release().await.unwrap();
        for (_, kind, other) in &mut others {
            assert_eq!(hears(other), [*kind, &release_channel(&name), "0"]);
        }
        until("it is heard", || heard.wakes().len() == round).await;
    }
    assert_eq!(heard.wakes().len(), 20, "once each");
    drop(subscription);
    until("it no longer listens", || listeners(node, &name) == (1, 1)).await;
}

async fn listeners_follow_a_slot_that_moves_without_being_asked() {
    let cluster = cluster().await;
    let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
    let [from, to] = [0, 1].map(|index| cluster.primaries()[index]);
    let name = cluster.name_on(from, "follows/");
    let slot = cluster.slot_of(&name);
    let guard = ours.lock(&name).lease(LEASE).acquire().await.unwrap();
    let waiter = waiter(&theirs.lock(&name));
    listens_in_both_ways(&cluster, from, &name).await;
    tokio::task::block_in_place(|| cluster.move_slot(slot, from, to));
    let moved = Instant::now();
    listens_in_both_ways(&cluster, to, &name).await;
    println!("moved; listens there {:?} after that", moved.elapsed());
    // Without a message, the waiter tries again only every five seconds.
    assert!(moved.elapsed() < Duration::from_secs(4));
    guard.release().await.unwrap();
    let (next, _) = waiter.await.unwrap();
    next.release().await.unwrap();
    tokio::task::block_in_place(|| cluster.move_slot(slot, to, from));
}

/// The node ends the subscription to the shard, and names itself as the owner when the client queries the slot map.
async fn listeners_return_with_a_slot_that_was_away_for_a_moment() {
    let cluster = cluster().await;
    let primary = cluster.primaries()[0];
    let node = &cluster.nodes()[primary];
    let name = cluster.name_on(primary, "returns/");
    let slot = cluster.slot_of(&name).to_string();
    let transport = RedisTransport::open(&cluster.address(), hasty()).unwrap();
    let heard = Heard::nothing();
    let channel = Channel::from(quorlock::Name::new(&name).unwrap());
    let _subscription = transport.subscribe(&channel, heard.clone());
    listens_in_both_ways(&cluster, primary, &name).await;
    let mut pipe = redis::pipe();
    pipe.atomic();
    for verb in ["DELSLOTS", "ADDSLOTS"] {
        pipe.cmd("CLUSTER").arg(verb).arg(&slot).ignore();
    }
    pipe.cmd("PUBSUB")
        .arg("SHARDNUMSUB")
        .arg(release_channel(&name));
    let ended: Vec<(String, u32)> = pipe.query(&mut node.connect().unwrap()).unwrap();
    assert_eq!(ended, [(release_channel(&name), 0)]);
    listens_in_both_ways(&cluster, primary, &name).await;
    node.command::<()>(&["SPUBLISH", &release_channel(&name), "0"]);
    until("it is heard", || heard.wakes().len() == 1).await;
}

async fn listeners_return_with_a_slot_that_no_node_served() {
    let cluster = cluster().await;
    let primary = cluster.primaries()[0];
    let node = &cluster.nodes()[primary];
    let name = cluster.name_on(primary, "unserved/");
    let slot = cluster.slot_of(&name).to_string();
    let transport = RedisTransport::open(&cluster.address(), hasty()).unwrap();
    let channel = Channel::from(quorlock::Name::new(&name).unwrap());
    let _subscription = transport.subscribe(&channel, Heard::nothing());
    listens_in_both_ways(&cluster, primary, &name).await;
    let refused = || statistic(node, "ssubscribe", "rejected_calls");
    let before = refused();
    node.command::<()>(&["CLUSTER", "DELSLOTS", &slot]);
    until("the node has refused it twice", || before + 2 <= refused()).await;
    node.command::<()>(&["CLUSTER", "ADDSLOTS", &slot]);
    listens_in_both_ways(&cluster, primary, &name).await;
}

async fn a_user_who_may_not_listen_to_shards_hears_the_rest() {
    let cluster = cluster().await;
    for node in cluster.nodes() {
        let rights = [
            "on",
            ">s3cret",
            "~*",
            "&*",
            "+@all",
            "-ssubscribe",
            "-spublish",
        ];
        node.command::<()>(&[["ACL", "SETUSER", "bob"].as_slice(), &rights].concat());
    }
    let address = cluster.address().replace("://", "://bob:s3cret@");
    let connect = || quorlock_tests::clients::patient_client(&address);
    let (ours, theirs) = (connect().await, connect().await);
    let primary = cluster.primaries()[2];
    let name = cluster.name_on(primary, "may/");
    let guard = ours.lock(&name).lease(LEASE).acquire().await.unwrap();
    let waiter = waiter(&theirs.lock(&name));
    let node = &cluster.nodes()[primary];
    until("it listens", || listeners(node, &name) == (1, 0)).await;
    let released = Instant::now();
    guard.release().await.unwrap();
    let (next, served) = waiter.await.unwrap();
    assert!(served < released + Duration::from_secs(1));
    next.release().await.unwrap();
    for node in cluster.nodes() {
        node.command::<()>(&["ACL", "DELUSER", "bob"]);
    }
}
