//! What is known about the names of one connection.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use quorlock_core::marker::ConfirmedMarker;
use quorlock_core::message::{Acquire, Retention};
use quorlock_core::name::Name;
use quorlock_core::owner::OwnerId;

use super::payload::Form;
use crate::link::Connection;
use crate::multiplexer::Watch;
use crate::script::Home;
use crate::timer::Instant;

/// Names that are remembered. The script is used for all others.
pub(super) const MOST_NAMES: usize = 4_096;

/// The shortest time between two searches for names that can be forgotten.
const SWEEP: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Known {
    /// The connection that the rest is about.
    pub(super) link: Weak<Connection>,
    /// The server has refused one of the commands, and will refuse it again.
    pub(super) is_refused: bool,
    /// The form of a claim that the server takes.
    pub(super) form: Form,
    pub(super) names: BTreeMap<Name, Seen>,
    /// The watch of the last acquire that had one.
    watch: Option<Arc<Watch>>,
    /// When names that are of no use may be removed again.
    pub(super) sweep_after: Option<Instant>,
}

/// A name for which the script was run.
pub(super) struct Seen {
    /// The commands may be used until then.
    pub(super) warm_until: Instant,
    /// The name was taken lately: scripts are used until then.
    pub(super) cold_until: Option<Instant>,
    /// The newest token that was seen.
    pub(super) token: u64,
    /// The owner whose claim was made, and not ended since.
    pub(super) holder: Option<OwnerId>,
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

    /// Records that the script has granted the name.
    pub(super) fn warm(&mut self, ask: &Acquire, token: u64, sent: Instant, warmth: Duration) {
        // The counter is kept for its whole time from the script on, less an eighth.
        let warmth = match ask.retention {
            Retention::Millis(kept) => warmth.min(Duration::from_millis(kept / 8)),
            Retention::Forever => warmth,
        };
        if !self.has_room(&ask.name, sent) {
            return;
        }
        let seen = self.names.entry(ask.name.clone()).or_insert(Seen {
            warm_until: sent,
            cold_until: None,
            token,
            holder: None,
        });
        if seen.cold_until.is_none_or(|until| until <= sent) {
            seen.warm_until = sent + warmth;
            seen.cold_until = None;
        }
        seen.token = seen.token.max(token);
        seen.holder = Some(ask.owner);
    }

    /// Records that the name was taken.
    pub(super) fn cool(&mut self, name: &Name, now: Instant, warmth: Duration) {
        if let Some(seen) = self.names.get_mut(name) {
            seen.warm_until = now;
            seen.cold_until = Some(now + warmth);
        }
    }

    /// Records that the commands have made a claim.
    pub(super) fn hold(&mut self, ask: &Acquire, token: u64) {
        if let Some(seen) = self.names.get_mut(&ask.name) {
            seen.token = seen.token.max(token);
            seen.holder = Some(ask.owner);
        }
    }

    /// Whether the name is remembered, or can be.
    fn has_room(&mut self, name: &Name, now: Instant) -> bool {
        if self.names.len() < MOST_NAMES || self.names.contains_key(name) {
            return true;
        }
        // Not each time: all names may be in use.
        if self.sweep_after.is_none_or(|after| after <= now) {
            self.sweep_after = Some(now + SWEEP);
            // A hold whose name is forgotten is released by the script.
            self.names.retain(|_, seen| now < seen.warm_until);
        }
        self.names.len() < MOST_NAMES
    }
}
