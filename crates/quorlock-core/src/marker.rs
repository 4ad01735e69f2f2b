//! A key on a node which shows that its process was watched for long enough.
//!
//! A node that restarted without its data, was flushed, or took over from another node has forgotten claims that their
//! holders rely on. Its uptime is not evidence: a promoted replica, a flush and a step of its clock can each make it
//! misleading. Therefore clients keep a marker on every node: a key that names the process on which it was written. If
//! the marker is missing or names another process, claims may be missing too.

use crate::failure::Cause;
use crate::time::WallMillis;

/// How long a node keeps a marker that no client checks, in milliseconds: seven days. An acquire that finds less than
/// half of this time left restarts it.
pub const KEPT_MILLIS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// The process that a node is: a number of 52 bits that the node draws when it starts, and again whenever it may lack
/// writes that it has acknowledged at this address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Process(pub u64);

/// A random number below 2^53 that distinguishes one watch of a process from another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Nonce(u64);

impl Nonce {
    /// Returns a nonce made of any 64 random bits.
    #[must_use]
    pub const fn from_random(bits: u64) -> Self {
        Nonce(bits >> 11)
    }

    /// Returns the nonce with a number that was received over the wire.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Nonce(number)
    }

    /// Returns the number, as it is sent on the wire.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// The part of a request that checks or changes the marker of the node that executes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Check {
    /// The longest lease of any client of the deployment, in milliseconds. The node refuses longer leases, and a marker
    /// of its process that states another value is an error.
    pub longest_millis: u64,
    /// What the node does with its marker.
    pub act: Act,
    /// The process that the client trusts, and the nonce of its watch. If the node is that process and has that marker,
    /// confirmed, it changes nothing, and its short reply repeats what the client knows.
    pub trusted: Option<(Process, Nonce)>,
    /// Which data a node has after a restart.
    pub restarts: Restarts,
    /// The nonce of the watch that the client trusted last, even if it trusts none now. With
    /// [`Restarts::KeepEverything`] a node does not inherit a marker with a different nonce.
    pub known: Option<Nonce>,
}

/// The operator's statement about the data of a restarted node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Restarts {
    /// The node may have forgotten claims.
    MayForget,
    /// The node has every write that it acknowledged, and no other server ever takes over its address. A process that
    /// is asked to mark itself ([`Act::Mark`], [`Act::MarkFresh`]) and finds the confirmed marker of the previous
    /// process adopts it, unless there is evidence against the statement. The node must have no replica and must
    /// never have been one ([`Lineage::Own`]), and the marker must have the nonce of [`Check::known`] if the check
    /// names one.
    KeepEverything,
}

/// The origin of a node's data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Lineage {
    /// All data was written to this node: it has no replicas, and has never been a replica as far as it knows.
    #[default]
    Own,
    /// The node has replicas, or took over from a primary (its `master_replid2` is not zero).
    Shared,
}

/// What a request does with the marker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Act {
    /// Read the marker only.
    Look,
    /// Write an observing marker if this process has none.
    Mark(Nonce),
    /// Like [`Act::Mark`], but write a confirmed marker if the node has none from any process.
    MarkFresh(Nonce),
    /// Confirm the marker if it names this process and has this nonce.
    Confirm(Nonce),
}

/// Whether a process was watched for long enough.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MarkerState {
    /// The process is still being watched; its votes do not count.
    Observing,
    /// The process was watched for long enough; its votes count.
    Confirmed,
}

/// The process and the marker that a node shows in a reply.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shown {
    /// The process that the node is.
    pub process: Process,
    /// The state of its marker after the request.
    pub marker: ShownMarker,
}

/// The marker of a node, as seen by the process that the node is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ShownMarker {
    /// There is no marker: the node is new, has forgotten everything, or was not used for days.
    Missing,
    /// The marker names another process: the node was restarted, or took over from another.
    Anothers,
    /// The marker names this process.
    Own(Nonce, MarkerState),
}

/// The marker of a node, and the process that the node is.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Marked {
    pub(crate) process: Process,
    pub(crate) lineage: Lineage,
    marker: Option<Marker>,
}

/// A marker as it is stored on a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Marker {
    /// The process on which it was written.
    pub process: Process,
    /// The nonce of the watch that began with it.
    pub nonce: Nonce,
    /// The longest lease of any client of the deployment, in milliseconds.
    pub longest_millis: u64,
    /// Whether the process was watched for long enough.
    pub state: MarkerState,
    /// When the marker expires, by the node's clock.
    pub expires: WallMillis,
}

impl Marked {
    /// Returns the marker at `now`, if it has not expired.
    pub(crate) fn marker(&self, now: WallMillis) -> Option<Marker> {
        self.marker.filter(|marker| now <= marker.expires)
    }

    pub(crate) fn put(&mut self, marker: Option<Marker>) {
        self.marker = marker;
    }

    /// Returns an error if the lease is too long, or if this process's marker states another longest lease.
    pub(crate) fn admits(
        &self,
        now: WallMillis,
        check: Check,
        lease_millis: u64,
    ) -> Result<(), Cause> {
        let is_other = |marker: Marker| {
            marker.process == self.process && marker.longest_millis != check.longest_millis
        };
        if check.longest_millis < lease_millis || self.marker(now).is_some_and(is_other) {
            return Err(Cause::LongestLease);
        }
        Ok(())
    }

