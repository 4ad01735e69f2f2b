//! The state of a run, in one thread-local place.
//!
//! The product's futures are `Send`, so they refer to the simulator by small ids, and every use of an id goes through
//! this module. Code of the product or of a user (futures, listeners, wakers, drops) runs only while the world is not
//! borrowed. Otherwise it would borrow the world again, and the `RefCell` would panic.

// The parts of one run.
pub mod medium;
pub(crate) mod records;
pub mod server;
pub mod shards;
pub(crate) mod specification;

pub mod client;
pub mod election_group;
pub mod fault;
pub mod link;
pub mod links;
pub mod node;

// Operations in progress.
pub mod call;
pub mod callback;
pub(crate) mod dead_claims;
pub mod event;
pub mod livelock;
pub mod record_call;
pub mod replication;
pub mod session;
pub mod stop;
pub mod store;
pub mod subscription;
pub mod task;
pub mod timer;
pub mod trigger;
pub(crate) mod witnesses;

pub mod branch;
pub mod by_id;
pub mod clock;
pub mod id;
pub mod slab;
pub mod statement;
pub mod trail;

use std::cell::RefCell;
use std::rc::Rc;

use crate::world::session::WallMicros;
use quorlock::transport::AcquireReply;

use crate::history::recording::Recording;
use crate::history::{History, NameId, Process};
use crate::world::branch::Branch;
use crate::world::by_id::ById;
use crate::world::call::{Call, Replied};
use crate::world::callback::Job;
use crate::world::client::ClientState;
use crate::world::dead_claims::{DeadClaims, DeadClaimsWatch};
use crate::world::election_group::ElectionGroup;
use crate::world::event::{Event, Events};
use crate::world::fault::{ActiveFaults, Failovers};
use crate::world::id::{ClientId, FaultId, Id, NodeId, ProcessId, Seat};
use crate::world::link::{Link, Passage};
use crate::world::links::Links;
use crate::world::livelock::LivelockDetector;
use crate::world::node::NodeState;
use crate::world::replication::AwaitedReplication;
use crate::world::server::Servers;
use crate::world::shards::Shards;
use crate::world::slab::Slab;
use crate::world::statement::Statements;
use crate::world::stop::Halt;
use crate::world::store::{Store, Write};
use crate::world::subscription::Subscribed;
use crate::world::task::{Program, Task};
use crate::world::timer::Alarm;
use crate::world::trail::PastEvent;
use crate::world::trigger::{Passing, Triggers};
use crate::world::witnesses::Attendance;
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::fault::{ClientTarget, Fault, Kind, MessageKind, Towards};
use serde::Serialize;

thread_local! {
    static WORLD: RefCell<World> = RefCell::new(World::default());
}

/// Uses the world of this thread.
pub fn with<R>(f: impl FnOnce(&mut World) -> R) -> R {
    WORLD.with_borrow_mut(f)
}

/// The parts of a run. Other modules may use each part, but what a part stores is private to it.
#[derive(Debug, Default)]
pub struct World {
    run: u32,
    now: u64,
    trace: u64,
    /// True time at which the clients stopped working, in nanoseconds.
    stopped_at: Option<u64>,
    /// The plan of the run.
    pub plan: Rc<Plan>,
    pub(crate) events: Events,
    pub(crate) tasks: Slab<Task>,
    pub(crate) alarms: Slab<Alarm>,
    pub(crate) calls: Slab<Call>,
    pub(crate) replies: Slab<Replied>,
    pub(crate) subscriptions: Slab<Subscribed>,
    pub(crate) attendances: Slab<Attendance>,
    pub(crate) writes: Slab<Write>,
    pub(crate) waiting: Slab<AwaitedReplication>,
    /// Callbacks of a user that are due later.
    pub jobs: Slab<Job>,
    /// The clients, by their numbers.
    pub clients: ById<ClientId, ClientState>,
    /// The nodes of the plan that are groups. Either all nodes are groups, or none is.
    pub groups: ById<Seat, ElectionGroup>,
    /// The shards, if the nodes of the plan form a cluster.
    pub shards: Option<Shards>,
    /// The primaries of the plan, then their replicas, then the sentinels of groups.
    pub nodes: ById<NodeId, NodeState>,
    /// The links between clients and nodes.
    pub links: Links,
    /// The faults that are in progress, and what each has done.
    pub faults: ActiveFaults,
    pub(crate) failovers: Failovers,
    pub(crate) triggers: Triggers,
    pub(crate) dead_claims: DeadClaims,
    pub(crate) halt: Halt,
    pub(crate) livelock: LivelockDetector,
    /// The work of each process, during the run.
    pub program: Option<Program>,
    pub(crate) store: Store,
    /// The tickets of holds that clients have handed over, and when others can see each, in nanoseconds of true time.
    pub tickets: Vec<(u64, String)>,
    /// What happened so far.
    pub history: History,
    pub(crate) statements: Statements,
    /// How many of each have happened.
    pub counters: Counters,
    /// The servers that execute requests.
    pub servers: Box<dyn Servers>,
    /// The recording for a report. Nothing else reads it.
    pub recording: Option<Box<Recording>>,
    /// Where the run branches off from the run of its plan, if it does.
    pub branch: Option<Branch>,
    /// The events so far, if they are kept for a comparison. Nothing else reads them.
    pub trail: Option<Vec<PastEvent>>,
}

