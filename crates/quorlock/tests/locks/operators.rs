//! Inspecting a lock, releasing it by force, and key prefixes, on embedded nodes in virtual time.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::time::Duration;

use quorlock::operate::{ForceReleaseError, Found, Summary, Ttl};
use quorlock::transport::Cause;
use quorlock::{AcquireError, ConfigError, EmbeddedNode, Locks, Lost, Name, NameError};
use quorlock_core::node::Held;
use tokio::time::{Instant, sleep};

fn five() -> (Vec<EmbeddedNode>, Locks) {
    let nodes: Vec<_> = (0..5).map(|_| EmbeddedNode::new()).collect();
    let locks = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(nodes.clone())
        .unwrap();
    (nodes, locks)
}

fn name(name: &str) -> Name {
    Name::new(name).unwrap()
}

/// Lets background tasks run, without much time passing.
async fn settle() {
    for _ in 0..10 {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_inspection_shows_the_holder_node_by_node() {
    let (nodes, locks) = five();
    let owner = locks.owner();
    let guard = owner.lock("a").acquire().await.unwrap();
    let inner = owner.lock("a").acquire().await.unwrap();
    let inspection = locks.inspect("a").await.unwrap();
    let holder = guard.owner_id().to_string();
    let held = Summary::Held {
        owner: holder.clone(),
        nodes: 5,
    };
    assert_eq!(inspection.summary(), held);
    for node in &inspection.nodes {
        let reply = node.found.as_ref().unwrap();
        assert_eq!(reply.token, Some(guard.fencing_token()));
        let Found::Plain { owner, count, ttl } = &reply.found else {
            panic!("{reply:?}")
        };
        assert_eq!((owner, *count), (&holder, 2));
        assert!(matches!(ttl, Ttl::Millis(30_001..=90_000)));
    }
    drop((guard, inner));
    settle().await;
    assert_eq!(locks.inspect("a").await.unwrap().summary(), Summary::Free);
    assert!(nodes.iter().all(|node| node.names().is_empty()));
}

#[tokio::test(start_paused = true)]
async fn an_inspection_says_why_a_node_is_not_counted_and_is_bounded() {
    let (nodes, locks) = five();
    let _guard = locks.lock("a").acquire().await.unwrap();
    nodes[0].kill();
    nodes[1].pause();
    let began = Instant::now();
    let inspection = locks.inspect("a").await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2));
    let held = matches!(inspection.summary(), Summary::Held { nodes: 3, .. });
    assert!(held, "{inspection}");
    let causes = inspection.nodes.iter().map(|node| node.found.as_ref());
    let causes: Vec<_> = causes.filter_map(Result::err).map(|e| e.cause).collect();
    assert_eq!(causes, [Cause::Unreachable, Cause::TimedOut]);
    nodes[2].kill();
    let inspection = locks.inspect("a").await.unwrap();
    assert_eq!(inspection.summary(), Summary::Unknown);
    assert!(inspection.to_string().contains("2 of 5 nodes answered"));
}

