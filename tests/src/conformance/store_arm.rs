//! A store in memory as an arm, behind the transport over stores.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock_core::marker::Process;
use quorlock_core::message::{Channel, Inspect, Reply, Request, Ttl, Wake};
use quorlock_core::name::Name;
use quorlock_core::node::Node;
use quorlock_core::node::record::Record;
use quorlock_core::time::{Time, WallMillis, millis_of};
use quorlock_core::transport::{Call, Cause, Execution, Listener, Subscription, Transport};
use quorlock_store::{Draft, Key, MemoryStore, Store, StoreRuntime, StoreTransport, Task, Written};

use super::arm::{Arm, Looks, MarkerLooks, leases, queues};
use super::names::channels;
use super::step::Plant;

/// A store whose clock stands still until it is advanced.
pub struct StoreArm {
    names: Vec<Name>,
    clock: Arc<Clock>,
    store: MemoryStore,
    transport: StoreTransport,
    process: u64,
    heard: Arc<Mutex<Vec<(Channel, Wake)>>>,
    _subscriptions: Vec<Subscription>,
}

impl StoreArm {
    /// Creates a store without records, whose clock begins at `start`, with listeners for these names.
    #[must_use]
    pub fn new(start: WallMillis, names: &[Name]) -> Self {
        let clock = Arc::new(Clock {
            start,
            millis: AtomicU64::new(0),
            drawn: AtomicU64::new(0),
            tasks: Mutex::default(),
        });
        let now = clock.clone();
        let store = MemoryStore::with_clock(move || Some(now.wall_clock()));
        let mut arm = StoreArm {
            _subscriptions: Vec::new(),
            names: names.to_vec(),
            transport: StoreTransport::with_runtime(store.clone(), clock.clone()),
            clock,
            store,
            process: 1,
            heard: Arc::default(),
        };
        arm.store.set_process(Process(arm.process));
        arm.connect();
        arm
    }

    /// Begins anew with the same store, as a client does whose connections have ended.
    fn connect(&mut self) {
        self.transport = StoreTransport::with_runtime(self.store.clone(), self.clock.clone());
        let names = self.names.clone();
        // Twins have the same channels: one of them listens.
        let stems = names.iter().filter(|name| {
            let is_bare = name.stem() == name.as_bytes();
            is_bare || !names.iter().any(|other| other.as_bytes() == name.stem())
        });
        let subscriptions = stems.flat_map(channels).map(|channel| {
            let ear = Ear {
                channel: channel.clone(),
                heard: self.heard.clone(),
            };
            self.transport.subscribe(&channel, Arc::new(ear))
        });
        self._subscriptions = subscriptions.collect();
        // A listener hears of what is published after a first read.
        for name in &names {
            self.read(name);
        }
    }

    /// Reads the record of a name, and the clock with it.
    fn read(&mut self, name: &Name) {
        let name = name.clone();
        // It may hold something that is not a lock.
        let _ = self.apply(&Request::Inspect(Inspect::of(name)));
    }

    /// Returns the record of a key.
    fn record(&self, key: &Key) -> Record {
        let snapshot = at_once(self.store.read(key)).expect("it is in memory");
        let stored = snapshot.stored.map(|stored| stored.record);
        let record = stored.map(|text| Record::decode(&text).expect("a record").0);
        record.unwrap_or_default()
    }

    /// Returns a node with the record of a name.
    fn node(&self, name: &Name) -> Node {
        let stem = Name::new(name.stem()).expect("a stem is a name");
        let record = self.record(&Key::new(name.stem()));
        record.to_node(self.process(), &stem)
    }

    fn change(&self, name: &Name, change: impl FnOnce(&mut Record)) {
        let key = Key::new(name.stem());
        let mut record = self.record(&key);
        change(&mut record);
        let stored = at_once(self.store.read(&key)).expect("it is in memory");
        let version = stored.stored.map(|stored| stored.version);
        let number = self.clock.random();
        let draft = Draft {
            record: record.encode(number).into_bytes(),
            number,
            has_news: true,
            useful_until: None,
        };
        let written = at_once(self.store.write_if(&key, version.as_ref(), draft));
        assert!(matches!(written, Ok(Written::Stored { .. })), "{written:?}");
    }

    fn token_ttl(&self, node: &Node, name: &Name) -> Ttl {
        let now = self.clock.wall_clock();
        let is_there = |millis| node.stored_token(now.plus(millis), name).is_some();
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

/// Returns the result of a call of a store that answers at once.
fn at_once<T>(mut call: std::pin::Pin<Box<dyn Future<Output = T> + Send>>) -> T {
    match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("a store in memory answers at once"),
    }
}

impl Arm for StoreArm {
    fn begin(&mut self) {
        *self = StoreArm::new(self.clock.start, &self.names);
    }

