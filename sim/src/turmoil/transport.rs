//! A process's end of the lane: what it asks for, and what it is told.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use quorlock::transport::Channel;
use quorlock::transport::{AcquireReply, Listener, Reply, Request, Subscription};

use super::desk::{Answer, Errand, Listening, Posted};
use crate::world::client::Who;
use crate::world::slab::Key;
use crate::world::{World, with};

/// A call in the hands of a process.
pub(crate) struct SocketCall {
    key: Key<Posted>,
}

impl SocketCall {
    /// Sends a request.
    pub(crate) fn new(who: Who, seat: u16, request: Request) -> Self {
        let key = with(|world| world.post(who, seat, request));
        SocketCall { key }
    }
}

impl Future for SocketCall {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        with(|world| world.poll_answer(self.key, cx))
    }
}

impl Drop for SocketCall {
    fn drop(&mut self) {
        let wakers = with(|world| world.give_up(self.key));
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

/// Listens to what a node publishes about a name.
pub(crate) fn subscribe(
    who: Who,
    seat: u16,
    channel: &Channel,
    listener: Arc<dyn Listener>,
) -> Subscription {
    let key = with(|world| world.post_listener(who, seat, channel, listener));
    Subscription::new(Ear { who, key })
}

impl Drop for Ear {
    fn drop(&mut self) {
        with(|world| world.post_leave(self.who, self.key));
    }
}

impl World {
    fn post(&mut self, who: Who, seat: u16, request: Request) -> Key<Posted> {
        let Some(departs) = self.seam(who) else {
            return Key::NONE;
        };
        let sockets = self.sockets();
        let key = sockets.posted.insert(Posted {
            client: who.client,
            seat,
            answer: None,
            is_over: false,
            is_given_up: false,
            caller: None,
            carrier: None,
        });
        let errand = Errand::Call(key, seat, Box::new(request));
        sockets.desk(who.client).leave(departs, errand);
        key
    }

    fn post_listener(
        &mut self,
        who: Who,
        seat: u16,
        channel: &Channel,
        listener: Arc<dyn Listener>,
    ) -> Key<Listening> {
        let Some(departs) = self.seam(who) else {
            return Key::NONE;
        };
        let sockets = self.sockets();
        let key = sockets.listening.insert(Listening);
        let errand = Errand::Listen(key, seat, channel.clone(), listener);
        sockets.desk(who.client).leave(departs, errand);
        key
    }

    fn post_leave(&mut self, who: Who, key: Key<Listening>) {
        let departs = self.moment(who);
        let is_alive = self.clients.get(usize::from(who.client));
        let is_alive = is_alive.is_some_and(|client| client.process == Some(who));
        // At the end of a run the lane goes before the last of its users.
        if let Some(sockets) = self.find_sockets()
            && sockets.listening.remove(key).is_some()
            && is_alive
        {
            sockets.desk(who.client).leave(departs, Errand::Leave(key));
        }
    }

    fn poll_answer(&mut self, key: Key<Posted>, cx: &Context<'_>) -> Poll<Answer> {
        let Some(posted) = self.sockets().posted.get_mut(key) else {
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
    fn give_up(&mut self, key: Key<Posted>) -> Option<(Option<Waker>, Option<Waker>)> {
        let sockets = self.find_sockets()?;
        let posted = sockets.posted.get_mut(key)?;
        posted.is_given_up = true;
        let wakers = (posted.caller.take(), posted.carrier.take());
        if posted.is_over {
            sockets.posted.discard(key);
        }
        Some(wakers)
    }

    /// Whether nobody waits for a call; if somebody does, the task is woken when nobody does.
    pub(super) fn is_given_up(&mut self, key: Key<Posted>, cx: &Context<'_>) -> bool {
        let Some(posted) = self.sockets().posted.get_mut(key) else {
            return true;
        };
        posted.carrier = Some(cx.waker().clone());
        posted.is_given_up
    }

    /// A call has come to its end: whom to wake.
    pub(super) fn hand_in(&mut self, key: Key<Posted>, answer: Option<Answer>) -> Option<Waker> {
        if let Some(Ok(Reply::Acquire(reply) | Reply::Checked(reply, _))) = &answer
            && matches!(reply, AcquireReply::Refused { .. })
        {
            self.counters.refused += 1;
        }
        let posted = self.sockets().posted.get_mut(key)?;
        let caller = posted.caller.take();
        posted.answer = answer;
        posted.is_over = true;
        if posted.is_given_up {
            self.sockets().posted.discard(key);
        }
        caller
    }
}