/// Counts of what happened in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counters {
    /// Requests that nodes executed.
    pub commands: u64,
    /// Acquires that found the claim of another owner.
    pub refused: u64,
    /// Acquires that nodes granted, including those of clients that record nothing.
    pub granted: u64,
    /// Replicas that sentinels promoted.
    pub promotions: u64,
    /// Events that the simulator processed.
    pub events: u64,
}

impl Counters {
    /// Counts a node's answer to an acquire.
    pub fn count(&mut self, reply: &AcquireReply) {
        match reply {
            AcquireReply::Refused { .. } => self.refused += 1,
            AcquireReply::Granted { .. } => self.granted += 1,
            _ => {}
        }
    }
}

impl World {
    /// Begins another run, in which nothing has happened yet.
    pub fn begin(&mut self, plan: &Rc<Plan>) {
        self.run = self.run.wrapping_add(1);
        self.now = 0;
        self.trace = plan.seed;
        self.stopped_at = None;
        self.plan = Rc::clone(plan);
        self.events.clear();
        self.counters = Counters::default();
        self.history.clear();
        self.statements.clear();
        self.faults = ActiveFaults::new(plan.faults.len());
        self.failovers = Failovers::default();
        self.triggers = Triggers::default();
        let kills = |fault: &Fault| fault.kind() == Kind::CrashClient;
        self.dead_claims = DeadClaims::new(match plan.faults.iter().any(kills) {
            true => DeadClaimsWatch::On,
            false => DeadClaimsWatch::Off,
        });
        self.halt.disarm();
        self.livelock = LivelockDetector::default();
        self.store = Store::new(plan.seed);
        self.tickets.clear();
    }

    /// Returns the number of this thread's current run. Ids from an earlier run are ignored.
    pub fn run(&self) -> u32 {
        self.run
    }

    /// Returns the true time, in nanoseconds since the run began.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Sets the true time of the next event.
    pub(crate) fn advance(&mut self, now: u64) {
        self.now = now;
        self.livelock.advance(now);
    }

    /// Draws anew what happens by chance from now on, if the run branches off here.
    #[inline]
    pub(crate) fn branch_off(&mut self) {
        let now = self.now;
        if let Some(seed) = self.branch.as_mut().and_then(|branch| branch.take(now)) {
            self.links.branch_off(seed);
            self.store.branch_off(seed);
        }
    }

    /// Returns the random bits that a client gets for those of its stream. Behind a branch they are others.
    pub fn drawn(&self, bits: u64) -> u64 {
        self.branch.map_or(bits, |branch| branch.drawn(bits))
    }

    /// Returns a hash of everything that happened so far. Two runs have the same hash only if the same happened in
    /// both.
    pub fn trace(&self) -> u64 {
        self.trace
    }

    /// Mixes an event into the trace.
    pub fn note(&mut self, what: u64) {
        self.trace = (self.trace ^ what)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }

    /// Adds an event that has happened to the trail, if there is one.
    #[inline]
    pub(crate) fn keep(&mut self, at: u64, what: Event) {
        let trace = self.trace;
        if let Some(trail) = &mut self.trail {
            trail.push(PastEvent { at, what, trace });
        }
    }

    /// Returns when the clients stopped working, if they have stopped.
    pub(crate) fn stopped_at(&self) -> Option<u64> {
        self.stopped_at
    }

    /// Records that the clients stop working now.
    pub fn stop(&mut self) {
        self.stopped_at = Some(self.now);
    }

    /// Schedules an event.
    #[inline]
    pub fn push(&mut self, at: u64, what: Event) {
        self.events.push(at, what);
    }

    /// Returns a client, which must exist.
    pub fn client(&mut self, client: ClientId) -> &mut ClientState {
        self.clients.get_mut(client).expect("BUG: no such client")
    }

    /// Returns a node, which must exist.
    pub fn node(&mut self, node: NodeId) -> &mut NodeState {
        self.nodes.get_mut(node).expect("BUG: no such node")
    }

    /// Returns a link, which must exist.
    pub fn link(&mut self, client: ClientId, node: NodeId) -> &mut Link {
        let link = self.links.get_mut(client, node);
        link.expect("BUG: no such link")
    }

    /// Counts an effect of a fault.
    pub fn blame(&mut self, fault: FaultId) {
        self.faults.blame(fault);
    }

