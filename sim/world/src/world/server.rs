//! The effect of faults on servers. A server is either the executable specification or a simulated Redis, chosen once
//! at the beginning of a run.

use std::any::Any;
use std::fmt::Debug;

use crate::world::session::{Awaited, Connection, WallMicros};
use quorlock::{Name, OwnerId};
use quorlock_core::marker::Nonce;
use quorlock_core::message::Ttl;

use crate::world::id::{ClientId, NodeId, ProcessId, Seat};
use crate::world::shards::KnownSlots;
use quorlock_sim_plan::Persistence;
use quorlock_sim_plan::fault::{InFlight, ServerError};

/// One server under faults. Whether it is up, which server it follows and what its clock shows is stored in
/// `NodeState`.
pub trait Server: Debug {
    /// Ends the process. The next one begins with what is on the disk.
    fn crash(&mut self, disk: Persistence);

    /// Begins the next process.
    fn restart(&mut self);

    /// Turns a replica into a primary.
    fn promote(&mut self);

    /// Sets the number of the server's replicas.
    fn set_replicas(&mut self, many: usize);

    /// Simulates a backup: a first replica connects, reads everything and leaves.
    fn back_up(&mut self);

    /// Writes all data of the server to its disk.
    fn save(&mut self);

    /// Executes `FLUSHALL`. Returns whether there was a claim under one of `names`, the names of all locks.
    fn flush(&mut self, now: WallMicros, names: &[String]) -> bool;

    /// Evicts what is stored under a name. Returns whether there was anything.
    fn evict(&mut self, now: WallMicros, name: &str) -> bool;

    /// Makes the server refuse every request with this error. With `None`, it stops refusing.
    fn refuse(&mut self, error: Option<ServerError>);

    /// Executes `SCRIPT FLUSH`.
    fn forget_scripts(&mut self);

    /// Sets a marker, which shows that the process was watched for long enough.
    fn mark(&mut self, now: WallMicros, nonce: Nonce, longest_millis: u64);

    /// Returns those of `names`, the names of all locks, that still have a claim or waiters.
    fn names_left(&mut self, now: WallMicros, names: &[String]) -> Vec<String>;

    /// Applies what has arrived from the primary by this time. Without a primary, drops what has arrived.
    fn catch_up(&mut self, now: u64, primary: Option<NodeId>);

    /// Returns the replication offset of the server. Of two replicas, the one with the larger offset is more recent.
    /// Only elections use it.
    fn offset(&self) -> u64 {
        0
    }

    /// Drops the part of the replication stream that has not arrived yet.
    fn lose_stream(&mut self) {}

    /// Makes the server refuse writes for lack of replicas, or accept them again.
    fn mind_replicas(&mut self, _replicas: Replicas) {}

    /// Returns whether the server has written something that has not been sent to its replicas yet.
    fn has_written(&mut self) -> bool;
}

/// Whether a server has the replicas that a write requires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replicas {
    /// The server accepts writes.
    Enough,
    /// The server refuses writes.
    Few,
}

/// How a sentinel relates to a change of the primary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// The sentinel has promoted the primary itself.
    Promoted,
    /// The sentinel has made the switch, and publishes it.
    Switched,
}

/// The servers of a run, and the connections between them and its clients.
///
/// The methods about connections do nothing in the lane in which the world itself carries calls and subscriptions.
pub trait Servers: Any + Debug {
    /// Returns a server.
    fn server(&mut self, node: NodeId) -> &mut dyn Server;

    /// Makes a replica start over with a full copy of its primary's data.
    fn follow(&mut self, replica: NodeId, primary: NodeId);

    /// Sends what a server has written to its replicas. `arrivals` has each replica and the time of arrival.
    fn replicate(&mut self, node: NodeId, arrivals: &[(NodeId, u64)]);

    /// Returns the owners with a claim under a name on a node, if this is visible without a request to the server, and if the
    /// server itself determines when claims end.
    fn claims(&self, _node: NodeId, _now: WallMicros, _name: &Name) -> Vec<(Option<OwnerId>, Ttl)> {
        Vec::new()
    }

    /// Begins a process of a client.
    fn boot(&mut self, _who: ProcessId) {}

    /// Ends the process of a client.
    fn kill(&mut self, _client: ClientId) {}

    /// Ends the connections of a server whose process has ended.
    fn hang_up(&mut self, _node: NodeId) {}

    /// Makes a server accept connections again.
    fn listen(&mut self, _node: NodeId) {}

    /// Closes a client's connections to a server.
    fn leave(&mut self, _client: ClientId, _node: NodeId) {}

    /// Resets the connections between a client and a server at both ends. The client uses this server for `seats`.
    /// Returns whether a call was in flight.
    fn reset(
        &mut self,
        _client: ClientId,
        _node: NodeId,
        _seats: &[Seat],
        _in_flight: InFlight,
    ) -> bool {
        false
    }

    /// Makes a sentinel name this server as the primary from now on.
    fn name_primary(&mut self, _sentinel: NodeId, _primary: NodeId, _epoch: u64, _news: News) {}

    /// Returns the slot of the cluster that holds the keys of a name, for this node of the plan.
    fn slot_of(&self, _seat: Seat, _name: &str) -> u16 {
        0
    }

    /// Sets what a node of a cluster tells clients about slots from now on.
    fn know_slots(&mut self, _known: &KnownSlots) {}

    /// Moves one key of a slot from one node of a cluster to another. Returns whether there was a key.
    fn move_key(&mut self, _slot: u16, _from: Hand, _to: Hand) -> bool {
        false
    }

    /// Takes the connections of a server that have begun to wait for replicas.
    fn take_awaited(&mut self, _node: NodeId) -> Vec<Awaited> {
        Vec::new()
    }

    /// Ends the wait of a connection. `replicas` is the number of replicas that have what the connection waited for.
    fn confirm(
        &mut self,
        _node: NodeId,
        _connection: Connection,
        _now: WallMicros,
        _replicas: usize,
    ) {
    }

    /// Returns whether no message is in flight.
    fn is_quiet(&self) -> bool {
        true
    }
}

/// A node that sends or receives a key, and the reading of its clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hand {
    /// The node.
    pub node: NodeId,
    /// The reading of its clock.
    pub now: WallMicros,
}
