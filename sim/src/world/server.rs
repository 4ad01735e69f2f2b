//! What faults do to servers, whatever executes their requests: the executable specification, or a simulated Redis.
//! Which of them the servers of a run are is chosen once, at its beginning.

use std::any::Any;
use std::fmt::Debug;

use crate::world::session::{Awaited, SessionId, WallMicros};
use quorlock::transport::Ttl;
use quorlock::{Name, OwnerId};
use quorlock_core::marker::Nonce;

use crate::plan::Persistence;
use crate::plan::fault::{InFlight, NodeFault, ServerError};
use crate::world::id::{ClientId, NodeId, ProcessId, Seat};
use crate::world::shards::KnownSlots;

/// One server under faults. Whether it is up, whom it follows and what its clock shows is kept beside it.
pub(crate) trait Server: Debug {
    /// The process ends. What its disk has is what the next one begins with.
    fn crash(&mut self, disk: Persistence);

    /// The next process begins.
    fn restart(&mut self);

    /// A replica becomes a primary.
    fn promote(&mut self);

    /// The number of its replicas has changed.
    fn set_replicas(&mut self, many: usize);

    /// A first replica comes, reads everything and leaves.
    fn back_up(&mut self);

    /// Everything that it has comes to its disk.
    fn save(&mut self);

    /// `FLUSHALL`. Returns whether there was a lock; these are the names of all locks.
    fn flush(&mut self, now: WallMicros, names: &[String]) -> bool;

    /// Forgets what it has under a name. Returns whether there was something.
    fn evict(&mut self, now: WallMicros, name: &str) -> bool;

    /// From now on it refuses everything with this error, or nothing any more.
    fn refuse(&mut self, error: Option<ServerError>);

    /// `SCRIPT FLUSH`.
    fn forget_scripts(&mut self);

    /// It has been watched for long, as its marker says from now on.
    fn mark(&mut self, now: WallMicros, nonce: Nonce, longest_millis: u64);

    /// The names with a claim or with waiters; these are the names of all locks.
    fn names_left(&mut self, now: WallMicros, names: &[String]) -> Vec<String>;

    /// Takes over what has come from its primary by this time. Without a primary, what has come is dropped.
    fn catch_up(&mut self, now: u64, primary: Option<NodeId>);

    /// How much it has ever written or been told: of two replicas, the one with more is more recent. Only an
    /// election asks for it.
    fn offset(&self) -> u64 {
        0
    }

    /// What its primary has not got to it yet never comes.
    fn lose_stream(&mut self) {}

    /// It takes no writes for lack of replicas, or it does again.
    fn mind_replicas(&mut self, _replicas: Replicas) {}

    /// Whether it has written something that is not on its way to its replicas yet.
    fn has_written(&mut self) -> bool;
}

/// Whether a server has the replicas that it demands for a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Replicas {
    Enough,
    Few,
}

/// What a sentinel is told of another primary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum News {
    /// It has promoted it itself.
    Promoted,
    /// The switch is made, and to be published.
    Switched,
}

/// The servers of a run, and what is between them and its clients.
///
/// The methods about connections do nothing where calls and subscriptions are the world's own.
pub(crate) trait Servers: Any + Debug {
    fn server(&mut self, node: NodeId) -> &mut dyn Server;

    /// A replica begins with all that its primary has.
    fn follow(&mut self, replica: NodeId, primary: NodeId);

    /// Sends what a server has written to its replicas: to each, and when it arrives.
    fn replicate(&mut self, node: NodeId, arrivals: &[(NodeId, u64)]);

    /// ProcessId has claims under a name of a node, where that can be seen without asking the server.
    fn claims(&self, _node: NodeId, _now: WallMicros, _name: &Name) -> Vec<(Option<OwnerId>, Ttl)> {
        Vec::new()
    }

    /// A process of a client begins.
    fn boot(&mut self, _who: ProcessId) {}

    /// The process of a client has ended.
    fn kill(&mut self, _client: ClientId) {}

    /// The process of a server has ended, and with it its connections.
    fn hang_up(&mut self, _node: NodeId) {}

    /// A server takes connections again.
    fn listen(&mut self, _node: NodeId) {}

    /// A client leaves a server.
    fn leave(&mut self, _client: ClientId, _node: NodeId) {}

    /// The connections of a client and a server end at both ends. Returns whether a call was under way; the client asks
    /// this server about these nodes of the plan.
    fn reset(
        &mut self,
        _client: ClientId,
        _node: NodeId,
        _seats: &[Seat],
        _in_flight: InFlight,
    ) -> bool {
        false
    }

    /// A sentinel names this server as the primary from now on.
    fn name_primary(&mut self, _sentinel: NodeId, _primary: NodeId, _epoch: u64, _news: News) {}

    /// In which slot of a cluster the keys of a name lie that are those of a node of the plan.
    fn slot_of(&self, _seat: Seat, _name: &str) -> u16 {
        0
    }

    /// A node of a cluster tells clients this from now on.
    fn know_slots(&mut self, _known: &KnownSlots) {}

    /// Moves one key of a slot from one node of a cluster to another. Returns whether there was one.
    fn move_key(&mut self, _slot: u16, _from: Hand, _to: Hand) -> bool {
        false
    }

    /// Connections of a server that have begun to wait for replicas.
    fn take_awaited(&mut self, _node: NodeId) -> Vec<Awaited> {
        Vec::new()
    }

    /// A connection has waited: so many replicas have what it waited for.
    fn confirm(&mut self, _node: NodeId, _session: SessionId, _now: WallMicros, _replicas: usize) {}

    /// Whether nothing is under way.
    fn is_quiet(&self) -> bool {
        true
    }
}

/// A node that gives or takes a key, and what its clock shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hand {
    pub(crate) node: NodeId,
    pub(crate) now: WallMicros,
}

/// What a fault needs to know of the place where it strikes.
#[derive(Debug)]
pub(crate) struct Site<'a> {
    pub(crate) disk: Persistence,
    /// On the clock of the node.
    pub(crate) now: WallMicros,
    /// The names of all locks.
    pub(crate) names: &'a [String],
}

/// Does to a server what the beginning of a fault does to it. Returns whether it did anything. Time, connections and
/// who follows whom are not the server's.
pub(crate) fn strike(server: &mut dyn Server, fault: &NodeFault, site: &Site<'_>) -> bool {
    match fault {
        NodeFault::Crash | NodeFault::PowerLoss { .. } => server.crash(site.disk),
        NodeFault::Flush => return server.flush(site.now, site.names),
        NodeFault::Evict { name } => {
            let name = site.names.get(usize::from(*name));
            return name.is_some_and(|name| server.evict(site.now, name));
        }
        NodeFault::Error { error } => server.refuse(Some(*error)),
        NodeFault::ForgetScripts => server.forget_scripts(),
        NodeFault::Pause
        | NodeFault::Rate { .. }
        | NodeFault::Step { .. }
        | NodeFault::SlowReplication { .. }
        | NodeFault::Stall { .. }
        | NodeFault::FreeBacklog
        | NodeFault::Misroute { .. }
        | NodeFault::Failover { .. }
        | NodeFault::IsolatePrimary { .. }
        | NodeFault::SentinelFailover
        | NodeFault::CrashSentinel { .. }
        | NodeFault::PauseSentinel { .. }
        | NodeFault::StaleSentinel { .. }
        | NodeFault::MigrateSlot { .. }
        | NodeFault::ClusterFailover { .. } => return false,
    }
    true
}