/// An embedded node has no address that could be wrong.
#[tokio::test(start_paused = true)]
async fn what_is_asked_of_a_killed_embedded_node_fails_with_what_helps() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    node.kill();
    let said = [
        locks.lock("a").try_acquire().await.unwrap_err().to_string(),
        locks.force_release("a").await.unwrap_err().to_string(),
        locks.inspect("a").await.unwrap().to_string(),
    ];
    for said in &said {
        assert!(!said.contains("check the address"), "{said}");
        assert!(said.contains("EmbeddedNode::restart"), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_lock_is_shown_and_stays() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    node.put(&name("a"), Held::NotALock, None);
    let inspection = locks.inspect("a").await.unwrap();
    assert_eq!(inspection.summary(), Summary::Obstructed);
    assert_eq!(
        inspection.nodes[0].found.as_ref().unwrap().found,
        Found::NotALock
    );
    let error = locks.force_release("a").await.unwrap_err();
    assert!(
        matches!(error, ForceReleaseError::Unconfirmed(_)),
        "{error}"
    );
    assert_eq!(
        node.held(&name("a")),
        Some((Held::NotALock, Ttl::Unbounded))
    );
}

#[tokio::test(start_paused = true)]
async fn readers_and_a_writer_are_shown_and_freed_by_force() {
    let nodes: Vec<_> = (0..3).map(|_| EmbeddedNode::new()).collect();
    let locks = Locks::on_nodes(nodes.clone()).unwrap();
    let one = locks.read("a").acquire().await.unwrap();
    let _other = locks.read("a").acquire().await.unwrap();
    let inspection = locks.inspect("a").await.unwrap();
    assert_eq!(inspection.summary(), Summary::Read { nodes: 3 });
    assert!(inspection.to_string().contains("readers 2"), "{inspection}");
    assert_eq!(locks.force_release("a").await.unwrap().freed(), 3);
    let writer = locks.write("a").acquire().await.unwrap();
    assert!(one.extend(Duration::from_secs(30)).await.is_err());
    let owner = writer.owner_id().to_string();
    let inspection = locks.inspect("a").await.unwrap();
    assert_eq!(inspection.summary(), Summary::Held { owner, nodes: 3 });
}

#[tokio::test(start_paused = true)]
async fn a_holder_learns_of_a_forced_release_at_its_next_renewal() {
    let (_, locks) = five();
    let guard = locks.lock("a").acquire().await.unwrap();
    let waiting = {
        let lock = locks.lock("a");
        tokio::spawn(async move { lock.acquire().await })
    };
    settle().await;
    let report = locks.force_release("a").await.unwrap();
    assert_eq!((report.freed(), report.nodes.len()), (5, 5));
    // The waiter was woken, and has a larger token.
    let next = waiting.await.unwrap().unwrap();
    assert!(guard.fencing_token() < next.fencing_token());
    let began = Instant::now();
    assert_eq!(guard.lost().await, Lost::Taken);
    assert!(began.elapsed() <= Duration::from_secs(11));
    settle().await;
    assert!(next.is_held());
    let holder = next.owner_id().to_string();
    let held = Summary::Held {
        owner: holder,
        nodes: 5,
    };
    assert_eq!(locks.inspect("a").await.unwrap().summary(), held);
}

#[tokio::test(start_paused = true)]
async fn a_forced_release_of_a_minority_is_not_confirmed() {
    let (nodes, locks) = five();
    let guard = locks.lock("a").acquire().await.unwrap();
    for node in &nodes[..3] {
        node.pause();
    }
    let error = locks.force_release("a").await.unwrap_err();
    let ForceReleaseError::Unconfirmed(report) = &error else {
        panic!("{error}")
    };
    assert_eq!(report.freed(), 2);
    assert!(guard.is_held());
    for node in &nodes {
        node.resume();
    }
    // The paused nodes execute the request when they are resumed.
    let report = locks.force_release("a").await.unwrap();
    assert_eq!(report.freed(), 0, "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_key_prefix_comes_before_every_name() {
    let node = EmbeddedNode::new();
    let prefixed = Locks::builder().key_prefix("app:");
    let prefixed = prefixed.on_node(node.clone()).unwrap();
    let plain = Locks::on_node(node.clone()).unwrap();
    let guard = prefixed.lock("a").acquire().await.unwrap();
    assert_eq!(node.names(), [name("app:a")]);
    // Users see names as they were requested, operators see keys.
    assert_eq!(guard.names().collect::<Vec<_>>(), [&name("a")]);
    assert!(guard.fencing_token_of("a").is_some());
    assert!(guard.fencing_token_of("app:a").is_some());
    assert_eq!(guard.fencing_token_of("b"), None);
    let refused = plain.lock("app:a").wait(Duration::from_millis(5));
    let error = refused.acquire().await.unwrap_err();
    assert!(matches!(&error, AcquireError::Contended { names, .. } if names == "app:a"));
    let inspection = prefixed.inspect("a").await.unwrap();
    assert_eq!(inspection.name, name("app:a"));
    assert!(matches!(inspection.summary(), Summary::Held { .. }));
    // Another prefix is another lock.
    plain.lock("a").acquire().await.unwrap().leak();
    assert_eq!(prefixed.force_release("a").await.unwrap().freed(), 1);
    assert_eq!(node.names(), [name("a")]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_comes_before_the_key_prefix() {
    let node = EmbeddedNode::new();
    let builder = Locks::builder().namespace("shop:").key_prefix("eu/");
    let locks = builder.on_node(node.clone()).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    assert_eq!(node.names(), [name("shop:eu/a")]);
    assert_eq!(guard.names().collect::<Vec<_>>(), [&name("a")]);
    // A client without namespace is another client of the same key.
    let plain = Locks::on_node(node.clone()).unwrap();
    assert!(
        plain
            .lock("shop:eu/a")
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    guard.release().await.unwrap();
    assert_eq!(node.names(), []);
    for (namespace, error) in [
        ("a{b", ConfigError::NamespaceBraces),
        ("a}", ConfigError::NamespaceBraces),
        ("a\0", ConfigError::Namespace(NameError::Nul)),
    ] {
        let refused = Locks::builder().namespace(namespace);
        assert_eq!(refused.on_node(node.clone()).unwrap_err(), error);
    }
}

#[tokio::test(start_paused = true)]
async fn the_length_of_a_name_is_checked_with_its_prefix_and_its_emptiness_without() {
    let locks = |prefix: &str| {
        Locks::builder()
            .key_prefix(prefix)
            .on_node(EmbeddedNode::new())
    };
    let prefixed = locks("app:").unwrap();
    let config = |error| AcquireError::Config(ConfigError::Name(error));
    let acquire = async |name: String| prefixed.lock(name).acquire().await.unwrap_err();
    assert_eq!(acquire(String::new()).await, config(NameError::Empty));
    let bytes = 513;
    assert_eq!(
        acquire("x".repeat(509)).await,
        config(NameError::TooLong { bytes })
    );
    assert!(prefixed.lock("x".repeat(508)).acquire().await.is_ok());
    for (prefix, reason) in [
        ("a\0", NameError::Nul),
        (&"x".repeat(513), NameError::TooLong { bytes }),
    ] {
        assert_eq!(locks(prefix).unwrap_err(), ConfigError::KeyPrefix(reason));
    }
}

#[tokio::test(start_paused = true)]
async fn locks_of_clients_with_different_prefixes_are_taken_together() {
    let node = EmbeddedNode::new();
    let client = |prefix: &str| {
        let builder = Locks::builder().key_prefix(prefix);
        builder.on_node(node.clone()).unwrap()
    };
    let (one, two) = (client("one:"), client("two:"));
    let both = one.lock("a").and([two.lock("a")]);
    let guard = both.acquire().await.unwrap();
    assert_eq!(node.names(), [name("one:a"), name("two:a")]);
    assert!(guard.fencing_token_of("two:a").is_some());
    assert!(two.lock("a").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
    assert_eq!(node.names(), []);
}
