//! The context of a client: everything that a simulation gives to one client process.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use quorlock::runtime::{Runtime, Time, Timer};
use quorlock::transport::Transport;
use quorlock::{Candidate, Lock, Locks, LocksBuilder, RetryPolicy};

use quorlock_sim_plan::draw::{Draw, Purpose, scaled};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{LockKind, Plan};
use quorlock_sim_world::engine::clients;
use quorlock_sim_world::history::NameId;
use quorlock_sim_world::history::own::Mark;
use quorlock_sim_world::seam::runtime::{SimRuntime, SimTimer};
use quorlock_sim_world::world::id::{Id, ProcessId, first};
use quorlock_sim_world::world::medium::Medium;
use quorlock_sim_world::world::stop::Stop;
use quorlock_sim_world::world::with;

/// The error of a future that was dropped by a fault of the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("cancelled by the plan")]
pub struct Cancelled;

/// One client process of a simulation: its locks, its clock and its randomness.
///
/// Cheap to clone. Only the future that receives it may use it.
#[derive(Clone)]
pub struct Context {
    who: ProcessId,
    plan: Rc<Plan>,
    /// The product's client for all nodes, or one client for each node if a lock takes one name from each node.
    locks: Rc<[Locks]>,
    transports: Rc<[Arc<dyn Transport>]>,
    /// The number of further clients of the product that were created since the process started.
    made: Rc<std::cell::Cell<u16>>,
    draw: Rc<std::cell::RefCell<Draw>>,
}

impl Context {
    /// Creates the context of a process. The medium carries what it sends to nodes.
    #[must_use]
    pub fn new(who: ProcessId, plan: &Rc<Plan>, medium: &dyn Medium) -> Self {
        let draw = Draw::new(plan.seed, Purpose::Workload, who.stream());
        let seats = first(plan.nodes.count);
        let transports: Rc<[Arc<dyn Transport>]> =
            seats.map(|seat| medium.transport(who, seat)).collect();
        Context {
            who,
            plan: Rc::clone(plan),
            locks: locks(who, plan, &transports),
            transports,
            made: Rc::default(),
            draw: Rc::new(draw.into()),
        }
    }

    /// Returns the number of the client, from 0.
    #[must_use]
    pub fn client(&self) -> u16 {
        self.who.client.get()
    }

    /// Returns how often the client was restarted before this process.
    #[must_use]
    pub fn restarts(&self) -> u16 {
        self.who.restarts
    }

    /// Returns the plan of this run.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the client of the product. With [`LockKind::Multi`], this is the client for the first node.
    ///
    /// # Panics
    /// Does not panic, because every plan has at least one node.
    #[must_use]
    pub fn locks(&self) -> &Locks {
        self.locks.first().expect("BUG: a plan without nodes")
    }

    /// Creates a lock of one or more names, according to the plan's kind of lock. With [`LockKind::Multi`] the names
    /// are distributed over the nodes; otherwise they all use the same nodes.
    ///
    /// # Panics
    /// Panics if there are no names, or if one of them is not a valid name.
    pub fn lock<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Lock {
        self.lock_by(names, |locks, name| locks.lock(name))
    }

    /// Creates a fair lock of one or more names, like [`Context::lock`].
    ///
    /// With [`LockKind::Redlock`], acquiring the lock is an error, because the queues of several nodes have no common
    /// order.
    ///
    /// # Panics
    /// Panics like [`Context::lock`].
    pub fn fair<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Lock {
        self.lock_by(names, |locks, name| locks.fair(name))
    }

    /// Creates a read lock of one or more names, like [`Context::lock`].
    ///
    /// # Panics
    /// Panics like [`Context::lock`].
    pub fn read<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Lock {
        self.lock_by(names, |locks, name| locks.read(name))
    }

    /// Creates a write lock of one or more names, like [`Context::lock`].
    ///
    /// # Panics
    /// Panics like [`Context::lock`].
    pub fn write_lock<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Lock {
        self.lock_by(names, |locks, name| locks.write(name))
    }

    fn lock_by<N: AsRef<str>>(
        &self,
        names: impl IntoIterator<Item = N>,
        make: impl Fn(&Locks, &str) -> Lock,
    ) -> Lock {
        let mut parts = names.into_iter().map(|name| {
            let locks = self.locks.get(usize::from(self.place_of(name.as_ref())));
            make(locks.unwrap_or(self.locks()), name.as_ref())
        });
        let first = parts.next().expect("the names of a lock");
        first.and(parts)
    }

    /// Returns the index of this process's client for a name.
    fn place_of(&self, name: &str) -> u16 {
        let place = with(|world| world.history.name(name)).0;
        place % u16::try_from(self.locks.len()).unwrap_or(1)
    }

    /// Creates another client for a name, which starts later and has its own clock. Applies only to
    /// [`LockKind::Multi`]; for other locks, returns the existing client.
    ///
    /// # Panics
    /// Does not panic, because the plan has been checked.
    #[must_use]
    pub fn another_client_of(&self, name: &str) -> Locks {
        let place = self.place_of(name);
        let transport = self.transports.get(usize::from(place));
        let Some(transport) = transport.filter(|_| self.plan.lock == LockKind::Multi) else {
            return self.locks().clone();
        };
        self.made.set(self.made.get() + 1);
        let of_its_own = self.plan.nodes.count.saturating_add(self.made.get());
        let runtime = SimRuntime::of(self.who, self.plan.seed, of_its_own);
        let locks = builder(&self.plan, self.who, place, runtime).on_node(transport.clone());
        locks.expect("the plan was checked")
    }

