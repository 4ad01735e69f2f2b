//! Tests a client whose user may touch nothing outside of one namespace.

use std::time::Duration;

use quorlock::operate::Summary;
use quorlock::redis::{RedisConfig, RedisTransport};
use quorlock::{AcquireError, ConfigError, Lock, Locks, LocksBuilder, Name, NodeTrust, Ticket};
use quorlock_testbed::server::{Server, programs};
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::BOUND;

server_tests![
    USERS: one_rule_for_keys_and_one_for_channels_are_enough,
    USERS: a_refusal_names_the_rule_of_the_namespace,
    a_transport_for_another_namespace_refuses_the_names,
];

const NAMES: [&str; 2] = ["orders/42", "{orders}:43"];

fn settings() -> LocksBuilder {
    // The prefix has characters that are special in patterns.
    Locks::builder().namespace("sh*p:").key_prefix("eu/")
}

/// Returns the client of a user with these rules besides all commands.
async fn client(server: &Server, builder: LocksBuilder, rules: &[&str]) -> Locks {
    let user = ["ACL", "SETUSER", "shop", "reset", "on", ">secret", "+@all"];
    server.command::<()>(&[&user[..], rules].concat());
    let address = server.address();
    let address = address.replace("redis://", "redis://shop:secret@");
    builder.connect(address).await.unwrap()
}

fn keys(server: &Server) -> Vec<String> {
    server.command(&["KEYS", "*"])
}

/// One client holds the lock while the other waits for it, and is woken.
async fn pass_on(one: &Locks, other: &Locks, lock: impl Fn(&Locks) -> Lock) {
    let guard = lock(one).acquire().await.unwrap();
    assert!(lock(other).try_acquire().await.unwrap().is_none());
    let waiter = lock(other).wait(BOUND);
    let holder = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        guard.extend(Duration::from_secs(40)).await.unwrap();
        guard.release().await.unwrap();
    };
    let (waited, ()) = tokio::join!(waiter.acquire(), holder);
    waited.unwrap().release().await.unwrap();
}

async fn one_rule_for_keys_and_one_for_channels_are_enough() {
    for program in programs() {
        let server = Server::start_program(&program, &[]);
        let watched = settings().node_trust(NodeTrust::Watched);
        for builder in [settings(), watched.trust_fresh_nodes()] {
            let rules = [r"~sh\*p:*", r"&sh\*p:*"];
            let one = client(&server, builder.clone(), &rules).await;
            let other = client(&server, builder, &rules).await;
            for name in NAMES {
                pass_on(&one, &other, |locks| locks.lock(name)).await;
                pass_on(&one, &other, |locks| locks.fair(name)).await;
                pass_on(&one, &other, |locks| locks.write(name)).await;
                let reader = one.read(name).acquire().await.unwrap();
                pass_on(&one, &other, |locks| locks.lock("other")).await;
                other.read(name).acquire().await.unwrap().leak();
                reader.release().await.unwrap();
                other.force_release(name).await.unwrap();
            }
            pass_on(&one, &other, |locks| locks.all(NAMES)).await;
            let permit = one.semaphore("pool", 2).acquire().await.unwrap();
            permit.release().await.unwrap();
            let ticket = one.lock("job").acquire().await.unwrap();
            let ticket: Ticket = ticket.hand_over().unwrap().to_string().parse().unwrap();
            let guard = other.adopt(&ticket).await.unwrap().unwrap();
            let found = one.inspect("job").await.unwrap();
            assert_eq!(found.name.to_string(), "sh*p:eu/job");
            assert!(matches!(found.summary(), Summary::Held { .. }), "{found}");
            assert_eq!(
                guard.names().collect::<Vec<_>>(),
                [&Name::new("job").unwrap()]
            );
            guard.release().await.unwrap();
            one.ready().await.unwrap();
        }
        let outside: Vec<String> = keys(&server);
        let outside = outside.iter().filter(|key| !key.starts_with("sh*p:"));
        assert_eq!(outside.count(), 0, "{program}: {:?}", keys(&server));
        assert!(keys(&server).contains(&"sh*p:quorlock_marker".to_owned()));
        let log: Vec<redis::Value> = server.command(&["ACL", "LOG"]);
        assert!(log.is_empty(), "{program}: {log:?}");
    }
}

async fn a_refusal_names_the_rule_of_the_namespace() {
    for program in programs() {
        let server = Server::start_program(&program, &[]);
        let builder = settings().namespace("shop:");
        let locks = client(&server, builder, &["~other:*", "&*"]).await;
        let error = locks.lock("a").acquire().await.unwrap_err().to_string();
        let rule = error.split_once("ACL SETUSER shop ");
        let (_, rule) = rule.unwrap_or_else(|| panic!("{program}: {error}"));
        assert!(rule.starts_with("~shop:*"), "{program}: {error}");
        assert!(!rule.contains("~redisson"), "{program}: {error}");
    }
}

async fn a_transport_for_another_namespace_refuses_the_names() {
    let server = Server::start();
    // The setting of the connections is that of the client, unless it has its own.
    let redis = RedisConfig::default().namespace("shop:");
    let within = Locks::builder()
        .redis(redis)
        .connect(server.address())
        .await;
    within.unwrap().lock("a").acquire().await.unwrap().leak();
    assert!(keys(&server).iter().all(|key| key.starts_with("shop:")));
    server.command::<()>(&["FLUSHALL"]);
    for (ours, theirs) in [("", "shop:"), ("shop:", ""), ("shop:", "shop:eu:")] {
        let config = RedisConfig::default().namespace(theirs);
        let transport = RedisTransport::open(&server.address(), config).unwrap();
        let locks = Locks::builder().namespace(ours).on_node(transport).unwrap();
        let error = locks.lock("a").acquire().await.unwrap_err();
        let is_told = error
            .to_string()
            .contains("set the same namespace for both");
        assert!(is_told, "{error}");
        assert!(matches!(
            error,
            AcquireError::Config(ConfigError::UnfitName { .. })
        ));
    }
    assert!(keys(&server).is_empty());
}