    /// Executes the act on the marker, and returns the marker's state afterwards.
    pub(crate) fn check(&mut self, now: WallMillis, check: Check) -> Shown {
        let found = self.marker(now);
        let is_trusted = |marker: Marker| {
            marker.process == self.process
                && marker.state == MarkerState::Confirmed
                && check.trusted == Some((marker.process, marker.nonce))
        };
        if found.is_some_and(is_trusted) {
            return self.shown(now);
        }
        let expires = now.plus(KEPT_MILLIS);
        if let Some(marker) = found.filter(|marker| self.inherits(*marker, check)) {
            self.marker = Some(Marker {
                process: self.process,
                expires,
                ..marker
            });
            return self.shown(now);
        }
        // The marker: node 1 restarts empty. It has forgotten A's claim and grants the name to B. With nodes 4 and 5 B
        // has a majority, while A has 1, 2 and 3. Therefore a process without its own marker starts as observing, and a
        // client confirms it only after it has watched this nonce for a longest lease: by then A's claim is over.
        // `MarkFresh` skips this, for nodes that no client can have used before.
        match found.filter(|marker| marker.process == self.process) {
            Some(marker) => {
                let confirms = check.act == Act::Confirm(marker.nonce);
                if confirms || marker.expires.0 < now.plus(KEPT_MILLIS / 2).0 {
                    let state = match confirms {
                        true => MarkerState::Confirmed,
                        false => marker.state,
                    };
                    self.marker = Some(Marker {
                        state,
                        expires,
                        ..marker
                    });
                }
            }
            None => {
                let written = match (check.act, found) {
                    (Act::MarkFresh(nonce), None) => Some((nonce, MarkerState::Confirmed)),
                    (Act::Mark(nonce) | Act::MarkFresh(nonce), _) => {
                        Some((nonce, MarkerState::Observing))
                    }
                    (Act::Look | Act::Confirm(_), _) => None,
                };
                if let Some((nonce, state)) = written {
                    self.marker = Some(Marker {
                        process: self.process,
                        nonce,
                        longest_millis: check.longest_millis,
                        state,
                        expires,
                    });
                }
            }
        }
        self.shown(now)
    }

    /// Returns whether this process adopts the marker of the previous process.
    fn inherits(&self, marker: Marker, check: Check) -> bool {
        check.restarts == Restarts::KeepEverything
            && self.lineage == Lineage::Own
            && marker.process != self.process
            && marker.state == MarkerState::Confirmed
            && marker.longest_millis == check.longest_millis
            // Suppose inheriting were a separate step. A reads the marker, sees a nonce that it does not know, and
            // leaves the marker. B, which knows no nonce, would then inherit it. Therefore one request decides: if
            // the marker is not inherited, the request overwrites it.
            && matches!(check.act, Act::Mark(_) | Act::MarkFresh(_))
            // A nonce that the client does not know belongs to a watch that it has not seen. Something other than a
            // restart has happened, so the process is watched again.
            && check.known.is_none_or(|nonce| nonce == marker.nonce)
    }

