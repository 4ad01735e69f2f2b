//! Locks on names of all shards.

use std::time::Duration;

use quorlock::operate::Summary;
use quorlock::{AcquireError, ConfigError};
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::{settings, until_renewed};

use super::stage::{claimed_at, client, cluster};

server_tests![
    names_of_all_shards_are_locked_where_they_lie,
    a_waiter_is_woken_by_a_release_on_each_shard,
    several_names_on_all_shards_are_taken_together,
    the_permits_of_a_semaphore_lie_in_one_slot,
    readers_and_writers_exclude_each_other_on_each_shard,
    a_fair_lock_goes_by_turns_on_each_shard,
    holds_on_all_shards_are_renewed,
    a_name_whose_keys_would_lie_apart_is_refused_with_the_tag_to_use,
    operators_see_and_free_names_of_all_shards,
    in_a_namespace_every_key_begins_with_it_and_lies_with_its_name,
];

const LEASE: Duration = Duration::from_secs(30);

async fn names_of_all_shards_are_locked_where_they_lie() {
    let cluster = cluster().await;
    let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
    for primary in cluster.primaries() {
        let name = cluster.name_on(primary, "a/");
        let tagged = format!("x{{{name}}}{{");
        for name in [name, tagged] {
            let guard = ours.lock(&name).lease(LEASE).acquire().await.unwrap();
            assert_eq!(claimed_at(&cluster, &name, &guard), [primary]);
            assert!(theirs.lock(&name).try_acquire().await.unwrap().is_none());
            guard.extend(2 * LEASE).await.unwrap();
            let token = guard.fencing_token();
            guard.release().await.unwrap();
            let next = theirs.lock(&name).try_acquire().await.unwrap().unwrap();
            assert!(token < next.fencing_token());
            next.release().await.unwrap();
        }
    }
}

async fn a_waiter_is_woken_by_a_release_on_each_shard() {
    let cluster = cluster().await;
    let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
    for primary in cluster.primaries() {
        let name = cluster.name_on(primary, "woken/");
        // Without a wake-up, the waiter would sleep for this long.
        let guard = ours.lock(&name).lease(6 * BOUND).acquire().await;
        let guard = guard.unwrap_or_else(|error| panic!("{error}"));
        let lock = theirs.lock(&name).wait(BOUND);
        let waiter = tokio::spawn(async move { lock.acquire().await });
        let node = &cluster.nodes()[primary];
        let channel = format!("redisson_lock__channel:{{{name}}}");
        until("the waiter listens where the name lies", || {
            let told: (String, u32) = node.command(&["PUBSUB", "NUMSUB", &channel]);
            told.1 == 1
        })
        .await;
        guard.release().await.unwrap();
        let next = waiter.await.unwrap().unwrap();
        next.release().await.unwrap();
    }
}

async fn several_names_on_all_shards_are_taken_together() {
    let cluster = cluster().await;
    let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
    let primaries = cluster.primaries();
    let names: Vec<String> = primaries
        .iter()
        .map(|primary| cluster.name_on(*primary, "all/"))
        .collect();
    let all = ours.all(&names).lease(LEASE);
    let guard = all.acquire().await.unwrap();
    for (primary, name) in primaries.iter().zip(&names) {
        assert_eq!(claimed_at(&cluster, name, &guard), [*primary]);
        assert!(theirs.lock(name).try_acquire().await.unwrap().is_none());
    }
    guard.extend(2 * LEASE).await.unwrap();
    guard.release().await.unwrap();
    // One of the names is held, so the others are released.
    let one = theirs.lock(&names[1]).acquire().await.unwrap();
    assert!(all.try_acquire().await.unwrap().is_none());
    let waiting = all.clone().wait(BOUND);
    let waiter = tokio::spawn(async move { waiting.acquire().await });
    one.release().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    guard.release().await.unwrap();
    for name in &names {
        let free = theirs.lock(name).try_acquire().await.unwrap().unwrap();
        free.release().await.unwrap();
    }
}

async fn the_permits_of_a_semaphore_lie_in_one_slot() {
    let cluster = cluster().await;
    let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
    for primary in cluster.primaries() {
        let name = cluster.name_on(primary, "pool/");
        let tagged = format!("{{{name}}}/tagged");
        for name in [name.clone(), tagged] {
            let slot = cluster.slot_of(&name);
            let before = cluster.keys_of(primary, slot).len();
            let semaphore = ours.semaphore(&name, 3).lease(LEASE);
            let mut guards = Vec::new();
            for _ in 0..3 {
                guards.push(semaphore.acquire().await.unwrap());
            }
            let other = theirs.semaphore(&name, 3);
            assert!(other.try_acquire().await.unwrap().is_none());
            // A claim and a token counter for each.
            assert_eq!(cluster.keys_of(primary, slot).len(), before + 6);
            let waiter = tokio::spawn(async move { other.wait(BOUND).acquire().await });
            guards.remove(1).release().await.unwrap();
            guards.push(waiter.await.unwrap().unwrap());
            for guard in guards {
                guard.release().await.unwrap();
            }
        }
    }
}