    /// Returns the client for a name. With [`LockKind::Multi`], this is the client for the node of the name.
    #[must_use]
    pub fn client_of(&self, name: &str) -> Locks {
        let locks = self.locks.get(usize::from(self.place_of(name)));
        locks.unwrap_or(self.locks()).clone()
    }

    /// Creates a candidate of the product for the leadership of a name.
    pub fn candidate(&self, name: &str) -> Candidate {
        self.locks().leader(name)
    }

    /// Returns the reading of this process's wall clock, in milliseconds since 1970.
    #[must_use]
    pub fn wall_clock(&self) -> u64 {
        SimRuntime::new(self.who).wall_clock().0
    }

    /// Returns the reading of this process's monotonic clock.
    #[must_use]
    pub fn now(&self) -> Time {
        with(|world| Time::from_nanos(clients::read_monotonic(world, self.who)))
    }

    /// Sleeps for this long by the clock of this process.
    pub async fn sleep(&self, span: Duration) {
        let at = self.now() + span;
        let mut timer = SimTimer::new(self.who);
        poll_fn(|cx| timer.poll_until(cx, at)).await;
    }

    /// Draws a number in `min..=max` from the seed.
    #[must_use]
    pub fn random(&self, min: u64, max: u64) -> u64 {
        let bits = self.draw.borrow_mut().bits();
        scaled(with(|world| world.drawn(bits)), min, max)
    }

    /// Draws a duration in `min..=max` from the seed.
    #[must_use]
    pub fn random_span(&self, min: SimTime, max: SimTime) -> Duration {
        Duration::from_nanos(self.random(min.as_nanos(), max.as_nanos()))
    }

    /// Stops this process after the `nth` use of its clocks, timers, randomness or network from now on, where 1 is the
    /// next one. The process continues after `lasts`. The rest of the world continues during the stop, so what the process
    /// has read is out of date. Works only in the fast lane.
    ///
    /// A pause, in contrast, takes effect between two steps, or delays what the process sends.
    pub fn stop_inside(&self, nth: u32, lasts: Duration) {
        let lasts = u64::try_from(lasts.as_nanos()).unwrap_or(u64::MAX);
        let stop = Stop::new(nth, lasts, None);
        with(|world| clients::stop_inside(world, self.who.client, stop));
    }

    /// Waits for a future. If a fault of the plan cancels it, the future is dropped at the point that it has reached.
    ///
    /// # Errors
    /// Returns [`Cancelled`] if a fault dropped the future.
    pub async fn cancellable<T>(&self, future: impl Future<Output = T>) -> Result<T, Cancelled> {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let polled = future.as_mut().poll(cx);
            match polled {
                Poll::Ready(output) => Poll::Ready(Ok(output)),
                Poll::Pending if with(|world| clients::is_cancelled(world, self.who)) => {
                    Poll::Ready(Err(Cancelled))
                }
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Puts a mark on the time line of this client, like [`mark!`](crate::mark). The page of a failure shows it.
    pub fn mark(&self, text: impl Into<String>) {
        let text = text.into();
        let process = Some(self.who.process());
        with(|world| {
            let at = world.moment(self.who);
            world.history.marks.push(Mark { at, process, text });
        });
    }

    /// Returns the id of a name in the history.
    #[must_use]
    pub fn name(&self, name: &str) -> NameId {
        with(|world| world.history.name(name))
    }

    /// Returns the process.
    #[must_use]
    pub fn who(&self) -> ProcessId {
        self.who
    }

    /// Returns the transports to the nodes of the plan.
    #[must_use]
    pub fn transports(&self) -> &Rc<[Arc<dyn Transport>]> {
        &self.transports
    }
}

/// Returns the settings of the client for the node at an index, or of the client for all nodes.
fn builder(plan: &Plan, who: ProcessId, place: u16, runtime: SimRuntime) -> LocksBuilder {
    let lease = plan.lease_of(who.client.get());
    let longest = plan.longest_lease_on(place).max(lease);
    let policy = RetryPolicy::default();
    let backoff_cap = plan.workload.backoff_cap.as_duration();
    let policy = policy
        .backoff(policy.backoff.min(backoff_cap))
        .backoff_cap(backoff_cap)
        .poll_cap(plan.workload.poll_cap.as_duration());
    let builder = Locks::builder();
    let builder = match plan.workload.max_hold {
        Some(max) => builder.max_hold(max.as_duration()),
        None => builder,
    };
    builder
        .retry(policy)
        .watchdog_lease(lease.as_duration())
        .longest_lease(longest.as_duration())
        .node_trust(plan.node_trust())
        .clock_margin(plan.clock_margin().as_duration())
        .watch_claims(plan.remedies.watch_claims)
        .runtime(Arc::new(runtime))
}

fn locks(who: ProcessId, plan: &Plan, transports: &Rc<[Arc<dyn Transport>]>) -> Rc<[Locks]> {
    let first = || {
        transports
            .first()
            .expect("BUG: a plan without nodes")
            .clone()
    };
    let locks = match plan.lock {
        LockKind::Single => vec![builder(plan, who, 0, SimRuntime::new(who)).on_node(first())],
        LockKind::Redlock => {
            let nodes = transports.iter().cloned();
            vec![builder(plan, who, 0, SimRuntime::new(who)).on_nodes(nodes)]
        }
        LockKind::Multi => transports
            .iter()
            .zip(0..)
            .map(|(node, seat)| {
                let runtime = SimRuntime::of(who, plan.seed, seat);
                builder(plan, who, seat, runtime).on_node(node.clone())
            })
            .collect(),
    };
    let locks: Result<Vec<Locks>, _> = locks.into_iter().collect();
    locks.expect("the plan was checked").into()
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("client", &self.client())
            .field("restarts", &self.who.restarts)
            .finish_non_exhaustive()
    }
}