    fn process(&self) -> Process {
        Process(self.process)
    }

    fn apply(&mut self, request: &Request) -> Result<Reply, Cause> {
        let mut answers = self.apply_together(std::slice::from_ref(request));
        answers.pop().expect("one request, one answer")
    }

    /// All requests are in their lines before the first one is served.
    fn apply_together(&mut self, requests: &[Request]) -> Vec<Result<Reply, Cause>> {
        let calls = requests.iter().map(|ask| self.transport.call(ask.clone()));
        let mut calls: Vec<Call> = calls.collect();
        let mut answers: Vec<_> = calls.iter().map(|_| None).collect();
        let mut cx = Context::from_waker(Waker::noop());
        // A request has four steps at most.
        for _ in 0..8 {
            for (call, answer) in calls.iter_mut().zip(&mut answers) {
                if answer.is_none()
                    && let Poll::Ready(ended) = call.as_mut().poll(&mut cx)
                {
                    *answer = Some(ended);
                }
            }
            self.clock.run_tasks();
        }
        let answers = answers.into_iter().map(|answer| {
            let answer = answer.expect("a store in memory answers at once");
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
        // Another request has read the clock by now. A claim that is written by an older reading is kept for up to 1 % of
        // its age longer, which is not what is compared here.
        let name = Name::new("another").expect("it is a name");
        self.read(&name);
    }

    fn plant(&mut self, plant: &Plant) {
        let now = self.clock.wall_clock();
        let expires = |ttl: &Option<Duration>| ttl.map(|ttl| now.plus(millis_of(ttl)));
        match plant {
            Plant::Key { name, held, ttl } => {
                self.change(name, |record| record.put(name, held.clone(), expires(ttl)));
            }
            Plant::Evict { .. } => panic!("a store has no memory limit"),
            Plant::Restart => {
                self.process += 1;
                self.store.set_process(Process(self.process));
                self.connect();
            }
            Plant::Token { name, token, ttl } => {
                self.change(name, |record| record.put_token(*token, expires(ttl)));
            }
        }
    }

    fn look(&mut self, names: &[Name]) -> Looks {
        let now = self.clock.wall_clock();
        let nodes = names.iter().map(|name| (name.clone(), self.node(name)));
        let nodes: Vec<_> = nodes.collect();
        let node_of = |name: &Name| {
            let found = nodes.iter().find(|(other, _)| other == name);
            &found.expect("it is one of the names").1
        };
        let claim = |name: &Name| Some((name.clone(), node_of(name).held(now, name)?));
        let token = |name: &Name| {
            let node = node_of(name);
            let token = node.stored_token(now, name)?;
            Some((name.clone(), (token, self.token_ttl(node, name))))
        };
        let version = |name: &Name| Some((name.clone(), node_of(name).version(now, name)?));
        let marker = Name::new(Key::MARKER).expect("it is a name");
        let marker = self.node(&marker).marker(now);
        Looks {
            claims: names.iter().filter_map(claim).collect(),
            leases: leases(names, |name| node_of(name).readers(now, name)),
            queues: queues(names, |name| node_of(name).queue(now, name)),
            tokens: names.iter().filter_map(token).collect(),
            versions: names.iter().filter_map(version).collect(),
            marker: marker.map(|marker| MarkerLooks::of(marker, self.process(), now)),
        }
    }
}

impl fmt::Debug for StoreArm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoreArm").field(&self.transport).finish()
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

/// A clock that the test advances, and the tasks that it has not run yet.
struct Clock {
    start: WallMillis,
    millis: AtomicU64,
    drawn: AtomicU64,
    tasks: Mutex<Vec<Task>>,
}

impl Clock {
    fn wall_clock(&self) -> WallMillis {
        self.start.plus(self.millis.load(Ordering::Relaxed))
    }

    fn run_tasks(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock().expect("no task panics"));
        tasks.into_iter().for_each(at_once);
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

impl StoreRuntime for Clock {
    fn now(&self) -> Time {
        Time::from_millis(self.millis.load(Ordering::Relaxed))
    }

    fn sleep(&self, _: Duration) -> Task {
        Box::pin(std::future::pending())
    }

    fn spawn(&self, task: Task) {
        self.tasks.lock().expect("no task panics").push(task);
    }

    fn random(&self) -> u64 {
        self.drawn.fetch_add(1, Ordering::Relaxed)
    }
}
