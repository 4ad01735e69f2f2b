//! The product's seam to nodes.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use quorlock::transport::{
    Call as Boxed, Channel, Listener, Reply, Request, Subscription, Transport, TransportError,
};

use crate::plan::Lane;
use crate::turmoil;
use crate::world::call::{Call, Replied};
use crate::world::client::Who;
use crate::world::slab::Key;
use crate::world::subscription::Subscribed;
use crate::world::with;

/// The way from one client process to one node of the plan.
#[derive(Clone, Debug)]
pub(crate) struct SimTransport {
    who: Who,
    seat: u16,
    lane: Lane,
    address: Arc<str>,
}

impl SimTransport {
    pub(crate) fn new(who: Who, seat: u16) -> Self {
        SimTransport {
            who,
            seat,
            lane: with(|world| world.plan.lane),
            address: format!("node-{seat}:6379").into(),
        }
    }
}

impl Transport for SimTransport {
    fn call(&self, request: Request) -> Boxed {
        if self.lane == Lane::Turmoil {
            return Box::pin(turmoil::SocketCall::new(self.who, self.seat, request));
        }
        let request = Rc::new(request);
        let key = with(|world| world.call(self.who, self.seat, request));
        Box::pin(SimCall { key })
    }

    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        if self.lane == Lane::Turmoil {
            return turmoil::subscribe(self.who, self.seat, channel, listener);
        }
        let key = with(|world| world.subscribe(self.who, self.seat, channel, listener));
        Subscription::new(Unsubscribe { key })
    }

    fn address(&self) -> &str {
        &self.address
    }
}

/// A call in the hands of a process.
struct SimCall {
    key: Key<Call>,
}

impl Future for SimCall {
    type Output = Result<Reply, TransportError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match with(|world| world.poll_call(self.key, cx)) {
            Some(reply) => answer(reply),
            None => Poll::Pending,
        }
    }
}

/// Not a part of `poll`, which mostly finds nothing.
#[inline(never)]
fn answer(reply: Key<Replied>) -> Poll<Result<Reply, TransportError>> {
    with(|world| world.take_answer(reply)).map_or(Poll::Pending, Poll::Ready)
}

impl Drop for SimCall {
    fn drop(&mut self) {
        let waker = with(|world| world.drop_call(self.key));
        drop(waker);
    }
}

struct Unsubscribe {
    key: Key<Subscribed>,
}

impl Drop for Unsubscribe {
    fn drop(&mut self) {
        let subscribed = with(|world| world.unsubscribe(self.key));
        drop(subscribed);
    }
}
