//! An in-memory lock server.

mod call;
mod losses;
#[cfg(feature = "probe")]
mod probe;
mod transport;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::marker::Process;
use quorlock_core::message::{Channel, Reply, Request, Wake};
use quorlock_core::node::Node;
use quorlock_core::time::{Time, WallMillis};
use quorlock_core::transport::{Cause, Listener, TransportError, Witness};

use crate::mutex::Mutex;
use crate::runtime::{Runtime, TokioRuntime};
use crate::sync::Counter;
use call::OutcomeSlot;
use losses::LossListeners;

/// An in-memory node run inside the process, with the keys, expiry and wake-ups of a Redis server.
///
/// Use it in tests and to try things out. It can be killed, paused and restarted, and given a latency. Clones are the
/// same node. It answers exactly as the Lua scripts do on a real server, which the conformance tests check.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use quorlock::{EmbeddedNode, Locks};
///
/// let nodes: Vec<_> = (0..5).map(|_| EmbeddedNode::new()).collect();
/// let locks = Locks::builder().trust_fresh_nodes(); // no client has used these nodes before
/// let locks = locks.on_nodes(nodes.clone())?;
/// nodes[0].kill();
/// nodes[1].pause();
/// let guard = locks.lock("orders/42").acquire().await?; // three of five are enough
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct EmbeddedNode {
    shared: Arc<NodeShared>,
    way: Way,
}

/// How a handle reaches its node.
#[derive(Clone, Copy)]
struct Way {
    round_trip: Duration,
    call_timeout: Duration,
}

/// What a restart of an [`EmbeddedNode`] keeps of its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Persistence {
    /// A restart loses everything, like Redis without an append-only file.
    Memory,
    /// A restart keeps everything, like `appendfsync always`.
    EveryWrite,
}

struct NodeShared {
    address: String,
    runtime: Arc<dyn Runtime>,
    began: Time,
    began_wall: WallMillis,
    state: Mutex<NodeState>,
}

struct NodeState {
    node: Node,
    persistence: Persistence,
    running: ProcessStatus,
    queued: Vec<(Request, Arc<OutcomeSlot>)>,
    listeners: BTreeMap<u64, (Channel, Arc<dyn Listener>)>,
    losses: LossListeners,
    witnesses: BTreeMap<u64, Arc<dyn Witness>>,
    last_id: u64,
    executed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ProcessStatus {
    Up,
    Paused,
    Dead,
}

type Outcome = Result<Reply, TransportError>;

impl EmbeddedNode {
    /// Creates an empty node without persistence or latency, on tokio's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_runtime(Arc::new(TokioRuntime::new()))
    }

    /// Creates an empty node on the clock of a custom runtime.
    #[must_use]
    pub fn with_runtime(runtime: Arc<dyn Runtime>) -> Self {
        static NEXT: Counter = Counter::new();
        let process = process(&*runtime);
        let shared = NodeShared {
            address: format!("embedded:{:04}", NEXT.next()),
            began: runtime.now(),
            began_wall: runtime.wall_clock(),
            runtime,
            state: Mutex::new(NodeState {
                node: Node::of_process(process),
                persistence: Persistence::Memory,
                running: ProcessStatus::Up,
                queued: Vec::new(),
                listeners: BTreeMap::new(),
                losses: LossListeners::default(),
                witnesses: BTreeMap::new(),
                last_id: 0,
                executed: 0,
            }),
        };
        EmbeddedNode {
            shared: Arc::new(shared),
            way: Way {
                round_trip: Duration::ZERO,
                call_timeout: Duration::from_secs(2),
            },
        }
    }

