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
    let twin = Shown {
        process: Process(1),
        marker: ShownMarker::Own(Nonce::new(1), MarkerState::Confirmed, Figures::same(OLD)),
    };
    new.handle_shown(ms(5), ms(5), 2, twin);
    assert_eq!(new.next_step(ms(6), 0), None, "two addresses of one server");
}

/// Node 1 shows a new marker. What the others have shown before may be older than a loss of node 1.
#[test]
fn an_announcement_needs_a_look_at_all_nodes_after_the_newest_marker_was_shown() {
    let mut nodes = nodes(3);
    let mut new = knows(NEW, 3);
    for (index, node) in nodes.iter_mut().enumerate() {
        look(&mut new, ms(index as u64), index, node);
    }
    assert_eq!(new.next_step(ms(3), 0), Some(Step::Look));
    assert_eq!(new.next_step(ms(3), 1), Some(Step::Look));
    assert_eq!(new.next_step(ms(3), 2), None);
    assert_eq!(
        new.poll_timeout(0),
        ms(1_003),
        "a lost look is repeated later"
    );
    // Another client has completed a raise in the meantime.
    let [first, ..] = nodes.as_mut_slice() else {
        unreachable!("there are three")
    };
    let granted = Shown {
        process: Process(1),
        marker: ShownMarker::Own(Nonce::new(1), MarkerState::Confirmed, Figures::same(NEW)),
    };
    let before = first.marker(NOW);
    new.handle_shown(ms(4), ms(3), 0, granted);
    assert_eq!(
        new.next_step(ms(5), 1),
        None,
        "node 1 was watched for too short a time"
    );
    assert_eq!(first.marker(NOW), before);
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

#[test]
fn a_node_that_is_marked_anew_restarts_the_wait() {
    let mut nodes = nodes(3);
    let mut new = knows(NEW, 3);
    meet(&mut new, ms(1), &mut nodes);
    run(&mut new, ms(1), &mut nodes);
    let last = nodes.last_mut().unwrap();
    *last = Marked::default();
    let figures = new.stated();
    last.check(NOW, check(Act::MarkFresh(Nonce::new(9)), figures, None));
    meet(&mut new, ms(50_000), &mut nodes);
    assert_eq!(new.granted_from(), Some(ms(50_000) + knows(OLD, 1).watch()));
}

#[test]
fn figures_of_observing_markers_lengthen_the_watch_only() {
    let mut client = knows(OLD, 2);
    let shown = |state, figures| Shown {
        process: Process(1),
        marker: ShownMarker::Own(Nonce::new(1), state, figures),
    };
    let observing = shown(MarkerState::Observing, Figures::same(NEW));
    client.handle_shown(ms(1), ms(1), 0, observing);
    assert_eq!(client.needed_millis(), 0);
    assert_eq!(client.watch(), knows(NEW, 1).watch());
    assert_eq!(client.rises(), 0);
    for (figures, rises) in [(Figures::same(OLD), 0), (ANNOUNCED, 0), (REQUIRED, 1)] {
        let confirmed = shown(MarkerState::Confirmed, figures);
        client.handle_shown(ms(2), ms(2), 1, confirmed);
        assert_eq!(client.needed_millis(), figures.needed_millis);
        assert_eq!(client.rises(), rises);
    }
}
