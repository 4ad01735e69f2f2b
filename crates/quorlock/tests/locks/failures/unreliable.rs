//! A transport on which requests, replies and wake-ups are lost, delayed, duplicated and refused.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use quorlock::EmbeddedNode;
use quorlock::transport::{
    Call, Cause, Intercept, Listener, Reply, Request, Transport, TransportError, Wake,
};
use tokio::time::sleep;

/// How long a caller waits for a reply.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// What happens to one request.
#[derive(Clone, Debug)]
pub(crate) enum Fate {
    /// It is executed, and its reply arrives.
    Arrives,
    /// It is executed at once, and again after this time.
    ArrivesTwice(Duration),
    /// It is executed after this time, even if no caller waits for it any more.
    ArrivesLate(Duration),
    /// It is executed, and its reply arrives after this time.
    ReplyLate(Duration),
    /// It is executed, and its reply is lost.
    ReplyLost,
    /// It is lost before it reaches the node.
    Lost,
    /// The node refuses it.
    Refused(Cause),
}

/// What happens to wake-ups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wakes {
    Arrive,
    ArriveTwice,
    Lost,
}

/// What happens on an unreliable transport to a node. Clones are the same transport.
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
    /// A transport on which everything arrives, for now.
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

    /// Sets what happens to each request from now on.
    pub(crate) fn decide(&self, fate: impl FnMut(&Request) -> Fate + Send + 'static) {
        self.way().fate = Box::new(fate);
    }

    /// Lets everything arrive again.
    pub(crate) fn heal(&self) {
        self.decide(|_| Fate::Arrives);
    }

    /// Sets what happens to wake-ups from now on.
    pub(crate) fn wakes(&self, wakes: Wakes) {
        self.way().wakes = wakes;
    }

    /// Runs this once, just before the next subscription.
    pub(crate) fn before_subscription(&self, act: impl FnOnce() + Send + 'static) {
        self.way().on_subscribe = Some(Box::new(act));
    }

    /// Returns the requests since the last call.
    pub(crate) fn take_sent(&self) -> Vec<Request> {
        std::mem::take(&mut self.way().sent)
    }
}

impl Unreliable {
    /// Returns the transport.
    pub(crate) fn transport(&self) -> Intercept<EmbeddedNode> {
        let (calls, subscriptions) = (self.clone(), self.clone());
        Intercept::new(self.node.clone())
            .on_call(move |_, request| calls.call(request))
            .on_subscribe(move |node, channel, listener| {
                let act = subscriptions.way().on_subscribe.take();
                if let Some(act) = act {
                    act();
                }
                let way = subscriptions.way.clone();
                node.subscribe(channel, Arc::new(Ear { listener, way }))
            })
    }

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
                Fate::Refused(cause) => {
                    Err(TransportError::definite(cause, "refused by the test").advised(ADVICE))
                }
            }
        })
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

/// The advice of refusals.
pub(crate) const ADVICE: &str = "tell the test to stop";

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
