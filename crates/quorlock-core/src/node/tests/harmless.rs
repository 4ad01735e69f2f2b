//! Shows why some checks of a client can be removed without harm: the behaviour of the nodes is enough. Each such
//! removal is an excused fault of `sim/lab/product-faults.toml`.

use super::*;
use crate::longest_lease::LongestLease;
use crate::marker::{Figures, MarkerState, Nonce, Process, Shown, ShownMarker};
use crate::quorum::{Members, Threshold};
use crate::renewal::{Renewal, Status, Watchdog};
use crate::time::Time;
use crate::trust::{Counts, Trust};

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// A's watchdog sends requests while another task of A releases. A renewal that is executed after the release finds
/// nothing. A re-acquisition that is granted afterwards does not belong to A's hold, so it is given back.
#[test]
fn what_is_asked_behind_a_release_leaves_no_claim() {
    let mut node = Node::new();
    node.apply(at(0), &acquire(1, 1));
    node.apply(at(5), &release(1, 0));
    let before = node.clone();
    let renewed = node.apply(at(6), &renew(1, START)).reply;
    assert_eq!(renewed, Ok(Reply::Renew(vec![RenewReply::NotYours])));
    assert_eq!(node, before);

    let members = std::sync::Arc::new(Members::new([Threshold::majority(1)]));
    let only = members.all().next().unwrap();
    let mut terms = crate::lease::Terms::new(members);
    terms.confirm(only, lease().term(ms(0)));
    let watchdog = Some(Watchdog::for_lease(lease()));
    let mut hold = Renewal::new(ms(0), terms, lease(), watchdog, Time::NEVER);
    assert_eq!(hold.begin_release(ms(5)), Status::Held);
    assert!(!hold.handle_granted(ms(7), only, ms(6), lease()));
}

/// A's acquire is granted, its reply is slow, and in the meantime the node answers "not yours". If A counted the grant
/// anyway, it would count it only for as long as the node refuses all others. This holds whenever the request is
/// executed after `sent`, and whatever the two clocks show within the drift allowance.
#[test]
fn a_grant_keeps_others_out_until_its_term_is_over_however_late_its_reply_is() {
    let term = lease().term(ms(0));
    for executed in [0, 1, 500, 9_000] {
        let mut node = Node::new();
        node.apply(at(executed), &acquire(1, 1));
        let refused = (0..20_000).find(|millis| {
            let reply = node.clone().apply(at(*millis), &acquire(2, 1)).reply;
            matches!(reply, Ok(Reply::Acquire(AcquireReply::Granted { .. })))
        });
        let free = refused.unwrap();
        // The clock of the node is 1 % fast.
        assert!(term < ms(free * 100 / 101), "{executed}: {free}");
    }
}

/// A proposes a token to a node that has its claim. While the claim exists, only A changes the counter there. Therefore
/// the node stores exactly what A proposed, and none of its answers shows another value.
#[test]
fn nothing_but_its_owner_changes_the_counter_under_a_claim() {
    let mut node = Node::new();
    node.apply(at(0), &acquire(1, 1));
    for other in [acquire(2, 1), renew(2, START + 50), release(2, 0)] {
        node.apply(at(5), &other);
        assert_eq!(node.stored_token(at(5), &name()), Some(Token(START)));
    }
    let token = Token(START + 3);
    let proposed = node.apply(at(6), &renew(1, token.0)).reply;
    let yours = RenewReply::AlreadyYours { token };
    assert_eq!(proposed, Ok(Reply::Renew(vec![yours])));
}

/// The longest lease of the deployment, in milliseconds.
const LONGEST: u64 = 10_000;

fn shown(process: u64, marker: ShownMarker) -> Shown {
    let process = Process(process);
    Shown { process, marker }
}

fn own(process: u64, nonce: u64, state: MarkerState) -> Shown {
    shown(
        process,
        ShownMarker::Own(Nonce::new(nonce), state, Figures::same(LONGEST)),
    )
}

fn trust() -> Trust {
    Trust::new(&LongestLease::new(Duration::from_millis(LONGEST), true, 1))
}

/// A learns that the first process has ended, and then receives a grant of that process from an earlier request. If
/// that grant restored A's trust, nothing would be lost: B saw the next process no sooner than the first one ended, so
/// A's term is over before B trusts the next one. The next reply of that process withdraws A's trust again.
#[test]
fn a_late_grant_of_a_process_is_over_before_the_next_one_is_trusted() {
    let sent = 100;
    let mut b = trust();
    b.handle_shown(ms(sent), ms(sent), own(2, 9, MarkerState::Observing));
    assert_eq!(b.next_probe(lease().term(ms(sent))), None);

    // The state of A if the late reply counted: it trusts the first process.
    let mut a = trust();
    let counts = a.handle_shown(ms(sent), ms(sent), own(1, 1, MarkerState::Confirmed));
    assert_eq!(counts, Counts::Yes);
    for next in [
        own(2, 9, MarkerState::Observing),
        shown(2, ShownMarker::Missing),
        shown(2, ShownMarker::Anothers),
    ] {
        let mut a = a.clone();
        assert_eq!(a.handle_shown(ms(300), ms(200), next), Counts::No);
        assert!(a.quarantine().is_some());
    }
}

/// A node is watched, and restarts with all its data. If it inherited its observing marker, A's watch would continue.
/// The watch would still last for the longest lease since A first saw the nonce. A saw it after the last moment at
/// which claims were forgotten.
#[test]
fn a_watch_that_goes_on_in_the_next_process_is_no_shorter() {
    let mut a = trust();
    let observing = |process| own(process, 7, MarkerState::Observing);
    a.handle_shown(ms(5), ms(1), observing(1));
    for at in [4_000, 8_000] {
        let counts = a.handle_shown(ms(at), ms(at - 1), observing(2));
        assert_eq!(counts, Counts::No);
    }
    assert_eq!(a.next_probe(lease().term(ms(5))), None);
    assert_eq!(a.next_probe(ms(5 + LONGEST)), None);
}
