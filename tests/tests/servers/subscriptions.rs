//! Tests wake-ups, also while connections break.

use std::time::Duration;

use quorlock_core::message::Wake;
use quorlock_core::transport::Transport;
use quorlock_redis::{RedisConfig, RedisTransport};
use quorlock_testbed::proxy::Proxy;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::until;
use quorlock_tests::heard::Heard;
use quorlock_tests::requests::{name, release, take};
use quorlock_tests::wire::{acquire_as_jvm, channel, release_as_jvm};

server_tests![
    a_release_wakes_whoever_listens,
    a_release_by_a_jvm_client_wakes_whoever_listens,
    a_writer_s_release_lets_readers_enter,
    everybody_who_listens_hears,
    a_late_listener_is_told_that_messages_flow,
    a_restart_is_survived,
    a_killed_subscription_comes_back,
    a_cut_network_is_survived,
    a_network_that_swallows_everything_is_found_out,
    a_subscription_may_be_made_before_its_server,
    a_dropped_subscription_is_taken_back,
    a_dropped_subscription_leaves_the_others,
    many_names_share_one_connection,
];

fn open(address: &str) -> RedisTransport {
    let config = RedisConfig::default().ping_interval(Duration::from_millis(100));
    RedisTransport::open(address, config).unwrap()
}

fn subscribers(server: &Server, text: &str) -> u32 {
    let channel = channel(&name(text));
    let (_, count): (String, u32) = server.command(&["PUBSUB", "NUMSUB", &channel]);
    count
}

/// Publishes until a message is received. A subscription that is just being restored may miss earlier ones.
async fn assert_hears_again(server: &Server, text: &str, heard: &Heard) {
    let before = heard.wakes().len();
    let channel = channel(&name(text));
    until("a message is heard", || {
        server.command::<u32>(&["PUBLISH", &channel, "0"]);
        before < heard.wakes().len()
    })
    .await;
}

async fn a_release_wakes_whoever_listens() {
    let server = Server::start();
    let transport = open(&server.address());
    for text in ["orders/42", "{tag}:stock", "half {open", "заказ/🔒"] {
        let (name, heard) = (name(text), Heard::nothing());
        let _subscription = transport.subscribe(&name.clone().into(), heard.clone());
        until("messages flow", || heard.lives() == 1).await;
        take(&transport, &name, 1).await;
        assert_eq!(heard.wakes(), []);
        release(&transport, &name, 1, 0).await.unwrap();
        until("the release is heard", || !heard.wakes().is_empty()).await;
        assert_eq!(heard.wakes(), [Wake::Unlocked]);
        assert_eq!(heard.lives(), 1);
    }
}

async fn a_release_by_a_jvm_client_wakes_whoever_listens() {
    let server = Server::start();
    let transport = open(&server.address());
    let owner = "0fb4a3e4-4b32-4d3b-9d5e-3a2b1c0d9e8f:31";
    for text in ["orders/42", "{tag}:stock"] {
        let (name, heard) = (name(text), Heard::nothing());
        let _subscription = transport.subscribe(&name.clone().into(), heard.clone());
        until("messages flow", || heard.lives() == 1).await;
        acquire_as_jvm(&server, &name, owner, 30_000);
        release_as_jvm(&server, &name, owner);
        until("the release is heard", || !heard.wakes().is_empty()).await;
        assert_eq!(heard.wakes(), [Wake::Unlocked]);
    }
}

async fn a_writer_s_release_lets_readers_enter() {
    let server = Server::start();
    let (transport, heard) = (open(&server.address()), Heard::nothing());
    let _subscription = transport.subscribe(&name("orders/42").into(), heard.clone());
    until("messages flow", || heard.lives() == 1).await;
    server.command::<()>(&["PUBLISH", &channel(&name("orders/42")), "1"]);
    until("it is heard", || !heard.wakes().is_empty()).await;
    assert_eq!(heard.wakes(), [Wake::ReadersMayEnter]);
}

async fn everybody_who_listens_hears() {
    let server = Server::start();
    let transport = open(&server.address());
    let listeners: Vec<_> = (0..5).map(|_| Heard::nothing()).collect();
    let _subscriptions: Vec<_> = listeners
        .iter()
        .map(|heard| transport.subscribe(&name("orders/42").into(), heard.clone()))
        .collect();
    until("messages flow", || listeners.iter().all(|l| l.lives() == 1)).await;
    assert_eq!(subscribers(&server, "orders/42"), 1);
    take(&transport, &name("orders/42"), 1).await;
    release(&transport, &name("orders/42"), 1, 0).await.unwrap();
    until("the release is heard by all", || {
        listeners.iter().all(|l| l.wakes() == [Wake::Unlocked])
    })
    .await;
}

