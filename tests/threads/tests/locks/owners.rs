//! Tasks that share one owner.

use quorlock::AcquireError;
use quorlock_threads::{Beliefs, Pace, Way, abandon, explore};

use super::{assert_nothing_left, assert_took, client, join, nodes};

/// Three tasks of one owner and one task of another client acquire the same lock. The owner's tasks share its hold or
/// follow one another, and the other client never holds the lock at the same time.
#[test]
fn tasks_of_one_owner_share_its_hold() {
    explore(
        "tasks_of_one_owner_share_its_hold",
        Pace::Idle,
        async |world| {
            let nodes = nodes(&world, Way::Far, 1);
            let (locks, others) = (client(&world, &nodes), client(&world, &nodes));
            let owner = locks.owner();
            let beliefs = Beliefs::default();
            let mut threads = Vec::new();
            let all = [
                owner.lock("a"),
                owner.lock("a"),
                owner.lock("a"),
                others.lock("a"),
            ];
            for (number, lock) in all.into_iter().enumerate() {
                let beliefs = beliefs.clone();
                threads.push(world.thread(async move {
                    let asked = beliefs.asked();
                    let guard = lock.acquire().await.unwrap();
                    let holding = beliefs.won(asked, &guard);
                    assert!(holding.ask());
                    assert!(holding.ask());
                    if number == 0 {
                        drop(guard);
                    } else {
                        guard.release().await.unwrap();
                    }
                }));
            }
            join(threads).await;
            assert_took(&world, 100);
            drop((owner, locks, others));
            assert_nothing_left(&world, &nodes).await;
        },
    );
}

/// An owner's acquisitions of overlapping locks take turns, even if one of them gives up.
#[test]
fn acquisitions_of_one_owner_take_turns() {
    explore(
        "acquisitions_of_one_owner_take_turns",
        Pace::Idle,
        async |world| {
            let nodes = nodes(&world, Way::Far, 1);
            let locks = client(&world, &nodes);
            let owner = locks.owner();
            let mut threads = Vec::new();
            for lock in [owner.write("a"), owner.write("a")] {
                threads.push(world.thread(async move {
                    let guard = lock.acquire().await.unwrap();
                    assert!(guard.is_held());
                    guard.release().await.unwrap();
                }));
            }
            let (lock, own) = (owner.write("a"), world.clone());
            threads.push(world.thread(async move {
                let acquiring = Box::pin(async move { lock.acquire().await });
                let polls = own.draw(12);
                drop(abandon(acquiring, polls).await);
            }));
            join(threads).await;
            assert_took(&world, 60);
            drop((owner, locks));
            assert_nothing_left(&world, &nodes).await;
        },
    );
}

/// An owner re-enters what it holds, even if other locks of the owner check the name at the same time.
#[test]
fn what_an_owner_holds_it_enters() {
    explore("what_an_owner_holds_it_enters", Pace::Idle, async |world| {
        let nodes = nodes(&world, Way::Near, 1);
        let locks = client(&world, &nodes);
        let owner = locks.owner();
        let mut threads = Vec::new();
        for _ in 0..2 {
            let both = owner.all(["a", "b"]);
            threads.push(world.thread(async move {
                match both.acquire().await {
                    Ok(guard) => guard.release().await.unwrap(),
                    Err(AcquireError::Overlap { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }));
            let one = owner.lock("a");
            threads.push(world.thread(async move {
                match one.acquire().await {
                    Ok(guard) => {
                        let again = one.try_acquire().await.unwrap();
                        assert!(again.is_some(), "an owner waits for itself");
                        drop(guard);
                    }
                    Err(AcquireError::Overlap { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }));
        }
        join(threads).await;
        assert_took(&world, 100);
        drop((owner, locks));
        assert_nothing_left(&world, &nodes).await;
    });
}
