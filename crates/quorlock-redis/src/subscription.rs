//! The wake-ups of one server: the listeners, and the connection that receives messages.

pub(crate) mod claims;
pub(crate) mod registry;
mod session;

use std::fmt;
use std::sync::Arc;

use quorlock_core::transport::Listener;

use self::registry::{ListenerHandle, Registry, Topic};
use crate::target::Target;
use crate::timer;

/// The wake-ups of one server.
pub(crate) struct Wakes {
    target: Arc<Target>,
    registry: Arc<Registry>,
}

impl Wakes {
    pub(crate) fn new(target: Arc<Target>) -> Self {
        let registry = Arc::new(Registry::default());
        if !target.config().watches_claims {
            registry.has_reports(false, timer::LONGEST_SPAN);
        }
        Wakes { target, registry }
    }

    /// Whether the server sends messages on the channel to this client.
    pub(crate) fn listens(&self, channel: &[u8]) -> bool {
        self.registry.is_live(channel)
    }

    /// Registers a listener until the handle is dropped.
    pub(crate) fn subscribe(&self, topic: Topic, listener: Arc<dyn Listener>) -> ListenerHandle {
        let subscribed = self.registry.subscribe(topic, &listener);
        if let Some(guard) = subscribed.new_session {
            timer::spawn(session::run(Arc::clone(&self.target), guard));
        }
        if subscribed.is_live {
            listener.live();
        }
        subscribed.handle
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        self.registry.close();
    }
}

impl fmt::Debug for Wakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wakes").finish_non_exhaustive()
    }
}