    /// Notes that a fault that waited for a request or for a step of a client lasts until then. The plan cannot tell when
    /// it begins, so it may end after all others, and progress is due that much later.
    pub(crate) fn heals_later(&mut self, until: u64) {
        if self.stopped_at().is_some() {
            return;
        }
        let later = until.saturating_sub(self.history.healed);
        self.history.healed += later;
        self.history.progress_due += later;
    }

    /// Notes that a client sends a message to a node of the plan, or receives one. Faults that wait for that message
    /// begin.
    #[inline]
    pub fn pass(&mut self, client: ClientId, seat: Seat, message: MessageKind, towards: Towards) {
        self.faults.note_use(seat);
        if self.triggers.awaits_messages() {
            let at = self.now;
            self.begin_after(
                client,
                Passing {
                    at,
                    message,
                    towards,
                    seat,
                },
            );
        }
    }

    #[cold]
    fn begin_after(&mut self, client: ClientId, passing: Passing) {
        let mut triggers = std::mem::take(&mut self.triggers);
        let is_meant = |target| self.meant(target) == Some(client);
        for (at, fault) in triggers.pass(passing, is_meant) {
            self.push(at, Event::Begins(fault));
        }
        self.triggers = triggers;
    }

    /// Begins the faults that wait for a role that a client has just taken.
    #[inline]
    pub fn fill_roles(&mut self) {
        if self.triggers.awaits_roles() {
            let mut triggers = std::mem::take(&mut self.triggers);
            for fault in triggers.take_filled(|role| self.meant(role).is_some()) {
                self.push(self.now, Event::Begins(fault));
            }
            self.triggers = triggers;
        }
    }

    /// Returns the client that a target refers to now, if there is one.
    pub(crate) fn meant(&self, target: ClientTarget) -> Option<ClientId> {
        match target {
            ClientTarget::Client(number) => Some(ClientId::new(number)),
            ClientTarget::Holder { name } => self.holder(name.map(NameId)),
        }
    }

    /// Returns the client that entered a section or was elected last, among those that are still inside or still lead.
    fn holder(&self, name: Option<NameId>) -> Option<ClientId> {
        let is_there = |process: Process, of: NameId, left: u64| {
            let client = self.clients.get(ClientId::new(process.client));
            left == u64::MAX
                && name.is_none_or(|name| name == of)
                && client.is_some_and(|c| c.is_up() && c.restarts() == process.restarts)
        };
        let mut sections = self.history.sections.iter().rev();
        let inside = sections.find(|s| is_there(s.process, s.name, s.left));
        let inside = inside.map(|section| (section.entered, section.process.client));
        let mut reigns = self.history.reigns.iter().rev();
        let leading = reigns.find(|r| is_there(r.process, r.name, r.ended));
        let leading = leading.map(|reign| (reign.elected, reign.process.client));
        let last = inside.max(leading);
        last.map(|(_, client)| ClientId::new(client))
    }

    /// Returns the node of the plan that a server belonged to when the run began.
    pub(crate) fn seat_of(&self, node: NodeId) -> Seat {
        let nodes = &self.plan.nodes;
        match node.get().checked_sub(nodes.count) {
            None => Seat::new(node.get()),
            Some(replica) => Seat::new(replica / nodes.replicas.max(1)),
        }
    }

    /// Returns the reading of a node's clock.
    pub fn micros(&self, node: NodeId) -> WallMicros {
        let node = self.nodes.get(node);
        node.map_or(WallMicros(0), |node| node.micros(self.now))
    }

    /// Returns the replicas of a node of the plan, whatever their roles are now.
    pub(crate) fn replicas_of(&self, seat: Seat) -> impl Iterator<Item = NodeId> + use<> {
        let nodes = &self.plan.nodes;
        let first = nodes.count + seat.get() * nodes.replicas;
        (first..first + nodes.replicas).map(NodeId::new)
    }

    /// Returns the true time for a process: now, or the end of its pause. This does not count as a use of a seam.
    pub fn moment(&self, who: ProcessId) -> u64 {
        let client = self.clients.get(who.client);
        client.map_or(self.now, |client| self.now.max(client.paused_until()))
    }

    /// Sends a message from a client to a node at a given time. Returns whether and when it arrives.
    #[inline]
    pub fn send_to_node(&mut self, client: ClientId, node: NodeId, departs: u64) -> Passage {
        let link = self.links.get_mut(client, node);
        let link = link.expect("BUG: no such link");
        link.send_to_node(departs, &mut self.faults)
    }

    /// Sends a message from a node to a client now. Returns whether and when it arrives.
    #[inline]
    pub fn send_to_client(&mut self, client: ClientId, node: NodeId) -> Passage {
        let now = self.now;
        let link = self.links.get_mut(client, node);
        let link = link.expect("BUG: no such link");
        link.send_to_client(now, &mut self.faults)
    }
}
