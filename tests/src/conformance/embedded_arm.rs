//! The embedded node as an arm.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock::runtime::{Runtime, Task, Time, Timer, WallMillis};
use quorlock::{EmbeddedNode, Persistence};
use quorlock_core::marker::Process;
use quorlock_core::message::{Channel, Reply, Request, Ttl, Wake};
use quorlock_core::name::Name;
use quorlock_core::time::millis_of;
use quorlock_core::transport::{Cause, Execution, Listener, Subscription, Transport};

use super::arm::{Arm, Looks, MarkerLooks, leases, queues};
use super::names::channels;
use super::step::Plant;

/// An embedded node behind the transport seam, with a clock that stands still until it is advanced.
pub struct EmbeddedArm {
    names: Vec<Name>,
    clock: Arc<Clock>,
    node: EmbeddedNode,
    heard: Arc<Mutex<Vec<(Channel, Wake)>>>,
    _subscriptions: Vec<Subscription>,
}

impl EmbeddedArm {
    /// Creates a node without keys, whose clock begins at `start`, with listeners for these names.
    #[must_use]
    pub fn new(start: WallMillis, names: &[Name]) -> Self {
        let clock = Arc::new(Clock {
            start,
            millis: AtomicU64::new(0),
            drawn: AtomicU64::new(0),
        });
        let node = EmbeddedNode::with_runtime(clock.clone()).persistence(Persistence::EveryWrite);
        let heard = Arc::new(Mutex::new(Vec::new()));
        let subscriptions = names.iter().flat_map(channels).map(|channel| {
            let ear = Ear {
                channel: channel.clone(),
                heard: heard.clone(),
            };
            node.subscribe(&channel, Arc::new(ear))
        });
        EmbeddedArm {
            _subscriptions: subscriptions.collect(),
            names: names.to_vec(),
            clock,
            node,
            heard,
        }
    }

    /// Returns how long the counter is kept from now on, by reading the node with its clock advanced.
    fn token_ttl(&self, name: &Name) -> Ttl {
        let now = self.clock.millis.load(Ordering::Relaxed);
        let is_there = |millis| {
            self.clock.millis.store(now + millis, Ordering::Relaxed);
            let is_there = self.node.stored_token(name).is_some();
            self.clock.millis.store(now, Ordering::Relaxed);
            is_there
        };
        let (mut there, mut gone) = (0, 1 << 43);
        if is_there(gone) {
            return Ttl::Unbounded;
        }
        while there + 1 < gone {
            let middle = there + (gone - there) / 2;
            if is_there(middle) {
                there = middle;
            } else {
                gone = middle;
            }
        }
        Ttl::Millis(there)
    }
}

impl Arm for EmbeddedArm {
    fn begin(&mut self) {
        *self = EmbeddedArm::new(self.clock.start, &self.names);
    }

    fn process(&self) -> Process {
        self.node.process()
    }

    fn apply(&mut self, request: &Request) -> Result<Reply, Cause> {
        let mut answers = self.apply_together(std::slice::from_ref(request));
        answers.pop().expect("one request, one answer")
    }

    /// All calls are made before the first one is answered.
    fn apply_together(&mut self, requests: &[Request]) -> Vec<Result<Reply, Cause>> {
        let calls = requests
            .iter()
            .map(|request| self.node.call(request.clone()));
        let calls: Vec<_> = calls.collect();
        let mut cx = Context::from_waker(Waker::noop());
        let answers = calls.into_iter().map(|mut call| {
            let Poll::Ready(answer) = call.as_mut().poll(&mut cx) else {
                panic!("a node without latency answers at once");
            };
            answer.map_err(|error| {
                assert_eq!(error.execution, Execution::Definite, "{error:?}");
                error.cause
            })
        });
        answers.collect()
    }

    fn published(&mut self) -> Vec<(Channel, Wake)> {
        std::mem::take(&mut *self.heard.lock().expect("no listener panics"))
    }

    fn pass(&mut self, span: Duration) {
        self.clock
            .millis
            .fetch_add(millis_of(span), Ordering::Relaxed);
    }

    fn plant(&mut self, plant: &Plant) {
        match plant {
            Plant::Key { name, held, ttl } => self.node.put(name, held.clone(), *ttl),
            Plant::Evict { .. } => panic!("an embedded node has no memory limit"),
            Plant::Restart => {
                self.node.kill();
                self.node.restart();
            }
            Plant::Token { name, token, ttl } => self.node.put_token(name, *token, *ttl),
        }
    }

    fn look(&mut self, names: &[Name]) -> Looks {
        let claim = |name: &Name| Some((name.clone(), self.node.held(name)?));
        let token = |name: &Name| {
            let token = self.node.stored_token(name)?;
            Some((name.clone(), (token, self.token_ttl(name))))
        };
        Looks {
            claims: names.iter().filter_map(claim).collect(),
            leases: leases(names, |name| self.node.readers(name)),
            queues: queues(names, |name| self.node.queue(name)),
            tokens: names.iter().filter_map(token).collect(),
            versions: names
                .iter()
                .filter_map(|name| Some((name.clone(), self.node.version(name)?)))
                .collect(),
            marker: self.node.marker().map(|marker| {
                MarkerLooks::of(marker, self.node.process(), self.clock.wall_clock())
            }),
        }
    }
}

impl fmt::Debug for EmbeddedArm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EmbeddedArm").field(&self.node).finish()
    }
}

struct Ear {
    channel: Channel,
    heard: Arc<Mutex<Vec<(Channel, Wake)>>>,
}

impl Listener for Ear {
    fn live(&self) {}

    fn wake(&self, message: Wake) {
        let mut heard = self.heard.lock().expect("no listener panics");
        heard.push((self.channel.clone(), message));
    }
}

/// A clock that the test advances. A node without latency needs nothing else from a runtime.
#[derive(Debug)]
struct Clock {
    start: WallMillis,
    millis: AtomicU64,
    drawn: AtomicU64,
}

impl Runtime for Clock {
    fn now(&self) -> Time {
        Time::from_millis(self.millis.load(Ordering::Relaxed))
    }

    fn wall_clock(&self) -> WallMillis {
        self.start.plus(self.millis.load(Ordering::Relaxed))
    }

    fn timer(&self) -> Box<dyn Timer> {
        panic!("no task waits here")
    }

    fn spawn(&self, _: Task) {
        panic!("nothing is spawned here")
    }

    fn random(&self) -> u64 {
        self.drawn.fetch_add(1 << 32, Ordering::Relaxed)
    }
}
