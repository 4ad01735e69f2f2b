//! A subscription, and what it brings.

use std::fmt;
use std::sync::Arc;

use quorlock::transport::{Channel, Listener, Wake};

/// One subscription of a process to one channel of one node.
pub(crate) struct Subscribed {
    pub(crate) client: u16,
    pub(crate) seat: u16,
    pub(crate) node: u16,
    pub(crate) channel: Channel,
    pub(crate) listener: Arc<dyn Listener>,
    /// Which attempt at it; what belongs to an earlier one is ignored.
    pub(crate) epoch: u32,
}

impl fmt::Debug for Subscribed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subscribed({:?} on {})", self.channel, self.node)
    }
}

/// Something to tell a listener, once the world is not borrowed.
pub(crate) struct Tell(pub(crate) Arc<dyn Listener>, pub(crate) Option<Wake>);

impl Tell {
    pub(crate) fn now(self) {
        match self.1 {
            None => self.0.live(),
            Some(wake) => self.0.wake(wake),
        }
    }
}
