//! What one client knows about the longest lease of its deployment, and how a longer one is introduced.
//!
//! Clients of a deployment may have different settings for a while: old ones with 60 s, new ones with 120 s. The
//! danger is a node that loses its data. An old client that has heard of no longer lease watches it for 60 s, and then
//! counts its votes, while a new client still relies on a claim of 120 s that the node has forgotten. Therefore each
//! marker states three [`Figures`], and a client counts only nodes that were watched for as long as any node needs.
//! A client with a longer setting raises the figures in three stages, on **all** nodes, without a watch:
//!
//! 1. *Announce*: `watched`. No node grants a longer lease yet, so no client relies on one, and a longer watch of these
//!    processes would have found the same. From now on clients that see it watch restarted nodes for longer.
//! 2. *Require*: `needed`. A client that sees it counts only nodes that state the announced `watched`.
//! 3. *Grant*: `granted`, one old longest lease later. Each client has probed each node in this time, and knows.
//!
//! Each write names the marker that it changes, so a marker that was written after a loss in between stays as it is. A
//! stage begins when all nodes have completed the one before it, so any client with a longer setting can continue what
//! another one began.
//!
//! A shorter setting needs nothing: a client always watches for as long as the markers state, and bounds its own leases.

mod stages;

use std::time::Duration;

pub use self::stages::Step;
use crate::lease::drift;
use crate::marker::{Figures, MarkerState, Nonce, Process, Shown, ShownMarker};
use crate::time::{Time, millis_of};

/// A lower bound on the longest pause between two probes of a trusted node, for clients with very short leases.
pub(crate) const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

/// What one client knows about the longest lease of its deployment.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LongestLease {
    own: Duration,
    own_millis: u64,
    raises: bool,
    /// The largest figures of any confirmed marker that was shown, if one was.
    known: Option<Figures>,
    /// The longest watch that any marker states.
    shown_watch: u64,
    /// How often the needed watch has become longer.
    rises: u64,
    /// What each node has shown last, unless it is not confirmed.
    nodes: Vec<Option<Seen>>,
    /// When the next step may be tried on each node, and the pause after that one.
    next_tries: Vec<(Time, Duration)>,
}

/// A confirmed marker, as its node has shown it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Seen {
    process: Process,
    nonce: Nonce,
    figures: Figures,
    /// When the first reply with this watch was received.
    since: Time,
    /// When the first reply with this watch and this needed watch was received.
    needed_since: Time,
    /// When the request of the last reply that showed it was sent.
    sent: Time,
}

impl LongestLease {
    /// Returns the knowledge of a client that has heard no node. It requests no longer leases than `own`, and raises
    /// the figures to `own` if `raises`.
    #[must_use]
    pub fn new(own: Duration, raises: bool, nodes: usize) -> Self {
        // The largest number that a script on a server can state.
        let own_millis = millis_of(own).min((1 << 53) - 1);
        LongestLease {
            own,
            own_millis,
            raises,
            known: None,
            shown_watch: 0,
            rises: 0,
            nodes: vec![None; nodes],
            next_tries: vec![(Time::ZERO, Duration::ZERO); nodes],
        }
    }

    /// Handles what the reply to a request sent at `sent` showed about a node.
    pub fn handle_shown(&mut self, now: Time, sent: Time, node: usize, shown: Shown) {
        let confirmed = match shown.marker {
            ShownMarker::Own(nonce, state, figures) => {
                self.shown_watch = self.shown_watch.max(figures.watched_millis);
                // An observing marker states what its writer wants. A new client with 120 s marks node 1 before it
                // hears from the others. If that already counted as needed, no client would count 2 and 3.
                (state == MarkerState::Confirmed).then_some((nonce, figures))
            }
            ShownMarker::Missing | ShownMarker::Anothers => None,
        };
        if let Some((_, figures)) = confirmed {
            self.learn(figures);
        }
        let Some(place) = self.nodes.get_mut(node) else {
            return;
        };
        let before = *place;
        // A late reply shows an older state.
        if before.is_some_and(|seen| sent < seen.sent) {
            return;
        }
        *place = confirmed.map(|(nonce, figures)| {
            let same = before.filter(|it| (it.process, it.nonce) == (shown.process, nonce));
            let same_need = same.filter(|it| it.figures.needed_millis == figures.needed_millis);
            Seen {
                process: shown.process,
                nonce,
                figures,
                since: same.map_or(now, |it| it.since),
                needed_since: same_need.map_or(now, |it| it.needed_since),
                sent,
            }
        });
        if before.map(|it| it.figures) != place.map(|it| it.figures)
            && let Some(next_try) = self.next_tries.get_mut(node)
        {
            *next_try = (Time::ZERO, Duration::ZERO);
        }
    }

