//! What a client of a simulation has in its hands.

mod office;
mod record;
mod section;
mod worth;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use quorlock::{Candidate, Lock, Locks, LocksBuilder, RetryPolicy, Runtime, Time, Timer};

pub use office::{Candidacy, LeadershipRecord};
pub use record::{Cancelled, Fencing, HeldLock};
pub use section::SectionHandle;

use crate::client::subject::{Hold, Subject};
use crate::engine::clients;
use crate::history::own::Mark;
use crate::history::{Access, HoldId, NameId};
use crate::model;
use crate::plan::draw::{Draw, Purpose};
use crate::plan::time::SimTime;
use crate::plan::{LockKind, Plan};
use crate::seam::runtime::{SimRuntime, SimTimer};
use crate::seam::transport::SimTransport;
use crate::world::id::{Id, ProcessId, first};
use crate::world::medium::Medium;
use crate::world::stop::Stop;
use crate::world::with;

/// One client process of a simulation: its locks, its clock, its randomness, the store, and the marks by which the
/// checkers follow it.
///
/// Cheap to clone. It is used by the future that it was given to and by no other.
#[derive(Clone)]
pub struct Context {
    who: ProcessId,
    plan: Rc<Plan>,
    /// One of all nodes, or one of each node for a lock that takes one name from each.
    locks: Rc<[Locks]>,
    transports: Rc<[SimTransport]>,
    /// How many clients of the product were made since.
    made: Rc<std::cell::Cell<u16>>,
    /// What takes the place of the product, if the plan says so.
    variant: Option<Rc<model::ModelClient>>,
    draw: Rc<std::cell::RefCell<Draw>>,
}

impl Context {
    pub(crate) fn new(who: ProcessId, plan: &Rc<Plan>, medium: &dyn Medium) -> Self {
        let draw = Draw::new(plan.seed, Purpose::Workload, who.stream());
        let seats = first(plan.nodes.count);
        let transports: Rc<[SimTransport]> = seats
            .map(|seat| SimTransport::new(medium, who, seat))
            .collect();
        Context {
            who,
            plan: Rc::clone(plan),
            locks: locks(who, plan, &transports),
            variant: model::ModelClient::new(who, plan, &transports),
            transports,
            made: Rc::default(),
            draw: Rc::new(draw.into()),
        }
    }

    /// Which client this is, from 0.
    #[must_use]
    pub fn client(&self) -> u16 {
        self.who.client.get()
    }

    /// How often it was restarted before.
    #[must_use]
    pub fn restarts(&self) -> u16 {
        self.who.restarts
    }

    /// The plan that is run.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The client of the product. With [`LockKind::Multi`] it is that of the first node.
    ///
    /// # Panics
    /// Never: a plan has nodes.
    #[must_use]
    pub fn locks(&self) -> &Locks {
        self.locks.first().expect("BUG: a plan without nodes")
    }

    /// A lock of one name or several, as the plan's kind of lock has it: with [`LockKind::Multi`] name after name on
    /// node after node, otherwise all on the same nodes.
    ///
    /// # Panics
    /// Without names, or with one that cannot be one.
    pub fn lock<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Lock {
        self.lock_by(names, |locks, name| locks.lock(name))
    }

    /// The same by fair locks. With [`LockKind::Redlock`] acquiring it is an error: several queues have no common order.
    ///
    /// # Panics
    /// As [`Context::lock`].
    pub fn fair<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Lock {
        self.lock_by(names, |locks, name| locks.fair(name))
    }

    /// The same by the locks of a reader.
    ///
    /// # Panics
    /// As [`Context::lock`].
    pub fn read<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Lock {
        self.lock_by(names, |locks, name| locks.read(name))
    }

    /// The same by the locks of a writer.
    ///
    /// # Panics
    /// As [`Context::lock`].
    pub fn write_lock<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Lock {
        self.lock_by(names, |locks, name| locks.write(name))
    }

    fn lock_by<N: AsRef<str>>(
        &self,
        names: impl IntoIterator<Item = N>,
        make: impl Fn(&Locks, &str) -> Lock,
    ) -> Lock {
        let parts = names.into_iter().map(|name| {
            let locks = self.locks.get(usize::from(self.place_of(name.as_ref())));
            make(locks.unwrap_or(self.locks()), name.as_ref())
        });
        let mut parts: Vec<Lock> = parts.collect();
        if parts.len() == 1
            && let Some(only) = parts.pop()
        {
            return only;
        }
        Lock::all(parts).expect("the names of a lock")
    }

    /// Which client of this process has a name.
    fn place_of(&self, name: &str) -> u16 {
        let place = with(|world| world.history.name(name)).0;
        place % u16::try_from(self.locks.len()).unwrap_or(1)
    }

