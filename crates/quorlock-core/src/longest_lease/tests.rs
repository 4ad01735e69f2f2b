//! A client with a longer setting, and nodes that execute what it sends.

mod model;

use super::*;
use crate::marker::{Act, Check, ConfirmedMarker, Marked, Restarts};
use crate::time::WallMillis;

const OLD: u64 = 60_000;
const NEW: u64 = 120_000;
const NOW: WallMillis = WallMillis(1);
const ANNOUNCED: Figures = Figures {
    granted_millis: OLD,
    needed_millis: OLD,
    watched_millis: NEW,
};
const REQUIRED: Figures = Figures {
    needed_millis: NEW,
    ..ANNOUNCED
};

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn knows(millis: u64, nodes: usize) -> LongestLease {
    LongestLease::new(Duration::from_millis(millis), true, nodes)
}

fn shows(process: u64, nonce: u64, state: MarkerState, figures: Figures) -> Shown {
    Shown {
        process: Process(process),
        marker: ShownMarker::Own(Nonce::new(nonce), state, figures),
    }
}

fn check(act: Act, figures: Figures, trusted: Option<ConfirmedMarker>) -> Check {
    Check {
        figures,
        act,
        trusted,
        restarts: Restarts::MayForget,
        known: None,
    }
}

/// Nodes with confirmed markers that state 60 s.
fn nodes(count: u64) -> Vec<Marked> {
    let node = |process| {
        let mut node = Marked::default();
        node.process = Process(process);
        let fresh = check(
            Act::MarkFresh(Nonce::new(process)),
            Figures::same(OLD),
            None,
        );
        node.check(NOW, fresh);
        node
    };
    (1..=count).map(node).collect()
}

/// The figures that each node states.
fn figures(nodes: &[Marked]) -> Vec<Figures> {
    let markers = nodes.iter().filter_map(|node| node.marker(NOW));
    markers.map(|marker| marker.figures).collect()
}

fn look(client: &mut LongestLease, at: Time, index: usize, node: &mut Marked) {
    let shown = node.check(NOW, check(Act::Look, client.stated(), None));
    client.handle_shown(at, at, index, shown);
}

/// Sends every step that is due, until none is.
fn run(client: &mut LongestLease, at: Time, nodes: &mut [Marked]) {
    for _ in 0..9 {
        for (index, node) in nodes.iter_mut().enumerate() {
            match client.next_step(at, index) {
                None => {}
                Some(Step::Look) => look(client, at, index, node),
                Some(Step::Restate(marker, figures)) => {
                    let shown = node.check(NOW, check(Act::Restate, figures, Some(marker)));
                    client.handle_shown(at, at, index, shown);
                }
            }
        }
    }
}

fn meet(client: &mut LongestLease, at: Time, nodes: &mut [Marked]) {
    for (index, node) in nodes.iter_mut().enumerate() {
        look(client, at, index, node);
    }
}

#[test]
fn a_longer_lease_is_announced_then_required_and_granted_one_old_longest_lease_later() {
    for count in [1, 3] {
        let mut nodes = nodes(count);
        let mut new = knows(NEW, nodes.len());
        let since = ms(10_000);
        meet(&mut new, since, &mut nodes);
        run(&mut new, since, &mut nodes);
        assert!(figures(&nodes).iter().all(|it| *it == REQUIRED));
        let granted = since + Duration::from_millis(OLD) + drift(Duration::from_millis(OLD));
        assert_eq!(new.granted_from(), Some(granted));
        run(&mut new, ms(70_601), &mut nodes);
        assert!(figures(&nodes).iter().all(|it| *it == REQUIRED));
        run(&mut new, granted, &mut nodes);
        assert!(figures(&nodes).iter().all(|it| *it == Figures::same(NEW)));
        assert_eq!(
            (0..nodes.len()).map(|i| new.poll_timeout(i)).min(),
            Some(Time::NEVER)
        );
    }
}

