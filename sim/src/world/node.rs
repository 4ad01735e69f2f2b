//! A server: the executable specification of `quorlock-core` behind a clock, a disk and replicas.

use std::rc::Rc;

use quorlock::WallMillis;
use quorlock::transport::{Cause, Node as Keys, Process as Started, Request};

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
    pub(crate) keys: Keys,
    /// What is on its disk, unless that is everything or nothing.
    pub(crate) saved: Keys,
    pub(crate) saves: bool,
    /// Nanoseconds since 1970. Keys expire by it.
    pub(crate) clock: Clock,
    pub(crate) is_up: bool,
    /// How many processes it has been, and how often a primary.
    pub(crate) starts: u32,
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
    /// Writes on their way to it. They are taken over when somebody looks: most replicas are never asked anything.
    pub(crate) replicated: Vec<Replicated>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Primary,
    /// Follows this node and refuses clients.
    ReplicaOf(u16),
}

/// A write on its way to a replica, with the clock of the primary at its execution: what is replicated is absolute.
#[derive(Debug)]
pub(crate) struct Replicated {
    pub(crate) from: u16,
    pub(crate) arrives: u64,
    pub(crate) wall: WallMillis,
    /// Of the primary: its marker goes to its replicas as it is.
    pub(crate) process: Started,
    /// Shared by the replicas.
    pub(crate) request: Rc<Request>,
}

impl NodeState {
    pub(crate) fn new(role: Role) -> Self {
        NodeState {
            keys: Keys::new(),
            saved: Keys::new(),
            saves: false,
            clock: right_wall_clock(),
            is_up: true,
            starts: 0,
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
            replicated: Vec::new(),
        }
    }

    pub(crate) fn wall(&self, at: u64) -> WallMillis {
        WallMillis(self.clock.read(at) / 1_000_000)
    }

    /// The error with which it refuses everything now.
    pub(crate) fn refusal(
        &self,
        now: u64,
        demands: Option<&MinReplicas>,
    ) -> Option<(Cause, Option<FaultId>)> {
        if self.role != Role::Primary {
            return Some((Cause::ReadOnly, None));
        }
        let lacks_replicas = |demands: &MinReplicas| {
            self.replicas.len() < usize::from(demands.count)
                && self.replicas_since + demands.max_lag.as_nanos() <= now
        };
        if demands.is_some_and(lacks_replicas) {
            return Some((Cause::NoReplicas, None));
        }
        let (error, fault) = self.error?;
        let cause = match error {
            ServerError::ReadOnly => Cause::ReadOnly,
            ServerError::Loading => Cause::Loading,
            ServerError::OutOfMemory => Cause::OutOfMemory,
            ServerError::Busy => Cause::Busy,
        };
        Some((cause, Some(fault)))
    }
}
