//! What our own tests read and write in an embedded node (feature `probe`).

use std::time::Duration;

use quorlock_core::claim_version::ClaimVersion;
use quorlock_core::fencing::Token;
use quorlock_core::marker::{Marker, Process};
use quorlock_core::message::Ttl;
use quorlock_core::name::Name;
use quorlock_core::node::Held;
use quorlock_core::owner::OwnerId;
use quorlock_core::time::millis_of;

use super::{EmbeddedNode, process};

/// Probes, with the feature `probe`: they know how a node stores locks, and may change without notice.
impl EmbeddedNode {
    /// Simulates a backup by replication (`redis-cli --rdb`) of a server without a backlog: the node draws a new
    /// `master_replid`. So clients take it for another process, although it keeps all its keys.
    pub fn back_up(&self) {
        let process = process(&*self.shared.runtime);
        self.shared.state.lock().node.set_process(process);
    }

    /// Returns the lock that a name has now, and its remaining TTL.
    #[must_use]
    pub fn held(&self, name: &Name) -> Option<(Held, Ttl)> {
        let now = self.shared.clock();
        self.shared.state.lock().node.held(now, name)
    }

    /// Returns the queue of a name's fair lock: the waiters, the next one first, and how long each keeps its place.
    #[must_use]
    pub fn queue(&self, name: &Name) -> Vec<(OwnerId, Ttl)> {
        let now = self.shared.clock();
        self.shared.state.lock().node.queue(now, name)
    }

    /// Returns the readers of a name, with the hold count and remaining lease of each.
    #[must_use]
    pub fn readers(&self, name: &Name) -> Vec<(OwnerId, u32, Ttl)> {
        let now = self.shared.clock();
        self.shared.state.lock().node.readers(now, name)
    }

    /// Returns all names that have a lock or a queue now.
    #[must_use]
    pub fn names(&self) -> Vec<Name> {
        let now = self.shared.clock();
        self.shared.state.lock().node.names(now).cloned().collect()
    }

    /// Returns the token counter of a name.
    #[must_use]
    pub fn stored_token(&self, name: &Name) -> Option<Token> {
        let now = self.shared.clock();
        self.shared.state.lock().node.stored_token(now, name)
    }

    /// Returns the claim version of a name's claim, if it has one.
    #[must_use]
    pub fn version(&self, name: &Name) -> Option<ClaimVersion> {
        let now = self.shared.clock();
        self.shared.state.lock().node.version(now, name)
    }

    /// Returns the marker, which shows clients that they have watched the node for long enough.
    #[must_use]
    pub fn marker(&self) -> Option<Marker> {
        let now = self.shared.clock();
        self.shared.state.lock().node.marker(now)
    }

    /// Returns the node's process, which changes with each restart.
    #[must_use]
    pub fn process(&self) -> Process {
        self.shared.state.lock().node.process()
    }

    /// Stores a value under the key of a name, as another program would. A TTL of `None` means no expiry.
    pub fn put(&self, name: &Name, held: Held, ttl: Option<Duration>) {
        let now = self.shared.clock();
        let expires = ttl.map(|ttl| now.plus(millis_of(ttl)));
        self.shared.state.lock().node.put(name, held, expires);
    }

    /// Sets the token counter of a name, as another program would. A TTL of `None` means no expiry.
    pub fn put_token(&self, name: &Name, token: Token, ttl: Option<Duration>) {
        let now = self.shared.clock();
        let expires = ttl.map(|ttl| now.plus(millis_of(ttl)));
        let mut state = self.shared.state.lock();
        state.node.put_token(name, token, expires);
    }

    /// Returns the number of requests that the node has executed.
    #[must_use]
    pub fn executed(&self) -> u64 {
        self.shared.state.lock().executed
    }
}
