//! The product's seam to nodes.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use quorlock::Name;
use quorlock::transport::{
    Call as Boxed, Channel, Listener, Reply, Request, ServerNumber, Slot, Subscription, Transport,
    TransportError, UnfitName, Witness,
};

use crate::engine::network::{calls, connections, requests, subscriptions};
use crate::engine::stop::using;
use crate::world::call::{Asked, Call, Replied, Returned};
use crate::world::id::{ProcessId, Seat};
use crate::world::medium::address;
use crate::world::slab::Key;
use crate::world::subscription::Subscribed;
use crate::world::with;
use crate::world::witnesses::Attendance;

/// A transport that carries requests and replies as values.
#[derive(Debug)]
pub(super) struct ValueTransport {
    who: ProcessId,
    seat: Seat,
    address: Arc<str>,
}

impl ValueTransport {
    pub(super) fn new(who: ProcessId, seat: Seat) -> Self {
        ValueTransport {
            who,
            seat,
            address: address(seat),
        }
    }
}

impl Transport for ValueTransport {
    fn call(&self, request: Request) -> Boxed {
        let asked = Asked::Request(Rc::new(request));
        let (who, seat) = (self.who, self.seat);
        let key = using(who, |world| requests::start(world, who, seat, asked));
        Box::pin(SimCall { who, key })
    }

    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        let (who, seat) = (self.who, self.seat);
        let key = using(who, |world| {
            subscriptions::start(world, who, seat, channel, listener)
        });
        Subscription::new(Unsubscribe { key })
    }

    fn attend(&self, witness: Arc<dyn Witness>) -> Subscription {
        let (who, seat) = (self.who, self.seat);
        let key = using(who, |world| connections::attend(world, who, seat, witness));
        Subscription::new(Leave { key })
    }

    fn slot(&self, _: &Name) -> Result<Slot, UnfitName> {
        // No node of this lane is a cluster.
        Ok(Slot::WHOLE)
    }

    fn server(&self, _: Slot) -> ServerNumber {
        ServerNumber::WHOLE
    }

    fn address(&self) -> &str {
        &self.address
    }
}

/// A call of a process.
struct SimCall {
    who: ProcessId,
    key: Key<Call>,
}

impl Future for SimCall {
    type Output = Result<Reply, TransportError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match using(self.who, |world| calls::poll(world, self.key, cx)) {
            Some(reply) => answer(reply),
            None => Poll::Pending,
        }
    }
}

/// Takes the answer. This is separate from `poll`, which usually finds no answer.
#[inline(never)]
fn answer(reply: Key<Replied>) -> Poll<Result<Reply, TransportError>> {
    match with(|world| calls::take_answer(world, reply)) {
        Some(Ok(Returned::Reply(reply))) => Poll::Ready(Ok(reply)),
        Some(Ok(other)) => unreachable!("BUG: a request was answered by {other:?}"),
        Some(Err(error)) => Poll::Ready(Err(error)),
        None => Poll::Pending,
    }
}

impl Drop for SimCall {
    fn drop(&mut self) {
        let waker = with(|world| calls::abandon(world, self.key));
        drop(waker);
    }
}

struct Unsubscribe {
    key: Key<Subscribed>,
}

impl Drop for Unsubscribe {
    fn drop(&mut self) {
        let subscribed = with(|world| subscriptions::end(world, self.key));
        drop(subscribed);
    }
}

struct Leave {
    key: Key<Attendance>,
}

impl Drop for Leave {
    fn drop(&mut self) {
        let attendance = with(|world| connections::leave(world, self.key));
        drop(attendance);
    }
}
