//! A lock server of the conformance test.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use quorlock_core::claim_version::ClaimVersion;
use quorlock_core::fencing::Token;
use quorlock_core::marker::{Figures, Marker, MarkerState, Nonce, Process};
use quorlock_core::message::{Channel, Reply, Request, Ttl, Wake};
use quorlock_core::name::Name;
use quorlock_core::node::Held;
use quorlock_core::owner::OwnerId;
use quorlock_core::time::WallMillis;
use quorlock_core::transport::Cause;

use super::step::Plant;

/// A lock server whose time can be advanced.
pub trait Arm: fmt::Debug {
    /// Deletes all keys.
    fn begin(&mut self);

    /// Returns the process of the server.
    fn process(&self) -> Process;

    /// Executes a request.
    fn apply(&mut self, request: &Request) -> Result<Reply, Cause>;

    /// Returns the number of listeners of each channel that the replies of the arm state.
    fn told(&self) -> u32 {
        0
    }

    /// Executes requests that many callers send at the same moment. Returns their replies, in order.
    fn apply_together(&mut self, requests: &[Request]) -> Vec<Result<Reply, Cause>> {
        requests.iter().map(|request| self.apply(request)).collect()
    }

    /// Returns what was published since the last call.
    fn published(&mut self) -> Vec<(Channel, Wake)>;

    /// Advances the time by `span`.
    fn pass(&mut self, span: Duration);

    /// Writes a key as another program would.
    fn plant(&mut self, plant: &Plant);

    /// Returns the keys of all of these names. The server must have no other key.
    fn look(&mut self, names: &[Name]) -> Looks;
}

/// The keys of a lock server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Looks {
    /// What is stored under the names.
    pub claims: BTreeMap<Name, (Held, Ttl)>,
    /// The lease of each reader, unless it has expired.
    pub leases: BTreeMap<(Name, OwnerId), Ttl>,
    /// The queues of the fair locks, in order, and how long each waiter still counts as alive.
    pub queues: BTreeMap<Name, Vec<(OwnerId, Ttl)>>,
    /// The token counters.
    pub tokens: BTreeMap<Name, (Token, Ttl)>,
    /// The claim versions of the claims.
    pub versions: BTreeMap<Name, ClaimVersion>,
    /// The marker.
    pub marker: Option<(MarkerLooks, Ttl)>,
}

/// The content of a marker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MarkerLooks {
    /// Whether the marker belongs to the server's process.
    pub is_own: bool,
    /// The nonce of the marker.
    pub nonce: Nonce,
    /// What the marker states about leases and watches.
    pub figures: Figures,
    /// Whether the marker is confirmed.
    pub state: MarkerState,
}

impl MarkerLooks {
    /// Returns the content of a marker at `now`, on a node with this process.
    #[must_use]
    pub fn of(marker: Marker, process: Process, now: WallMillis) -> (Self, Ttl) {
        let looks = MarkerLooks {
            is_own: marker.process == process,
            nonce: marker.nonce,
            figures: marker.figures,
            state: marker.state,
        };
        (looks, Ttl::Millis(marker.expires.0 - now.0))
    }
}

/// Returns the readers under these names.
pub(super) fn leases(
    names: &[Name],
    readers: impl Fn(&Name) -> Vec<(OwnerId, u32, Ttl)>,
) -> BTreeMap<(Name, OwnerId), Ttl> {
    let of = |name: &Name| {
        let readers = readers(name).into_iter();
        let name = name.clone();
        readers.map(move |(owner, _, ttl)| ((name.clone(), owner), ttl))
    };
    names.iter().flat_map(of).collect()
}

/// Returns the queues under these names.
pub(super) fn queues(
    names: &[Name],
    queue: impl Fn(&Name) -> Vec<(OwnerId, Ttl)>,
) -> BTreeMap<Name, Vec<(OwnerId, Ttl)>> {
    let queues = names.iter().map(|name| (name.clone(), queue(name)));
    queues.filter(|(_, queue)| !queue.is_empty()).collect()
}
