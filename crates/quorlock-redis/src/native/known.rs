//! What is known about one connection.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use quorlock_core::marker::ConfirmedMarker;
use quorlock_core::name::Name;

use super::payload::Form;
use crate::link::Connection;
use crate::multiplexer::Watch;
use crate::script::Home;
use crate::timer::Instant;

/// Names that were found taken and are remembered.
pub(super) const MOST_NAMES: usize = 4_096;

/// For how long scripts are used for a name that was found taken.
pub(super) const COLD: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Known {
    /// The connection that the rest is about.
    link: Weak<Connection>,
    /// When it was first used. A server that was restarted has other connections, so one that is older than the tokens that acquires have
    /// seen belongs to a server that has not lost them.
    pub(super) since: Option<Instant>,
    /// The server has refused one of the commands, and will refuse it again.
    pub(super) is_refused: bool,
    /// The form of a claim that the server takes.
    pub(super) form: Form,
    /// Names that were found taken lately: scripts are used for each of them until its time.
    pub(super) cold: BTreeMap<Name, Instant>,
    /// The watch of the last acquire that had one.
    watch: Option<Arc<Watch>>,
}

impl Known {
    /// Nothing is known about a new connection.
    pub(super) fn of(link: &Arc<Connection>) -> Self {
        Known {
            link: Arc::downgrade(link),
            ..Known::default()
        }
    }

    /// Whether this is about a connection. (While there is a `Weak` to one, no other is at its place.)
    pub(super) fn is_of(&self, link: &Arc<Connection>) -> bool {
        self.link.as_ptr() == Arc::as_ptr(link)
    }

    /// Returns the watch of a marker. Acquires with the same one can be sent together.
    pub(super) fn watch(
        &mut self,
        trusted: ConfirmedMarker,
        name: &Name,
        home: &Home,
    ) -> Arc<Watch> {
        let namespace = name.split().0;
        match &self.watch {
            Some(watch) if watch.is_of(trusted, namespace) => Arc::clone(watch),
            _ => {
                let watch = Watch::new(trusted, namespace, &home.marker(namespace));
                Arc::clone(self.watch.insert(Arc::new(watch)))
            }
        }
    }

    /// Whether the name was found taken lately.
    pub(super) fn is_cold(&self, name: &Name, now: Instant) -> bool {
        self.cold.get(name).is_some_and(|until| now < *until)
    }

    /// Records that the name was taken.
    pub(super) fn cool(&mut self, name: &Name, now: Instant) {
        if self.cold.len() == MOST_NAMES {
            self.cold.retain(|_, until| now < *until);
        }
        // Of more names than that, the commands are tried in vain.
        if self.cold.len() < MOST_NAMES || self.cold.contains_key(name) {
            self.cold.insert(name.clone(), now + COLD);
        }
    }
}
