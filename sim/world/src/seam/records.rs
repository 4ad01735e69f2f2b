//! The product's seam to stores: the driver of a simulated store, and the clock, timers and tasks of the transport over it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use quorlock::Name;
use quorlock::runtime::{Runtime, Time, WallMillis};
use quorlock::transport::{
    Call as Boxed, Channel, Execution, Listener, Reply, Request, ServerNumber, Slot, Subscription,
    Transport, TransportError, UnfitName, Wake, Witness,
};
use quorlock_store::{
    CheckInError, Claims, Draft, Key, ReadCall, Stamp, Store, StoreRuntime, StoreTransport, Task,
    Version, Watcher, WriteCall, Written,
};

use crate::engine::network::{calls, requests, subscriptions};
use crate::engine::nodes::{dead_claims, statements};
use crate::engine::stop::using;
use crate::seam::runtime::SimRuntime;
use crate::world::call::{Answer, Asked, Call, Returned};
use crate::world::id::{ProcessId, Seat};
use crate::world::medium::address;
use crate::world::record_call::{Found, RecordCall};
use crate::world::slab;
use crate::world::subscription::Subscribed;
use crate::world::with;
use quorlock_sim_plan::fault::{MessageKind, Towards};
use quorlock_sim_plan::variant::Flaw;

/// Returns the product's transport from a process to a store.
pub(super) fn transport(who: ProcessId, seat: Seat) -> impl Transport {
    let timeout = with(|world| world.plan.network.call_timeout);
    let store = SimStore::new(who, seat);
    let runtime = Arc::new(ClientRuntime(SimRuntime::new(who)));
    let transport = StoreTransport::with_runtime(store, runtime);
    ObservedTransport {
        who,
        seat,
        transport: transport.call_timeout(timeout.as_duration()),
    }
}

/// Returns the driver of a store from a process to a seat, for locks that use records without the product's transport.
#[must_use]
pub fn store(who: ProcessId, seat: Seat) -> Arc<dyn Store> {
    Arc::new(SimStore::new(who, seat))
}

/// Reads the record of a user in a database. Resolves to nothing if there is none.
///
/// # Errors
/// The failure of the call.
pub async fn read(who: ProcessId, seat: Seat, key: Key) -> Result<Option<Vec<u8>>, TransportError> {
    let snapshot = SimStore::new(who, seat).read(&key).await?;
    Ok(snapshot.stored.map(|stored| stored.record))
}

/// Writes the record of a user in one transaction of a database, which also checks the claims of a lock, if there are any.
/// Resolves to whether it was committed.
///
/// # Errors
/// The failure of the call. An indeterminate one may have been committed.
pub async fn commit(
    who: ProcessId,
    seat: Seat,
    key: Key,
    claims: Option<Claims>,
    record: Vec<u8>,
) -> Result<Result<(), CheckInError>, TransportError> {
    let call = RecordCall::Commit {
        key,
        claims,
        record,
    };
    match SimStore::new(who, seat).call(call).await? {
        Returned::Found(Found::Committed(committed)) => Ok(committed),
        other => unreachable!("BUG: a transaction was answered by {other:?}"),
    }
}

/// The product's transport. The simulator sees the requests and their replies, which a lock server would see itself.
#[derive(Debug)]
struct ObservedTransport {
    who: ProcessId,
    seat: Seat,
    transport: StoreTransport,
}

impl Transport for ObservedTransport {
    fn call(&self, request: Request) -> Boxed {
        let (who, seat) = (self.who, self.seat);
        with(|world| {
            let client = world.clients.get(who.client);
            if client.is_some_and(|client| client.is(who)) {
                world.pass(who.client, seat, MessageKind::of(&request), Towards::Node);
                statements::note(world, who.process(), &request);
                dead_claims::state(world, who.process(), &request);
            }
        });
        let call = self.transport.call(request);
        Box::pin(async move {
            let reply = call.await?;
            if let Reply::Acquire(reply) | Reply::Checked(reply, _) = &reply {
                with(|world| world.counters.count(reply));
            }
            Ok(reply)
        })
    }

    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        self.transport.subscribe(channel, listener)
    }

    fn attend(&self, witness: Arc<dyn Witness>) -> Subscription {
        self.transport.attend(witness)
    }

    fn slot(&self, name: &Name) -> Result<Slot, UnfitName> {
        self.transport.slot(name)
    }

    fn server(&self, slot: Slot) -> ServerNumber {
        self.transport.server(slot)
    }

    fn address(&self) -> &str {
        self.transport.address()
    }
}

/// The clock, the timers and the tasks of a client process, as the transport over a store uses them.
#[derive(Clone, Copy, Debug)]
struct ClientRuntime(SimRuntime);

