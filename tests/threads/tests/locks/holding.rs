//! One hold, and several tasks that use it.

use std::sync::Arc;

use quorlock::Lost;
use quorlock_threads::{Pace, Remote, Way, explore};

use super::{MS, assert_nothing_left, assert_took, builder, client, join, nodes};

/// The watchdog renews, one task extends and another one re-enters, all at the same time. No request states a shorter
/// lease than one with a smaller number, which `Remote` checks for each.
#[test]
fn requests_of_one_hold_state_no_less_than_those_before() {
    explore(
        "requests_of_one_hold_state_no_less_than_those_before",
        Pace::Idle,
        async |world| {
            let nodes = nodes(&world, Way::Near, 2);
            let locks = builder(&world)
                .watchdog_lease(MS(900))
                .on_nodes(nodes.iter().map(Remote::transport))
                .unwrap();
            let guard = Arc::new(locks.lock("a").acquire().await.unwrap());
            let mut threads = Vec::new();
            for number in 0..2 {
                let (guard, own) = (guard.clone(), world.clone());
                threads.push(world.thread(async move {
                    for round in 0..2 {
                        own.sleep(MS(300)).await;
                        if number == 0 {
                            guard.extend(MS(900 + 500 * round)).await.unwrap();
                        } else {
                            drop(guard.reenter().await.unwrap());
                        }
                    }
                }));
            }
            join(threads).await;
            assert!(guard.is_held());
            assert_eq!(guard.hold_count(), 1);
            drop((guard, locks));
            assert_nothing_left(&world, &nodes).await;
        },
    );
}

/// Several tasks wait for the loss of a hold while another one ends it in one of several ways. Each is notified once,
/// with the same reason.
#[test]
fn each_lost_signal_is_told_once() {
    explore("each_lost_signal_is_told_once", Pace::Idle, async |world| {
        let nodes = nodes(&world, Way::Near, 1);
        let locks = client(&world, &nodes);
        let way = world.draw(4);
        let guard = match way {
            3 => locks.lock("a").lease(MS(100)).acquire().await.unwrap(),
            _ => locks.lock("a").acquire().await.unwrap(),
        };
        let signals = [guard.lost(), guard.lost(), guard.lost()];
        let told = Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut threads = Vec::new();
        for (number, signal) in signals.into_iter().enumerate() {
            let told = told.clone();
            threads.push(world.thread(async move {
                if number == 2 {
                    // A task that stops waiting does not take the notification of another task.
                    let _ = quorlock_threads::abandon(Box::pin(signal), 1).await;
                    return;
                }
                let lost = signal.await;
                told.lock().unwrap().push(lost);
            }));
        }
        let (closing, own) = (locks.clone(), world.clone());
        threads.push(world.thread(async move {
            match way {
                0 => guard.release().await.unwrap(),
                1 => drop(guard),
                2 => {
                    closing.close().await;
                    assert!(!guard.is_held());
                }
                _ => {
                    own.sleep(MS(100)).await;
                    assert!(!guard.is_held());
                }
            }
        }));
        join(threads).await;
        let lost = match way {
            0 | 1 => Lost::Released,
            2 => Lost::Closed,
            _ => Lost::Expired,
        };
        assert_eq!(*told.lock().unwrap(), [lost, lost]);
        assert_took(&world, 1_100);
        drop(locks);
        assert_nothing_left(&world, &nodes).await;
    });
}

/// Guards of one hold are made and dropped on several threads. The lock is free when the last one is dropped, and not
/// before.
#[test]
fn a_hold_lasts_as_long_as_its_last_guard() {
    explore(
        "a_hold_lasts_as_long_as_its_last_guard",
        Pace::Idle,
        async |world| {
            let nodes = nodes(&world, Way::Far, 1);
            let (locks, others) = (client(&world, &nodes), client(&world, &nodes));
            let guard = Arc::new(locks.lock("a").acquire().await.unwrap());
            let mut threads = Vec::new();
            for number in 0..3 {
                let (guard, other) = (guard.clone(), others.lock("a"));
                threads.push(world.thread(async move {
                    let entered = guard.reenter().await.unwrap();
                    assert!(2 <= entered.hold_count());
                    match number {
                        0 => drop(entered),
                        1 => entered.release().await.unwrap(),
                        _ => assert!(other.try_acquire().await.unwrap().is_none()),
                    }
                }));
            }
            join(threads).await;
            assert_eq!(guard.hold_count(), 1);
            assert!(guard.is_held());
            let guard = Arc::into_inner(guard).unwrap();
            guard.release().await.unwrap();
            assert!(others.lock("a").try_acquire().await.unwrap().is_some());
            assert_took(&world, 60);
            drop((locks, others));
            assert_nothing_left(&world, &nodes).await;
        },
    );
}

/// The last two guards are dropped at the same time. Exactly one of them ends the hold, and the next owner is granted it
/// at once.
#[test]
fn the_last_of_two_guards_frees_the_lock() {
    explore(
        "the_last_of_two_guards_frees_the_lock",
        Pace::Idle,
        async |world| {
            let nodes = nodes(&world, Way::Near, 1);
            let locks = client(&world, &nodes);
            let guard = locks.lock("a").acquire().await.unwrap();
            let entered = guard.reenter().await.unwrap();
            let released = world.thread(async move { guard.release().await.unwrap() });
            let dropped = world.thread(async move { drop(entered) });
            let lock = locks.lock("a");
            let waiting = world.thread(async move {
                lock.acquire().await.unwrap().release().await.unwrap();
            });
            join(vec![released, dropped, waiting]).await;
            assert_eq!(locks.held(), 0);
            assert_took(&world, 60);
            drop(locks);
            assert_nothing_left(&world, &nodes).await;
        },
    );
}