#[test]
fn a_client_with_the_same_or_a_shorter_setting_changes_nothing_and_watches_for_as_long_as_markers_state()
 {
    for own in [OLD, OLD / 2] {
        let mut nodes = nodes(3);
        let mut client = knows(own, 3);
        meet(&mut client, ms(1), &mut nodes);
        run(&mut client, ms(1), &mut nodes);
        assert_eq!(client.stated(), Figures::same(OLD));
        assert!(figures(&nodes).iter().all(|it| *it == Figures::same(OLD)));
        assert_eq!(client.watch(), knows(OLD, 1).watch());
    }
}

#[test]
fn nothing_is_announced_before_all_nodes_have_shown_a_confirmed_marker() {
    let mut nodes = nodes(3);
    let mut new = knows(NEW, 3);
    meet(&mut new, ms(1), nodes.get_mut(..2).unwrap());
    assert_eq!(new.next_step(ms(2), 0), None);
    let last = nodes.last_mut().unwrap();
    *last = Marked::default();
    last.check(
        NOW,
        check(Act::Mark(Nonce::new(9)), Figures::same(OLD), None),
    );
    look(&mut new, ms(3), 2, last);
    assert_eq!(new.next_step(ms(4), 0), None);
    let twin = shows(1, 1, MarkerState::Confirmed, Figures::same(OLD));
    new.handle_shown(ms(5), ms(5), 2, twin);
    assert_eq!(new.next_step(ms(6), 0), None, "two addresses of one server");
}

/// The steps of a client with 120 s on nodes that have shown these figures, and were looked at since.
#[test]
fn a_stage_begins_when_all_nodes_have_completed_the_one_before_and_none_was_watched_for_too_short()
{
    let same = Figures::same;
    let [old, new] = [same(OLD), same(NEW)];
    for (stated, steps) in [
        ([old; 3], [Some(ANNOUNCED); 3]),
        (
            [ANNOUNCED, old, old],
            [None, Some(ANNOUNCED), Some(ANNOUNCED)],
        ),
        ([ANNOUNCED; 3], [Some(REQUIRED); 3]),
        (
            [REQUIRED, ANNOUNCED, REQUIRED],
            [None, Some(REQUIRED), None],
        ),
        ([REQUIRED; 3], [None; 3]),
        // Others need a longer watch already: this node is watched again.
        ([REQUIRED, ANNOUNCED, old], [None; 3]),
        ([new, old, new], [None; 3]),
    ] {
        let mut client = knows(NEW, 3);
        for at in [1, 2] {
            for (node, figures) in stated.into_iter().enumerate() {
                let shown = shows(node as u64, 1, MarkerState::Confirmed, figures);
                client.handle_shown(ms(at), ms(at), node, shown);
            }
        }
        let wanted = [0, 1, 2].map(|node| match client.next_step(ms(2), node) {
            Some(Step::Restate(_, figures)) => Some(figures),
            Some(Step::Look) => unreachable!("it was looked at"),
            None => None,
        });
        assert_eq!(wanted, steps, "{stated:?}");
    }
}

/// Node 1 shows a new marker. What the others have shown before may be older than a loss of node 1.
#[test]
fn an_announcement_needs_a_look_at_all_nodes_after_the_newest_marker_was_shown() {
    let mut client = knows(NEW, 2);
    let old = |process, nonce| shows(process, nonce, MarkerState::Confirmed, Figures::same(OLD));
    client.handle_shown(ms(1), ms(1), 0, old(0, 1));
    client.handle_shown(ms(2), ms(2), 1, old(1, 1));
    assert_eq!(client.next_step(ms(3), 0), Some(Step::Look));
    assert_eq!(client.next_step(ms(3), 1), None);
    assert_eq!(
        client.poll_timeout(0),
        ms(1_003),
        "a lost look is repeated later"
    );
    client.handle_shown(ms(4), ms(3), 0, old(0, 1));
    assert!(matches!(
        client.next_step(ms(2_000), 0),
        Some(Step::Restate(..))
    ));
    // The same process is watched anew.
    client.handle_shown(ms(2_001), ms(2_001), 1, old(1, 2));
    assert_eq!(client.next_step(ms(9_000), 0), Some(Step::Look));
    assert_eq!(client.next_step(ms(9_000), 1), None);
}

