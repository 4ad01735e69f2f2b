//! Waiters of a lock.

use quorlock::{Guard, Lock};
use quorlock_threads::{Beliefs, Pace, Remote, Way, World, abandon, explore};

use super::{MS, assert_nothing_left, assert_took, builder, client, join, nodes};

/// Acquires, checks a few times whether the lock is held, and releases.
async fn work(beliefs: &Beliefs, lock: &Lock) {
    let asked = beliefs.asked();
    let guard = lock.acquire().await.unwrap();
    let holding = beliefs.won(asked, &guard);
    for _ in 0..3 {
        assert!(holding.ask());
    }
    guard.release().await.unwrap();
}

async fn turns(world: World, way: Way, many: usize) {
    let nodes = nodes(&world, way, many);
    let (one, other) = (client(&world, &nodes), client(&world, &nodes));
    let beliefs = Beliefs::default();
    let mut threads = Vec::new();
    for lock in [one.lock("a"), one.lock("a"), other.lock("a")] {
        let beliefs = beliefs.clone();
        threads.push(world.thread(async move { work(&beliefs, &lock).await }));
    }
    join(threads).await;
    // Each time that votes split repeatedly costs a back-off.
    assert_took(&world, 300);
    drop((one, other));
    assert_nothing_left(&world, &nodes).await;
}

/// Two tasks of one client and one task of another compete for one lock. All of them are granted it, one after
/// another, without delay.
#[test]
fn waiters_of_a_majority_take_turns() {
    explore("waiters_of_a_majority_take_turns", Pace::Idle, |world| {
        turns(world, Way::Far, 3)
    });
}

#[test]
fn waiters_of_a_near_node_take_turns() {
    explore("waiters_of_a_near_node_take_turns", Pace::Idle, |world| {
        turns(world, Way::Near, 1)
    });
}

/// The lock passes from one caller of a client to the next, while callers come and look. One that works for too long releases it instead.
#[test]
fn a_lock_passes_on_to_each_caller_of_its_client() {
    explore(
        "a_lock_passes_on_to_each_caller_of_its_client",
        Pace::Idle,
        async |world| {
            let nodes = nodes(&world, Way::Near, 1);
            let locks = client(&world, &nodes);
            let beliefs = Beliefs::default();
            let mut threads = Vec::new();
            for _ in 0..3 {
                let (lock, beliefs, own) = (locks.lock("a"), beliefs.clone(), world.clone());
                threads.push(world.thread(async move {
                    work(&beliefs, &lock).await;
                    let guard = lock.acquire().await.unwrap();
                    own.sleep(12 * MS(own.draw(2))).await;
                    guard.release().await.unwrap();
                }));
            }
            join(threads).await;
            assert_took(&world, 60);
            drop(locks);
            assert_nothing_left(&world, &nodes).await;
        },
    );
}

/// Four waiters of one client are behind one leader, and some give up at some point. The others continue at once, with
/// the requests in flight.
#[test]
fn waiters_that_give_up_leave_their_turn_to_the_next() {
    explore(
        "waiters_that_give_up_leave_their_turn_to_the_next",
        Pace::Idle,
        async |world| {
            let nodes = nodes(&world, Way::Far, 1);
            let locks = client(&world, &nodes);
            let beliefs = Beliefs::default();
            let mut threads = Vec::new();
            for number in 0..4 {
                let (lock, beliefs, own) = (locks.lock("a"), beliefs.clone(), world.clone());
                threads.push(world.thread(async move {
                    if number % 2 == 0 {
                        return work(&beliefs, &lock).await;
                    }
                    let acquiring = Box::pin(async move { lock.acquire().await });
                    let polls = own.draw(12);
                    if let Some(guard) = abandon(acquiring, polls).await {
                        drop::<Guard>(guard.unwrap());
                    }
                }));
            }
            join(threads).await;
            assert_took(&world, 60);
            drop(locks);
            assert_nothing_left(&world, &nodes).await;
        },
    );
}

