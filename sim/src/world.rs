//! All that exists in a run, in one thread-local place.
//!
//! The product's futures are `Send`, so what they hold of the simulator are small ids, and every use of them comes
//! here. Code of the product or of a user (futures, listeners, wakers, drops) is only ever called while the world is
//! not borrowed.

pub(crate) mod call;
pub(crate) mod client;
pub(crate) mod clock;
pub(crate) mod event;
pub(crate) mod link;
pub(crate) mod medium;
pub(crate) mod node;
pub(crate) mod redis;
pub(crate) mod replication;
pub(crate) mod server;
pub(crate) mod slab;
pub(crate) mod specification;
pub(crate) mod statement;
pub(crate) mod stop;
pub(crate) mod store;
pub(crate) mod subscription;
pub(crate) mod task;
pub(crate) mod timer;

use std::cell::RefCell;
use std::rc::Rc;

use redis_sim::WallMicros;

use crate::history::History;
use crate::history::recording::Recording;
use crate::plan::Plan;
use crate::world::call::{Call, Replied};
use crate::world::client::{ClientState, Who};
use crate::world::event::{Events, What};
use crate::world::link::Link;
use crate::world::node::NodeState;
use crate::world::replication::Waiting;
use crate::world::server::Servers;
use crate::world::slab::Slab;
use crate::world::statement::Statements;
use crate::world::store::{Store, Write};
use crate::world::subscription::Subscribed;
use crate::world::task::Task;
use crate::world::timer::Alarm;

thread_local! {
    static WORLD: RefCell<World> = RefCell::new(World::default());
}

/// Uses the world of this thread.
pub(crate) fn with<R>(f: impl FnOnce(&mut World) -> R) -> R {
    WORLD.with_borrow_mut(f)
}

#[derive(Debug, Default)]
pub(crate) struct World {
    /// Which run of this thread; what is left of an earlier one is ignored.
    pub(crate) run: u32,
    pub(crate) now: u64,
    pub(crate) plan: Rc<Plan>,
    pub(crate) trace: u64,
    pub(crate) events: Events,
    pub(crate) tasks: Slab<Task>,
    pub(crate) alarms: Slab<Alarm>,
    pub(crate) calls: Slab<Call>,
    pub(crate) replies: Slab<Replied>,
    pub(crate) subscriptions: Slab<Subscribed>,
    pub(crate) writes: Slab<Write>,
    pub(crate) waiting: Slab<Waiting>,
    pub(crate) clients: Vec<ClientState>,
    /// The primaries of the plan, then their replicas.
    pub(crate) nodes: Vec<NodeState>,
    /// Client after client, each with every node.
    pub(crate) links: Vec<Link>,
    /// Which node answers for a node of the plan: client after client, each with every node of the plan.
    pub(crate) routes: Vec<u16>,
    /// A process is stopped in the middle of a step.
    pub(crate) is_stopped: bool,
    /// What is left of a process that ended while it was.
    pub(crate) graves: Vec<Task>,
    /// When the clients stopped working.
    pub(crate) stopped_at: Option<u64>,
    pub(crate) store: Store,
    /// Which faults of links are active now.
    pub(crate) active: Vec<usize>,
    /// Failovers so far: of which node of the plan, from which node to which, by which fault.
    pub(crate) promoted: Vec<(u16, u16, u16, u16)>,
    /// How often each fault of the plan did something.
    pub(crate) effects: Vec<u32>,
    pub(crate) history: History,
    pub(crate) statements: Statements,
    pub(crate) counters: Counters,
    /// What executes requests.
    pub(crate) servers: Box<dyn Servers>,
    /// What a report shows; nobody else asks for it.
    pub(crate) recording: Option<Box<Recording>>,
}

/// What a run amounts to in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Counters {
    /// Requests that nodes executed.
    pub commands: u64,
    /// Acquires that found somebody else's claim.
    pub refused: u64,
    /// Events that happened.
    pub events: u64,
}

impl World {
    /// Mixes something that happened into the trace.
    pub(crate) fn note(&mut self, what: u64) {
        self.trace = (self.trace ^ what)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }

    pub(crate) fn push(&mut self, at: u64, what: What) {
        self.events.push(at, what);
    }

    pub(crate) fn client(&mut self, client: u16) -> &mut ClientState {
        self.clients
            .get_mut(usize::from(client))
            .expect("BUG: no such client")
    }

    pub(crate) fn node(&mut self, node: u16) -> &mut NodeState {
        self.nodes
            .get_mut(usize::from(node))
            .expect("BUG: no such node")
    }

    pub(crate) fn link_at(&self, client: u16, node: u16) -> usize {
        usize::from(client) * self.nodes.len() + usize::from(node)
    }

    pub(crate) fn link(&mut self, client: u16, node: u16) -> &mut Link {
        let at = self.link_at(client, node);
        self.links.get_mut(at).expect("BUG: no such link")
    }

    /// The node that answers this client for a node of the plan.
    pub(crate) fn route(&mut self, client: u16, seat: u16) -> &mut u16 {
        let at = usize::from(client) * usize::from(self.plan.nodes.count) + usize::from(seat);
        self.routes.get_mut(at).expect("BUG: no such route")
    }

    pub(crate) fn blame(&mut self, fault: usize) {
        if let Some(count) = self.effects.get_mut(fault) {
            *count += 1;
        }
    }

    /// What the clock of a node shows.
    pub(crate) fn micros(&self, node: u16) -> WallMicros {
        let node = self.nodes.get(usize::from(node));
        node.map_or(WallMicros(0), |node| node.micros(self.now))
    }

    /// The true time that it is for a process, without counting as a use of anything.
    pub(crate) fn moment(&self, who: Who) -> u64 {
        let client = self.clients.get(usize::from(who.client));
        client.map_or(self.now, |client| self.now.max(client.paused_until))
    }
}
