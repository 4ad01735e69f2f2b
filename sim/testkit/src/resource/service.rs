//! A service: request and reply.

use std::cell::RefCell;
use std::fmt::{self, Debug};
use std::rc::Rc;
use std::time::Duration;

use super::calling::{CallError, Calling, ResourceReply};
use crate::assertion::unattended;
use crate::context::Context;
use quorlock_sim_plan::draw::{Draw, Purpose};
use quorlock_sim_plan::{Outage, OutageKind};
use quorlock_sim_world::engine::clients;
use quorlock_sim_world::engine::stop::using;
use quorlock_sim_world::history::own::ResourceCall;
use quorlock_sim_world::world::callback::Job;
use quorlock_sim_world::world::event::Event;
use quorlock_sim_world::world::id::ProcessId;
use quorlock_sim_world::world::{World, with};

/// A service that you define: a function that answers one request after another.
///
/// Clones refer to the same service.
///
/// ```
/// use quorlock_sim::property_test::PropertyTest;
/// use quorlock_sim::resource::Service;
///
/// let test = PropertyTest::new("counts").seeds(5).faults("none").world(|| {
///     let mut count = 0;
///     Service::new("counter", move |by: u32| {
///         count += by;
///         count
///     })
/// });
/// let done = test.check(async |ctx, counter| {
///     let counter = counter.client(&ctx);
///     let answer = counter.call(2).await;
///     quorlock_sim::sometimes!(answer == Ok(4), "another client has counted before");
/// });
/// assert!(done.is_ok());
/// ```
pub struct Service<Q, A>(Rc<Inner<Q, A>>);

struct Inner<Q, A> {
    /// The index of the service in the history.
    id: u16,
    draw: RefCell<Draw>,
    handler: RefCell<Box<dyn FnMut(Q) -> A>>,
    on_crash: RefCell<Option<Box<dyn FnMut()>>>,
    /// The number of crashes that the service has noticed.
    crashes: RefCell<usize>,
}

impl<Q, A> Clone for Service<Q, A> {
    fn clone(&self) -> Self {
        Service(Rc::clone(&self.0))
    }
}

impl<Q, A> Debug for Service<Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Service").field(&self.0.id).finish()
    }
}

impl<Q: Debug + 'static, A: Debug + 'static> Service<Q, A> {
    /// Creates a service, in the world of a test or in a client. The report of a failure shows this name.
    ///
    /// The handler is called when a request arrives at the service. The call takes no simulated time.
    pub fn new(name: &str, handler: impl FnMut(Q) -> A + 'static) -> Self {
        let (id, seed) = with(|world| {
            let resources = &mut world.history.resources;
            resources.push(name.to_owned());
            let id = u16::try_from(resources.len() - 1).unwrap_or(u16::MAX);
            (id, world.plan.seed)
        });
        Service(Rc::new(Inner {
            id,
            draw: RefCell::new(Draw::new(seed, Purpose::Resources, u64::from(id))),
            handler: RefCell::new(Box::new(handler)),
            on_crash: RefCell::new(None),
            crashes: RefCell::new(0),
        }))
    }

    /// Sets a function that clears the state that a crash destroys. Without it, all of the state survives.
    #[must_use]
    pub fn on_crash(self, forget: impl FnMut() + 'static) -> Self {
        self.0.on_crash.replace(Some(Box::new(forget)));
        self
    }

    /// Returns a handle for one client.
    #[must_use]
    pub fn client(&self, ctx: &Context) -> ServiceClient<Q, A> {
        ServiceClient {
            service: self.clone(),
            ctx: ctx.clone(),
            timeout: ctx.plan().network.call_timeout.as_duration(),
        }
    }

    /// Handles a request that arrives at the service, after the service's pause if it is paused.
    fn arrive(&self, question: Q, call: Underway<A>) {
        let id = self.0.id;
        let now = with(|world| world.now());
        if let Some(pause) = with(|world| outage(world, id, now, OutageKind::Pause)) {
            let service = self.clone();
            at(pause.ends().as_nanos(), move || {
                service.arrive(question, call)
            });
            return;
        }
        if with(|world| call.has_never_left(world)) {
            return;
        }
        self.crash(now);
        if with(|world| outage(world, id, now, OutageKind::Crash)).is_some() {
            self.reply(call, Err(CallError::Refused));
            return;
        }
        // The handler must not call the service itself: the service is one machine, which is busy with this request.
        let answer = (self.0.handler.borrow_mut())(question);
        with(|world| {
            if let Some(asked) = world.history.asked.get_mut(call.asked) {
                asked.done = Some((now, format!("{answer:?}")));
            }
        });
        self.reply(call, Ok(answer));
    }

    /// Handles the crashes that have begun since the last request. The service could not notice them earlier.
    fn crash(&self, now: u64) {
        let begun = with(|world| {
            let all = own_outages(world, self.0.id);
            all.filter(|o| o.what == OutageKind::Crash && o.at.as_nanos() <= now)
                .count()
        });
        if self.0.crashes.replace(begun) < begun
            && let Some(forget) = &mut *self.0.on_crash.borrow_mut()
        {
            forget();
        }
    }

