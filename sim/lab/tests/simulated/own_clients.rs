//! Clients and invariants of a user. This is an example of the public interface.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use quorlock_sim_check::run::Verdict;
use quorlock_sim_lab::client::context::Context;
use quorlock_sim_lab::simulation::Simulation;
use quorlock_sim_plan::fault::{
    ClientFault, Direction, Fault, FaultKind, LinkFault, NodeFault, Suspended, Trigger,
};
use quorlock_sim_plan::generator::PlanGenerator;
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{LockKind, Nodes, Persistence, Plan, Watchdog, Workload};

/// The resource that the clients protect: a shop with one last piece.
#[derive(Default)]
struct Shop {
    inside: AtomicI64,
    most_inside: AtomicI64,
    sold: AtomicU64,
}

async fn sell(ctx: Context, shop: Arc<Shop>, takes: Duration) {
    let lock = ctx.lock(["last piece"]).lease(Duration::from_millis(200));
    loop {
        ctx.sleep(ctx.random_span(SimTime::millis(1), SimTime::millis(20)))
            .await;
        let Ok(guard) = lock.acquire().await else {
            continue;
        };
        let section = ctx.critical_section(&guard);
        let inside = shop.inside.fetch_add(1, Ordering::Relaxed) + 1;
        shop.most_inside.fetch_max(inside, Ordering::Relaxed);
        ctx.sleep(takes).await;
        if section.look(&guard) {
            shop.sold.fetch_add(1, Ordering::Relaxed);
        }
        shop.inside.fetch_sub(1, Ordering::Relaxed);
        drop(section);
        let _ = guard.release().await;
    }
}

#[test]
fn clients_of_my_own_keep_my_invariant_while_nodes_pause_and_networks_part() {
    let mut sold = 0;
    for seed in 0..20 {
        let shop = Arc::new(Shop::default());
        let plan = Plan {
            faults: PlanGenerator {
                faults: "cut,delay,pause-node,duplicate".parse().unwrap(),
                nodes: Some(5),
                clients: Some(3),
                ..PlanGenerator::default()
            }
            .plan(seed)
            .faults,
            ..Plan::default()
        };
        let clients = shop.clone();
        let simulation = Simulation::new(plan, move |ctx| {
            sell(ctx, clients.clone(), Duration::from_millis(5))
        });
        let run = simulation.run(seed);
        assert_eq!(run.verdict, Verdict::Holds, "seed {seed}");
        assert_eq!(shop.most_inside.load(Ordering::Relaxed), 1, "seed {seed}");
        sold += shop.sold.load(Ordering::Relaxed);
    }
    assert!(1_000 < sold, "{sold}");
}

#[test]
fn a_node_that_forgets_lets_two_of_them_in_and_the_checker_says_so() {
    let plan = Plan {
        lock: LockKind::Single,
        nodes: Nodes {
            count: 1,
            persistence: Persistence::Memory,
            ..Nodes::default()
        },
        workload: Workload {
            lease: SimTime::millis(200),
            ..Workload::default()
        },
        faults: (1..15)
            .map(|n| {
                Fault::of_node(SimTime::millis(100 * n), 0, NodeFault::Crash)
                    .lasting(SimTime::micros(100))
            })
            .collect(),
        ..Plan::default()
    };
    let simulation = Simulation::new(plan, |ctx| {
        sell(ctx, Arc::default(), Duration::from_millis(150))
    });
    let broken = (0..10).find_map(|seed| match simulation.run(seed).verdict {
        Verdict::Violated(violation) => Some(violation.property),
        _ => None,
    });
    assert_eq!(broken, Some(Property::Exclusion));
}

/// Holds a lock while the machine is suspended for longer than the lease. Records how soon after waking the holder
/// learns of the loss.
async fn sleep_through(ctx: Context, told_after: Arc<AtomicU64>) {
    let lock = ctx.lock(["bed"]).lease(Duration::from_secs(3));
    let Ok(guard) = lock.acquire().await else {
        return;
    };
    let began = ctx.now();
    guard.lost().await;
    let slept = ctx.now().since(began);
    told_after.store(slept.as_millis() as u64, Ordering::Relaxed);
}

