//! More holds of one client than a node can renew or release at once.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use quorlock::transport::{
    Call, Cause, Channel, Intercept, Listener, Request, ServerNumber, Slot, Subscription,
    Transport, TransportError, UnfitName, Witness,
};
use quorlock::{EmbeddedNode, Guard, Locks, Name};
use quorlock_core::node::Held;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How long a node takes to renew or release one claim.
const COST: Duration = Duration::from_micros(100);

/// How long callers wait for an answer.
const CALL_TIMEOUT: Duration = Duration::from_millis(200);

/// A node that executes one request after another, even those whose callers no longer wait.
#[derive(Clone, Debug)]
struct Busy {
    node: EmbeddedNode,
    busy_until: Arc<Mutex<Instant>>,
    /// The number of requests that were not answered.
    waiting: Arc<AtomicUsize>,
    /// The limit of such requests. More are refused before they are sent.
    most_waiting: usize,
}

impl Busy {
    fn new(most_waiting: usize) -> Self {
        Busy {
            node: EmbeddedNode::new(),
            busy_until: Arc::new(Mutex::new(Instant::now())),
            waiting: Arc::default(),
            most_waiting,
        }
    }

    /// When the node has executed this request, after all earlier ones.
    fn done(&self, claims: usize) -> Instant {
        let mut busy_until = self.busy_until.lock().unwrap();
        let cost = COST * u32::try_from(claims).unwrap();
        *busy_until = (*busy_until).max(Instant::now()) + cost;
        *busy_until
    }
}

impl Busy {
    fn transport(&self) -> Intercept<EmbeddedNode> {
        let busy = self.clone();
        Intercept::new(self.node.clone()).on_call(move |_, request| busy.call(request))
    }

    fn call(&self, request: Request) -> Call {
        let claims = match &request {
            Request::Renew(ask) => ask.claims.len(),
            Request::Release(_) => 1,
            // Acquiring is not limited.
            _ => return self.node.call(request),
        };
        if self.most_waiting <= self.waiting.load(Ordering::Relaxed) {
            let error = TransportError::definite(Cause::Unreachable, "too many: nothing was sent");
            return Box::pin(std::future::ready(Err(error)));
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let (done, busy) = (self.done(claims), self.clone());
        let (answer, answered) = oneshot::channel();
        tokio::spawn(async move {
            sleep_until(done).await;
            let reply = busy.node.call(request).await;
            busy.waiting.fetch_sub(1, Ordering::Relaxed);
            let _ = answer.send(reply);
        });
        Box::pin(async move {
            match timeout(CALL_TIMEOUT, answered).await {
                Ok(Ok(reply)) => reply,
                _ => Err(TransportError::indeterminate(Cause::TimedOut, "no answer")),
            }
        })
    }
}

/// A node of two servers. The first has the names that begin with `many`, and may be silent.
#[derive(Clone, Debug)]
struct Divided {
    servers: [Busy; 2],
    is_silent: Arc<AtomicBool>,
}

impl Divided {
    fn new() -> Self {
        Divided {
            servers: [Busy::new(usize::MAX), Busy::new(usize::MAX)],
            is_silent: Arc::default(),
        }
    }

    fn index(name: &Name) -> usize {
        usize::from(!name.as_bytes().starts_with(b"many"))
    }
}

impl Transport for Divided {
    fn call(&self, request: Request) -> Call {
        let index = match &request {
            Request::Acquire(ask) => Divided::index(&ask.name),
            Request::Renew(ask) => Divided::index(&ask.claims[0].name),
            Request::Release(ask) => Divided::index(&ask.name),
            other => panic!("{other:?}"),
        };
        if index == 0 && self.is_silent.load(Ordering::Relaxed) {
            return Box::pin(async {
                sleep(CALL_TIMEOUT).await;
                Err(TransportError::indeterminate(Cause::TimedOut, "no answer"))
            });
        }
        self.servers[index].call(request)
    }

    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        self.servers[Divided::index(channel.name())]
            .node
            .subscribe(channel, listener)
    }

    fn attend(&self, _: Arc<dyn Witness>) -> Subscription {
        Subscription::new(())
    }

    fn slot(&self, name: &Name) -> Result<Slot, UnfitName> {
        Ok(Slot(u16::try_from(Divided::index(name)).unwrap()))
    }

    fn server(&self, slot: Slot) -> ServerNumber {
        ServerNumber(slot.0.into())
    }

    fn address(&self) -> &str {
        "divided"
    }
}

async fn hold(locks: &Locks, many: usize) -> Vec<Guard> {
    hold_names(locks, "many", many).await
}

async fn hold_names(locks: &Locks, prefix: &str, many: usize) -> Vec<Guard> {
    let mut guards = Vec::with_capacity(many);
    for number in 0..many {
        let lock = locks.lock(format!("{prefix}:{number}"));
        guards.push(lock.acquire().await.unwrap());
    }
    guards
}

