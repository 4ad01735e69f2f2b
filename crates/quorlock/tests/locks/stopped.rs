//! A process is suspended at a reading of its clock. The reading is old when the process takes in a reply that arrived
//! meanwhile. The tests cover every reading of a try.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it fails by panicking"
)]

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock::runtime::{Runtime, Task, Time, Timer, WallMillis};
use quorlock::transport::{Call, Intercept, Reply, Request, Transport, TransportError};
use quorlock::{EmbeddedNode, Guard, Locks, LocksBuilder};

const MS: fn(u64) -> Duration = Duration::from_millis;
/// The lease of every claim in these tests, and the longest lease.
const LEASE: Duration = Duration::from_secs(2);
/// For how long the process is suspended.
const STOP: Duration = Duration::from_secs(1);
/// The lease and its drift allowance.
const OVER: Duration = Duration::from_millis(2_022);

/// What happens while the process is suspended.
type Meanwhile = Box<dyn FnOnce() + Send>;

/// True time, which all clocks show.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn now(&self) -> Time {
        Time::from_nanos(self.0.load(Ordering::SeqCst))
    }

    fn pass(&self, span: Duration) {
        let nanos = u64::try_from(span.as_nanos()).unwrap();
        self.0.fetch_add(nanos, Ordering::SeqCst);
    }
}

/// The runtime of one process, polled by hand.
struct Process {
    clock: Clock,
    drawn: AtomicU64,
    tasks: Mutex<Vec<Task>>,
    /// How many more readings of the clock there are before the suspension, and what happens then.
    stop: Mutex<Option<(usize, Meanwhile)>>,
}

impl Process {
    fn new(clock: &Clock, number: u64) -> Arc<Self> {
        Arc::new(Process {
            clock: clock.clone(),
            drawn: AtomicU64::new(number << 56),
            tasks: Mutex::default(),
            stop: Mutex::default(),
        })
    }

    fn stop_at(&self, reading: usize, meanwhile: Meanwhile) {
        *self.stop.lock().unwrap() = Some((reading, meanwhile));
    }

    /// Whether it was suspended.
    fn has_stopped(&self) -> bool {
        self.stop.lock().unwrap().take().is_none()
    }

    fn run_background(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap());
        tasks.retain_mut(|task| poll(task.as_mut()).is_pending());
        self.tasks.lock().unwrap().append(&mut tasks);
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Process")
    }
}

impl Runtime for Process {
    fn now(&self) -> Time {
        let reading = self.clock.now();
        let meanwhile = {
            let mut stop = self.stop.lock().unwrap();
            match stop.take() {
                Some((0, meanwhile)) => Some(meanwhile),
                Some((left, meanwhile)) => {
                    *stop = Some((left - 1, meanwhile));
                    None
                }
                None => None,
            }
        };
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        reading
    }

    fn wall_clock(&self) -> WallMillis {
        WallMillis(1_800_000_000_000 + self.clock.0.load(Ordering::SeqCst) / 1_000_000)
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(ByHand(self.clock.clone()))
    }

    fn spawn(&self, task: Task) {
        self.tasks.lock().unwrap().push(task);
    }

    fn random(&self) -> u64 {
        self.drawn.fetch_add(1 << 20, Ordering::SeqCst)
    }
}

/// A timer that wakes no task: everything is polled repeatedly.
struct ByHand(Clock);

impl Timer for ByHand {
    fn poll_until(&mut self, _: &mut Context<'_>, at: Time) -> Poll<()> {
        match at <= self.0.now() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Runs a future that must complete without waiting.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match poll(pin!(future)) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits for something"),
    }
}

type Outcome = Result<Reply, TransportError>;

/// The place in which the outcome of a request is stored.
type Answer = Arc<Mutex<Option<Outcome>>>;

/// A transport on which requests wait until they are let through.
#[derive(Clone)]
struct Way {
    node: EmbeddedNode,
    clock: Clock,
    answered: Arc<Mutex<Option<Time>>>,
    is_open: Arc<Mutex<bool>>,
    waiting: Arc<Mutex<Vec<(Request, Answer)>>>,
}

impl Way {
    fn to(node: &EmbeddedNode, clock: &Clock) -> Self {
        Way {
            node: node.clone(),
            clock: clock.clone(),
            answered: Arc::default(),
            is_open: Arc::new(Mutex::new(false)),
            waiting: Arc::default(),
        }
    }

    /// Delivers the waiting requests to the node, which answers at once.
    fn let_through(&self) {
        for (request, answer) in std::mem::take(&mut *self.waiting.lock().unwrap()) {
            let outcome = at_once(self.node.call(request));
            let mut answered = self.answered.lock().unwrap();
            *answered = answered.or(Some(self.clock.now()));
            *answer.lock().unwrap() = Some(outcome);
        }
    }

    /// When the node first answered.
    fn answered(&self) -> Time {
        self.answered.lock().unwrap().unwrap()
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.let_through();
    }
}

impl Way {
    fn transport(&self) -> Intercept<EmbeddedNode> {
        let way = self.clone();
        Intercept::new(self.node.clone()).on_call(move |_, request| way.call(request))
    }

