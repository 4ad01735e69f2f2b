//! A waiter that pauses while no server answers. It must try again soon after one does, however long its pause would
//! last.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorlock::runtime::{Runtime, Task, Time, Timer, TokioRuntime, WallMillis};
use quorlock::transport::Transport;
use quorlock::{Guard, Locks, RetryPolicy};
use tokio::task::JoinHandle;

use crate::turmoil_adapter::town::{Town, fail_over, transport};
use crate::turmoil_adapter::two_hosts::{Office, pass};

/// A runtime with the clocks and tasks of tokio. Its random numbers make each pause as long as possible.
#[derive(Debug, Default)]
struct Longest {
    inner: TokioRuntime,
    drawn: AtomicU64,
}

impl Runtime for Longest {
    fn now(&self) -> Time {
        self.inner.now()
    }

    fn wall_clock(&self) -> WallMillis {
        self.inner.wall_clock()
    }

    fn timer(&self) -> Box<dyn Timer> {
        self.inner.timer()
    }

    fn spawn(&self, task: Task) {
        self.inner.spawn(task);
    }

    fn random(&self) -> u64 {
        u64::MAX - self.drawn.fetch_add(1, Ordering::Relaxed)
    }
}

/// Returns a client whose pauses double without a bound.
fn client(transport: impl Transport) -> Locks {
    let hour = Duration::from_secs(3600);
    let connected = Locks::builder()
        .runtime(Arc::<Longest>::default())
        .member_timeout(Duration::from_millis(100))
        .retry(
            RetryPolicy::default()
                .backoff_cap(hour)
                .without_quorum(hour),
        )
        .on_node(transport);
    connected.expect("a configuration that can be used")
}

/// Waits for a name. Returns the guard and the time at which it was acquired.
fn wait_for(locks: &Locks, name: &str) -> JoinHandle<(Guard, Duration)> {
    let lock = locks.lock(name);
    tokio::task::spawn_local(async move {
        let guard = lock.acquire().await.expect("it is waited for");
        (guard, turmoil::elapsed())
    })
}

/// The length of an outage. After rounds that time out, the pauses are at most 0.2, 0.4, 0.8, 1.6 and 3.2 s.
const OUTAGE: Duration = Duration::from_millis(4_500);

/// The time within which a waiter is served: 200 ms between attempts to connect, a spread of 100 ms, and the round
/// trips.
const SOON: Duration = Duration::from_millis(400);

/// The waiter begins either before or after the primary stops. The stop closes the primary's connections or leaves
/// them open.
#[test]
fn a_waiter_is_served_soon_after_a_failover() {
    for (has_used, hangs_up) in [(true, true), (true, false), (false, true), (false, false)] {
        let town = Town::open();
        let hall = town.hall();
        town.run(async move {
            let locks = client(transport());
            if has_used {
                let used = locks.lock("used").acquire().await.unwrap();
                used.release().await.unwrap();
            }
            hall.stop("a");
            if hangs_up {
                hall.hang_up("a");
            }
            let waiter = wait_for(&locks, "x");
            pass(OUTAGE).await;
            assert!(!waiter.is_finished());
            fail_over(&hall);
            let promoted = turmoil::elapsed();
            let (guard, served) = waiter.await.unwrap();
            let took = served - promoted;
            assert!(took < SOON, "{has_used} {hangs_up}: {took:?}");
            assert!(hall.has("b", "x"));
            guard.release().await.unwrap();
        });
    }
}

/// The longest time between attempts to connect to one server is 1000 ms.
#[test]
fn a_waiter_is_served_soon_after_its_server_was_restarted() {
    let two_hosts = Office::open();
    let (transport, server) = (two_hosts.transport(), two_hosts.server());
    two_hosts.run(async move {
        let locks = client(transport);
        let used = locks.lock("used").acquire().await.unwrap();
        used.release().await.unwrap();
        server.crash();
        let waiter = wait_for(&locks, "x");
        // The rounds fail at once, and the pauses are at most 10, 20, ..., by now 5,120 ms.
        pass(Duration::from_millis(5_400)).await;
        assert!(!waiter.is_finished());
        server.restart();
        let restarted = turmoil::elapsed();
        let (guard, served) = waiter.await.unwrap();
        let took = served - restarted;
        assert!(took < SOON + Duration::from_secs(1), "{took:?}");
        guard.release().await.unwrap();
    });
}

/// Twenty waiters wait for twenty names. Each sends its own requests, but not all at the same time.
#[test]
fn waiters_do_not_rush_to_a_new_primary() {
    let town = Town::open();
    let hall = town.hall();
    town.run(async move {
        let locks = client(transport());
        hall.stop("a");
        let waiters: Vec<_> = (0..20)
            .map(|number| wait_for(&locks, &format!("x{number}")))
            .collect();
        pass(OUTAGE).await;
        let before = hall.accepted("b");
        fail_over(&hall);
        let promoted = turmoil::elapsed();
        for waiter in waiters {
            let (guard, served) = waiter.await.unwrap();
            assert!(served - promoted < SOON);
            guard.release().await.unwrap();
        }
        // The calls share one connection.
        assert_eq!(hall.accepted("b") - before, 1);
    });
}

/// The server accepts connections, and closes them at each request for a lock. This must not make requests more
/// frequent.
#[test]
fn a_server_that_hangs_up_at_each_request_is_asked_less_and_less() {
    let town = Town::open();
    let hall = town.hall();
    town.run(async move {
        let locks = client(transport());
        // A request of twelve words is a request for a lock. The release of a claim that it may have made has fewer
        // words.
        hall.hangs_up_at("a", "*12\r\n$7\r\nEVALSHA");
        let waiter = wait_for(&locks, "x");
        pass(Duration::from_secs(9)).await;
        // The pauses of 0.01, 0.02, ... 5.12 s are ended by a connection after 0.1, 0.2, ... 3.2 s at most.
        let tries = hall.accepted("a");
        assert!((5..=15).contains(&tries), "{tries}");
        waiter.abort();
    });
}
