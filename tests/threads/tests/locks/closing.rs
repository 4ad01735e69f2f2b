//! Closes clients while they are used.

use quorlock::{AcquireError, Lock};
use quorlock_threads::{Pace, Remote, Way, explore};

use super::{
    MS, assert_nothing_left, assert_nothing_stands, assert_took, builder, client, join, nodes,
};

/// A client is closed while its tasks acquire, wait, hold and enter. When `close` returns, no node has a claim of it, and
/// no guard is held.
#[test]
fn nothing_is_left_where_a_client_was_closed() {
    explore(
        "nothing_is_left_where_a_client_was_closed",
        Pace::Idle,
        async |world| {
            let nodes = nodes(&world, Way::Far, 1);
            let locks = client(&world, &nodes);
            let mut threads = Vec::new();
            for number in 0..3 {
                let (lock, own) = (locks.lock("a"), world.clone());
                threads.push(world.thread(async move {
                    let guard = match lock.acquire().await {
                        Ok(guard) => guard,
                        Err(AcquireError::Closed) => return,
                        Err(error) => panic!("{error}"),
                    };
                    match number {
                        0 => drop(guard),
                        1 => drop(guard.reenter().await),
                        _ => drop(guard.extend(std::time::Duration::from_secs(40)).await),
                    }
                    own.step().await;
                }));
            }
            let closing = locks.clone();
            let nodes_then = nodes.clone();
            threads.push(world.thread(async move {
                let steps = shuttle::rand::Rng::gen_range(&mut shuttle::rand::thread_rng(), 0..20);
                for _ in 0..steps {
                    shuttle::future::yield_now().await;
                }
                closing.close().await;
                assert_eq!(closing.held(), 0);
                assert_nothing_stands(&nodes_then);
            }));
            join(threads).await;
            assert_took(&world, 60);
            drop(locks);
            assert_nothing_left(&world, &nodes).await;
        },
    );
}

/// The runtime of the keeper is shut down while other tasks acquire. What is won after that is lost, either at once or
/// when its holder checks, and no waiter waits forever.
#[test]
fn no_hold_outlives_its_keeper() {
    explore("no_hold_outlives_its_keeper", Pace::Idle, async |world| {
        let nodes = nodes(&world, Way::Near, 1);
        let locks = client(&world, &nodes);
        let mut threads = Vec::new();
        for _ in 0..2 {
            let lock: Lock = locks.lock("a");
            threads.push(world.thread(async move {
                if let Ok(guard) = lock.acquire().await {
                    guard.lost().await;
                    assert!(!guard.is_held());
                }
            }));
        }
        let ending = world.clone();
        threads.push(world.thread(async move { ending.shut_down() }));
        join(threads).await;
        assert_took(&world, 0);
        assert_eq!(locks.held(), 0);
        drop(locks);
        world.quiet().await;
    });
}

/// A lock of two clients is requested while one of them is closed, and the other one drives it. `close` waits until the
/// closed client's node has no claim.
#[test]
fn nothing_is_left_on_the_node_of_a_closed_party() {
    explore(
        "nothing_is_left_on_the_node_of_a_closed_party",
        Pace::Idle,
        async |world| {
            let (near, far) = (nodes(&world, Way::Far, 1), nodes(&world, Way::Far, 1));
            let (driver, party) = (client(&world, &near), client(&world, &far));
            let mut threads = Vec::new();
            let lock = driver.lock("a").and([party.lock("b")]);
            for _ in 0..2 {
                let lock = lock.clone();
                threads.push(world.thread(async move {
                    match lock.acquire().await {
                        Ok(guard) => drop(guard),
                        Err(AcquireError::Closed) => {}
                        Err(error) => panic!("{error}"),
                    }
                }));
            }
            let (closing, then) = (party.clone(), far.clone());
            threads.push(world.thread(async move {
                closing.close().await;
                assert_nothing_stands(&then);
            }));
            join(threads).await;
            assert_took(&world, 60);
            drop((lock, driver, party));
            assert_nothing_left(&world, &near).await;
            assert_nothing_stands(&far);
        },
    );
}

/// A guard is dropped when its hold is due for a renewal, while its client is closed. `close` waits until it is released.
#[test]
fn a_guard_that_is_dropped_at_close_leaves_nothing() {
    explore(
        "a_guard_that_is_dropped_at_close_leaves_nothing",
        Pace::Idle,
        async |world| {
            let nodes = nodes(&world, Way::Far, 1);
            let builder = builder(&world).watchdog_lease(MS(900));
            let locks = builder
                .on_nodes(nodes.iter().map(Remote::transport))
                .unwrap();
            let guard = locks.lock("a").acquire().await.unwrap();
            let own = world.clone();
            let dropping = world.thread(async move {
                own.sleep(MS(300)).await;
                drop(guard);
            });
            let (closing, own, then) = (locks.clone(), world.clone(), nodes.clone());
            let closing = world.thread(async move {
                own.sleep(MS(300)).await;
                closing.close().await;
                assert_nothing_stands(&then);
            });
            join(vec![dropping, closing]).await;
            assert_took(&world, 300);
            drop(locks);
            assert_nothing_left(&world, &nodes).await;
        },
    );
}