    fn call(&self, request: Request) -> Call {
        let answer = Answer::default();
        let waiting = (request, answer.clone());
        self.waiting.lock().unwrap().push(waiting);
        if *self.is_open.lock().unwrap() {
            self.let_through();
        }
        Box::pin(std::future::poll_fn(move |_| {
            match answer.lock().unwrap().take() {
                Some(outcome) => Poll::Ready(outcome),
                None => Poll::Pending,
            }
        }))
    }
}

/// A contender in its own process, and the transports to its nodes.
struct Contender {
    process: Arc<Process>,
    ways: Vec<Way>,
    locks: Locks,
}

impl Contender {
    fn new(clock: &Clock, nodes: &[EmbeddedNode], builder: LocksBuilder) -> Self {
        let process = Process::new(clock, 2);
        let ways: Vec<_> = nodes.iter().map(|node| Way::to(node, clock)).collect();
        let builder = builder.longest_lease(LEASE).watchdog_lease(LEASE);
        let builder = builder.clock_margin(LEASE).runtime(process.clone());
        Contender {
            locks: builder.on_nodes(ways.iter().map(Way::transport)).unwrap(),
            process,
            ways,
        }
    }

    /// One try: its requests are sent, it is polled once more for another reason, and it is answered.
    fn first_try(&self) -> Option<Guard> {
        let lock = self.locks.lock("a").lease(LEASE);
        let mut lock = pin!(lock.try_acquire());
        for _ in 0..2 {
            if let Poll::Ready(won) = poll(lock.as_mut()) {
                return won.ok().flatten();
            }
        }
        self.ways.iter().for_each(Way::open);
        loop {
            if let Poll::Ready(won) = poll(lock.as_mut()) {
                return won.ok().flatten();
            }
        }
    }

    fn next_try(&self) -> Option<Guard> {
        self.ways.iter().for_each(Way::open);
        self.process.run_background();
        let lock = self.locks.lock("a").lease(LEASE);
        at_once(lock.try_acquire()).ok().flatten()
    }
}

fn nodes(clock: &Clock, many: usize) -> Vec<EmbeddedNode> {
    let process = Process::new(clock, 3);
    let nodes = (0..many).map(|_| EmbeddedNode::with_runtime(process.clone()));
    nodes.collect()
}

/// The holder renews while the contender is suspended, and the reply to the contender shows that. Returns until when
/// both report that they hold the lock.
fn both_hold(many: usize, reading: usize) -> Option<Duration> {
    let clock = Clock::default();
    clock.pass(MS(5_000));
    let nodes = nodes(&clock, many);
    let holder = Locks::builder().longest_lease(LEASE).watchdog_lease(LEASE);
    let holder = holder.clock_margin(LEASE).trust_fresh_nodes();
    let holder = holder.runtime(Process::new(&clock, 1));
    let holder = holder.on_nodes(nodes.clone()).unwrap();
    let held = at_once(holder.lock("a").lease(LEASE).acquire()).unwrap();
    let held = Arc::new(held);

    let contender = Contender::new(&clock, &nodes, Locks::builder().trust_fresh_nodes());
    let meanwhile = {
        let (clock, held, ways) = (clock.clone(), held.clone(), contender.ways.clone());
        Box::new(move || {
            clock.pass(STOP);
            at_once(held.extend(LEASE)).unwrap();
            ways.iter().for_each(Way::let_through);
        })
    };
    contender.process.stop_at(reading, meanwhile);
    let mut won = contender.first_try();
    if !contender.process.has_stopped() {
        return None;
    }
    while won.is_none() {
        clock.pass(MS(10));
        won = contender.next_try();
    }
    Some(held.validity())
}

/// The contender read its clock, was suspended for a second, and took in a reply that arrived meanwhile. Dated by
/// that reading, the holder's last claim version seemed to be a second older than it was.
#[test]
fn a_claim_is_not_replaced_early_wherever_the_contender_is_stopped() {
    for many in [1, 3] {
        let mut readings = 0;
        while let Some(left) = both_hold(many, readings) {
            assert_eq!(
                left,
                Duration::ZERO,
                "{many} nodes, stopped at reading {readings}: both say held for so long"
            );
            readings += 1;
        }
        assert!(2 < readings, "only {readings} readings");
    }
}

/// New nodes answer while the client is suspended. Returns how long after their answer they are trusted.
fn trusted_after(reading: usize) -> Option<Duration> {
    let clock = Clock::default();
    clock.pass(MS(5_000));
    let nodes = nodes(&clock, 3);
    let client = Contender::new(&clock, &nodes, Locks::builder());
    let meanwhile = {
        let (clock, ways) = (clock.clone(), client.ways.clone());
        Box::new(move || {
            clock.pass(STOP);
            ways.iter().for_each(Way::let_through);
        })
    };
    client.process.stop_at(reading, meanwhile);
    let mut won = client.first_try();
    if !client.process.has_stopped() {
        return None;
    }
    while won.is_none() {
        clock.pass(MS(10));
        won = client.next_try();
    }
    let answered = client.ways.iter().map(Way::answered).min().unwrap();
    Some(clock.now().since(answered))
}

#[test]
fn a_new_node_is_not_trusted_early_wherever_the_client_is_stopped() {
    let mut readings = 0;
    while let Some(span) = trusted_after(readings) {
        assert!(
            OVER <= span,
            "stopped at reading {readings}: after {span:?}"
        );
        readings += 1;
    }
    assert!(2 < readings, "only {readings} readings");
}
