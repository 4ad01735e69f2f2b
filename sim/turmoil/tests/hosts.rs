//! What turmoil does to hosts and links happens to the locks and their server.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use quorlock::{Locks, LocksBuilder, Lost};
use redis_sim::turmoil::Redis;
use turmoil::{Builder, Result, Sim};

const LEASE: Duration = Duration::from_secs(3);

fn simulation(seed: u64) -> Sim<'static> {
    Builder::new()
        .rng_seed(seed)
        .epoch(SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600))
        .simulation_duration(Duration::from_secs(60))
        .max_message_latency(Duration::from_millis(10))
        .build()
}

/// Returns the settings of locks that end three seconds after their last renewal.
fn builder(seed: u64) -> LocksBuilder {
    quorlock_turmoil::builder(seed).watchdog_lease(LEASE)
}

async fn connected(builder: LocksBuilder) -> Result<Locks> {
    Ok(builder.connect("redis://redis/").await?)
}

#[expect(clippy::disallowed_methods, reason = "the time of a simulated host")]
async fn pass(span: Duration) {
    tokio::time::sleep(span).await;
}

/// Runs a simulation up to this time after its beginning.
fn run_to(sim: &mut Sim<'_>, seconds: u64) {
    while sim.elapsed() < Duration::from_secs(seconds) {
        sim.step().expect("no host fails");
    }
}

/// A host that holds the lock "a" from its start until it loses it or its process ends.
fn hold_forever(sim: &mut Sim<'_>) -> Rc<Cell<Option<Lost>>> {
    let lost = Rc::new(Cell::new(None));
    let seen = Rc::clone(&lost);
    sim.host("holder", move || {
        let seen = Rc::clone(&seen);
        async move {
            let locks = connected(builder(1)).await?;
            let guard = locks.lock("a").acquire().await?;
            seen.set(Some(guard.lost().await));
            std::future::pending().await
        }
    });
    lost
}

/// Acquires the lock "a" on a host of its own, and returns how long that took.
fn time_to_lock(sim: &mut Sim<'_>) -> Duration {
    let began = sim.elapsed();
    sim.client("next", async {
        let locks = connected(builder(2)).await?;
        let guard = locks.lock("a").acquire().await?;
        guard.release().await?;
        Ok(())
    });
    sim.run().expect("the lock is acquired");
    sim.elapsed() - began
}

#[test]
fn a_lock_is_renewed_in_virtual_time() {
    let mut sim = simulation(1);
    sim.host("redis", Redis::new(1).software());
    let lost = hold_forever(&mut sim);
    run_to(&mut sim, 50);
    assert_eq!(lost.get(), None);
}

#[test]
fn the_claim_of_a_crashed_client_lasts_until_its_lease_ends() {
    let mut sim = simulation(1);
    sim.host("redis", Redis::new(1).software());
    hold_forever(&mut sim);
    run_to(&mut sim, 10);
    sim.crash("holder");
    let took = time_to_lock(&mut sim);
    assert!(
        Duration::from_secs(1) < took,
        "{took:?}: nothing was released"
    );
    assert!(took < LEASE + Duration::from_millis(300), "{took:?}");
}

#[test]
fn a_crash_of_the_server_forgets_its_keys_unless_it_is_persistent() {
    for is_persistent in [false, true] {
        let redis = Redis::new(1);
        let redis = if is_persistent {
            redis.persistent()
        } else {
            redis
        };
        let mut sim = simulation(1);
        sim.host("redis", redis.software());
        hold_forever(&mut sim);
        run_to(&mut sim, 10);
        // The holder cannot renew any more, and only the server knows its claim.
        sim.crash("holder");
        sim.crash("redis");
        sim.bounce("redis");
        let took = time_to_lock(&mut sim);
        let had_to_wait = Duration::from_secs(1) < took;
        assert_eq!(had_to_wait, is_persistent, "{took:?}");
    }
}

#[test]
fn a_partition_that_outlasts_the_lease_loses_the_lock() {
    let mut sim = simulation(1);
    sim.host("redis", Redis::new(1).software());
    let lost = hold_forever(&mut sim);
    run_to(&mut sim, 10);
    sim.partition("holder", "redis");
    run_to(&mut sim, 11);
    assert_eq!(lost.get(), None, "the lease has not ended");
    run_to(&mut sim, 14);
    assert_eq!(lost.get(), Some(Lost::Unreachable));
}

#[test]
fn held_messages_delay_a_lock_and_released_ones_grant_it() {
    let mut sim = simulation(1);
    sim.host("redis", Redis::new(1).software());
    let granted = Rc::new(Cell::new(None));
    let seen = Rc::clone(&granted);
    sim.client("worker", async move {
        let locks = connected(builder(1)).await?;
        pass(Duration::from_secs(1)).await;
        let guard = locks.lock("a").acquire().await?;
        seen.set(turmoil::sim_elapsed());
        guard.release().await?;
        Ok(())
    });
    run_to(&mut sim, 1);
    sim.hold("worker", "redis");
    run_to(&mut sim, 5);
    assert_eq!(granted.get(), None);
    sim.release("worker", "redis");
    sim.run().expect("the lock is acquired");
    assert!(Some(Duration::from_secs(5)) <= granted.get());
}

#[test]
fn the_server_fails_as_the_test_says() {
    let redis = Redis::new(1);
    let mut sim = simulation(1);
    sim.host("redis", redis.software());
    hold_forever(&mut sim);
    run_to(&mut sim, 10);
    sim.crash("holder");
    redis.server().flush();
    let took = time_to_lock(&mut sim);
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// Two workers hold a lock in turn while each is cut off now and then. Returns what happened, and when.
fn take_turns(seed: u64) -> Vec<String> {
    let log = Rc::new(RefCell::new(Vec::new()));
    let inside = Rc::new(Cell::new(0));
    let locks = builder(seed);
    let mut sim = simulation(seed);
    sim.host("redis", Redis::new(seed).software());
    for worker in ["ann", "bob"] {
        let (log, inside, locks) = (Rc::clone(&log), Rc::clone(&inside), locks.clone());
        let note = move |what: String| {
            let at = turmoil::sim_elapsed().expect("a host");
            log.borrow_mut().push(format!("{at:?} {worker} {what}"));
        };
        sim.client(worker, async move {
            let locks = connected(locks).await?;
            for _ in 0..5 {
                let guard = match locks.lock("a").acquire().await {
                    Ok(guard) => guard,
                    Err(error) => {
                        note(format!("{error}"));
                        continue;
                    }
                };
                note(format!(
                    "holds {}, {}",
                    guard.fencing_token(),
                    guard.owner_id()
                ));
                inside.set(inside.get() + 1);
                assert_eq!(inside.get(), 1, "one at a time");
                pass(Duration::from_millis(300)).await;
                inside.set(inside.get() - 1);
                note(format!("{:?}", guard.release().await));
            }
            Ok(())
        });
    }
    while !sim.step().expect("the workers come to their end") {
        match sim.elapsed().as_millis() {
            700 => sim.partition("ann", "redis"),
            1_200 => sim.repair("ann", "redis"),
            1_900 => sim.partition_oneway("redis", "bob"),
            2_400 => sim.repair_oneway("redis", "bob"),
            _ => {}
        }
    }
    log.take()
}

#[test]
fn a_run_depends_on_its_seed_alone() {
    let first = take_turns(3);
    assert_eq!(
        first.iter().filter(|line| line.contains("holds")).count(),
        10,
        "{first:#?}"
    );
    assert_eq!(first, take_turns(3));
    assert_ne!(first, take_turns(4));
}