async fn readers_and_writers_exclude_each_other_on_each_shard() {
    let cluster = cluster().await;
    let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
    for primary in cluster.primaries() {
        let name = cluster.name_on(primary, "rw/");
        let one = ours.read(&name).acquire().await.unwrap();
        let other = theirs.read(&name).acquire().await.unwrap();
        assert!(theirs.write(&name).try_acquire().await.unwrap().is_none());
        let lock = ours.write(&name).wait(BOUND);
        let writer = tokio::spawn(async move { lock.acquire().await });
        one.extend(2 * LEASE).await.unwrap();
        one.release().await.unwrap();
        other.release().await.unwrap();
        let writer = writer.await.unwrap().unwrap();
        assert!(theirs.read(&name).try_acquire().await.unwrap().is_none());
        writer.extend(2 * LEASE).await.unwrap();
        writer.release().await.unwrap();
    }
}

async fn a_fair_lock_goes_by_turns_on_each_shard() {
    let cluster = cluster().await;
    let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
    for primary in cluster.primaries() {
        let name = cluster.name_on(primary, "fair/");
        let guard = ours.fair(&name).acquire().await.unwrap();
        let node = &cluster.nodes()[primary];
        let queue = format!("redisson_lock_queue:{{{name}}}");
        let mut waiters = Vec::new();
        for (number, client) in (1..).zip([&theirs, &ours]) {
            let lock = client.fair(&name).wait(BOUND);
            waiters.push(tokio::spawn(async move { lock.acquire().await }));
            until("it has its place", || {
                node.command::<u32>(&["LLEN", &queue]) == number
            })
            .await;
        }
        guard.release().await.unwrap();
        let mut before = None;
        for waiter in waiters {
            let guard = waiter.await.unwrap().unwrap();
            assert!(before < Some(guard.fencing_token()));
            before = Some(guard.fencing_token());
            guard.release().await.unwrap();
        }
    }
}

async fn holds_on_all_shards_are_renewed() {
    let cluster = cluster().await;
    let settings = settings().watchdog_lease(Duration::from_secs(3));
    let locks = settings.connect(cluster.address()).await.unwrap();
    let mut guards = Vec::new();
    for number in 0..20 {
        let lock = locks.lock(format!("renewed/{number}"));
        guards.push(lock.acquire().await.unwrap());
    }
    let readers = cluster.primaries();
    let readers = readers.iter().map(|p| cluster.name_on(*p, "read/"));
    for name in readers.collect::<Vec<_>>() {
        guards.push(locks.read(&name).acquire().await.unwrap());
    }
    for guard in &guards {
        until_renewed(guard).await;
    }
    for guard in guards {
        guard.release().await.unwrap();
    }
}

async fn a_name_whose_keys_would_lie_apart_is_refused_with_the_tag_to_use() {
    let cluster = cluster().await;
    let locks = client(&cluster).await;
    for (name, instead) in [("a}b", "{ab}:a}b"), ("a{b", "{ab}:a{b"), ("{}x", "{x}:{}x")] {
        let refused = |error: &ConfigError| {
            assert!(matches!(error, ConfigError::UnfitName { .. }));
            let text = error.to_string();
            assert!(text.contains(name) && text.contains(instead), "{text}");
        };
        let modes = [
            locks.lock(name),
            locks.fair(name),
            locks.read(name),
            locks.write(name),
            locks.all(["fine", name]),
        ];
        for lock in modes {
            match lock.try_acquire().await {
                Err(AcquireError::Config(error)) => refused(&error),
                other => panic!("{other:?}"),
            }
        }
        refused(&locks.inspect(name).await.unwrap_err());
        let guard = locks.lock(instead).acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    // A prefix counts as a part of the name.
    let tagged = settings().key_prefix("{app}:");
    let tagged = tagged.connect(cluster.address()).await.unwrap();
    let guard = tagged.lock("a}b").acquire().await.unwrap();
    guard.release().await.unwrap();
}

async fn operators_see_and_free_names_of_all_shards() {
    let cluster = cluster().await;
    let locks = client(&cluster).await;
    for primary in cluster.primaries() {
        let name = cluster.name_on(primary, "seen/");
        let guard = locks.lock(&name).acquire().await.unwrap();
        let owner = guard.owner_id().to_string();
        let seen = locks.inspect(&name).await.unwrap();
        assert_eq!(seen.summary(), Summary::Held { owner, nodes: 1 });
        locks.force_release(&name).await.unwrap();
        let seen = locks.inspect(&name).await.unwrap();
        assert_eq!(seen.summary(), Summary::Free);
    }
}

async fn in_a_namespace_every_key_begins_with_it_and_lies_with_its_name() {
    let cluster = cluster().await;
    let builder = settings().namespace("within:");
    let whole = builder.clone().connect(cluster.address()).await.unwrap();
    let fresh = builder.trust_fresh_nodes();
    let shards = fresh.majority_of_shards(cluster.address(), 3).await;
    for locks in [whole, shards.unwrap()] {
        for name in ["orders/42", "orders:43"] {
            let reader = locks.read("other").acquire().await.unwrap();
            let guard = locks.lock(name).acquire().await.unwrap();
            let waiter = locks.lock(name).wait(BOUND);
            let (waited, released) = tokio::join!(waiter.acquire(), guard.release());
            released.unwrap();
            waited.unwrap().leak();
            assert!(0 < locks.force_release(name).await.unwrap().freed());
            reader.release().await.unwrap();
        }
    }
    for primary in cluster.primaries() {
        let keys: Vec<String> = cluster.nodes()[primary].command(&["KEYS", "*orders*"]);
        assert!(
            keys.iter().all(|key| key.starts_with("within:")),
            "{keys:?}"
        );
        let markers: Vec<String> =
            cluster.nodes()[primary].command(&["KEYS", "within:quorlock_marker*"]);
        assert_eq!(markers.len(), 1, "{markers:?}");
    }
}
