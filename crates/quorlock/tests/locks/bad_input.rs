//! Invalid input is refused at once with a typed error that says what to do, and leaves no key.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::time::Duration;

use quorlock::errors::LeaseSource;
use quorlock::transport::Cause;
use quorlock::{
    AcquireError, ConfigError, EmbeddedNode, LeaderEvent, Lock, Locks, Mode, Name, NameError,
    RetryPolicy,
};
use quorlock_core::node::Held;

const MS: Duration = Duration::from_millis(1);

fn one() -> (EmbeddedNode, Locks) {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    (node, locks)
}

/// The error of acquiring and of trying. Both must be the same, come at once, and leave nothing behind.
async fn refused(node: &EmbeddedNode, lock: &Lock) -> ConfigError {
    let before = node.executed();
    let began = tokio::time::Instant::now();
    let acquired = lock.acquire().await.unwrap_err();
    let tried = lock.try_acquire().await.unwrap_err();
    assert_eq!(acquired, tried);
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!((node.executed(), node.names()), (before, vec![]));
    match acquired {
        AcquireError::Config(error) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn names_that_cannot_be_are_refused() {
    let (node, locks) = one();
    for (name, error, advice) in [
        (String::new(), NameError::Empty, "needs a name"),
        ("x".repeat(513), NameError::TooLong { bytes: 513 }, "a hash"),
        ("a\0b".into(), NameError::Nul, "leave it out"),
    ] {
        let found = ConfigError::Name(error);
        assert!(found.to_string().contains(advice), "{found}");
        let owner = locks.owner();
        for lock in [
            locks.lock(&name),
            locks.fair(&name),
            locks.read(&name),
            locks.write(&name),
            locks.all(["a", &name]),
            locks.lock("a").and([locks.lock(&name), locks.lock("b")]),
            locks.lock(&name).and([locks.lock("")]),
            owner.lock(&name),
            owner.fair(&name),
            owner.read(&name),
            owner.write(&name),
            owner.all(["a", &name]),
        ] {
            assert_eq!(refused(&node, &lock).await, found);
        }
        let campaign = locks.leader(&name).campaign().next().await;
        assert!(
            matches!(&campaign, Some(LeaderEvent::Failed { error: AcquireError::Config(error), .. }) if *error == found),
            "{campaign:?}"
        );
        assert_eq!(locks.observe_leader(&name).unwrap_err(), found);
        assert_eq!(locks.inspect(&name).await.unwrap_err(), found);
    }
    let none: [&str; 0] = [];
    for lock in [locks.all(none), locks.owner().all(none)] {
        assert_eq!(refused(&node, &lock).await, ConfigError::NoNames);
    }
}

#[tokio::test(start_paused = true)]
async fn names_with_braces_spaces_and_unicode_work() {
    let (node, locks) = one();
    for name in [
        "{tag}:x",
        "}{",
        "{",
        " ",
        "a b",
        "заказ/42",
        "🔒",
        &"x".repeat(512),
    ] {
        let guard = locks.lock(name).acquire().await.unwrap();
        assert_eq!(node.names(), [Name::new(name).unwrap()]);
        guard.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn leases_that_cannot_be_are_refused() {
    let (node, locks) = one();
    // Two drift allowances of 4 ms are 4.08 ms.
    for lease in [Duration::ZERO, MS, 4 * MS, Duration::from_micros(4_999)] {
        let error = refused(&node, &locks.lock("a").lease(lease)).await;
        assert!(matches!(error, ConfigError::LeaseTooShort { error: e, .. } if e.length == lease));
        assert!(error.to_string().contains("at least 5ms"), "{error}");
    }
    let longest = Duration::from_secs(60);
    for lease in [longest + MS, Duration::MAX] {
        let error = refused(&node, &locks.lock("a").lease(lease)).await;
        let of = LeaseSource::Lock;
        assert_eq!(error, ConfigError::LeaseTooLong { of, lease, longest });
    }
    for lease in [5 * MS, longest] {
        let guard = locks.lock("a").lease(lease).acquire().await.unwrap();
        guard.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn no_nodes_and_one_node_twice_are_refused_and_an_even_number_is_not() {
    let none: [EmbeddedNode; 0] = [];
    assert_eq!(Locks::on_nodes(none).unwrap_err(), ConfigError::NoNodes);
    let node = EmbeddedNode::new();
    let twice = Locks::on_nodes([node.clone(), EmbeddedNode::new(), node]).unwrap_err();
    assert!(matches!(twice, ConfigError::SameNode { .. }), "{twice}");
    let four: Vec<_> = (0..4).map(|_| EmbeddedNode::new()).collect();
    let locks = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(four.clone())
        .unwrap();
    four[0].kill();
    locks
        .lock("a")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    four[1].kill();
    let error = locks.lock("a").try_acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::NoQuorum { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_else_stands_under_the_name_is_named_and_stays() {
    let (node, locks) = one();
    let name = Name::new("a").unwrap();
    let stranger = "0fb4a3e4-4b32-4d3b-9d5e-3a2b1c0d9e8f:31".parse().unwrap();
    for (mode, held) in [
        (Mode::Read, Held::read(stranger, 1)),
        (Mode::Write, Held::write(stranger, 1)),
    ] {
        node.put(&name, held, None);
        let error = locks.lock("a").acquire().await.unwrap_err();
        assert!(
            matches!(error, AcquireError::OtherMode { found, .. } if found == mode),
            "{error}"
        );
        assert_eq!(node.names(), std::slice::from_ref(&name));
    }
    node.put(&name, Held::NotALock, None);
    let error = locks.lock("a").acquire().await.unwrap_err();
    let AcquireError::Refused { nodes, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(nodes[0].error.as_ref().unwrap().cause, Cause::WrongType);
    assert!(error.to_string().contains("choose another name"), "{error}");
    assert_eq!(node.held(&name).unwrap().0, Held::NotALock);
}

#[tokio::test(start_paused = true)]
async fn settings_that_do_not_fit_together_are_refused_by_name() {
    let node = EmbeddedNode::new;
    let retry = |policy| Locks::builder().retry(policy).on_node(node()).unwrap_err();
    let policy = RetryPolicy::default();
    let (backoff, cap) = (2 * MS, MS);
    let upside_down = retry(policy.backoff(backoff).backoff_cap(cap));
    assert_eq!(upside_down, ConfigError::Backoff { backoff, cap });
    let text = upside_down.to_string();
    assert!(text.contains("retry.backoff, 2ms") && text.contains("retry.backoff_cap, 1ms"));
    let zero = |field| ConfigError::Zero { field };
    assert_eq!(
        retry(policy.poll_cap(Duration::ZERO)),
        zero("retry.poll_cap")
    );
    assert_eq!(
        retry(policy.without_quorum(Duration::ZERO)),
        zero("retry.without_quorum")
    );
    assert_eq!(retry(policy.backoff(Duration::ZERO)), zero("retry.backoff"));
    let builder = Locks::builder().member_timeout(Duration::ZERO);
    assert_eq!(builder.on_node(node()).unwrap_err(), zero("member_timeout"));
    let (max_hold, lease) = (Duration::from_secs(29), Duration::from_secs(30));
    let builder = Locks::builder().max_hold(max_hold);
    let error = builder.on_node(node()).unwrap_err();
    let of = LeaseSource::WatchdogLease;
    assert_eq!(
        error,
        ConfigError::MaxHold {
            of,
            max_hold,
            lease
        }
    );
}

/// A lease that comes from a setting is reported under the name of that setting: no lock has requested 30 s.
#[tokio::test(start_paused = true)]
async fn a_setting_that_does_not_fit_another_is_named_as_well() {
    let builder = || Locks::builder();
    for (builder, names) in [
        (
            builder().longest_lease(20_000 * MS),
            ["watchdog_lease, 30s", "longest_lease, 20s"],
        ),
        (
            builder().max_hold(29_000 * MS),
            ["watchdog_lease, 30s", "max_hold, 29s"],
        ),
        (
            builder().member_timeout(30_000 * MS),
            ["watchdog_lease, 30s", "member_timeout, 30s"],
        ),
        (
            builder().watchdog_lease(MS),
            ["watchdog_lease: a lease of 1ms", "at least 5ms"],
        ),
    ] {
        let words = builder
            .on_node(EmbeddedNode::new())
            .unwrap_err()
            .to_string();
        assert!(names.iter().all(|name| words.contains(name)), "{words}");
    }
    let (_, locks) = one();
    let error = locks
        .lock("a")
        .lease(61_000 * MS)
        .acquire()
        .await
        .unwrap_err();
    let words = error.to_string();
    assert!(words.contains("the lease of the lock, 61s"), "{words}");
    assert!(
        words.contains("longest_lease, 60s") && !words.contains("watchdog"),
        "{words}"
    );
}

/// A task that waits for a lock of its own client usually waits for itself.
#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_lock_of_its_own_client_is_told_so() {
    let (node, locks) = one();
    let other = Locks::on_node(node).unwrap();
    let held = locks.lock("a").acquire().await.unwrap();
    let wait = 50 * MS;
    let words = async |locks: &Locks| {
        let error = locks.lock("a").wait(wait).acquire().await.unwrap_err();
        assert!(matches!(error, AcquireError::Contended { .. }), "{error}");
        error.to_string()
    };
    let own = words(&locks).await;
    assert!(
        own.contains("held by this very client, tried for 50ms"),
        "{own}"
    );
    assert!(own.contains("reenter") && own.contains("Owner"), "{own}");
    let others = words(&other).await;
    assert!(
        others.contains("held by others, tried for 50ms"),
        "{others}"
    );
    let owner = locks.owner();
    let outer = owner.lock("b").acquire().await.unwrap();
    drop((outer, held));
}

/// One server has no quorum.
#[tokio::test(start_paused = true)]
async fn the_error_of_a_single_server_speaks_of_no_quorum() {
    let (node, locks) = one();
    node.kill();
    for error in [
        locks.lock("a").try_acquire().await.unwrap_err(),
        locks.lock("a").wait(50 * MS).acquire().await.unwrap_err(),
    ] {
        assert!(!error.to_string().contains("quorum"), "{error}");
        assert!(error.to_string().contains("no usable answer"), "{error}");
    }
}

/// A user of the watchdog renews nothing, so the message must not suggest it.
#[test]
fn a_lease_that_ran_out_is_explained_with_and_without_the_watchdog() {
    let words = quorlock::Lost::Expired.to_string();
    for part in [
        "With the watchdog, max_hold",
        "stood still",
        "nothing renews it: extend it",
    ] {
        assert!(words.contains(part), "{words}");
    }
}

/// A lock whose name is the key of another lock's counter, queue or marker would collide with it on a server. Only the
/// transport to a server knows these keys: an embedded node has none, and nothing is sent to find out.
#[cfg(feature = "redis")]
#[tokio::test]
async fn a_name_that_is_another_name_s_key_is_refused_by_the_transport_with_and_without_a_prefix() {
    use quorlock::redis::{RedisConfig, RedisTransport};

    let nowhere = || RedisTransport::open("redis://127.0.0.1:1/", RedisConfig::default()).unwrap();
    let locks = Locks::on_node(nowhere()).unwrap();
    let embedded = Locks::on_node(EmbeddedNode::new()).unwrap();
    for (name, kept) in [
        ("redisson_lock_token:{x}", "another name's token counter"),
        ("redisson_lock_queue:{x}", "another name's queue"),
        ("redisson_lock_timeout:{x}", "another name's queue"),
        ("quorlock_lock_alive:{x}", "another name's queue"),
        ("redisson_unlock_latch:{x}:07", "unlocked another name"),
        (
            "redisson_lock_token:{tag}:x",
            "another name's token counter",
        ),
        ("quorlock_marker", "a node's marker"),
        (
            "{x}:00000000-0000-4000-8000-000000000001:7:rwlock_timeout:1",
            "the lease of another name's reader",
        ),
    ] {
        let is_refused = |error: &ConfigError| {
            assert!(matches!(error, ConfigError::UnfitName { .. }), "{error}");
            let text = error.to_string();
            assert!(
                text.contains(kept) && text.contains("take another"),
                "{text}"
            );
        };
        for lock in [
            locks.lock(name),
            locks.fair(name),
            locks.read(name),
            locks.write(name),
            locks.all(["a", name]),
        ] {
            match lock.try_acquire().await {
                Err(AcquireError::Config(error)) => is_refused(&error),
                other => panic!("{name}: {other:?}"),
            }
        }
        is_refused(&locks.inspect(name).await.unwrap_err());
        assert!(locks.force_release(name).await.is_err());
        // Prefix and name together are such a key.
        let (prefix, rest) = name.split_at(9);
        let settings = Locks::builder().key_prefix(prefix);
        let prefixed = settings.on_node(nowhere()).unwrap();
        match prefixed.lock(rest).try_acquire().await {
            Err(AcquireError::Config(error)) => is_refused(&error),
            other => panic!("{prefix} {rest}: {other:?}"),
        }
        let guard = embedded.lock(name).acquire().await.unwrap();
        guard.release().await.unwrap();
    }
}
