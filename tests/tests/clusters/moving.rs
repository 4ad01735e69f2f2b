//! Tests holds and waiters when their slot moves to another node.

use std::time::Duration;

use quorlock_testbed::cluster::Cluster;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until, wait_until};
use quorlock_tests::clients::{settings, until_renewed};

use super::stage::{claimed_at, client, cluster, listens};

server_tests![
    a_slot_that_has_moved_is_found_by_all_clients,
    a_slot_moves_key_by_key_while_a_name_is_held_and_waited_for,
    a_reader_keeps_writers_out_while_its_keys_are_moved,
    a_renewal_follows_the_keys_of_its_name,
    names_of_one_slot_are_renewed_while_it_is_half_moved,
    waiters_of_many_names_are_served_while_slots_move,
    a_move_is_given_up_by_the_next_test_and_goes_on_when_the_nodes_are_back,
];

const LEASE: Duration = Duration::from_secs(30);

fn two(cluster: &Cluster) -> [usize; 2] {
    match cluster.primaries()[..] {
        [from, to, _] => [from, to],
        _ => panic!("there are three"),
    }
}

fn counter(name: &str) -> String {
    format!("redisson_lock_token:{{{name}}}")
}

async fn a_slot_that_has_moved_is_found_by_all_clients() {
    let cluster = cluster().await;
    let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
    let [from, to] = two(&cluster);
    let name = cluster.name_on(from, "moved/");
    let slot = cluster.slot_of(&name);
    let guard = ours.lock(&name).lease(LEASE).acquire().await.unwrap();
    cluster.move_slot(slot, from, to);
    assert!(theirs.lock(&name).try_acquire().await.unwrap().is_none());
    assert!(guard.is_held());
    guard.extend(2 * LEASE).await.unwrap();
    assert_eq!(claimed_at(&cluster, &name, &guard), [to]);
    cluster.move_slot(slot, to, from);
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    let next = theirs.lock(&name).try_acquire().await.unwrap().unwrap();
    assert!(token < next.fencing_token());
    assert_eq!(claimed_at(&cluster, &name, &next), [from]);
    next.release().await.unwrap();
}

async fn a_slot_moves_key_by_key_while_a_name_is_held_and_waited_for() {
    let cluster = cluster().await;
    let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
    let third = client(&cluster).await;
    let [from, to] = two(&cluster);
    let name = cluster.name_on(from, "moves/");
    let (slot, token) = (cluster.slot_of(&name), counter(&name));
    let guard = ours.lock(&name).lease(2 * LEASE).acquire().await.unwrap();
    let lock = theirs.lock(&name).wait(2 * BOUND);
    let waiter = tokio::spawn(async move { lock.acquire().await });
    listens(&cluster, from, &name).await;

    cluster.begin_move(slot, from, to);
    // All keys of the slot are still at the old node.
    guard.extend(2 * LEASE).await.unwrap();
    let granted = third.lock(&name).try_acquire().await;
    assert!(!matches!(granted, Ok(Some(_))), "{granted:?}");
    cluster.move_keys(from, to, &[&name]);
    // Each node has one of the keys, so no node can execute the request. The hold continues.
    guard.extend(2 * LEASE).await.unwrap_err();
    assert!(guard.is_held());
    let granted = third.lock(&name).try_acquire().await;
    assert!(!matches!(granted, Ok(Some(_))), "{granted:?}");
    cluster.move_keys(from, to, &[&token]);
    // Both keys have moved, but the slot has not.
    guard.extend(2 * LEASE).await.unwrap();
    assert!(cluster.keys_of(from, slot).is_empty());
    let granted = third.lock(&name).try_acquire().await;
    assert!(!matches!(granted, Ok(Some(_))), "{granted:?}");
    let before = guard.fencing_token();
    guard.release().await.unwrap();
    assert_eq!(cluster.keys_of(to, slot), [token]);
    assert!(!waiter.is_finished());
    cluster.end_move(slot, from, to);
    let next = waiter.await.unwrap().unwrap();
    assert!(before < next.fencing_token());
    assert_eq!(claimed_at(&cluster, &name, &next), [to]);

    // The waiter now listens at the new node.
    let lock = ours.lock(&name).wait(BOUND);
    let waiter = tokio::spawn(async move { lock.acquire().await });
    listens(&cluster, to, &name).await;
    next.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
    cluster.move_slot(slot, to, from);
}

/// A reads. Its claim and the token have moved, but A's own lease has not. B must not be granted the name for writing.
async fn a_reader_keeps_writers_out_while_its_keys_are_moved() {
    let cluster = cluster().await;
    let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
    let [from, to] = two(&cluster);
    let name = cluster.name_on(from, "read-while-moving/");
    let (slot, token) = (cluster.slot_of(&name), counter(&name));
    let writer = ours.write(&name).acquire().await.unwrap();
    writer.release().await.unwrap();
    let reader = ours.read(&name).lease(LEASE).acquire().await.unwrap();
    cluster.begin_move(slot, from, to);
    for moved in [None, Some(name.as_str()), Some(token.as_str())] {
        if let Some(key) = moved {
            cluster.move_keys(from, to, &[key]);
        }
        for _ in 0..3 {
            let granted = theirs.write(&name).try_acquire().await;
            assert!(!matches!(granted, Ok(Some(_))), "{moved:?}: {granted:?}");
        }
        assert!(reader.is_held());
    }
    assert_eq!(cluster.keys_of(from, slot).len(), 1);
    cluster.end_move(slot, from, to);
    assert!(theirs.write(&name).try_acquire().await.unwrap().is_none());
    reader.extend(2 * LEASE).await.unwrap();
    reader.release().await.unwrap();
    let writer = theirs.write(&name).try_acquire().await.unwrap().unwrap();
    writer.release().await.unwrap();
    cluster.move_slot(slot, to, from);
}

