//! The link between a client and a node.

mod direction;

pub use self::direction::Passage;
pub(crate) use self::direction::{Impairment, LinkDirection};
use crate::world::call::Call;
use crate::world::fault::ActiveFaults;
use crate::world::id::FaultId;
use crate::world::slab::Key;

/// The state of a connection, as the client knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionStatus {
    /// There is a connection.
    Up,
    /// There is none.
    Down,
    /// The client tries to connect.
    Connecting,
}

/// The link between a client and a node.
#[derive(Debug)]
pub struct Link {
    to_node: LinkDirection,
    to_client: LinkDirection,
    line: ConnectionStatus,
    /// Calls that wait for the connection.
    waiting: Vec<Key<Call>>,
    client_epoch: u32,
    /// The last connection that the node accepted; `u32::MAX` if it has ended at the node.
    node_epoch: u32,
    /// The first connection that the node serves. Requests on an older one are refused.
    first_served: u32,
    /// Whether the client has retired the connection that the node serves.
    is_retired: bool,
    /// Whether a call on the connection got no answer in time.
    is_doubtful: bool,
    /// Failed attempts to connect since the last successful one.
    failures: u32,
    lacks_scripts: Option<FaultId>,
}

impl Link {
    pub(crate) fn new(seed: u64, index: u64, min: u64, max: u64) -> Self {
        Link {
            to_node: LinkDirection::new(seed, 2 * index, min, max),
            to_client: LinkDirection::new(seed, 2 * index + 1, min, max),
            line: ConnectionStatus::Up,
            waiting: Vec::new(),
            client_epoch: 0,
            node_epoch: 0,
            first_served: 0,
            is_retired: false,
            is_doubtful: false,
            failures: 0,
            lacks_scripts: None,
        }
    }

    pub(super) fn branch_off(&mut self, seed: u64) {
        self.to_node.branch_off(seed);
        self.to_client.branch_off(seed);
    }

    /// Sends a message from the client.
    #[inline]
    pub fn send_to_node(&mut self, departs: u64, faults: &mut ActiveFaults) -> Passage {
        self.to_node.send(departs, faults)
    }

    /// Sends a message from the node.
    #[inline]
    pub fn send_to_client(&mut self, departs: u64, faults: &mut ActiveFaults) -> Passage {
        self.to_client.send(departs, faults)
    }

    /// Sets the impairments of the link. Returns whether messages to the client could be lost until now and no longer
    /// can.
    pub(crate) fn set_troubles(
        &mut self,
        to_node: Option<Impairment>,
        to_client: Option<Impairment>,
    ) -> bool {
        let was_lossy = self.to_client.is_lossy();
        self.to_node.set_trouble(to_node);
        self.to_client.set_trouble(to_client);
        was_lossy && !self.to_client.is_lossy()
    }

    /// Delays everything that the node sends until this time.
    pub(crate) fn say_nothing_until(&mut self, until: u64) {
        self.to_client.say_nothing_until(until);
    }

    /// Makes the connection of the link, if there is one, swallow every message.
    pub(crate) fn swallow(&mut self, by: FaultId) {
        if self.line == ConnectionStatus::Up {
            self.to_node.swallow(by);
            self.to_client.swallow(by);
        }
    }

    /// Returns whether the connection swallows every message.
    pub fn swallows(&self) -> bool {
        self.to_node.swallows()
    }

    /// Records that a new connection replaces one that may swallow messages. Returns whether the previous one did.
    pub(crate) fn swallow_no_more(&mut self) -> bool {
        self.to_client.swallow_no_more();
        self.to_node.swallow_no_more()
    }

    /// Returns the fault that removed the scripts from the node, if the client has not noticed it. The next call then
    /// takes one more round trip, to send the script.
    pub fn lacks_scripts(&self) -> Option<FaultId> {
        self.lacks_scripts
    }

    /// Returns that fault, and notes that the client has noticed it.
    pub fn take_lacking_scripts(&mut self) -> Option<FaultId> {
        self.lacks_scripts.take()
    }