/// The machine is suspended from 1 s to 31 s, with a lease that ends after 3 s. With a clock that counts that time,
/// the holder learns of the loss within a second of waking. With a clock that stops, it relies on the lock for two
/// more seconds.
#[test]
fn a_holder_that_slept_is_told_within_a_second_of_waking_if_its_clock_counts() {
    for (clock, told) in [
        (Suspended::Counts, 30_000..=31_001),
        (Suspended::Stops, 2_900..=2_968),
    ] {
        let told_after = Arc::new(AtomicU64::new(0));
        let plan = Plan {
            duration: SimTime::secs(40),
            clients: 1,
            faults: vec![
                Fault::of_client(SimTime::secs(1), 0, ClientFault::Suspend { clock })
                    .lasting(SimTime::secs(30)),
            ],
            ..Plan::default()
        };
        let place = told_after.clone();
        let _ = Simulation::new(plan, move |ctx| sleep_through(ctx, place.clone())).run(1);
        let after = told_after.load(Ordering::Relaxed);
        assert!(told.contains(&after), "{clock:?}: {after} ms");
    }
}

/// Acquisitions with a bounded wait, by their result, and how many of them lasted across a restart of the server.
#[derive(Default)]
struct Waits {
    won: AtomicU64,
    failed: AtomicU64,
    across: AtomicU64,
}

