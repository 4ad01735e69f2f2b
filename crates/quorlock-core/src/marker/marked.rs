//! The marker that a node has, and what a check does to it.

use super::{
    Act, Check, ConfirmedMarker, KEPT_MILLIS, Lineage, Marker, MarkerState, Process, Restarts,
    Shown, ShownMarker,
};
use crate::failure::Cause;
use crate::time::WallMillis;

/// The marker of a node, and the process that the node is.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Marked {
    pub(crate) process: Process,
    pub(crate) lineage: Lineage,
    marker: Option<Marker>,
}

impl Marked {
    /// Returns the marker at `now`, if it has not expired.
    pub(crate) fn marker(&self, now: WallMillis) -> Option<Marker> {
        self.marker.filter(|marker| now <= marker.expires)
    }

    pub(crate) fn put(&mut self, marker: Option<Marker>) {
        self.marker = marker;
    }

    /// Returns an error if the lease is longer than the node grants.
    pub(crate) fn admits(
        &self,
        now: WallMillis,
        check: Check,
        lease_millis: u64,
    ) -> Result<(), Cause> {
        let after = self.after(now, check);
        let own = after.filter(|marker| marker.process == self.process);
        let figures = own.map_or(check.figures, |marker| marker.figures);
        match lease_millis <= figures.granted_millis {
            true => Ok(()),
            false => Err(Cause::LongestLease),
        }
    }

    /// Executes the act on the marker, and returns the marker's state afterwards.
    pub(crate) fn check(&mut self, now: WallMillis, check: Check) -> Shown {
        self.marker = self.after(now, check);
        self.shown(now)
    }

    /// Whether the node has the marker that the client trusts, and is its process.
    pub(crate) fn is_trusted(&self, now: WallMillis, check: Check) -> bool {
        let (found, trusted) = (self.marker(now), check.trusted);
        found.is_some_and(|marker| trusted.is_some_and(|it| self.is_marker(marker, it)))
    }

    /// Returns the marker after a check.
    fn after(&self, now: WallMillis, check: Check) -> Option<Marker> {
        let found = self.marker(now);
        let is_trusted = self.is_trusted(now, check);
        let expires = now.plus(KEPT_MILLIS);
        if is_trusted {
            return match check.act {
                Act::Restate => found.map(|marker| Marker {
                    figures: check.figures,
                    expires,
                    ..marker
                }),
                _ => found,
            };
        }
        if let Some(marker) = found.filter(|marker| self.inherits(*marker, check)) {
            return Some(Marker {
                process: self.process,
                expires,
                ..marker
            });
        }
        match found.filter(|marker| self.keeps(*marker, check)) {
            Some(marker) => Some(kept(marker, now, check)),
            None => self.marked(now, check).or(found),
        }
    }

    /// Returns whether this confirmed marker is the one that a client trusts.
    fn is_marker(&self, marker: Marker, trusted: ConfirmedMarker) -> bool {
        marker.process == self.process
            && marker.state == MarkerState::Confirmed
            && (marker.process, marker.nonce) == (trusted.process, trusted.nonce)
            && marker.figures == trusted.figures
    }

    /// Returns whether the marker is of this process, and the check does not replace it.
    fn keeps(&self, marker: Marker, check: Check) -> bool {
        // Only on request: a client with a longer setting that has heard no node yet knows nothing of what is needed.
        // Node 1 restarts empty, and A, which has not heard of a longer lease, marks it and confirms it after 60 s. The
        // claim that it has forgotten was for 120 s. Clients that know of such leases count no vote of node 1, and
        // watch it again, for longer.
        let is_short = marker.figures.watched_millis < check.figures.needed_millis;
        let replaces = matches!(check.act, Act::MarkAnew(_)) && is_short;
        marker.process == self.process && !replaces
    }

    /// Returns the marker that the act writes where this process has none, or one that was watched for too short a
    /// time.
    ///
    /// The marker: node 1 restarts empty. It has forgotten A's claim and grants the name to B. With nodes 4 and 5 B
    /// has a majority, while A has 1, 2 and 3. Therefore a process without its own marker starts as observing, and a
    /// client confirms it only after it has watched this nonce for a longest lease: by then A's claim is over.
    /// `MarkFresh` skips this, for nodes that no client can have used before.
    fn marked(&self, now: WallMillis, check: Check) -> Option<Marker> {
        let (nonce, state) = match (check.act, self.marker(now)) {
            (Act::MarkFresh(nonce), None) => (nonce, MarkerState::Confirmed),
            (Act::Mark(nonce) | Act::MarkAnew(nonce) | Act::MarkFresh(nonce), _) => {
                (nonce, MarkerState::Observing)
            }
            (Act::Look | Act::Confirm(_) | Act::Restate, _) => return None,
        };
        Some(Marker {
            process: self.process,
            nonce,
            figures: check.figures,
            state,
            expires: now.plus(KEPT_MILLIS),
        })
    }

    /// Returns whether this process adopts the marker of the previous process.
    fn inherits(&self, marker: Marker, check: Check) -> bool {
        check.restarts == Restarts::KeepEverything
            && self.lineage == Lineage::Own
            && marker.process != self.process
            && marker.state == MarkerState::Confirmed
            // Suppose inheriting were a separate step. A reads the marker, sees a nonce that it does not know, and
            // leaves the marker. B, which knows no nonce, would then inherit it. Therefore one request decides: if
            // the marker is not inherited, the request overwrites it.
            && check.act.marks()
            // A nonce that the client does not know belongs to a watch that it has not seen. Something other than a
            // restart has happened, so the process is watched again.
            && check.known.is_none_or(|nonce| nonce == marker.nonce)
    }

    fn shown(&self, now: WallMillis) -> Shown {
        let marker = match self.marker(now) {
            None => ShownMarker::Missing,
            Some(marker) if marker.process != self.process => ShownMarker::Anothers,
            Some(marker) => ShownMarker::Own(marker.nonce, marker.state, marker.figures),
        };
        Shown {
            process: self.process,
            marker,
        }
    }
}

/// Returns the marker of this process after a check that does not replace it.
fn kept(marker: Marker, now: WallMillis, check: Check) -> Marker {
    let expires = now.plus(KEPT_MILLIS);
    let confirms = check.act == Act::Confirm(marker.nonce)
        && marker.state == MarkerState::Observing
        && marker.figures.watched_millis <= check.figures.watched_millis;
    if confirms {
        return Marker {
            state: MarkerState::Confirmed,
            figures: check.figures,
            expires,
            ..marker
        };
    }
    let is_due = marker.expires.0 < now.plus(KEPT_MILLIS / 2).0;
    Marker {
        expires: if is_due { expires } else { marker.expires },
        ..marker
    }
}