/// A look that was lost, and then a step.
#[test]
fn a_step_without_an_answer_is_repeated_after_pauses_that_double_up_to_that_of_probes() {
    let mut client = knows(NEW, 1);
    let shown = shows(1, 1, MarkerState::Confirmed, Figures::same(OLD));
    client.handle_shown(ms(0), ms(0), 0, shown);
    let mut now = ms(0);
    let pauses = [1, 2, 4, 8, 16, 30, 30].map(Duration::from_secs);
    assert_eq!(
        pauses.map(|_| {
            let tried = now;
            assert!(client.next_step(tried, 0).is_some());
            now = client.next_timeout();
            now.since(tried)
        }),
        pauses
    );
}

#[test]
fn another_client_continues_what_one_began() {
    let mut nodes = nodes(3);
    let mut one = knows(NEW, 3);
    meet(&mut one, ms(1), &mut nodes);
    // It announces on one node, and ends.
    let Some(Step::Restate(marker, figures)) = one.next_step(ms(1), 0) else {
        unreachable!("all nodes have the same markers")
    };
    let [first, ..] = nodes.as_mut_slice() else {
        unreachable!("there are three")
    };
    first.check(NOW, check(Act::Restate, figures, Some(marker)));
    let mut two = knows(NEW, 3);
    meet(&mut two, ms(2), &mut nodes);
    run(&mut two, ms(2), &mut nodes);
    assert!(
        super::tests::figures(&nodes)
            .iter()
            .all(|it| *it == REQUIRED)
    );
}

/// The only node has shown these markers: when the request was sent, when the reply came, the nonce, and the needed watch.
#[test]
fn the_wait_begins_when_the_last_node_was_first_shown_to_need_the_longer_watch() {
    let day = 86_400_000;
    for (shown, old, from) in [
        (&[(0, 5, 1, NEW)][..], OLD, 5),
        (&[(0, 5, 1, NEW), (40, 50, 1, NEW)], OLD, 5),
        (&[(0, 5, 1, OLD), (40, 50, 1, NEW)], OLD, 50),
        (&[(0, 5, 1, NEW), (40, 50, 2, NEW)], OLD, 50),
        // The last reply is late, and shows an older marker.
        (&[(4, 5, 2, NEW), (3, 50, 1, NEW)], OLD, 5),
        // Clients with very short leases probe once in two seconds.
        (&[(0, 5, 1, NEW)], 100, 5),
        (&[(0, 5, 1, day)], 100, 5),
    ] {
        let longest = shown.iter().map(|it| it.3).max().unwrap();
        let mut client = knows(longest, 1);
        for (sent, at, nonce, needed_millis) in shown {
            let figures = Figures {
                granted_millis: old,
                needed_millis: *needed_millis,
                watched_millis: longest,
            };
            let marker = shows(1, *nonce, MarkerState::Confirmed, figures);
            client.handle_shown(ms(*at), ms(*sent), 0, marker);
        }
        let wait = Duration::from_millis(old.max(2_000));
        let granted = ms(from) + wait + drift(wait);
        assert_eq!(client.granted_from(), Some(granted), "{shown:?}");
        assert_eq!(client.poll_timeout(0), granted);
    }
}

/// The reply that showed the marker may have been under way while the node lost its data.
#[test]
fn longer_leases_are_granted_after_a_look_that_was_sent_when_all_nodes_had_shown_the_need() {
    let mut client = knows(NEW, 1);
    let required = shows(1, 1, MarkerState::Confirmed, REQUIRED);
    for (sent, is_granted) in [(9, false), (10, true)] {
        client.handle_shown(ms(10), ms(sent), 0, required);
        let step = client.next_step(ms(80_000), 0);
        assert_eq!(step != Some(Step::Look), is_granted, "{step:?}");
        client.next_tries.fill((Time::ZERO, Duration::ZERO));
    }
}

