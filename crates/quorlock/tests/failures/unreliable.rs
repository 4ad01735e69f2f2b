//! A way to a node on which requests, replies and wake-ups get lost, late, doubled and refused.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use quorlock::EmbeddedNode;
use quorlock::transport::{
    Call, Cause, Channel, Listener, Reply, Request, Subscription, Transport, TransportError, Wake,
};
use tokio::time::sleep;

/// After this a caller does not wait for a reply any more.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// What becomes of one request.
#[derive(Clone, Debug)]
pub(crate) enum Fate {
    /// It is executed, and its reply comes back.
    Arrives,
    /// It is executed, and once more some time later.
    ArrivesTwice(Duration),
    /// It is executed after some time, whether or not somebody still waits for it.
    ArrivesLate(Duration),
    /// It is executed, and its reply comes back some time later.
    ReplyLate(Duration),
    /// It is executed, and nobody hears of it.
    ReplyLost,
    /// Nobody hears of it, not even the node.
    Lost,
    /// The node refuses it.
    Refused(Cause),
}

/// What becomes of wake-ups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wakes {
    Arrive,
    ArriveTwice,
    Lost,
}

/// A node at the end of an unreliable way. Clones are the same way.
#[derive(Clone)]
pub(crate) struct Unreliable {
    node: EmbeddedNode,
    way: Arc<Mutex<Way>>,
}

struct Way {
    fate: Box<dyn FnMut(&Request) -> Fate + Send>,
    wakes: Wakes,
    sent: Vec<Request>,
    on_subscribe: Option<Box<dyn FnOnce() + Send>>,
}

impl Unreliable {
    /// A way on which everything arrives, for now.
    pub(crate) fn to(node: &EmbeddedNode) -> Self {
        let way = Way {
            fate: Box::new(|_| Fate::Arrives),
            wakes: Wakes::Arrive,
            sent: Vec::new(),
            on_subscribe: None,
        };
        Unreliable {
            node: node.clone(),
            way: Arc::new(Mutex::new(way)),
        }
    }

    fn way(&self) -> MutexGuard<'_, Way> {
        self.way.lock().unwrap()
    }

    /// From now on this decides what becomes of each request.
    pub(crate) fn decide(&self, fate: impl FnMut(&Request) -> Fate + Send + 'static) {
        self.way().fate = Box::new(fate);
    }

    /// Everything arrives again.
    pub(crate) fn heal(&self) {
        self.decide(|_| Fate::Arrives);
    }

    /// From now on this becomes of wake-ups.
    pub(crate) fn wakes(&self, wakes: Wakes) {
        self.way().wakes = wakes;
    }

    /// Does this once, just before somebody subscribes.
    pub(crate) fn before_subscription(&self, act: impl FnOnce() + Send + 'static) {
        self.way().on_subscribe = Some(Box::new(act));
    }

    /// The requests since the last call.
    pub(crate) fn take_sent(&self) -> Vec<Request> {
        std::mem::take(&mut self.way().sent)
    }
}

impl Transport for Unreliable {
    fn call(&self, request: Request) -> Call {
        let fate = {
            let mut way = self.way();
            way.sent.push(request.clone());
            (way.fate)(&request)
        };
        let node = self.node.clone();
        Box::pin(async move {
            match fate {
                Fate::Arrives => node.call(request).await,
                Fate::ArrivesTwice(after) => {
                    let reply = node.call(request.clone()).await;
                    tokio::spawn(later(node, request, after));
                    reply
                }
                Fate::ArrivesLate(after) => {
                    let executed = tokio::spawn(later(node, request, after));
                    tokio::select! {
                        biased;
                        reply = executed => reply.unwrap(),
                        () = sleep(CALL_TIMEOUT) => Err(no_reply()),
                    }
                }
                Fate::ReplyLate(after) => {
                    let reply = node.call(request).await;
                    sleep(after).await;
                    reply
                }
                Fate::ReplyLost => {
                    let _ = node.call(request).await;
                    sleep(CALL_TIMEOUT).await;
                    Err(no_reply())
                }
                Fate::Lost => {
                    sleep(CALL_TIMEOUT).await;
                    Err(no_reply())
                }
                Fate::Refused(cause) => Err(TransportError::definite(
                    cause,
                    "refused by the test".to_owned(),
                )),
            }
        })
    }

    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        let act = self.way().on_subscribe.take();
        if let Some(act) = act {
            act();
        }
        let way = self.way.clone();
        self.node
            .subscribe(channel, Arc::new(Ear { listener, way }))
    }

    fn address(&self) -> &str {
        self.node.address()
    }
}

async fn later(
    node: EmbeddedNode,
    request: Request,
    after: Duration,
) -> Result<Reply, TransportError> {
    sleep(after).await;
    node.call(request).await
}

fn no_reply() -> TransportError {
    TransportError::indeterminate(Cause::TimedOut, "lost by the test".to_owned())
}

struct Ear {
    listener: Arc<dyn Listener>,
    way: Arc<Mutex<Way>>,
}

impl Listener for Ear {
    fn live(&self) {
        self.listener.live();
    }

    fn wake(&self, message: Wake) {
        let wakes = self.way.lock().unwrap().wakes;
        match wakes {
            Wakes::Arrive => self.listener.wake(message),
            Wakes::ArriveTwice => {
                self.listener.wake(message);
                self.listener.wake(message);
            }
            Wakes::Lost => {}
        }
    }
}

impl std::fmt::Debug for Unreliable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Unreliable({:?})", self.node)
    }
}