/// The leader of a queue is neither polled nor dropped. It is passed over, and wins when it is polled again.
#[test]
fn a_leader_that_does_not_come_is_passed_over() {
    explore(
        "a_leader_that_does_not_come_is_passed_over",
        Pace::Idle,
        async |world| {
            let nodes = nodes(&world, Way::Far, 1);
            let locks = client(&world, &nodes);
            let held = locks.lock("a").acquire().await.unwrap();
            let mut threads = Vec::new();
            // One leader is polled again when it may be passed over, or a little later. The other one is polled much
            // later.
            let back = 100 + 50 * world.draw(5);
            for (polls, span) in [(2, back), (40, 700)] {
                let (lock, own) = (locks.lock("a"), world.clone());
                threads.push(world.thread(async move {
                    let mut acquiring = Box::pin(lock.acquire());
                    let guard = super::absent(&own, acquiring.as_mut(), polls, MS(span)).await;
                    guard.unwrap().release().await.unwrap();
                }));
            }
            let (lock, own) = (locks.lock("a"), world.clone());
            threads.push(world.thread(async move {
                own.sleep(MS(50)).await;
                held.release().await.unwrap();
                let guard = lock.acquire().await.unwrap();
                assert!(own.millis() < 600, "it waited for those that do not come");
                guard.release().await.unwrap();
            }));
            join(threads).await;
            assert_took(&world, 900);
            drop(locks);
            assert_nothing_left(&world, &nodes).await;
        },
    );
}

/// Readers enter together, and writers enter alone.
#[test]
fn readers_and_writers_take_turns() {
    explore(
        "readers_and_writers_take_turns",
        Pace::Idle,
        async |world| {
            let nodes = nodes(&world, Way::Far, 1);
            let locks = client(&world, &nodes);
            let mut threads = Vec::new();
            for lock in [
                locks.read("a"),
                locks.write("a"),
                locks.read("a"),
                locks.read("a"),
            ] {
                threads.push(world.thread(async move {
                    let guard = lock.acquire().await.unwrap();
                    assert!(guard.is_held());
                    guard.release().await.unwrap();
                }));
            }
            join(threads).await;
            assert_took(&world, 150);
            drop(locks);
            assert_nothing_left(&world, &nodes).await;
        },
    );
}

/// Time passes between any two steps: leases end, calls are late, and all of them may fail. Two clients never hold the
/// lock at the same time, tokens grow, and nothing is left at the end.
#[test]
fn exclusion_holds_where_threads_are_stopped_anywhere() {
    explore(
        "exclusion_holds_where_threads_are_stopped_anywhere",
        Pace::OneIn(60),
        async |world| {
            let nodes = nodes(&world, Way::Far, 3);
            let beliefs = Beliefs::default();
            let mut threads = Vec::new();
            for _ in 0..3 {
                let locks = builder(&world)
                    .watchdog_lease(MS(300))
                    .on_nodes(nodes.iter().map(Remote::transport))
                    .unwrap();
                let (beliefs, own) = (beliefs.clone(), world.clone());
                threads.push(world.thread(async move {
                    for _ in 0..2 {
                        let asked = beliefs.asked();
                        let lock = locks.lock("a").wait(MS(1_000));
                        let Ok(guard) = lock.acquire().await else {
                            continue;
                        };
                        let holding = beliefs.won(asked, &guard);
                        for _ in 0..own.draw(6) {
                            holding.ask();
                        }
                        match own.draw(4) {
                            0 => drop(guard),
                            1 => guard.leak(),
                            2 => {
                                let _ = guard.extend(MS(600)).await;
                                holding.ask();
                            }
                            _ => drop(guard.release().await),
                        }
                    }
                }));
            }
            join(threads).await;
            world.quiet().await;
            world.sleep(MS(120_000)).await;
            super::assert_nothing_stands(&nodes);
        },
    );
}