#[test]
fn a_client_that_does_not_raise_sends_no_step() {
    let mut client = LongestLease::new(Duration::from_millis(NEW), false, 1);
    let shown = shows(1, 1, MarkerState::Confirmed, Figures::same(OLD));
    client.handle_shown(ms(1), ms(1), 0, shown);
    assert!(!client.is_raising());
    assert_eq!(client.next_timeout(), Time::NEVER);
    assert_eq!(client.next_step(ms(9), 0), None);
}

/// A client with a wrong setting has marked a node, and is gone.
#[test]
fn a_raise_is_to_what_confirmed_markers_state_and_the_own_setting() {
    for (announced, target) in [(OLD, NEW), (NEW, NEW), (9 * NEW, 9 * NEW)] {
        let mut client = knows(NEW, 1);
        let wrong = shows(1, 1, MarkerState::Observing, Figures::same(99 * NEW));
        client.handle_shown(ms(1), ms(1), 0, wrong);
        let confirmed = Figures {
            watched_millis: announced,
            ..Figures::same(OLD)
        };
        let confirmed = shows(1, 2, MarkerState::Confirmed, confirmed);
        client.handle_shown(ms(2), ms(2), 0, confirmed);
        let Some(Step::Restate(_, figures)) = client.next_step(ms(2), 0) else {
            unreachable!("there is one node, which was just shown")
        };
        assert_eq!(figures.watched_millis, target);
    }
}

/// What a client states, and how long it watches, by its setting and what it was shown.
#[test]
fn requests_state_what_markers_have_shown_and_confirmations_the_own_watch_too() {
    let watched = |watched_millis| Figures {
        watched_millis,
        ..Figures::same(OLD)
    };
    let (observing, confirmed) = (MarkerState::Observing, MarkerState::Confirmed);
    for (own, shown, stated, confirms) in [
        (NEW, None, Figures::same(NEW), Figures::same(NEW)),
        (NEW, Some((confirmed, OLD)), watched(OLD), watched(NEW)),
        (OLD / 2, Some((confirmed, OLD)), watched(OLD), watched(OLD)),
        (OLD, Some((observing, NEW)), watched(NEW), watched(NEW)),
    ] {
        let mut client = knows(own, 1);
        if let Some((state, millis)) = shown {
            let shown = shows(1, 1, state, Figures::same(millis));
            client.handle_shown(ms(1), ms(1), 0, shown);
        }
        assert_eq!(client.stated(), stated, "{own}, {shown:?}");
        assert_eq!(client.confirmed(), confirms, "{own}, {shown:?}");
        let watch = Duration::from_millis(confirms.watched_millis);
        assert_eq!(client.watch(), watch + drift(watch));
    }
}

#[test]
fn nodes_are_probed_within_the_shorter_one_of_the_own_setting_and_what_nodes_grant() {
    for (own, granted, within) in [(NEW, OLD, OLD), (OLD, NEW, OLD), (OLD, OLD, OLD)] {
        let mut client = knows(own, 1);
        assert_eq!(client.probed_within(), Duration::from_millis(own));
        let shown = shows(1, 1, MarkerState::Confirmed, Figures::same(granted));
        client.handle_shown(ms(1), ms(1), 0, shown);
        assert_eq!(client.probed_within(), Duration::from_millis(within));
    }
}

#[test]
fn figures_of_observing_markers_lengthen_the_watch_only() {
    let mut client = knows(OLD, 2);
    let observing = shows(1, 1, MarkerState::Observing, Figures::same(NEW));
    client.handle_shown(ms(1), ms(1), 0, observing);
    assert_eq!(client.needed_millis(), 0);
    assert_eq!(client.watch(), knows(NEW, 1).watch());
    assert_eq!(client.rises(), 0);
    for (figures, rises) in [(Figures::same(OLD), 0), (ANNOUNCED, 0), (REQUIRED, 1)] {
        let confirmed = shows(1, 1, MarkerState::Confirmed, figures);
        client.handle_shown(ms(2), ms(2), 1, confirmed);
        assert_eq!(client.needed_millis(), figures.needed_millis);
        assert_eq!(client.rises(), rises);
    }
}