async fn a_renewal_follows_the_keys_of_its_name() {
    let cluster = cluster().await;
    let [from, to] = two(&cluster);
    let name = cluster.name_on(from, "renewed-while-moving/");
    let slot = cluster.slot_of(&name);
    let settings = settings().watchdog_lease(Duration::from_secs(3));
    let locks = settings.connect(cluster.address()).await.unwrap();
    let guard = locks.lock(&name).acquire().await.unwrap();
    cluster.begin_move(slot, from, to);
    let keys = cluster.keys_of(from, slot);
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    assert_eq!(keys.len(), 2);
    cluster.move_keys(from, to, &keys);
    // The slot is being moved for longer than a lease.
    let (mut renewals, mut least) = (0, guard.validity());
    until("it is renewed four times", || {
        let left = guard.validity();
        renewals += u32::from(least < left);
        least = left;
        renewals == 4
    })
    .await;
    assert!(guard.is_held());
    cluster.end_move(slot, from, to);
    guard.release().await.unwrap();
    cluster.move_slot(slot, to, from);
}

/// The keys of one name have moved, and those of the others have not: no node executes a call about all of them.
async fn names_of_one_slot_are_renewed_while_it_is_half_moved() {
    let cluster = cluster().await;
    let [from, to] = two(&cluster);
    let tag = cluster.name_on(from, "half-moved/");
    let slot = cluster.slot_of(&tag);
    let settings = settings().watchdog_lease(Duration::from_secs(6));
    let locks = settings.connect(cluster.address()).await.unwrap();
    let mut guards = Vec::new();
    for number in 0..3 {
        let name = format!("{{{tag}}}:{number}");
        guards.push(locks.lock(&name).acquire().await.unwrap());
        guards.push(locks.write(format!("{name}w")).acquire().await.unwrap());
    }
    cluster.begin_move(slot, from, to);
    let keys = cluster.keys_of(from, slot);
    let moved = |key: &&String| key.contains(":0");
    let moved: Vec<&str> = keys.iter().filter(moved).map(String::as_str).collect();
    assert_eq!(moved.len(), 4, "{keys:?}");
    cluster.move_keys(from, to, &moved);
    for _ in 0..4 {
        for guard in &guards {
            until_renewed(guard).await;
        }
    }
    cluster.end_move(slot, from, to);
    for guard in guards {
        guard.release().await.unwrap();
    }
    cluster.move_slot(slot, to, from);
}

async fn waiters_of_many_names_are_served_while_slots_move() {
    let cluster = cluster().await;
    let clients = [client(&cluster).await, client(&cluster).await];
    let [from, to] = two(&cluster);
    let name = |number| cluster.name_on(from, &format!("many/{number}/"));
    let names: Vec<String> = (0..3).map(name).collect();
    let mut handovers = Vec::new();
    for lock in names
        .iter()
        .flat_map(|name| clients.each_ref().map(|c| c.lock(name)))
    {
        let lock = lock.wait(2 * BOUND);
        handovers.push(tokio::spawn(async move {
            let mut before = None;
            for _ in 0..100 {
                // While its keys are being moved, a name is granted to no client.
                let guard = loop {
                    if let Ok(guard) = lock.acquire().await {
                        break guard;
                    }
                };
                assert!(before < Some(guard.fencing_token()));
                before = Some(guard.fencing_token());
                tokio::task::yield_now().await;
                // The release may happen in the middle of a move. The keeper does the rest.
                let _ = guard.release().await;
            }
        }));
    }
    for (from, to) in [(from, to), (to, from)] {
        for name in &names {
            let slot = cluster.slot_of(name);
            tokio::task::block_in_place(|| cluster.move_slot(slot, from, to));
        }
    }
    for handover in handovers {
        handover.await.unwrap();
    }
}

async fn a_move_is_given_up_by_the_next_test_and_goes_on_when_the_nodes_are_back() {
    let cluster = cluster().await;
    let [from, to] = two(&cluster);
    let name = cluster.name_on(from, "given-up/");
    let slot = cluster.slot_of(&name);
    let locks = client(&cluster).await;
    // The slot has a key from now on: the token counter.
    let guard = locks.lock(&name).acquire().await.unwrap();
    guard.release().await.unwrap();
    tokio::task::block_in_place(|| {
        cluster.begin_move(slot, from, to);
        cluster.mend();
        assert_eq!(cluster.owner_of(&name), Some(from));

        cluster.begin_move(slot, from, to);
        // Without one of its shards, the cluster is down.
        let third = cluster.primaries()[2];
        let shard = [third, cluster.replica_of(third)].map(|node| &cluster.nodes()[node]);
        shard.iter().for_each(|node| node.pause());
        wait_until("the cluster is down", || {
            let state: String = cluster.nodes()[to].command(&["CLUSTER", "INFO"]);
            state.contains("cluster_state:fail")
        });
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(500));
                shard.iter().for_each(|node| node.resume());
            });
            cluster.end_move(slot, from, to);
        });
        assert_eq!(cluster.owner_of(&name), Some(to));
        cluster.mend();
        cluster.move_slot(slot, to, from);
    });
}