async fn a_late_listener_is_told_that_messages_flow() {
    let server = Server::start();
    let transport = open(&server.address());
    let (early, late) = (Heard::nothing(), Heard::nothing());
    let _early = transport.subscribe(&name("orders/42").into(), early.clone());
    until("messages flow", || early.lives() == 1).await;
    let _late = transport.subscribe(&name("orders/42").into(), late.clone());
    until("messages flow for the late one", || late.lives() == 1).await;
    assert_hears_again(&server, "orders/42", &late).await;
}

async fn a_restart_is_survived() {
    let server = Server::start();
    let (transport, heard) = (open(&server.address()), Heard::nothing());
    let _subscription = transport.subscribe(&name("orders/42").into(), heard.clone());
    for times in 1..=3 {
        until("messages flow", || times <= heard.lives()).await;
        assert_hears_again(&server, "orders/42", &heard).await;
        if times < 3 {
            server.restart();
        }
    }
}

async fn a_killed_subscription_comes_back() {
    let server = Server::start();
    let (transport, heard) = (open(&server.address()), Heard::nothing());
    let _subscription = transport.subscribe(&name("orders/42").into(), heard.clone());
    for times in 1..=3 {
        until("messages flow", || times <= heard.lives()).await;
        assert_hears_again(&server, "orders/42", &heard).await;
        if times < 3 {
            let killed: u32 = server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
            assert_eq!(killed, 1);
        }
    }
    assert_eq!(subscribers(&server, "orders/42"), 1);
}

async fn a_cut_network_is_survived() {
    let server = Server::start();
    let proxy = Proxy::to(&server).await;
    let (transport, heard) = (open(&proxy.address()), Heard::nothing());
    let _subscription = transport.subscribe(&name("orders/42").into(), heard.clone());
    until("messages flow", || heard.lives() == 1).await;
    proxy.cut();
    until("messages flow again", || 2 <= heard.lives()).await;
    assert_hears_again(&server, "orders/42", &heard).await;
}

async fn a_network_that_swallows_everything_is_found_out() {
    let server = Server::start();
    let proxy = Proxy::to(&server).await;
    let (transport, heard) = (open(&proxy.address()), Heard::nothing());
    let _subscription = transport.subscribe(&name("orders/42").into(), heard.clone());
    until("messages flow", || heard.lives() == 1).await;
    let before = proxy.opened();
    proxy.lose_replies();
    until("another connection is made", || before < proxy.opened()).await;
    proxy.carry_replies();
    until("messages flow again", || 2 <= heard.lives()).await;
    assert_hears_again(&server, "orders/42", &heard).await;
}

async fn a_subscription_may_be_made_before_its_server() {
    let server = Server::start();
    server.kill();
    let (transport, heard) = (open(&server.address()), Heard::nothing());
    let _subscription = transport.subscribe(&name("orders/42").into(), heard.clone());
    server.restart();
    until("messages flow", || heard.lives() == 1).await;
    assert_hears_again(&server, "orders/42", &heard).await;
}

async fn a_dropped_subscription_is_taken_back() {
    let server = Server::start();
    let (transport, heard) = (open(&server.address()), Heard::nothing());
    for times in 1..=3 {
        let subscription = transport.subscribe(&name("orders/42").into(), heard.clone());
        until("messages flow", || heard.lives() == times).await;
        assert_eq!(subscribers(&server, "orders/42"), 1);
        drop(subscription);
        until("the server was told", || {
            subscribers(&server, "orders/42") == 0
        })
        .await;
    }
}

async fn a_dropped_subscription_leaves_the_others() {
    let server = Server::start();
    let transport = open(&server.address());
    let (first, second) = (Heard::nothing(), Heard::nothing());
    let dropped = transport.subscribe(&name("orders/42").into(), first.clone());
    let _kept = transport.subscribe(&name("orders/42").into(), second.clone());
    until("messages flow", || {
        first.lives() == 1 && second.lives() == 1
    })
    .await;
    drop(dropped);
    assert_hears_again(&server, "orders/42", &second).await;
    assert_eq!(first.wakes(), []);
    assert_eq!(subscribers(&server, "orders/42"), 1);
}

async fn many_names_share_one_connection() {
    let server = Server::start();
    let transport = open(&server.address());
    let listeners: Vec<_> = (0..500)
        .map(|number| (format!("orders/{number}"), Heard::nothing()))
        .collect();
    let subscriptions: Vec<_> = listeners
        .iter()
        .map(|(text, heard)| transport.subscribe(&name(text).into(), heard.clone()))
        .collect();
    until("messages flow", || {
        listeners.iter().all(|(_, heard)| heard.lives() == 1)
    })
    .await;
    let clients: String = server.command(&["CLIENT", "LIST", "TYPE", "pubsub"]);
    assert_eq!(clients.lines().count(), 1);
    drop(subscriptions);
    until("the server was told", || {
        let channels: Vec<String> = server.command(&["PUBSUB", "CHANNELS"]);
        channels.is_empty()
    })
    .await;
}
