//! The state of a node outside its server: its clock, the schedule of its disk, and its replication.

use crate::world::session::WallMicros;
use quorlock::runtime::WallMillis;
use quorlock::transport::Cause;

use crate::world::call::Call;
use crate::world::client::Counted;
use crate::world::clock::{Clock, right_wall_clock};
use crate::world::id::{FaultId, NodeId};
use crate::world::slab::Key;
use crate::world::subscription::Subscribed;
use quorlock_sim_plan::fault::ServerError;
use quorlock_sim_plan::{MinReplicas, Persistence};

/// How often a node with `appendfsync everysec` writes to its disk.
pub(crate) const EVERY_SECOND: u64 = 1_000_000_000;

/// The TTL of the marker that a node has at the beginning, which is longer than any run.
pub const MARKED_MILLIS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// The state of a server that faults change: its clock, its role, and whether it is up.
#[derive(Debug)]
pub struct NodeState {
    /// Whether a write to the disk is scheduled.
    saves: bool,
    /// Whether an imminent power loss will destroy what the node writes to its disk.
    writes_in_vain: bool,
    /// The node's wall clock, in nanoseconds since 1970. Keys expire by this clock.
    clock: Clock,
    is_up: bool,
    role: Role,
    lives: u32,
    paused_until: u64,
    pauses: u32,
    /// Requests that arrived while the node was paused.
    queue: Vec<Key<Call>>,
    error: Option<(ServerError, FaultId)>,
    /// The names whose keys the clients' user may not use, by their index, and the faults that forbid it.
    revoked: Vec<(u16, FaultId)>,
    /// Stalls that begin after a request.
    stalls: Vec<Counted>,
    subscribers: Vec<Key<Subscribed>>,
    replicas: Vec<(NodeId, u64)>,
    replication_delay: u64,
    /// The time until which the node, as a replica, is paused and applies nothing from its primary.
    stream_held_until: u64,
    /// The time since which the node has had at most as many replicas as it has now.
    replicas_since: u64,
}

/// What a server does for clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The node serves clients.
    Primary,
    /// The node follows this node and refuses clients.
    ReplicaOf(NodeId),
    /// The node tells clients which server is the primary of its group.
    Sentinel,
}