    /// Sets what a restart of the node keeps, for all clones.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks, Persistence};
    /// # use std::time::Duration;
    /// let node = EmbeddedNode::new().persistence(Persistence::EveryWrite);
    /// let locks = Locks::on_node(node.clone())?;
    /// let guard = locks.lock("orders/42").acquire().await?;
    /// node.kill();
    /// node.restart();
    /// guard.extend(Duration::from_secs(30)).await?; // the claim is still there
    /// # guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn persistence(self, persistence: Persistence) -> Self {
        self.shared.state.lock().persistence = persistence;
        self
    }

    /// Sets the time of a round trip to the node, for the requests of this value and of later clones of it.
    ///
    /// Requests then run in tasks of their own: a request is executed even if its caller was dropped.
    #[must_use]
    pub fn latency(mut self, round_trip: Duration) -> Self {
        self.way.round_trip = round_trip;
        self
    }

    /// Sets the call time-out (default 2 s), for the requests of this value and of later clones of it.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.way.call_timeout = timeout;
        self
    }

    /// Kills the node. Calls fail until it is restarted, and requests that it had not answered are lost.
    pub fn kill(&self) {
        let lost = {
            let mut state = self.shared.state.lock();
            state.running = ProcessStatus::Dead;
            std::mem::take(&mut state.queued)
        };
        // Wake without the mutex: a woken task may poll another call on this thread, which locks it.
        for (_, slot) in lost {
            slot.fill(Err(TransportError::indeterminate(
                Cause::Closed,
                "the node was killed",
            )));
        }
    }

    /// Suspends the node like SIGSTOP: it accepts requests, and executes them when it is resumed.
    pub fn pause(&self) {
        let mut state = self.shared.state.lock();
        if state.running == ProcessStatus::Up {
            state.running = ProcessStatus::Paused;
        }
    }

    /// Resumes a paused node. It executes the requests that arrived meanwhile, including those whose callers were
    /// dropped.
    pub fn resume(&self) {
        let queued = {
            let mut state = self.shared.state.lock();
            if state.running != ProcessStatus::Paused {
                return;
            }
            state.running = ProcessStatus::Up;
            std::mem::take(&mut state.queued)
        };
        for (request, slot) in queued {
            slot.fill(self.shared.execute(&request));
        }
        self.shared.tell_of_return();
    }

    /// Restarts a killed node, with the keys that its [`Persistence`] kept.
    pub fn restart(&self) {
        {
            let mut state = self.shared.state.lock();
            if state.running != ProcessStatus::Dead {
                return;
            }
            state.running = ProcessStatus::Up;
            if state.persistence == Persistence::Memory {
                state.node.flush();
            }
            let process = process(&*self.shared.runtime);
            state.node.set_process(process);
        }
        self.shared.tell_of_return();
    }

    /// Deletes everything, as `FLUSHALL` does on a Redis server.
    pub fn flush(&self) {
        self.shared.state.lock().node.flush();
        self.shared.tell_of_losses();
    }
}

impl Default for EmbeddedNode {
    fn default() -> Self {
        Self::new()
    }
}

impl NodeShared {
    /// Reads the node's wall clock.
    fn clock(&self) -> WallMillis {
        let since = self.runtime.now().since(self.began);
        self.began_wall
            .plus(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// Executes a request. Returns `None` if the node is paused, and the request is queued until it is resumed.
    fn take(&self, request: &Request, slot: &Arc<OutcomeSlot>) -> Option<Outcome> {
        {
            let mut state = self.state.lock();
            match state.running {
                ProcessStatus::Up => {}
                ProcessStatus::Paused => {
                    state.queued.push((request.clone(), slot.clone()));
                    return None;
                }
                ProcessStatus::Dead => {
                    return Some(Err(TransportError::definite(
                        Cause::Unreachable,
                        "the embedded node was killed, EmbeddedNode::restart starts it again",
                    )));
                }
            }
        }
        Some(self.execute(request))
    }

    fn execute(&self, request: &Request) -> Outcome {
        let now = self.clock();
        let (applied, listeners, losers) = {
            let state = &mut *self.state.lock();
            state.executed += 1;
            let applied = state.node.apply(now, request);
            let listeners = match &applied.published {
                Some((channel, wake)) => state.listening_to(channel, *wake),
                None => Vec::new(),
            };
            let losers = state.losses.after(&state.node, now, request);
            (applied, listeners, losers)
        };
        // Without the mutex: a listener may wake a task that sends its next request on this thread.
        for (listener, wake) in listeners {
            listener.wake(wake);
        }
        for loser in losers {
            loser.wake(Wake::Unlocked);
        }
        applied.reply.map_err(TransportError::refused)
    }

    /// Notifies all listeners that messages are delivered, and all witnesses that the node can be reached.
    fn tell_of_return(&self) {
        self.tell_live(None);
        self.tell_of_losses();
        let witnesses: Vec<_> = self.state.lock().witnesses.values().cloned().collect();
        // Without the mutex: a witness may wake a task that sends its next request on this thread.
        for witness in witnesses {
            witness.reachable();
        }
    }

    /// Notifies the owners whose claims are gone.
    fn tell_of_losses(&self) {
        let now = self.clock();
        let losers = {
            let state = &mut *self.state.lock();
            state.losses.all(&state.node, now)
        };
        for loser in losers {
            loser.wake(Wake::Unlocked);
        }
    }

    /// Notifies one listener, or all of them, that messages are delivered.
    fn tell_live(&self, only: Option<u64>) {
        let listeners: Vec<_> = {
            let state = self.state.lock();
            let told = state
                .listeners
                .iter()
                .filter(|(id, _)| only.is_none_or(|only| **id == only));
            told.map(|(_, (_, listener))| listener.clone()).collect()
        };
        for listener in listeners {
            listener.live();
        }
    }
}

/// Draws the id of a new process.
fn process(runtime: &dyn Runtime) -> Process {
    Process(runtime.random() >> 12)
}

impl NodeState {
    /// Returns the number of the next listener or witness.
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn listening_to(&self, channel: &Channel, wake: Wake) -> Vec<(Arc<dyn Listener>, Wake)> {
        let listeners = self.listeners.values().filter(|(c, _)| c == channel);
        listeners
            .map(|(_, listener)| (listener.clone(), wake))
            .collect()
    }
}

impl fmt::Debug for EmbeddedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedNode")
            .field("address", &self.shared.address)
            .finish_non_exhaustive()
    }
}