    fn shown(&self, now: WallMillis) -> Shown {
        let marker = match self.marker(now) {
            None => ShownMarker::Missing,
            Some(marker) if marker.process != self.process => ShownMarker::Anothers,
            Some(marker) => ShownMarker::Own(marker.nonce, marker.state),
        };
        Shown {
            process: self.process,
            marker,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallMillis = WallMillis(1_000);
    const LONGEST: u64 = 60_000;

    fn check(act: Act) -> Check {
        Check {
            longest_millis: LONGEST,
            act,
            trusted: None,
            restarts: Restarts::MayForget,
            known: None,
        }
    }

    #[test]
    fn a_marker_is_written_once_and_confirmed_by_each_client_that_names_its_nonce() {
        let mut node = Marked::default();
        let observing = ShownMarker::Own(Nonce::new(1), MarkerState::Observing);
        for act in [
            Act::Mark(Nonce::new(1)),
            Act::MarkFresh(Nonce::new(2)),
            Act::Confirm(Nonce::new(2)),
            Act::Look,
        ] {
            assert_eq!(node.check(NOW, check(act)).marker, observing, "{act:?}");
        }
        let confirmed = ShownMarker::Own(Nonce::new(1), MarkerState::Confirmed);
        assert_eq!(
            node.check(NOW, check(Act::Confirm(Nonce::new(1)))).marker,
            confirmed
        );
    }

    #[test]
    fn looking_and_confirming_write_no_marker() {
        let mut node = Marked::default();
        for act in [Act::Look, Act::Confirm(Nonce::new(1))] {
            let shown = node.check(NOW, check(act));
            assert_eq!(shown.marker, ShownMarker::Missing);
        }
    }

    #[test]
    fn a_marker_of_another_process_is_not_its_own() {
        let mut node = Marked::default();
        node.check(NOW, check(Act::MarkFresh(Nonce::new(1))));
        node.process = Process(2);
        for act in [Act::Look, Act::Confirm(Nonce::new(1))] {
            let shown = node.check(NOW, check(act)).marker;
            assert_eq!(shown, ShownMarker::Anothers);
        }
        let shown = node.check(NOW, check(Act::MarkFresh(Nonce::new(3)))).marker;
        let observing = ShownMarker::Own(Nonce::new(3), MarkerState::Observing);
        assert_eq!(shown, observing, "only a node without any marker is fresh");
    }

    #[test]
    fn a_process_inherits_a_confirmed_marker_only_if_restarts_keep_everything_and_nothing_speaks_against_it()
     {
        let keeping = Check {
            restarts: Restarts::KeepEverything,
            ..check(Act::Mark(Nonce::new(2)))
        };
        let known = |nonce| Check {
            known: Some(Nonce::new(nonce)),
            ..keeping
        };
        let longer = Check {
            longest_millis: LONGEST + 1,
            ..keeping
        };
        let confirmed = Act::MarkFresh(Nonce::new(1));
        let observing = Act::Mark(Nonce::new(1));
        for (left, lineage, check, is_inherited) in [
            (confirmed, Lineage::Own, keeping, true),
            (confirmed, Lineage::Own, known(1), true),
            (confirmed, Lineage::Own, known(3), false),
            (confirmed, Lineage::Own, longer, false),
            (confirmed, Lineage::Shared, keeping, false),
            (observing, Lineage::Own, keeping, false),
            (confirmed, Lineage::Own, check(keeping.act), false),
        ] {
            let mut node = Marked::default();
            node.check(NOW, self::check(left));
            node.process = Process(2);
            node.lineage = lineage;
            let shown = node.check(NOW, check).marker;
            let inherited = ShownMarker::Own(Nonce::new(1), MarkerState::Confirmed);
            let marked = ShownMarker::Own(Nonce::new(2), MarkerState::Observing);
            let expected = if is_inherited { inherited } else { marked };
            assert_eq!(shown, expected, "{left:?} {lineage:?} {check:?}");
        }
        for act in [Act::Look, Act::Confirm(Nonce::new(1))] {
            let mut node = Marked::default();
            node.check(NOW, self::check(confirmed));
            node.process = Process(2);
            let before = node.marker(NOW);
            let shown = node.check(NOW, Check { act, ..keeping }).marker;
            assert_eq!(shown, ShownMarker::Anothers, "{act:?}");
            assert_eq!(node.marker(NOW), before, "{act:?}");
        }
        let mut flushed = Marked::default();
        let shown = flushed.check(NOW, keeping).marker;
        assert_eq!(
            shown,
            ShownMarker::Own(Nonce::new(2), MarkerState::Observing)
        );
    }

    #[test]
    fn another_figure_of_the_same_process_is_an_error_and_so_is_a_longer_lease() {
        let mut node = Marked::default();
        node.check(NOW, check(Act::Mark(Nonce::new(1))));
        let other = Check {
            longest_millis: LONGEST + 1,
            ..check(Act::Look)
        };
        assert_eq!(node.admits(NOW, check(Act::Look), LONGEST), Ok(()));
        for (check, lease) in [(check(Act::Look), LONGEST + 1), (other, 1)] {
            let admitted = node.admits(NOW, check, lease);
            assert_eq!(admitted, Err(Cause::LongestLease));
        }
        node.process = Process(9);
        assert_eq!(node.admits(NOW, other, 1), Ok(()));
    }

    #[test]
    fn a_process_that_is_trusted_leaves_its_marker_as_it_is_and_another_does_not() {
        let mut node = Marked::default();
        node.check(NOW, check(Act::MarkFresh(Nonce::new(1))));
        let written = node.marker(NOW);
        let later = NOW.plus(KEPT_MILLIS / 2 + 1);
        let trusting = |process, nonce| Check {
            trusted: Some((Process(process), Nonce::new(nonce))),
            ..check(Act::Look)
        };
        let confirmed = ShownMarker::Own(Nonce::new(1), MarkerState::Confirmed);
        assert_eq!(node.check(later, trusting(0, 1)).marker, confirmed);
        assert_eq!(node.marker(later), written);
        for check in [trusting(0, 2), trusting(7, 1)] {
            let mut node = node.clone();
            assert_eq!(node.check(later, check).marker, confirmed);
            assert_ne!(node.marker(later), written);
        }
    }

    #[test]
    fn a_marker_that_is_looked_at_does_not_expire() {
        let day = 24 * 60 * 60 * 1_000;
        let mut node = Marked::default();
        node.check(NOW, check(Act::MarkFresh(Nonce::new(1))));
        for days in [3, 4, 9, 15] {
            let shown = node.check(NOW.plus(days * day), check(Act::Look)).marker;
            let confirmed = ShownMarker::Own(Nonce::new(1), MarkerState::Confirmed);
            assert_eq!(shown, confirmed, "{days}");
        }
        let last = NOW.plus(15 * day + KEPT_MILLIS);
        assert!(node.marker(last).is_some());
        assert!(node.marker(last.plus(1)).is_none());
    }
}
