//! A client's host: carries what the process wants through the production adapter.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock::transport::Channel;
use quorlock::transport::{
    Listener, RedisConfig, RedisTransport, Request, Subscription, Transport,
};

use super::cable::Cables;
use super::transport::{Listening, Posted};
use crate::plan::Plan;
use crate::world::slab::Key;
use crate::world::{World, with};

/// How soon a wake-up connection whose other end is gone is found out. The other lane takes as long.
const PING: Duration = Duration::from_millis(100);

/// What a process leaves for its adapter.
#[derive(Debug, Default)]
pub(super) struct Desk {
    errands: VecDeque<(u64, Errand)>,
    adapter: Option<Waker>,
}

/// One thing to be done.
pub(super) enum Errand {
    Call(Key<Posted>, u16, Box<Request>),
    Listen(Key<Listening>, u16, Channel, Arc<dyn Listener>),
    Leave(Key<Listening>),
}

impl std::fmt::Debug for Errand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Errand::Call(key, seat, _) => write!(f, "Call({key:?} to {seat})"),
            Errand::Listen(key, seat, channel, _) => {
                write!(f, "Listen({key:?} to {channel:?} on {seat})")
            }
            Errand::Leave(key) => write!(f, "Leave({key:?})"),
        }
    }
}

impl Desk {
    /// To be done at a time, which may be later than now: then the process is paused in the middle of it.
    pub(super) fn leave(&mut self, departs: u64, errand: Errand) {
        self.errands.push_back((departs, errand));
    }

    /// Whom to wake for what is due.
    pub(super) fn called(&mut self, now: u64) -> Option<Waker> {
        let (departs, _) = self.errands.front()?;
        (*departs <= now).then(|| self.adapter.take())?
    }

    fn take(&mut self, now: u64, cx: &Context<'_>) -> Poll<Vec<Errand>> {
        let mut due = Vec::new();
        while let Some((departs, _)) = self.errands.front()
            && *departs <= now
        {
            due.extend(self.errands.pop_front().map(|(_, errand)| errand));
        }
        if due.is_empty() {
            self.adapter = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(due)
    }

    /// Empties it, for the next process. To be dropped outside the world.
    pub(super) fn clear(&mut self) -> impl Sized + use<> {
        (std::mem::take(&mut self.errands), self.adapter.take())
    }
}

/// What runs on the host, until the process ends.
pub(super) async fn run(client: u16) -> turmoil::Result {
    let (plan, is_first) = with(|world| {
        let restarts = world.client(client).restarts;
        (world.plan.clone(), restarts == 0)
    });
    let transports: Vec<RedisTransport> = (0..plan.nodes.count)
        .map(|seat| {
            let address = format!("redis://node-{seat}/");
            RedisTransport::open(&address, config(&plan, client)).expect("BUG: no address")
        })
        .collect();
    if is_first {
        for transport in &transports {
            let transport = transport.clone();
            tokio::task::spawn_local(async move {
                let checked = transport.check().await;
                checked.expect("BUG: a node that nothing is wrong with yet");
                with(|world| world.sockets().warm += 1);
            });
        }
    }
    let mut subscriptions: Vec<(Key<Listening>, Subscription)> = Vec::new();
    loop {
        let errands = poll_fn(|cx| with(|world| world.take_errands(client, cx))).await;
        for errand in errands {
            match errand {
                Errand::Call(key, seat, request) => {
                    if let Some(transport) = transports.get(usize::from(seat)) {
                        tokio::task::spawn_local(carry(key, transport.clone(), *request));
                    }
                }
                Errand::Listen(key, seat, name, listener) => {
                    if let Some(transport) = transports.get(usize::from(seat)) {
                        subscriptions.push((key, transport.subscribe(&name, listener)));
                    }
                }
                Errand::Leave(key) => subscriptions.retain(|(known, _)| *known != key),
            }
        }
    }
}

fn config(plan: &Plan, client: u16) -> RedisConfig {
    RedisConfig::default()
        .network(Cables { client })
        .call_timeout(plan.network.call_timeout.as_duration())
        .connect_timeout(plan.network.connect_timeout.as_duration())
        .ping_interval(PING)
}

/// Sends one request and hands in the answer. A call that nobody waits for is dropped, but not before it was sent.
async fn carry(key: Key<Posted>, transport: RedisTransport, request: Request) {
    let mut call = transport.call(request);
    let answer = poll_fn(|cx| match call.as_mut().poll(cx) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending if with(|world| world.is_given_up(key, cx)) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    let answer = answer.await;
    let caller = with(|world| world.hand_in(key, answer));
    if let Some(caller) = caller {
        caller.wake();
    }
}

impl World {
    fn take_errands(&mut self, client: u16, cx: &Context<'_>) -> Poll<Vec<Errand>> {
        let now = self.now;
        self.sockets().desk(client).take(now, cx)
    }
}
