//! The sign on a node that its process was watched for long enough.
//!
//! A node that restarted without its data, was flushed, or took over from another has forgotten claims that their
//! holders rely upon. Its uptime is no evidence: a promoted replica, a flush and a step of its clock each fake it. So
//! the clients keep a marker on every node, a key that names the process that it was written by. A marker that is gone
//! or names another process says that claims may be gone too.

use crate::failure::Cause;
use crate::time::WallMillis;

/// How long a node keeps a marker that no client looks at: seven days. An acquire that finds less than half of it left
/// starts it anew.
pub const KEPT_MILLIS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// Which process a node is: the first 52 bits of Redis' `master_replid`, which a server draws when it starts and again when
/// it becomes a primary.
///
/// (`run_id` adds nothing to it, and asking for it costs a script more than all else that it does.)
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Process(pub u64);

/// A random number below 2^53 by which one watch of a process is told from another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Nonce(u64);

impl Nonce {
    /// Of any 64 random bits.
    #[must_use]
    pub const fn from_random(bits: u64) -> Self {
        Nonce(bits >> 11)
    }

    /// A number that came over the wire.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Nonce(number)
    }

    /// The number, as it goes on the wire.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// What a request wants to know of the node that executes it, and what it is to do with the marker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Check {
    /// The longest lease of any client of the deployment. The node refuses longer ones, and a marker of its process
    /// that states another figure is an error.
    pub longest_millis: u64,
    /// What to do.
    pub act: Act,
    /// The process that the client trusts, and the nonce of its watch. A node that is that process, and has that
    /// marker, confirmed, does nothing; what it shows is known already, and costs it less to say.
    pub trusted: Option<(Process, Nonce)>,
    /// What a node has after a restart.
    pub restarts: Restarts,
    /// The nonce of the watch that the client trusted last, also where it trusts nothing now. With
    /// [`Restarts::KeepEverything`] a node inherits no marker with another one.
    pub known: Option<Nonce>,
}

/// What the operator says of a node that has been restarted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Restarts {
    /// It may have forgotten claims.
    MayForget,
    /// It has every write that it acknowledged, and no other server ever takes its address. A process that is asked to
    /// mark itself ([`Act::Mark`], [`Act::MarkFresh`]) and finds the confirmed marker of the one before makes it its own, if
    /// nothing shows that the operator errs: the node has no replica and was none ([`Lineage::Own`]), and the marker
    /// has the nonce of [`Check::known`], if that names one.
    KeepEverything,
}

/// Whose writes a node has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Lineage {
    /// Its own: it has no replicas, and was none as far as it knows.
    #[default]
    Own,
    /// It has replicas, or took over from a primary (its `master_replid2` is not zeros).
    Shared,
}

/// What to do with the marker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Act {
    /// Nothing.
    Look,
    /// If there is none of this process, write an observing one.
    Mark(Nonce),
    /// The same, but a confirmed one if there is none at all.
    MarkFresh(Nonce),
    /// If it is of this process and has this nonce, it is confirmed from now on.
    Confirm(Nonce),
}

/// Whether a process was watched for long enough.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MarkerState {
    /// Not yet.
    Observing,
    /// It was: its votes count.
    Confirmed,
}

/// What a node shows of itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shown {
    /// Which process it is.
    pub process: Process,
    /// What its marker says, after whatever the request wrote.
    pub marker: ShownMarker,
}

/// What the marker of a node says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ShownMarker {
    /// There is none: the node is new, has forgotten everything, or was not used for days.
    Missing,
    /// It names another process: the node was restarted, or took over from another.
    Anothers,
    /// It names this process.
    Own(Nonce, MarkerState),
}

/// The marker of a node, and the process that the node is.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Marked {
    pub(crate) process: Process,
    pub(crate) lineage: Lineage,
    marker: Option<Marker>,
}

/// A marker as it is stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Marker {
    /// Who wrote it.
    pub process: Process,
    /// Its nonce.
    pub nonce: Nonce,
    /// The longest lease of any client of the deployment.
    pub longest_millis: u64,
    /// Whether the process was watched for long enough.
    pub state: MarkerState,
    /// When it expires.
    pub expires: WallMillis,
}

impl Marked {
    /// The marker at `now`.
    pub(crate) fn marker(&self, now: WallMillis) -> Option<Marker> {
        self.marker.filter(|marker| now <= marker.expires)
    }

    pub(crate) fn put(&mut self, marker: Option<Marker>) {
        self.marker = marker;
    }

    /// Refuses a lease that is too long, and a figure that is not that of this process's marker.
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

    /// Does what the act says with the marker, and says what is there then.
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

    /// Whether the marker of the process before is this one's, too.
    fn inherits(&self, marker: Marker, check: Check) -> bool {
        check.restarts == Restarts::KeepEverything
            && self.lineage == Lineage::Own
            && marker.process != self.process
            && marker.state == MarkerState::Confirmed
            && marker.longest_millis == check.longest_millis
            // A looks, sees that it does not know the nonce, and leaves it: B, which knows none, would inherit behind
            // it. So one request decides, and where it does not inherit it writes another marker over this one.
            && matches!(check.act, Act::Mark(_) | Act::MarkFresh(_))
            // Another nonce than the client knows is of a watch that it has not seen: something else than a restart
            // has happened, so it is watched again.
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