/// Renewing all holds takes 0.6 of the second between two renewals, and three times the call time-out. If all were
/// sent at once, most would get no answer in time, and be sent again while the node still executes requests for which
/// no caller waits.
#[tokio::test(start_paused = true)]
async fn renewals_that_take_longer_than_a_call_may_lose_no_hold() {
    let node = Busy::new(usize::MAX);
    let builder = Locks::builder().watchdog_lease(Duration::from_secs(3));
    let locks = builder.on_node(node.transport()).unwrap();
    let guards = hold(&locks, 6_000).await;
    for second in 0..30 {
        let held = guards.iter().filter(|guard| guard.is_held()).count();
        assert_eq!(held, guards.len(), "after {second} s");
        sleep(Duration::from_secs(1)).await;
    }
}

/// One guard of each hold is dropped, and another one is left: the lower counts are sent as the node takes them.
#[tokio::test(start_paused = true)]
async fn counts_of_many_holds_are_lowered_as_the_node_takes_them() {
    let node = Busy::new(2_000);
    let locks = Locks::on_node(node.transport()).unwrap();
    let guards = hold(&locks, 5_000).await;
    let mut again = Vec::new();
    for guard in &guards {
        again.push(guard.reenter().await.unwrap());
    }
    drop(again);
    // Long before the next renewal, which states the count, too.
    sleep(Duration::from_secs(1)).await;
    let names = node.node.names();
    let held = names.iter().filter_map(|name| node.node.held(name));
    let high = held.filter(|(held, _)| !matches!(held, Held::Plain { count: 1, .. }));
    assert_eq!((names.len(), high.count()), (5_000, 0));
}

/// More than the connection accepts at once, and more than the node executes within the call time-out.
#[tokio::test(start_paused = true)]
async fn closing_gives_back_what_many_dropped_guards_held() {
    let node = Busy::new(2_000);
    let locks = Locks::on_node(node.transport()).unwrap();
    let guards = hold(&locks, 20_000).await;
    drop(guards);
    locks.close().await;
    assert_eq!(node.node.names().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn closing_gives_back_what_many_guards_hold() {
    let node = Busy::new(2_000);
    let locks = Locks::on_node(node.transport()).unwrap();
    let _guards = hold(&locks, 20_000).await;
    locks.close().await;
    assert_eq!(node.node.names().len(), 0);
}

/// Tries for a held name are dropped before they are answered. Most of their releases wait for room in the window, and
/// the refusals that arrive meanwhile show that nothing is left to release.
#[tokio::test(start_paused = true)]
async fn releases_that_are_not_needed_any_more_leave_their_room_to_others() {
    let node = EmbeddedNode::new().latency(Duration::from_millis(5));
    let locks = Locks::on_node(node.clone()).unwrap();
    let other = Locks::on_node(node).unwrap();
    let _held = other.lock("held").acquire().await.unwrap();
    let lock = locks.lock("held");
    let tries = (0..4_000).map(|_| Box::pin(lock.try_acquire()));
    let mut tries = join_all(tries);
    assert!((&mut tries).now_or_never().is_none());
    drop(tries);
    sleep(Duration::from_secs(1)).await;
    drop(locks.lock("free").acquire().await.unwrap());
    sleep(Duration::from_secs(1)).await;
    let free = other.lock("free").try_acquire().await.unwrap();
    assert!(free.is_some(), "a dropped guard is released");
    let closed = timeout(Duration::from_secs(60), locks.close()).await;
    assert!(closed.is_ok(), "closing ends");
}

/// A silent server of the node has more holds than the keeper sends at once. Their renewals, and the releases that
/// follow, time out again and again.
#[tokio::test(start_paused = true)]
async fn a_silent_server_ends_no_hold_at_another_server_of_the_node() {
    let node = Divided::new();
    let builder = Locks::builder().watchdog_lease(Duration::from_secs(3));
    let locks = builder.on_node(node.clone()).unwrap();
    let lost = hold(&locks, 30_000).await;
    let kept = hold_names(&locks, "few", 20).await;
    node.is_silent.store(true, Ordering::Relaxed);
    for quarter in 0..40 {
        let held = kept.iter().filter(|guard| guard.is_held()).count();
        assert_eq!(held, kept.len(), "after {quarter} quarters of a second");
        sleep(Duration::from_millis(250)).await;
    }
    assert!(lost.iter().all(|guard| !guard.is_held()));
}

/// Guards of both servers are dropped. The name at the healthy server is free at once.
#[tokio::test(start_paused = true)]
async fn a_silent_server_delays_no_release_at_another_server_of_the_node() {
    let node = Divided::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let other = Locks::on_node(node.clone()).unwrap();
    let (many, few) = (
        hold(&locks, 6_000).await,
        hold_names(&locks, "few", 1).await,
    );
    node.is_silent.store(true, Ordering::Relaxed);
    drop((many, few));
    // Much less than the time-out of the calls to the silent server.
    sleep(CALL_TIMEOUT / 20).await;
    let free = other.lock("few:0").try_acquire().await.unwrap();
    assert!(free.is_some());
}
