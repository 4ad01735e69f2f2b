//! The end of the lane in a client process. It sends the requests of the process and delivers the answers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use quorlock::Name;
use quorlock::transport::{
    Call as Boxed, Channel, Listener, Reply, Request, ServerNumber, Slot, Subscription, Transport,
    UnfitName, Witness,
};

use super::outbox::{Listening, OutboxJob, OutboxReply, Posted, Wakers};
use super::{find_sockets, sockets};
use quorlock_sim_plan::fault::{MessageKind, Towards};
use quorlock_sim_world::engine::clients;
use quorlock_sim_world::world::id::{ProcessId, Seat};
use quorlock_sim_world::world::medium::address;
use quorlock_sim_world::world::slab::Key;
use quorlock_sim_world::world::{World, with};

/// The transport from one client process to one node of the plan, through the adapter on the client's host.
#[derive(Debug)]
pub(super) struct SocketTransport {
    who: ProcessId,
    seat: Seat,
    address: Arc<str>,
}

impl SocketTransport {
    pub(super) fn new(who: ProcessId, seat: Seat) -> Self {
        SocketTransport {
            who,
            seat,
            address: address(seat),
        }
    }
}

impl Transport for SocketTransport {
    fn call(&self, request: Request) -> Boxed {
        let key = with(|world| post(world, self.who, self.seat, request));
        Box::pin(SocketCall { key })
    }

    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        let listen = |key| OutboxJob::Listen(key, self.seat, channel.clone(), listener);
        Subscription::new(ListenerHandle::new(self.who, listen))
    }

    fn attend(&self, witness: Arc<dyn Witness>) -> Subscription {
        let attend = |key| OutboxJob::Attend(key, self.seat, witness);
        Subscription::new(ListenerHandle::new(self.who, attend))
    }

    fn slot(&self, name: &Name) -> Result<Slot, UnfitName> {
        with(|world| sockets(world).slot(self.seat, name))
    }

    /// Clients of a plan hold too few locks to reach a bound on requests in flight, so their servers are not told apart.
    fn server(&self, _: Slot) -> ServerNumber {
        ServerNumber::WHOLE
    }

    fn address(&self) -> &str {
        &self.address
    }
}

/// A call of a process.
struct SocketCall {
    key: Key<Posted>,
}

impl Future for SocketCall {
    type Output = OutboxReply;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<OutboxReply> {
        with(|world| poll_answer(world, self.key, cx))
    }
}

impl Drop for SocketCall {
    fn drop(&mut self) {
        let wakers = with(|world| give_up(world, self.key));
        if let Some(Wakers { caller, carrier }) = wakers {
            drop(caller);
            if let Some(carrier) = carrier {
                carrier.wake();
            }
        }
    }
}

struct ListenerHandle {
    who: ProcessId,
    key: Key<Listening>,
}

impl ListenerHandle {
    fn new(who: ProcessId, job: impl FnOnce(Key<Listening>) -> OutboxJob) -> Self {
        let key = with(|world| post_listener(world, who, job));
        ListenerHandle { who, key }
    }
}

impl Drop for ListenerHandle {
    fn drop(&mut self) {
        with(|world| post_leave(world, self.who, self.key));
    }
}

fn post(world: &mut World, who: ProcessId, seat: Seat, request: Request) -> Key<Posted> {
    let Some(departs) = clients::seam(world, who) else {
        return Key::NONE;
    };
    world.pass(who.client, seat, MessageKind::of(&request), Towards::Node);
    let lane = sockets(world);
    let key = lane.posted.insert(Posted::new(who.client, seat));
    let errand = OutboxJob::Call(key, seat, Box::new(request));
    lane.desk(who.client).leave(departs, errand);
    key
}

fn post_listener(
    world: &mut World,
    who: ProcessId,
    job: impl FnOnce(Key<Listening>) -> OutboxJob,
) -> Key<Listening> {
    let Some(departs) = clients::seam(world, who) else {
        return Key::NONE;
    };
    let lane = sockets(world);
    let key = lane.listening.insert(Listening);
    lane.desk(who.client).leave(departs, job(key));
    key
}

fn post_leave(world: &mut World, who: ProcessId, key: Key<Listening>) {
    let departs = world.moment(who);
    let is_alive = world.clients.get(who.client);
    let is_alive = is_alive.is_some_and(|client| client.is(who));
    // At the end of a run, the lane is dropped before the last of its users.
    if let Some(lane) = find_sockets(world)
        && lane.listening.remove(key).is_some()
        && is_alive
    {
        lane.desk(who.client).leave(departs, OutboxJob::Leave(key));
    }
}

fn poll_answer(world: &mut World, key: Key<Posted>, cx: &Context<'_>) -> Poll<OutboxReply> {
    let posted = sockets(world).posted.get_mut(key);
    posted.map_or(Poll::Pending, |posted| posted.poll(cx))
}

/// Records that the caller no longer waits for a call. Returns the caller's waker, which must be dropped, and the
/// carrier's waker, which must be called.
fn give_up(world: &mut World, key: Key<Posted>) -> Option<Wakers> {
    let lane = find_sockets(world)?;
    let posted = lane.posted.get_mut(key)?;
    let wakers = posted.give_up();
    if posted.is_over() {
        lane.posted.discard(key);
    }
    Some(wakers)
}

/// Returns whether the caller no longer waits for a call. If it still waits, the task is woken when the caller gives
/// up.
pub(super) fn is_given_up(world: &mut World, key: Key<Posted>, cx: &Context<'_>) -> bool {
    let posted = sockets(world).posted.get_mut(key);
    posted.is_none_or(|posted| posted.is_given_up(cx))
}

/// Finishes a call. Returns the waker of its caller.
pub(super) fn hand_in(
    world: &mut World,
    key: Key<Posted>,
    answer: Option<OutboxReply>,
) -> Option<Waker> {
    if let Some(Ok(Reply::Acquire(reply) | Reply::Checked(reply, _))) = &answer {
        world.counters.count(reply);
    }
    let lane = sockets(world);
    let (caller, is_given_up) = lane.posted.get_mut(key)?.hand_in(answer);
    if is_given_up {
        lane.posted.discard(key);
    }
    caller
}