    pub(crate) fn forget_scripts(&mut self, by: FaultId) {
        self.lacks_scripts = Some(by);
    }
}

/// Methods about the connection of the link.
impl Link {
    pub(crate) fn line(&self) -> ConnectionStatus {
        self.line
    }

    /// Returns the number of the connection that the client uses.
    pub fn epoch(&self) -> u32 {
        self.client_epoch
    }

    /// Returns whether the node serves requests on this connection.
    pub(crate) fn is_served(&self, epoch: u32) -> bool {
        self.first_served <= epoch && epoch <= self.node_epoch
    }

    /// Returns whether there is a connection, and all calls on it were answered in time.
    pub(crate) fn is_usable(&self) -> bool {
        self.line == ConnectionStatus::Up && !self.is_doubtful
    }

    /// Records that a call on a connection got no answer in time. Returns whether it is the one in use.
    pub(crate) fn doubt(&mut self, epoch: u32) -> bool {
        let is_in_use = self.client_epoch == epoch && self.line == ConnectionStatus::Up;
        self.is_doubtful |= is_in_use;
        is_in_use
    }

    /// Records that the client replaces its connection. The node still executes what arrives on it.
    pub(crate) fn retire(&mut self) {
        self.is_retired = true;
    }

    /// Returns the number of failed attempts to connect since the last successful one.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Begins to connect. Returns the number of the new connection.
    pub(crate) fn begin_connection(&mut self) -> u32 {
        self.line = ConnectionStatus::Connecting;
        self.is_doubtful = false;
        self.client_epoch += 1;
        self.client_epoch
    }

    /// Records that the node accepts a connection. The scripts are loaded with it.
    pub fn accept(&mut self, epoch: u32) {
        if !std::mem::take(&mut self.is_retired) {
            self.first_served = epoch;
        }
        self.node_epoch = epoch;
        self.lacks_scripts = None;
    }

    /// Ends the connection on the node's side.
    pub(crate) fn end_at_node(&mut self) {
        self.node_epoch = u32::MAX;
        self.first_served = u32::MAX;
        self.is_retired = false;
    }

    /// Establishes a connection on the client's side. Returns the calls that waited for it, or `None` if the client
    /// does not wait for this connection.
    pub fn connect(&mut self, epoch: u32) -> Option<Vec<Key<Call>>> {
        if self.client_epoch != epoch || self.line != ConnectionStatus::Connecting {
            return None;
        }
        self.line = ConnectionStatus::Up;
        self.failures = 0;
        Some(std::mem::take(&mut self.waiting))
    }

    /// Fails a connection attempt on the client's side. Returns whether the client waits for this connection.
    pub(crate) fn fail_connection(&mut self, epoch: u32) -> bool {
        if self.client_epoch != epoch || self.line != ConnectionStatus::Connecting {
            return false;
        }
        self.line = ConnectionStatus::Down;
        self.failures += 1;
        self.waiting.clear();
        true
    }

    /// Closes a connection on the client's side. Returns whether it is the one in use.
    pub fn close(&mut self, epoch: u32) -> bool {
        if self.client_epoch != epoch || self.line != ConnectionStatus::Up {
            return false;
        }
        self.line = ConnectionStatus::Down;
        true
    }

    /// Adds a call that waits for the connection.
    pub fn wait(&mut self, call: Key<Call>) {
        self.waiting.push(call);
    }

    /// Begins a process of the client. The first process starts with a connection.
    pub(crate) fn boot(&mut self, restarts: u16) {
        self.line = if restarts == 0 {
            ConnectionStatus::Up
        } else {
            ConnectionStatus::Down
        };
        self.waiting.clear();
        self.is_doubtful = false;
        self.failures = 0;
    }

    /// Invalidates the connection of a process that has ended. Later messages on it are ignored.
    pub(crate) fn forget_connection(&mut self) {
        self.client_epoch += 1;
    }
}
