//! Locks on a store: requests that share a record, and listeners.

use quorlock::{Lock, Locks};
use quorlock_store::StoreTransport;
use quorlock_threads::{Beliefs, Pace, Shelf, World, abandon, explore};

use super::{MS, assert_took, builder, join};

fn client(world: &World, transport: StoreTransport) -> Locks {
    builder(world).on_node(transport).unwrap()
}

/// Acquires, checks whether the lock is held, and releases.
async fn work(beliefs: &Beliefs, lock: &Lock) {
    let asked = beliefs.asked();
    let guard = lock.acquire().await.unwrap();
    let holding = beliefs.won(asked, &guard);
    assert!(holding.ask());
    guard.release().await.unwrap();
}

/// Tasks of two clients compete for one name. Requests of one client are written together or one after another, each gets its
/// reply, and each waiter is woken.
#[test]
fn waiters_of_a_store_take_turns() {
    explore("waiters_of_a_store_take_turns", Pace::Idle, async |world| {
        let shelf = Shelf::new(&world);
        let [one, other] = [(), ()].map(|()| client(&world, shelf.transport()));
        let (plain, fair) = (Beliefs::default(), Beliefs::default());
        let mut threads = Vec::new();
        for locks in [&one, &other] {
            for (lock, beliefs) in [(locks.lock("a"), &plain), (locks.fair("b"), &fair)] {
                let beliefs = beliefs.clone();
                threads.push(world.thread(async move { work(&beliefs, &lock).await }));
            }
        }
        join(threads).await;
        // Clients that conflict pause for a random time.
        assert_took(&world, 600);
        drop((one, other));
        world.quiet().await;
    });
}

/// Three clients share one transport, and so its lines of requests and its listeners. Some give up at some point. None of the
/// others waits longer for that.
#[test]
fn clients_of_one_transport_take_turns() {
    explore(
        "clients_of_one_transport_take_turns",
        Pace::Idle,
        async |world| {
            let transport = Shelf::new(&world).transport();
            let beliefs = Beliefs::default();
            let mut threads = Vec::new();
            for number in 0..3 {
                let locks = client(&world, transport.clone());
                let (beliefs, own) = (beliefs.clone(), world.clone());
                threads.push(world.thread(async move {
                    let lock = locks.lock("a");
                    if number == 0 {
                        let polls = own.draw(8);
                        let acquiring = Box::pin(async move { lock.acquire().await });
                        drop(abandon(acquiring, polls).await);
                        return;
                    }
                    work(&beliefs, &lock).await;
                }));
            }
            join(threads).await;
            assert_took(&world, 300);
            drop(transport);
            world.quiet().await;
        },
    );
}

/// Time passes anywhere: leases end, and calls are late. No two hold the name at once, and tokens grow.
#[test]
fn no_two_hold_a_name_of_a_store_at_once() {
    explore(
        "no_two_hold_a_name_of_a_store_at_once",
        Pace::OneIn(60),
        async |world| {
            let shelf = Shelf::new(&world);
            let beliefs = Beliefs::default();
            let mut threads = Vec::new();
            for _ in 0..2 {
                let builder = builder(&world).watchdog_lease(MS(300));
                let builder = builder.member_timeout(MS(100));
                let locks = builder.on_node(shelf.transport()).unwrap();
                let (beliefs, own) = (beliefs.clone(), world.clone());
                threads.push(world.thread(async move {
                    for _ in 0..2 {
                        let asked = beliefs.asked();
                        let Ok(guard) = locks.lock("a").acquire().await else {
                            continue;
                        };
                        let holding = beliefs.won(asked, &guard);
                        for _ in 0..3 {
                            holding.ask();
                            own.step().await;
                        }
                        drop(guard);
                    }
                }));
            }
            join(threads).await;
            world.quiet().await;
        },
    );
}
