//! A process's end of the lane: what it asks for, and what it is told.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use quorlock::transport::{
    AcquireReply, Call as Boxed, Channel, Listener, Reply, Request, Subscription, Transport,
};

use super::desk::{Answer, Errand, Listening, Posted};
use super::{find_sockets, sockets};
use crate::engine::clients;
use crate::world::client::Who;
use crate::world::medium::address;
use crate::world::slab::Key;
use crate::world::{World, with};

/// The way from one client process to one node of the plan, by way of the adapter on the client's host.
#[derive(Debug)]
pub(super) struct SocketTransport {
    who: Who,
    seat: u16,
    address: Arc<str>,
}

impl SocketTransport {
    pub(super) fn new(who: Who, seat: u16) -> Self {
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
        let key = with(|world| post_listener(world, self.who, self.seat, channel, listener));
        Subscription::new(Ear { who: self.who, key })
    }

    fn address(&self) -> &str {
        &self.address
    }
}

/// A call in the hands of a process.
struct SocketCall {
    key: Key<Posted>,
}

impl Future for SocketCall {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        with(|world| poll_answer(world, self.key, cx))
    }
}

impl Drop for SocketCall {
    fn drop(&mut self) {
        let wakers = with(|world| give_up(world, self.key));
        if let Some((caller, carrier)) = wakers {
            drop(caller);
            if let Some(carrier) = carrier {
                carrier.wake();
            }
        }
    }
}

struct Ear {
    who: Who,
    key: Key<Listening>,
}

impl Drop for Ear {
    fn drop(&mut self) {
        with(|world| post_leave(world, self.who, self.key));
    }
}

fn post(world: &mut World, who: Who, seat: u16, request: Request) -> Key<Posted> {
    let Some(departs) = clients::seam(world, who) else {
        return Key::NONE;
    };
    let lane = sockets(world);
    let key = lane.posted.insert(Posted {
        client: who.client,
        seat,
        answer: None,
        is_over: false,
        is_given_up: false,
        caller: None,
        carrier: None,
    });
    let errand = Errand::Call(key, seat, Box::new(request));
    lane.desk(who.client).leave(departs, errand);
    key
}

fn post_listener(
    world: &mut World,
    who: Who,
    seat: u16,
    channel: &Channel,
    listener: Arc<dyn Listener>,
) -> Key<Listening> {
    let Some(departs) = clients::seam(world, who) else {
        return Key::NONE;
    };
    let lane = sockets(world);
    let key = lane.listening.insert(Listening);
    let errand = Errand::Listen(key, seat, channel.clone(), listener);
    lane.desk(who.client).leave(departs, errand);
    key
}

fn post_leave(world: &mut World, who: Who, key: Key<Listening>) {
    let departs = world.moment(who);
    let is_alive = world.clients.get(usize::from(who.client));
    let is_alive = is_alive.is_some_and(|client| client.process == Some(who));
    // At the end of a run the lane goes before the last of its users.
    if let Some(lane) = find_sockets(world)
        && lane.listening.remove(key).is_some()
        && is_alive
    {
        lane.desk(who.client).leave(departs, Errand::Leave(key));
    }
}

fn poll_answer(world: &mut World, key: Key<Posted>, cx: &Context<'_>) -> Poll<Answer> {
    let Some(posted) = sockets(world).posted.get_mut(key) else {
        return Poll::Pending;
    };
    match posted.answer.take() {
        Some(answer) => Poll::Ready(answer),
        None => {
            posted.caller = Some(cx.waker().clone());
            Poll::Pending
        }
    }
}

/// Nobody waits for a call any more: its wakers, to be dropped and to be woken.
fn give_up(world: &mut World, key: Key<Posted>) -> Option<(Option<Waker>, Option<Waker>)> {
    let lane = find_sockets(world)?;
    let posted = lane.posted.get_mut(key)?;
    posted.is_given_up = true;
    let wakers = (posted.caller.take(), posted.carrier.take());
    if posted.is_over {
        lane.posted.discard(key);
    }
    Some(wakers)
}

/// Whether nobody waits for a call; if somebody does, the task is woken when nobody does.
pub(super) fn is_given_up(world: &mut World, key: Key<Posted>, cx: &Context<'_>) -> bool {
    let Some(posted) = sockets(world).posted.get_mut(key) else {
        return true;
    };
    posted.carrier = Some(cx.waker().clone());
    posted.is_given_up
}

/// A call has come to its end: whom to wake.
pub(super) fn hand_in(
    world: &mut World,
    key: Key<Posted>,
    answer: Option<Answer>,
) -> Option<Waker> {
    if let Some(Ok(Reply::Acquire(reply) | Reply::Checked(reply, _))) = &answer
        && matches!(reply, AcquireReply::Refused { .. })
    {
        world.counters.refused += 1;
    }
    let posted = sockets(world).posted.get_mut(key)?;
    let caller = posted.caller.take();
    posted.answer = answer;
    posted.is_over = true;
    if posted.is_given_up {
        sockets(world).posted.discard(key);
    }
    caller
}
