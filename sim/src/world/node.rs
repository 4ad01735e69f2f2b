//! A node around its server: its clock, its disk's schedule, and who follows whom.

use quorlock::WallMillis;
use quorlock::transport::Cause;
use redis_sim::WallMicros;

use crate::plan::MinReplicas;
use crate::plan::fault::ServerError;
use crate::world::call::Call;
use crate::world::client::right_wall_clock;
use crate::world::clock::Clock;
use crate::world::link::FaultId;
use crate::world::slab::Key;
use crate::world::subscription::Subscribed;

/// How often a node with `appendfsync everysec` writes to its disk.
pub(crate) const EVERY_SECOND: u64 = 1_000_000_000;

/// The marker with which a node begins lasts longer than any run.
pub(crate) const MARKED_MILLIS: u64 = 7 * 24 * 60 * 60 * 1_000;

#[derive(Debug)]
pub(crate) struct NodeState {
    /// Whether its disk is going to be written.
    pub(crate) saves: bool,
    /// Nanoseconds since 1970. Keys expire by it.
    pub(crate) clock: Clock,
    pub(crate) is_up: bool,
    pub(crate) role: Role,
    /// How often it has forgotten what it had, or taken over what another one has.
    pub(crate) lives: u32,
    pub(crate) paused_until: u64,
    pub(crate) pauses: u32,
    /// Requests that came while it was paused.
    pub(crate) queue: Vec<Key<Call>>,
    pub(crate) error: Option<(ServerError, FaultId)>,
    pub(crate) subscribers: Vec<Key<Subscribed>>,
    /// Its replicas, each with the time at which the last write comes there.
    pub(crate) replicas: Vec<(u16, u64)>,
    /// By how much longer than usual writes are on their way from it, or to it if it is a replica.
    pub(crate) replication_delay: u64,
    /// Since when it has no more replicas than it has now.
    pub(crate) replicas_since: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Primary,
    /// Follows this node and refuses clients.
    ReplicaOf(u16),
}

impl NodeState {
    pub(crate) fn new(role: Role) -> Self {
        NodeState {
            saves: false,
            clock: right_wall_clock(),
            is_up: true,
            role,
            lives: 0,
            paused_until: 0,
            pauses: 0,
            queue: Vec::new(),
            error: None,
            subscribers: Vec::new(),
            replicas: Vec::new(),
            replication_delay: 0,
            replicas_since: 0,
        }
    }

    pub(crate) fn wall(&self, at: u64) -> WallMillis {
        WallMillis(self.clock.read(at) / 1_000_000)
    }

    pub(crate) fn micros(&self, at: u64) -> WallMicros {
        WallMicros(self.clock.read(at) / 1_000)
    }

    /// Why it refuses everything now, whatever its server would say.
    pub(crate) fn refusal(&self, now: u64, demands: Option<&MinReplicas>) -> Option<Cause> {
        if self.role != Role::Primary {
            return Some(Cause::ReadOnly);
        }
        let lacks_replicas = |demands: &MinReplicas| {
            self.replicas.len() < usize::from(demands.count)
                && self.replicas_since + demands.max_lag.as_nanos() <= now
        };
        demands
            .is_some_and(lacks_replicas)
            .then_some(Cause::NoReplicas)
    }
}
