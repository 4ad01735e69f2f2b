//! Subscriptions, and the messages that they deliver.

use std::fmt;
use std::sync::Arc;

use quorlock::transport::{Channel, Listener, Wake, Witness};

use crate::world::id::{ClientId, NodeId, Seat};

/// A subscription of a process to one channel of one node.
pub struct Subscribed {
    client: ClientId,
    seat: Seat,
    node: NodeId,
    channel: Channel,
    listener: Arc<dyn Listener>,
    epoch: u32,
    /// Whether the client was told that its claim is gone, and the claim is not there again.
    is_told: bool,
}

impl fmt::Debug for Subscribed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subscribed({:?} on {})", self.channel, self.node)
    }
}

impl Subscribed {
    /// Creates a subscription at the node that currently serves a node of the plan.
    pub fn new(
        client: ClientId,
        seat: Seat,
        node: NodeId,
        channel: Channel,
        listener: Arc<dyn Listener>,
    ) -> Self {
        Subscribed {
            client,
            seat,
            node,
            channel,
            listener,
            epoch: 0,
            is_told: false,
        }
    }

    pub(crate) fn client(&self) -> ClientId {
        self.client
    }

    pub(crate) fn seat(&self) -> Seat {
        self.seat
    }

    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    pub(crate) fn channel(&self) -> &Channel {
        &self.channel
    }

    pub(crate) fn listener(&self) -> &Arc<dyn Listener> {
        &self.listener
    }

    /// Returns the number of the current attempt. Events of an earlier attempt are ignored.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Begins another attempt. Returns its number.
    pub fn begin_again(&mut self) -> u32 {
        self.is_told = false;
        self.epoch = self.epoch.wrapping_add(1);
        self.epoch
    }

    /// Records whether the claim of the channel is there. Returns whether the client must be told that it is not.
    pub(crate) fn look(&mut self, is_there: bool) -> bool {
        let was_told = std::mem::replace(&mut self.is_told, !is_there);
        !is_there && !was_told
    }

    pub(crate) fn move_to(&mut self, node: NodeId) {
        self.node = node;
    }
}

/// A notification to code of the product, which is delivered while the world is not borrowed.
pub enum Tell {
    /// Messages flow to this listener from now on.
    Live(Arc<dyn Listener>),
    /// A message arrives.
    Wake(Arc<dyn Listener>, Wake),
    /// A node can be reached.
    Reachable(Arc<dyn Witness>),
}

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tell::Live(_) => "Live",
            Tell::Wake(..) => "Wake",
            Tell::Reachable(_) => "Reachable",
        })
    }
}

impl Tell {
    pub(crate) fn now(self) {
        match self {
            Tell::Live(listener) => listener.live(),
            Tell::Wake(listener, wake) => listener.wake(wake),
            Tell::Reachable(witness) => witness.reachable(),
        }
    }
}
