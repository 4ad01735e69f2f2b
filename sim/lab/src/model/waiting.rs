//! Waits for the message that a lock is free.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use quorlock::runtime::{Runtime, Time};
use quorlock::transport::{Channel, Listener, Subscription, Transport, Wake};

use super::client::LockClient;
use super::layout::Layout;

/// A waiter that is subscribed to all members.
pub(super) struct ModelWaiter {
    bell: Arc<WaiterSignal>,
    _subscriptions: Vec<Subscription>,
}

/// The most important notification that a waiter has received since it was last cleared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum WakeUpKind {
    #[default]
    Nothing,
    /// Messages flow from now on, or again. Earlier messages may have been lost.
    Live,
    /// A message that the lock is free.
    Free,
}

#[derive(Debug, Default)]
struct WaiterSignal(Mutex<(WakeUpKind, Option<Waker>)>);

impl WaiterSignal {
    fn ring(&self, what: WakeUpKind) {
        let mut inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inside.0 = inside.0.max(what);
        let waker = inside.1.take();
        drop(inside);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Listener for WaiterSignal {
    fn live(&self) {
        self.ring(WakeUpKind::Live);
    }

    fn wake(&self, _: Wake) {
        self.ring(WakeUpKind::Free);
    }
}

impl ModelWaiter {
    pub(super) fn new(layout: &Layout) -> Self {
        let bell: Arc<WaiterSignal> = Arc::default();
        let subscribe = |member: &super::member::Member| {
            let listener: Arc<dyn Listener> = bell.clone();
            let channel = Channel::from(member.name.clone());
            member.node.subscribe(&channel, listener)
        };
        let subscriptions = layout.members.iter().map(subscribe).collect();
        ModelWaiter {
            bell,
            _subscriptions: subscriptions,
        }
    }

    /// Forgets what was received, so that only later messages count.
    pub(super) fn clear(&self) {
        let mut inside = self.bell.0.lock().unwrap_or_else(PoisonError::into_inner);
        inside.0 = WakeUpKind::Nothing;
    }

    /// Waits until the waiter has received `min` or more, or until a time.
    pub(super) async fn hear(
        &self,
        client: &LockClient,
        min: WakeUpKind,
        until: Time,
    ) -> WakeUpKind {
        let mut timer = client.runtime().timer();
        poll_fn(|cx| {
            let mut inside = self.bell.0.lock().unwrap_or_else(PoisonError::into_inner);
            let heard = inside.0;
            if min <= heard {
                return Poll::Ready(heard);
            }
            inside.1 = Some(cx.waker().clone());
            drop(inside);
            timer.poll_until(cx, until).map(|()| heard)
        })
        .await
    }
}

impl fmt::Debug for ModelWaiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("bell", &self.bell).finish()
    }
}