async fn wait_through(ctx: Context, waits: Arc<Waits>) {
    let lock = ctx.lock(["door"]).lease(Duration::from_millis(200));
    let lock = lock.wait(Duration::from_secs(3));
    loop {
        ctx.sleep(ctx.random_span(SimTime::millis(1), SimTime::millis(40)))
            .await;
        let began = ctx.now();
        let outcome = lock.acquire().await;
        let waited = ctx.now().since(began);
        match outcome {
            Ok(guard) => {
                // No other client holds the lock for so long, so the server was down in the meantime.
                let was_down = Duration::from_millis(700) < waited;
                waits
                    .across
                    .fetch_add(u64::from(was_down), Ordering::Relaxed);
                waits.won.fetch_add(1, Ordering::Relaxed);
                let section = ctx.critical_section(&guard);
                ctx.sleep(Duration::from_millis(3)).await;
                drop(section);
                let _ = guard.release().await;
            }
            Err(_) => {
                waits.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// A server restarts and is down for a second. A waiter with a bound of three seconds acquires the lock afterwards.
#[test]
fn a_wait_outlasts_a_restart_of_the_server_that_is_shorter() {
    let waits = Arc::new(Waits::default());
    for seed in 0..10 {
        let plan = Plan {
            duration: SimTime::secs(10),
            lock: LockKind::Single,
            clients: 2,
            nodes: Nodes {
                count: 1,
                persistence: Persistence::EveryWrite,
                ..Nodes::default()
            },
            faults: [1, 4, 7]
                .map(|second| {
                    Fault::of_node(SimTime::secs(second), 0, NodeFault::Crash)
                        .lasting(SimTime::secs(1))
                })
                .to_vec(),
            ..Plan::default()
        };
        let noted = waits.clone();
        let simulation = Simulation::new(plan, move |ctx| wait_through(ctx, noted.clone()));
        assert_eq!(simulation.run(seed).verdict, Verdict::Holds, "seed {seed}");
    }
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    assert_eq!(count(&waits.failed), 0, "{} won", count(&waits.won));
    // These are both clients of ten runs at each of three restarts, except clients that were not waiting at that time.
    assert!(40 < count(&waits.across), "{}", count(&waits.across));
}

/// Writes, reads during that hold, ends the write hold while the server is down, and keeps reading until the end.
async fn goes_on_reading(ctx: Context) {
    let owner = ctx.locks().owner();
    let Ok(writing) = owner.write("page").acquire().await else {
        return;
    };
    let Ok(reading) = owner.read("page").acquire().await else {
        return;
    };
    ctx.sleep(Duration::from_millis(200)).await;
    assert!(writing.release().await.is_err(), "the server is away");
    reading.lost().await;
}

/// Another client reads now and then. Every reader is admitted once the server is back, although one reader never
/// leaves.
#[test]
fn what_a_writer_could_not_release_does_not_keep_readers_out_for_as_long_as_it_reads() {
    for (lock, count) in [(LockKind::Single, 1), (LockKind::Redlock, 3)] {
        let entered = Arc::new(AtomicU64::new(0));
        let plan = Plan {
            lock,
            nodes: Nodes {
                count,
                ..Nodes::default()
            },
            workload: Workload {
                lease: SimTime::secs(30),
                watchdog: Watchdog::On,
                ..Workload::default()
            },
            duration: SimTime::secs(32),
            clients: 2,
            faults: vec![Fault {
                when: Trigger::At(SimTime::millis(200)),
                lasts: SimTime::secs(18),
                what: FaultKind::Link {
                    clients: vec![0],
                    nodes: (0..count).collect(),
                    direction: Direction::Both,
                    fault: LinkFault::Cut,
                },
            }],
            ..Plan::default()
        };
        let place = entered.clone();
        let simulation = Simulation::new(plan, move |ctx| {
            let entered = place.clone();
            async move {
                if ctx.client() == 0 {
                    return goes_on_reading(ctx).await;
                }
                loop {
                    ctx.sleep(Duration::from_secs(6)).await;
                    let lock = ctx.read(&["page".to_owned()]);
                    if let Ok(reading) = lock.wait(Duration::from_secs(1)).acquire().await {
                        entered.fetch_add(1, Ordering::Relaxed);
                        let _ = reading.release().await;
                    }
                }
            }
        });
        let run = simulation.run(1);
        let is_violated = matches!(run.verdict, Verdict::Violated(_));
        assert!(!is_violated, "{lock:?}: {:?}", run.verdict);
        assert!(0 < entered.load(Ordering::Relaxed), "{lock:?}");
    }
}

/// Keeps a future that is polled only once, and acquires the same lock with other futures.
async fn keep_an_idle_future(ctx: Context, waits: Arc<Waits>) {
    let lock = ctx.lock(["door"]).lease(Duration::from_millis(200));
    loop {
        let mut idle = Box::pin(lock.acquire());
        let once = poll_fn(|cx| Poll::Ready(idle.as_mut().poll(cx)));
        if let Poll::Ready(guard) = once.await {
            drop(guard);
            continue;
        }
        for _ in 0..5 {
            // A client that acquires again at once would leave the other client no time.
            ctx.sleep(ctx.random_span(SimTime::millis(1), SimTime::millis(40)))
                .await;
            let lock = lock.clone().wait(Duration::from_secs(5));
            let Ok(guard) = lock.acquire().await else {
                waits.failed.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            let section = ctx.critical_section(&guard);
            waits.won.fetch_add(1, Ordering::Relaxed);
            ctx.sleep(Duration::from_millis(3)).await;
            drop(section);
            let _ = guard.release().await;
        }
    }
}

/// The tasks of two clients keep futures that they do not poll. No client is blocked by its own future.
#[test]
fn a_client_that_keeps_a_future_and_does_not_poll_it_goes_on() {
    let waits = Arc::new(Waits::default());
    for seed in 0..10 {
        let plan = Plan {
            duration: SimTime::secs(10),
            clients: 2,
            ..Plan::default()
        };
        let noted = waits.clone();
        let simulation = Simulation::new(plan, move |ctx| keep_an_idle_future(ctx, noted.clone()));
        assert_eq!(simulation.run(seed).verdict, Verdict::Holds, "seed {seed}");
    }
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    assert_eq!(count(&waits.failed), 0);
    assert!(500 < count(&waits.won), "{}", count(&waits.won));
}

/// Moves money between two accounts, and uses nothing of the context except its locks and its clock.
async fn deposit(ctx: Context, deposits: Arc<AtomicU64>) {
    let lock = ctx.locks().lock("account");
    loop {
        ctx.sleep(Duration::from_millis(5)).await;
        let Ok(guard) = lock.acquire().await else {
            continue;
        };
        deposits.fetch_add(1, Ordering::Relaxed);
        let _ = guard.release().await;
    }
}

#[test]
fn a_run_whose_clients_worked_by_the_locks_alone_is_not_vacuous() {
    for (lock, count) in [(LockKind::Single, 1), (LockKind::Redlock, 3)] {
        let deposits = Arc::new(AtomicU64::new(0));
        let nodes = Nodes {
            count,
            ..Nodes::default()
        };
        let plan = Plan {
            lock,
            nodes,
            ..Plan::default()
        };
        let place = deposits.clone();
        let run = Simulation::new(plan, move |ctx| deposit(ctx, place.clone())).run(3);
        assert!(50 < deposits.load(Ordering::Relaxed));
        assert_eq!(run.verdict, Verdict::Holds, "{lock:?}");
    }
}

#[test]
fn a_run_whose_clients_acquired_nothing_is_vacuous() {
    let simulation = Simulation::new(Plan::default(), |ctx| async move {
        ctx.sleep(Duration::from_millis(5)).await;
    });
    assert_eq!(simulation.run(3).verdict, Verdict::Vacuous);
}
