//! Tests that settings that are legal but doubtful are reported once, when a client is created.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use quorlock::ConnectError;
use quorlock::errors::NodeProblem;
use quorlock::redis::{Doubt, NodeConnectError, RedisConfig, RedisTransport};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::until;
use quorlock_tests::clients::settings;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

server_tests![
    what_a_server_says_of_itself_is_doubted,
    USERS: a_user_who_may_not_ask_is_told_nothing,
    CHANNELS: a_user_who_may_not_subscribe_is_doubted,
    doubts_are_told_once_for_all_nodes,
    BUS_PORTS: a_node_of_a_cluster_is_named_at_connect,
];

/// Records warnings as lines of text.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "quorlock" && *metadata.level() <= tracing::Level::WARN
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Recorder {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

async fn doubts(address: &str, prefix: &str) -> Vec<Doubt> {
    let transport = RedisTransport::open(address, RedisConfig::default()).unwrap();
    transport.doubts(prefix).await
}

async fn what_a_server_says_of_itself_is_doubted() {
    let server = Server::start_with(&["--appendonly", "yes"]);
    assert_eq!(doubts(&server.address(), "").await, []);
    server.command::<()>(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    assert_eq!(doubts(&server.address(), "").await, [], "there is no limit");
    server.command::<()>(&["CONFIG", "SET", "maxmemory", "100mb"]);
    let policy = "volatile-ttl".to_owned();
    let evicts = Doubt::Evicts { policy };
    assert_eq!(
        doubts(&server.address(), "").await,
        std::slice::from_ref(&evicts)
    );
    server.command::<()>(&["CONFIG", "SET", "appendonly", "no"]);
    assert_eq!(
        doubts(&server.address(), "").await,
        [evicts, Doubt::KeepsNothing]
    );
}

async fn a_user_who_may_not_ask_is_told_nothing() {
    let server = Server::start();
    let before = doubts(&server.address(), "").await;
    assert_eq!(before, [Doubt::KeepsNothing]);
    server.command::<()>(&["ACL", "SETUSER", "default", "-info"]);
    assert_eq!(doubts(&server.address(), "").await, []);
}

async fn a_user_who_may_not_subscribe_is_doubted() {
    let server = Server::start_with(&["--appendonly", "yes"]);
    let allow = |rules: &[&str]| {
        let user = [
            "ACL",
            "SETUSER",
            "jobs",
            "reset",
            // Redis 6 gives all of them to a new user.
            "resetchannels",
            "on",
            ">s3cret",
            "~*",
            "+@all",
        ];
        server.command::<()>(&[&user[..], rules].concat());
    };
    let address = server.address().replace("redis://", "redis://jobs:s3cret@");
    for (rules, prefix, is_doubted) in [
        (&["&*"][..], "", false),
        (&["&redisson_lock__channel:*"], "", false),
        (&["&redisson_lock__channel:{app:*"], "app:", false),
        (&["&redisson_lock__channel:{app:*"], "", true),
        (&[], "", true),
        (&["&*", "-subscribe"], "", true),
    ] {
        allow(rules);
        let doubts = doubts(&address, prefix).await;
        let expected = is_doubted.then_some(Doubt::MayNotSubscribe);
        assert_eq!(doubts, Vec::from_iter(expected), "{rules:?} {prefix}");
    }
}

async fn doubts_are_told_once_for_all_nodes() {
    let recorder = Recorder::default();
    let _guard = tracing::subscriber::set_default(recorder.clone());
    let servers = [Server::start(), Server::start()];
    let [one, other] = &servers;
    settings().connect(one.address()).await.unwrap();
    let told = recorder.take();
    assert!(
        matches!(&told[..], [line] if line.contains("appendonly yes")),
        "{told:?}"
    );
    // For a majority, there is a warning about its two members, but not about what a restart of one loses.
    let addresses = || servers.iter().map(Server::address);
    settings().quorum(addresses()).await.unwrap();
    let about = |words: &str| -> Vec<String> {
        let told = recorder.take().into_iter();
        told.filter(|line| line.contains(words)).collect()
    };
    let told = about("doubtful");
    assert!(
        matches!(&told[..], [line] if line.contains("2 nodes tolerate no more")),
        "{told:?}"
    );
    for server in &servers {
        server.command::<()>(&["CONFIG", "SET", "maxmemory", "100mb"]);
        server.command::<()>(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    }
    let replica = Server::start();
    let port = one.port().to_string();
    replica.command::<()>(&["REPLICAOF", "127.0.0.1", &port]);
    until("it has a replica", || {
        let info: String = one.command(&["INFO", "replication"]);
        info.contains("connected_slaves:1")
    })
    .await;
    settings().quorum(addresses()).await.unwrap();
    let told = about("doubtful");
    assert_eq!(told.len(), 3, "{told:?}");
    let line = |words: &str| told.iter().find(|line| line.contains(words)).unwrap();
    let evicts = line("allkeys-lru");
    for server in &servers {
        assert!(evicts.contains(&server.port().to_string()), "{evicts}");
    }
    let replicas = line("has replicas (1)");
    assert!(!replicas.contains(&other.port().to_string()), "{replicas}");
}

async fn a_node_of_a_cluster_is_named_at_connect() {
    let server = Server::start_in_cluster(&[]);
    let error = settings().connect(server.address()).await.unwrap_err();
    let ConnectError::Nodes { problems, .. } = &error else {
        panic!("{error:?}")
    };
    assert!(
        matches!(
            problems[..],
            [NodeProblem::Redis(NodeConnectError::ClusterNode { .. })]
        ),
        "{error:?}"
    );
    assert!(
        error.to_string().contains("node of a Redis Cluster"),
        "{error}"
    );
}
