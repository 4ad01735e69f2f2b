//! The acts on a marker.

use super::marked::Marked;
use super::*;
use crate::failure::Cause;

const NOW: WallMillis = WallMillis(1_000);
const LONGEST: u64 = 60_000;
const FIGURES: Figures = Figures::same(LONGEST);

fn check(act: Act) -> Check {
    Check {
        figures: FIGURES,
        act,
        trusted: None,
        restarts: Restarts::MayForget,
        known: None,
    }
}

#[test]
fn a_marker_is_written_once_and_confirmed_by_each_client_that_names_its_nonce() {
    let mut node = Marked::default();
    let observing = ShownMarker::Own(Nonce::new(1), MarkerState::Observing, FIGURES);
    for act in [
        Act::Mark(Nonce::new(1)),
        Act::MarkFresh(Nonce::new(2)),
        Act::Confirm(Nonce::new(2)),
        Act::Look,
    ] {
        assert_eq!(node.check(NOW, check(act)).marker, observing, "{act:?}");
    }
    let confirmed = ShownMarker::Own(Nonce::new(1), MarkerState::Confirmed, FIGURES);
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
    let observing = ShownMarker::Own(Nonce::new(3), MarkerState::Observing, FIGURES);
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
        figures: Figures::same(LONGEST + 1),
        ..keeping
    };
    let confirmed = Act::MarkFresh(Nonce::new(1));
    let observing = Act::Mark(Nonce::new(1));
    for (left, lineage, check, is_inherited) in [
        (confirmed, Lineage::Own, keeping, true),
        (confirmed, Lineage::Own, known(1), true),
        (confirmed, Lineage::Own, known(3), false),
        (confirmed, Lineage::Own, longer, true),
        (confirmed, Lineage::Shared, keeping, false),
        (observing, Lineage::Own, keeping, false),
        (confirmed, Lineage::Own, check(keeping.act), false),
    ] {
        let mut node = Marked::default();
        node.check(NOW, self::check(left));
        node.process = Process(2);
        node.lineage = lineage;
        let shown = node.check(NOW, check).marker;
        let inherited = ShownMarker::Own(Nonce::new(1), MarkerState::Confirmed, FIGURES);
        let marked = ShownMarker::Own(Nonce::new(2), MarkerState::Observing, check.figures);
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
        ShownMarker::Own(Nonce::new(2), MarkerState::Observing, FIGURES)
    );
}

/// The figures while a longer lease is announced, and required.
fn raising(needed_millis: u64) -> Figures {
    Figures {
        granted_millis: LONGEST,
        needed_millis,
        watched_millis: 2 * LONGEST,
    }
}

fn confirmed(figures: Figures) -> ShownMarker {
    ShownMarker::Own(Nonce::new(1), MarkerState::Confirmed, figures)
}

#[test]
fn a_longer_lease_than_the_marker_grants_is_an_error_whatever_the_client_states() {
    let mut node = Marked::default();
    node.check(NOW, check(Act::Mark(Nonce::new(1))));
    let longer = Check {
        figures: Figures::same(2 * LONGEST),
        ..check(Act::Look)
    };
    for check in [check(Act::Look), longer] {
        assert_eq!(node.admits(NOW, check, LONGEST), Ok(()));
        let refused = node.admits(NOW, check, LONGEST + 1);
        assert_eq!(refused, Err(Cause::LongestLease));
    }
    node.process = Process(9);
    assert_eq!(node.admits(NOW, longer, 2 * LONGEST), Ok(()), "no marker");
    let refused = node.admits(NOW, check(Act::Look), LONGEST + 1);
    assert_eq!(refused, Err(Cause::LongestLease));
}