impl NodeState {
    pub(crate) fn new(role: Role) -> Self {
        NodeState {
            saves: false,
            writes_in_vain: false,
            clock: right_wall_clock(),
            is_up: true,
            role,
            lives: 0,
            paused_until: 0,
            pauses: 0,
            queue: Vec::new(),
            error: None,
            revoked: Vec::new(),
            stalls: Vec::new(),
            subscribers: Vec::new(),
            replicas: Vec::new(),
            replication_delay: 0,
            stream_held_until: 0,
            replicas_since: 0,
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn clock_mut(&mut self) -> &mut Clock {
        &mut self.clock
    }

    pub(crate) fn wall(&self, at: u64) -> WallMillis {
        WallMillis(self.clock.read(at) / 1_000_000)
    }

    pub(crate) fn micros(&self, at: u64) -> WallMicros {
        WallMicros(self.clock.read(at) / 1_000)
    }

    /// Returns whether the process of the server runs.
    pub fn is_up(&self) -> bool {
        self.is_up
    }

    /// Ends the process of the node. Returns the requests that it had not executed, or `None` if it was already down.
    pub fn crash(&mut self, disk: Persistence) -> Option<Vec<Key<Call>>> {
        if !self.is_up {
            return None;
        }
        self.is_up = false;
        self.saves = false;
        self.writes_in_vain = false;
        self.paused_until = 0;
        self.stream_held_until = 0;
        self.lives += u32::from(disk != Persistence::EveryWrite);
        Some(std::mem::take(&mut self.queue))
    }

    /// Begins the next process of the node.
    pub fn restart(&mut self) {
        self.is_up = true;
    }

    /// Returns how often the node has lost its data or replaced it with that of another node.
    pub fn lives(&self) -> u32 {
        self.lives
    }

    /// Counts that the node loses its data or replaces it with that of another node.
    pub(crate) fn begin_life(&mut self) {
        self.lives += 1;
    }

    /// Returns the time at which the pause of the server ends, or an earlier time than now.
    pub fn paused_until(&self) -> u64 {
        self.paused_until
    }

    /// Pauses the node until this time. Returns the number of the pause, or `None` if the node is down or already
    /// paused for longer.
    pub fn pause(&mut self, until: u64) -> Option<u32> {
        if !self.is_up || until <= self.paused_until {
            return None;
        }
        self.paused_until = until;
        self.pauses += 1;
        Some(self.pauses)
    }

    /// Keeps a request until the end of a pause.
    pub(crate) fn hold_up(&mut self, call: Key<Call>) {
        self.queue.push(call);
    }

    /// Ends a pause. Returns the requests that arrived during it. Returns none if another pause has begun or the node
    /// is down.
    pub fn resume(&mut self, pause: u32) -> Vec<Key<Call>> {
        if self.pauses != pause || !self.is_up {
            return Vec::new();
        }
        std::mem::take(&mut self.queue)
    }

    /// Schedules a stall after a request.
    pub(crate) fn stall(&mut self, counted: Counted) {
        self.stalls.push(counted);
    }

    /// Counts a request that is executed. Returns the stall that is due at it.
    #[inline]
    pub(crate) fn count_towards_stall(&mut self) -> Option<Counted> {
        if self.stalls.is_empty() {
            return None;
        }
        Counted::count(&mut self.stalls)
    }

    /// Returns the error with which the node refuses every request, and the fault that caused it.
    pub fn error(&self) -> Option<(ServerError, FaultId)> {
        self.error
    }

    pub(crate) fn begin_error(&mut self, error: ServerError, by: FaultId) {
        self.error = Some((error, by));
    }

    /// Ends the error of a fault. Returns whether that error was in effect.
    pub(crate) fn end_error(&mut self, by: FaultId) -> bool {
        self.error.take_if(|(_, fault)| *fault == by).is_some()
    }

    /// Forbids the use of the keys of a name, until the fault ends.
    pub(crate) fn revoke(&mut self, name: u16, by: FaultId) {
        self.revoked.push((name, by));
    }

    /// Ends the revocations of a fault.
    pub(crate) fn grant_again(&mut self, by: FaultId) {
        self.revoked.retain(|(_, fault)| *fault != by);
    }

    /// The names whose keys may not be used, by their index, and the faults that forbid it.
    pub(crate) fn revoked(&self) -> &[(u16, FaultId)] {
        &self.revoked
    }

    pub(crate) fn subscribers(&self) -> &[Key<Subscribed>] {
        &self.subscribers
    }

    pub(crate) fn subscribe(&mut self, key: Key<Subscribed>) {
        if !self.subscribers.contains(&key) {
            self.subscribers.push(key);
        }
    }

    pub(crate) fn unsubscribe(&mut self, key: Key<Subscribed>) {
        self.subscribers.retain(|known| *known != key);
    }

    /// Marks everything that the node writes from now on as lost at its power loss.
    pub(crate) fn write_in_vain(&mut self) {
        self.writes_in_vain = true;
    }

    /// Schedules a write to the disk. Returns whether none was scheduled yet.
    pub(crate) fn begin_save(&mut self) -> bool {
        !std::mem::replace(&mut self.saves, true)
    }

    /// Ends a scheduled write to the disk. Returns whether the write reaches the disk.
    pub(crate) fn end_save(&mut self) -> bool {
        self.saves &= !self.is_up;
        self.is_up && !self.writes_in_vain
    }
}

/// Methods about replication.
impl NodeState {
    pub(crate) fn role(&self) -> Role {
        self.role
    }

    pub(crate) fn set_role(&mut self, role: Role) {
        self.role = role;
    }

    /// Returns the primary that the node follows, if the node is a replica and up.
    pub fn follows(&self) -> Option<NodeId> {
        match self.role {
            Role::ReplicaOf(primary) if self.is_up => Some(primary),
            _ => None,
        }
    }

    /// Returns the replicas of the node, each with the time at which the last write arrives there.
    pub fn replicas(&self) -> &[(NodeId, u64)] {
        &self.replicas
    }

    pub(crate) fn add_replica(&mut self, replica: NodeId, comes: u64) {
        self.replicas.push((replica, comes));
    }

    pub(crate) fn take_replicas(&mut self) -> Vec<(NodeId, u64)> {
        std::mem::take(&mut self.replicas)
    }

    pub(crate) fn set_replicas(&mut self, replicas: Vec<(NodeId, u64)>) {
        self.replicas = replicas;
    }

    /// Records that from now on the node has at most the number of replicas that it has now.
    pub(crate) fn count_replicas_from(&mut self, now: u64) {
        self.replicas_since = now;
    }

    /// Holds the replication stream to the node, which applies nothing from its primary until this time.
    pub(crate) fn hold_stream(&mut self, until: u64) {
        self.stream_held_until = self.stream_held_until.max(until);
    }

    /// Returns the time until which the node applies nothing from its primary.
    pub(crate) fn stream_held_until(&self) -> u64 {
        self.stream_held_until
    }

    /// Returns how much longer than usual writes take from the node, or to the node if it is a replica.
    pub(crate) fn replication_delay(&self) -> u64 {
        self.replication_delay
    }

    pub(crate) fn begin_replication_delay(&mut self, by: u64) {
        self.replication_delay += by;
    }

    pub(crate) fn end_replication_delay(&mut self, by: u64) {
        self.replication_delay = self.replication_delay.saturating_sub(by);
    }

    /// Returns whether the node has noticed that it has fewer replicas than a write requires.
    pub fn lacks_replicas(&self, now: u64, demands: Option<&MinReplicas>) -> bool {
        demands.is_some_and(|demands| {
            self.replicas.len() < usize::from(demands.count)
                && self.replicas_since + demands.max_lag.as_nanos() <= now
        })
    }

    /// Returns the reason why the node refuses every request now, whatever its server would answer.
    pub(crate) fn refusal(&self, now: u64, demands: Option<&MinReplicas>) -> Option<Cause> {
        if self.role != Role::Primary {
            return Some(Cause::ReadOnly);
        }
        self.lacks_replicas(now, demands)
            .then_some(Cause::NoReplicas)
    }
}