impl StoreRuntime for ClientRuntime {
    fn now(&self) -> Time {
        self.0.now()
    }

    fn sleep(&self, span: Duration) -> Task {
        let until = self.0.now() + span;
        let mut timer = self.0.timer();
        Box::pin(poll_fn(move |cx| timer.poll_until(cx, until)))
    }

    fn spawn(&self, task: Task) {
        self.0.spawn(task);
    }

    fn random(&self) -> u64 {
        self.0.random()
    }
}

/// The driver of a simulated store, in one client process.
#[derive(Clone, Debug)]
struct SimStore {
    who: ProcessId,
    seat: Seat,
    address: Arc<str>,
}

impl SimStore {
    fn new(who: ProcessId, seat: Seat) -> Self {
        let address = address(seat);
        SimStore { who, seat, address }
    }

    fn call(&self, call: RecordCall) -> DriverCall {
        let (who, seat) = (self.who, self.seat);
        let asked = Asked::Record(Rc::new(call));
        let key = using(who, |world| requests::start(world, who, seat, asked));
        DriverCall { who, key }
    }

    /// Returns the stamp as the driver of the plan's variant reports it.
    fn stamp(&self, stamp: Stamp) -> Stamp {
        match with(|world| world.plan.variant.has(Flaw::ClientsTimeRecords)) {
            true => Stamp {
                now: Some(self.wall_clock()),
                ..stamp
            },
            false => stamp,
        }
    }

    fn wall_clock(&self) -> WallMillis {
        SimRuntime::new(self.who).wall_clock()
    }
}

impl Store for SimStore {
    fn read(&self, key: &Key) -> ReadCall {
        let (store, call) = (self.clone(), self.call(RecordCall::Read(key.clone())));
        Box::pin(async move {
            match call.await? {
                Returned::Found(Found::Snapshot(mut snapshot)) => {
                    snapshot.stamp = store.stamp(snapshot.stamp);
                    Ok(snapshot)
                }
                other => unreachable!("BUG: a read was answered by {other:?}"),
            }
        })
    }

    fn write_if(&self, key: &Key, version: Option<&Version>, draft: Draft) -> WriteCall {
        let (key, version) = (key.clone(), version.cloned());
        let call = self.call(RecordCall::Write {
            key,
            version,
            draft,
        });
        let store = self.clone();
        Box::pin(async move {
            match call.await.map_err(refused_by_silence)? {
                Returned::Found(Found::Written(Written::Stored { version, stamp })) => {
                    let stamp = store.stamp(stamp);
                    Ok(Written::Stored { version, stamp })
                }
                Returned::Found(Found::Written(Written::Conflict)) => Ok(Written::Conflict),
                other => unreachable!("BUG: a write was answered by {other:?}"),
            }
        })
    }

    fn watch(&self, key: &Key, watcher: Arc<dyn Watcher>) -> Option<Subscription> {
        // The key of a record is the stem of its names, which is a name itself.
        let channel = Channel::Lock(Name::new(key.as_bytes()).ok()?);
        let (who, seat) = (self.who, self.seat);
        let listener = Arc::new(Reports(watcher));
        let key = using(who, |world| {
            subscriptions::start(world, who, seat, &channel, listener)
        });
        Some(Subscription::new(Unwatch { key }))
    }

    fn address(&self) -> &str {
        &self.address
    }
}

/// Returns the error of a write as the driver of the plan's variant reports it.
fn refused_by_silence(error: TransportError) -> TransportError {
    match with(|world| world.plan.variant.has(Flaw::SilenceIsRefusal)) {
        true => error.with_execution(Execution::Definite),
        false => error,
    }
}

/// Passes the reports of a store on. They tell that a record has changed, and not what it is.
struct Reports(Arc<dyn Watcher>);

impl Listener for Reports {
    fn live(&self) {
        self.0.live();
    }

    fn wake(&self, _: Wake) {
        self.0.changed(None);
    }
}

/// A call of a process.
struct DriverCall {
    who: ProcessId,
    key: slab::Key<Call>,
}

impl Future for DriverCall {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        match using(self.who, |world| calls::poll(world, self.key, cx)) {
            Some(reply) => {
                let answer = with(|world| calls::take_answer(world, reply));
                answer.map_or(Poll::Pending, Poll::Ready)
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for DriverCall {
    fn drop(&mut self) {
        let waker = with(|world| calls::abandon(world, self.key));
        drop(waker);
    }
}

struct Unwatch {
    key: slab::Key<Subscribed>,
}

impl Drop for Unwatch {
    fn drop(&mut self) {
        let subscribed = with(|world| subscriptions::end(world, self.key));
        drop(subscribed);
    }
}