#[test]
fn a_marker_is_restated_only_if_it_is_the_one_that_the_check_names() {
    let restate = |figures, nonce| Check {
        figures: raising(LONGEST),
        trusted: Some(ConfirmedMarker {
            process: Process(0),
            nonce: Nonce::new(nonce),
            figures,
        }),
        ..check(Act::Restate)
    };
    let mut node = Marked::default();
    node.check(NOW, check(Act::MarkFresh(Nonce::new(1))));
    for other in [restate(FIGURES, 2), restate(raising(LONGEST), 1)] {
        assert_eq!(node.check(NOW, other).marker, confirmed(FIGURES));
    }
    let shown = node.check(NOW, restate(FIGURES, 1)).marker;
    assert_eq!(shown, confirmed(raising(LONGEST)));

    let mut observing = Marked::default();
    observing.check(NOW, check(Act::Mark(Nonce::new(1))));
    let shown = observing.check(NOW, restate(FIGURES, 1)).marker;
    assert!(matches!(
        shown,
        ShownMarker::Own(_, MarkerState::Observing, FIGURES)
    ));
}

#[test]
fn a_marker_that_was_watched_for_less_than_others_need_is_marked_anew_on_request() {
    let mut node = Marked::default();
    node.check(NOW, check(Act::MarkFresh(Nonce::new(1))));
    let knowing = |needed, act| Check {
        figures: raising(needed),
        ..check(act)
    };
    for kept in [
        knowing(LONGEST, Act::MarkAnew(Nonce::new(2))),
        knowing(2 * LONGEST, Act::Look),
        knowing(2 * LONGEST, Act::Mark(Nonce::new(2))),
        knowing(2 * LONGEST, Act::MarkFresh(Nonce::new(2))),
        knowing(2 * LONGEST, Act::Confirm(Nonce::new(1))),
    ] {
        assert_eq!(node.check(NOW, kept).marker, confirmed(FIGURES), "{kept:?}");
    }
    let anew = knowing(2 * LONGEST, Act::MarkAnew(Nonce::new(2)));
    let shown = node.check(NOW, anew).marker;
    let figures = raising(2 * LONGEST);
    let observing = ShownMarker::Own(Nonce::new(2), MarkerState::Observing, figures);
    assert_eq!(shown, observing);
}

#[test]
fn a_confirmation_writes_its_figures_unless_it_watched_for_less_than_the_marker_states() {
    let figures = raising(LONGEST);
    let marking = Check {
        figures,
        ..check(Act::Mark(Nonce::new(1)))
    };
    let confirming = |figures| Check {
        figures,
        ..check(Act::Confirm(Nonce::new(1)))
    };
    let mut node = Marked::default();
    node.check(NOW, marking);
    let shown = node.check(NOW, confirming(FIGURES)).marker;
    assert_eq!(
        shown,
        ShownMarker::Own(Nonce::new(1), MarkerState::Observing, figures)
    );
    let longer = Figures::same(2 * LONGEST);
    assert_eq!(
        node.check(NOW, confirming(longer)).marker,
        confirmed(longer)
    );
    let late = node.check(NOW, confirming(figures)).marker;
    assert_eq!(late, confirmed(longer), "a confirmed marker stays");
}

#[test]
fn a_process_that_is_trusted_leaves_its_marker_as_it_is_and_another_does_not() {
    let mut node = Marked::default();
    node.check(NOW, check(Act::MarkFresh(Nonce::new(1))));
    let written = node.marker(NOW);
    let later = NOW.plus(KEPT_MILLIS / 2 + 1);
    let trusting = |process, nonce| Check {
        trusted: Some(ConfirmedMarker {
            process: Process(process),
            nonce: Nonce::new(nonce),
            figures: FIGURES,
        }),
        ..check(Act::Look)
    };
    let confirmed = ShownMarker::Own(Nonce::new(1), MarkerState::Confirmed, FIGURES);
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
        let confirmed = ShownMarker::Own(Nonce::new(1), MarkerState::Confirmed, FIGURES);
        assert_eq!(shown, confirmed, "{days}");
    }
    let last = NOW.plus(15 * day + KEPT_MILLIS);
    assert!(node.marker(last).is_some());
    assert!(node.marker(last.plus(1)).is_none());
}