    /// Sends the answer, which may be lost.
    fn reply(&self, call: Underway<A>, answer: Result<A, CallError>) {
        let Some(arrives) = with(|world| self.passage(world, world.now())) else {
            return;
        };
        at(arrives, move || {
            with(|world| {
                let now = world.now();
                if let Some(asked) = world.history.asked.get_mut(call.asked) {
                    asked.heard = Some(now);
                }
            });
            ResourceReply::put(&call.place, answer);
        });
    }

    /// Returns when a message that departs at this time arrives; `None` if it is lost.
    fn passage(&self, world: &mut World, departs: u64) -> Option<u64> {
        let network = &world.plan.network;
        let (min, max) = (network.min.as_nanos(), network.max.as_nanos());
        let mut draw = self.0.draw.borrow_mut();
        let mut latency = draw.between(min, max);
        let is_slow = outage(world, self.0.id, departs, OutageKind::Slow).is_some();
        if is_slow && draw.chance(250_000) {
            latency += draw.between(0, 2 * world.plan.workload.lease.as_nanos());
        }
        let is_lossy = outage(world, self.0.id, departs, OutageKind::Loss).is_some();
        let is_lost = is_lossy && draw.chance(500_000);
        (!is_lost).then_some(departs + latency)
    }
}

/// A request in flight.
struct Underway<A> {
    who: ProcessId,
    departs: u64,
    /// The index of the call in the history.
    asked: usize,
    place: Rc<RefCell<ResourceReply<A>>>,
}

impl<A> Underway<A> {
    /// Returns whether the process died before the request left it, so that the request was never sent.
    fn has_never_left(&self, world: &World) -> bool {
        let client = world.clients.get(self.who.client);
        client.is_some_and(|client| client.died_before(self.who, self.departs))
    }
}

/// Schedules a job at a time of the run.
fn at(time: u64, job: impl FnOnce() + 'static) {
    with(|world| {
        let key = world.jobs.insert(Job::new(|| unattended(job)));
        world.push(time.max(world.now()), Event::Job(key));
    });
}

/// Returns the outages of one resource.
fn own_outages(world: &World, id: u16) -> impl Iterator<Item = &Outage> {
    let count = u16::try_from(world.history.resources.len()).unwrap_or(u16::MAX);
    let outages = world.plan.outages.iter();
    outages.filter(move |outage| outage.resource % count.max(1) == id)
}

/// Returns the outage of this kind that a resource has at a time, if any.
fn outage(world: &World, id: u16, at: u64, what: OutageKind) -> Option<Outage> {
    let mut all = own_outages(world, id);
    all.find(|outage| outage.what == what && outage.is_at(at))
        .cloned()
}

/// A client's handle to a [`Service`].
pub struct ServiceClient<Q, A> {
    service: Service<Q, A>,
    ctx: Context,
    timeout: Duration,
}

impl<Q, A> Clone for ServiceClient<Q, A> {
    fn clone(&self) -> Self {
        ServiceClient {
            service: self.service.clone(),
            ctx: self.ctx.clone(),
            timeout: self.timeout,
        }
    }
}

impl<Q, A> Debug for ServiceClient<Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceClient")
            .field("service", &self.service)
            .field("client", &self.ctx.client())
            .finish_non_exhaustive()
    }
}

impl<Q: Debug + 'static, A: Debug + 'static> ServiceClient<Q, A> {
    /// Sets how long a call waits for its answer, measured on the clock of the client. The default is the call
    /// time-out of the plan.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// Returns [`CallError`] if the service is down or does not answer in time.
    ///
    /// # Cancel safety
    /// The first poll sends the request. If the call is dropped after that, the request may still be executed, as for
    /// a call without an answer.
    pub async fn call(&self, question: Q) -> Result<A, CallError> {
        let until = self.ctx.now() + self.timeout;
        let place = self.send(question);
        Calling::new(self.ctx.who(), place, until).await
    }

    /// Sends a request.
    fn send(&self, question: Q) -> Rc<RefCell<ResourceReply<A>>> {
        let who = self.ctx.who();
        let text = format!("{question:?}");
        let place = Rc::default();
        let sent = using(who, |world| {
            let departs = clients::seam(world, who)?;
            world.history.asked.push(ResourceCall {
                resource: self.service.0.id,
                process: who.process(),
                question: text,
                sent: departs,
                done: None,
                heard: None,
            });
            let asked = world.history.asked.len() - 1;
            let arrives = self.service.passage(world, departs)?;
            Some((departs, asked, arrives))
        });
        if let Some((departs, asked, arrives)) = sent {
            let service = self.service.clone();
            let call = Underway {
                who,
                departs,
                asked,
                place: Rc::clone(&place),
            };
            at(arrives, move || service.arrive(question, call));
        }
        place
    }
}