    /// Another client beside the one that has a name: younger, and with a clock of its own. Of a plan with
    /// [`LockKind::Multi`]; else it is the same one.
    ///
    /// # Panics
    /// Never: the plan was checked.
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

    /// The client that has a name: the only one, or with [`LockKind::Multi`] that of its node.
    #[must_use]
    pub fn client_of(&self, name: &str) -> Locks {
        let locks = self.locks.get(usize::from(self.place_of(name)));
        locks.unwrap_or(self.locks()).clone()
    }

    /// The lock of these names that the plan puts to the test, which need not be the product's.
    ///
    /// # Panics
    /// As [`Context::lock`].
    pub fn subject(&self, names: &[String]) -> Subject {
        match &self.variant {
            Some(client) => Subject::Variant(model::ModelLock::new(client, names)),
            None => Subject::Product(self.lock(names)),
        }
    }

    /// The same of one name for an owner, who enters the hold again that it has.
    ///
    /// # Panics
    /// As [`Context::lock`].
    pub fn reentrant_subject(&self, name: String) -> Subject {
        match &self.variant {
            Some(client) => Subject::Variant(model::ModelLock::new(client, &[name]).owned()),
            None => Subject::Product(self.locks().owner().lock(name)),
        }
    }

    /// A candidate for the leadership of a name, of the product.
    pub fn candidate(&self, name: &str) -> Candidate {
        self.locks().leader(name)
    }

    /// The wall clock of this process, in milliseconds.
    #[must_use]
    pub fn wall_clock(&self) -> u64 {
        SimRuntime::new(self.who).wall_clock().0
    }

    /// The monotonic clock of this process.
    #[must_use]
    pub fn now(&self) -> Time {
        with(|world| Time::from_nanos(clients::read_monotonic(world, self.who)))
    }

    /// Waits, by the clock of this process.
    pub async fn sleep(&self, span: Duration) {
        let at = self.now() + span;
        let mut timer = SimTimer::new(self.who);
        poll_fn(|cx| timer.poll_until(cx, at)).await;
    }

    /// A number in `least..=most`, from the seed.
    #[must_use]
    pub fn random(&self, least: u64, most: u64) -> u64 {
        self.draw.borrow_mut().between(least, most)
    }

    /// A span between two, from the seed.
    #[must_use]
    pub fn random_span(&self, least: SimTime, most: SimTime) -> Duration {
        Duration::from_nanos(self.random(least.as_nanos(), most.as_nanos()))
    }

    /// Stops this process behind the `nth` use of its clocks, timers, randomness or network from now on (from 1), for so
    /// long: what it has read is old when it goes on, and everything else has gone on meanwhile. Only in the fast lane.
    ///
    /// A pause stops a process between two steps, or delays what it sends; this stops it in the middle of a step.
    pub fn stop_inside(&self, nth: u32, lasts: Duration) {
        let lasts = u64::try_from(lasts.as_nanos()).unwrap_or(u64::MAX);
        let stop = Stop::new(nth, lasts, None);
        with(|world| clients::stop_inside(world, self.who.client, stop));
    }

    /// Waits for a future unless a fault of the plan cancels it: then it is dropped where it stands.
    ///
    /// # Errors
    /// [`Cancelled`].
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

    /// Goes into the sections of all names of a guard.
    pub fn critical_section(&self, guard: &impl Hold) -> SectionHandle {
        let hold = with(|world| clients::hold_of(world, self.who, guard.id()).id());
        SectionHandle::enter(self.who, guard, hold, Access::Alone, HoldId::NONE)
    }

    /// The same for a guard whose acquisition was recorded.
    pub fn section(&self, held: &HeldLock) -> SectionHandle {
        SectionHandle::enter(self.who, &held.guard, held.hold, held.access, held.under)
    }

    /// Puts a mark on the time line of this client, as [`mark!`](crate::mark) does. The page of a failure shows it.
    pub fn mark(&self, text: impl Into<String>) {
        let text = text.into();
        let process = Some(self.who.process());
        with(|world| {
            let at = world.moment(self.who);
            world.history.marks.push(Mark { at, process, text });
        });
    }

    pub(crate) fn who(&self) -> ProcessId {
        self.who
    }

    /// A candidate begins to wait for the leadership of this name.
    pub fn stand(&self, name: NameId) -> Candidacy<'_> {
        Candidacy::new(self, name)
    }
}

/// The settings of the client that keeps the node at a place, or of that of all nodes.
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
        Some(most) => builder.max_hold(most.as_duration()),
        None => builder,
    };
    builder
        .retry(policy)
        .watchdog_lease(lease.as_duration())
        .longest_lease(longest.as_duration())
        .node_trust(plan.node_trust())
        .clock_margin(plan.clock_margin().as_duration())
        .runtime(Arc::new(runtime))
}

fn locks(who: ProcessId, plan: &Plan, transports: &Rc<[SimTransport]>) -> Rc<[Locks]> {
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