    fn learn(&mut self, figures: Figures) {
        let known = self.known.map_or(figures, |known| known.larger(figures));
        let rises = |before: Figures| before.needed_millis < known.needed_millis;
        if self.known.is_some_and(rises) {
            self.rises += 1;
        }
        self.known = Some(known);
    }

    /// Returns the figures that a request sent now states.
    ///
    /// They do not contain a longer setting of the client, unless it knows nothing else: a client with a wrong setting
    /// that finds a restarted node would make all clients watch it for that long.
    #[must_use]
    pub fn stated(&self) -> Figures {
        let known = self.known.unwrap_or(Figures::same(self.own_millis));
        Figures {
            watched_millis: known.watched_millis.max(self.shown_watch),
            ..known
        }
    }

    /// Returns the figures that a confirmation states: the client has watched the node for [`LongestLease::watch`].
    #[must_use]
    pub fn confirmed(&self) -> Figures {
        let stated = self.stated();
        Figures {
            watched_millis: stated.watched_millis.max(self.own_millis),
            ..stated
        }
    }

    /// Returns how long a node must have been watched for its vote to count, in milliseconds.
    #[must_use]
    pub fn needed_millis(&self) -> u64 {
        self.known.map_or(0, |known| known.needed_millis)
    }

    /// Returns the longest lease that a confirmed marker has shown to be granted, in milliseconds; `None` if none was
    /// shown. No node grants it before all nodes state that it is needed, so it may be requested from all of them.
    #[must_use]
    pub fn granted_millis(&self) -> Option<u64> {
        self.known.map(|known| known.granted_millis)
    }

    /// Returns how often the needed watch has become longer. From then on a round counts no vote of a node that had
    /// shown a shorter watch with it.
    ///
    /// A holds 1 and 2 for 120 s. Node 1 restarts empty, and B, which has not heard of such leases, has watched it for
    /// 60 s. In B's round node 1 grants, and then node 3 grants, and shows that 120 s are needed. If B counted both, it
    /// would have a majority, like A.
    #[must_use]
    pub fn rises(&self) -> u64 {
        self.rises
    }

    /// Returns how far ahead of a node's clock a token may be: a quarter of the longest lease that the client requests,
    /// and nodes grant.
    ///
    /// A node that loses its counter is watched for four times as long, so the next token is larger.
    #[must_use]
    pub fn slack_millis(&self) -> u64 {
        let granted = self.granted_millis().unwrap_or(self.own_millis);
        granted.min(self.own_millis) / 4
    }

    /// Returns how long this client watches a node before it confirms its marker: the longest lease that it knows of or
    /// requests, and its drift allowance.
    #[must_use]
    pub fn watch(&self) -> Duration {
        let longest = self.span(self.confirmed().watched_millis);
        longest.saturating_add(drift(longest))
    }

    /// Returns within which time each node is probed once, unless it does not answer: the longest lease that nodes
    /// grant, or that the client requests if that is less. The wait before the last stage of a raise relies on it.
    #[must_use]
    pub fn probed_within(&self) -> Duration {
        let granted = self.known.map(|known| self.span(known.granted_millis));
        granted.map_or(self.own, |granted| granted.min(self.own))
    }

    fn span(&self, millis: u64) -> Duration {
        match millis == self.own_millis {
            true => self.own,
            false => Duration::from_millis(millis),
        }
    }
}

#[cfg(test)]
mod tests;
