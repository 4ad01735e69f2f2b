use super::*;
use crate::marker::Figures;
use crate::time::millis_of;

/// With the drift allowance of 1 % and 2 ms, a process is watched for 10.102 s.
const LONGEST: Duration = Duration::from_secs(10);

const CONFIRM: Probe = Probe::Confirm(Nonce::new(7));
/// Random bits in the middle.
const HALF: u64 = 1 << 63;

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn nonce(number: u64) -> Nonce {
    Nonce::new(number)
}

fn shown(process: u64, marker: ShownMarker) -> Shown {
    let process = Process(process);
    Shown { process, marker }
}

fn confirmed(process: u64, number: u64) -> Shown {
    shown(
        process,
        ShownMarker::Own(nonce(number), MarkerState::Confirmed, figures()),
    )
}

fn observing(process: u64, number: u64) -> Shown {
    shown(
        process,
        ShownMarker::Own(nonce(number), MarkerState::Observing, figures()),
    )
}

fn figures() -> Figures {
    Figures::same(millis_of(LONGEST))
}

fn new() -> Trust {
    Trust::new(&LongestLease::new(LONGEST, true, 1))
}

fn trusted() -> Trust {
    let mut trust = new();
    assert_eq!(
        trust.handle_shown(ms(2), ms(1), confirmed(1, 1)),
        Counts::Yes
    );
    trust
}

#[test]
fn a_confirmed_marker_of_the_process_itself_is_trusted_at_once() {
    let trust = trusted();
    assert_eq!(trust.quarantine(), None);
    assert!(!trust.wants_marker());
}

#[test]
fn an_observing_nonce_is_watched_from_the_receipt_of_the_first_reply_that_showed_it() {
    let mut trust = new();
    for at in [5, 1_000, 10_000] {
        let counts = trust.handle_shown(ms(at), ms(at - 4), observing(1, 7));
        assert_eq!(counts, Counts::No);
    }
    assert_eq!(trust.quarantine(), Some((Why::Watched, Some(ms(10_107)))));
    assert_eq!(trust.poll_timeout(), ms(10_107));
    assert_eq!(trust.next_probe(ms(10_106)), None);
    assert_eq!(trust.next_probe(ms(10_107)), Some(CONFIRM));
    assert_eq!(trust.next_probe(ms(10_107)), None, "it was asked for");
    let counts = trust.handle_shown(ms(10_110), ms(10_107), confirmed(1, 7));
    trust.handle_end(ms(10_110), HALF);
    assert_eq!(counts, Counts::Yes);
}

#[test]
fn another_nonce_or_none_begins_the_watch_again() {
    let missing = shown(1, ShownMarker::Missing);
    let anothers = shown(1, ShownMarker::Anothers);
    for between in [observing(1, 8), missing, anothers] {
        let mut trust = new();
        trust.handle_shown(ms(5), ms(1), observing(1, 7));
        trust.handle_shown(ms(9_000), ms(8_999), between);
        trust.handle_shown(ms(9_500), ms(9_499), observing(1, 7));
        assert_eq!(trust.next_probe(ms(19_601)), None);
        assert_eq!(trust.next_probe(ms(19_602)), Some(CONFIRM));
    }
}

#[test]
fn a_node_is_probed_before_it_is_used_and_marked_until_it_is_watched() {
    let mut trust = new();
    assert_eq!(trust.next_probe(ms(0)), Some(Probe::Check));
    assert_eq!(trust.poll_timeout(), Time::NEVER, "it is under way");
    assert_eq!(trust.next_probe(ms(1)), None);
    // The node does not answer: the pauses grow, up to the pause between probes of a trusted node.
    let mut now = ms(1);
    let mut pauses = Vec::new();
    for _ in 0..12 {
        trust.handle_end(now, u64::MAX);
        pauses.push(trust.poll_timeout().since(now));
        now = trust.poll_timeout();
        assert_eq!(trust.next_probe(now), Some(Probe::Check));
    }
    assert!(pauses.is_sorted() && pauses[0] < LONGEST / 50);
    assert_eq!(pauses.last(), Some(&(LONGEST / 2)));
    trust.handle_shown(now, now, observing(1, 7));
    trust.handle_end(now, HALF);
    assert_eq!(trust.next_probe(now + LONGEST), None);
    assert_eq!(trust.next_probe(now + LONGEST * 2), Some(CONFIRM));
}

#[test]
fn a_trusted_node_is_probed_now_and_then_unless_a_request_shows_the_same() {
    let mut trust = trusted();
    for (random, pause) in [(0, 2_500), (HALF, 3_750), (u64::MAX, 5_000)] {
        let due = trust.poll_timeout();
        assert_eq!(trust.next_probe(due), Some(Probe::Check));
        trust.handle_shown(due, due, confirmed(1, 1));
        trust.handle_end(due, random);
        let paused = trust.poll_timeout().since(due);
        assert_eq!(paused.as_millis().div_ceil(10), pause / 10);
        trust.handle_shown(due + paused / 2, due, confirmed(1, 1));
        assert_eq!(trust.next_probe(due + paused), None);
    }
}

#[test]
fn what_withdraws_trust_is_followed_by_a_probe_that_marks() {
    let mut trust = trusted();
    trust.handle_shown(ms(20), ms(19), shown(2, ShownMarker::Anothers));
    assert!(trust.wants_marker());
    assert_eq!(trust.next_probe(ms(20)), Some(Probe::Check));
    trust.handle_shown(ms(22), ms(20), observing(2, 7));
    trust.handle_end(ms(22), HALF);
    assert_eq!(trust.poll_timeout(), ms(22 + 10_102));
}

#[test]
fn a_node_that_returns_is_probed_at_once_in_every_state_and_the_watch_goes_on() {
    let mut trust = trusted();
    trust.handle_return(ms(20));
    assert_eq!(trust.next_probe(ms(20)), Some(Probe::Check));
    // It breaks off and returns again during that probe.
    trust.handle_return(ms(30));
    assert_eq!(trust.next_probe(ms(30)), None);
    trust.handle_end(ms(40), HALF);
    assert_eq!(trust.next_probe(ms(40)), Some(Probe::Check));
    trust.handle_shown(ms(50), ms(40), observing(2, 7));
    trust.handle_end(ms(50), HALF);
    let over = ms(50 + 10_102);
    assert_eq!(trust.poll_timeout(), over);
    trust.handle_return(ms(60));
    assert_eq!(trust.next_probe(ms(60)), Some(Probe::Check));
    trust.handle_shown(ms(61), ms(60), observing(2, 7));
    trust.handle_end(ms(61), HALF);
    assert_eq!(trust.poll_timeout(), over);
    assert_eq!(trust.next_probe(over), Some(CONFIRM));
}

#[test]
fn a_confirmation_without_an_answer_is_asked_for_again() {
    let mut trust = new();
    trust.handle_shown(ms(5), ms(1), observing(1, 7));
    assert_eq!(trust.next_probe(ms(11_000)), Some(CONFIRM));
    assert_eq!(trust.poll_timeout(), Time::NEVER);
    trust.handle_end(ms(12_000), HALF);
    assert!(ms(12_000) < trust.poll_timeout());
    assert_eq!(trust.next_probe(ms(12_000)), None);
    assert_eq!(trust.next_probe(trust.poll_timeout()), Some(CONFIRM));
}

#[test]
fn any_reply_withdraws_trust_and_only_a_later_request_restores_it() {
    for (marker, why) in [
        (ShownMarker::Missing, Why::Missing),
        (ShownMarker::Anothers, Why::Restarted),
    ] {
        let mut trust = trusted();
        let counts = trust.handle_shown(ms(20), ms(3), shown(1, marker));
        assert_eq!(counts, Counts::No);
        assert_eq!(trust.quarantine(), Some((why, None)));
        assert!(trust.wants_marker());
        let old = trust.handle_shown(ms(30), ms(19), confirmed(1, 1));
        assert_eq!(old, Counts::No, "it was sent before the withdrawal");
        let new = trust.handle_shown(ms(30), ms(21), confirmed(1, 1));
        assert_eq!(new, Counts::Yes);
    }
}

#[test]
fn a_late_reply_from_before_the_confirmation_does_not_begin_another_watch() {
    for (sent, is_trusted) in [(10_100, true), (10_110, false), (10_111, false)] {
        let mut trust = new();
        trust.handle_shown(ms(5), ms(1), observing(1, 7));
        trust.handle_shown(ms(10_110), ms(10_107), confirmed(1, 7));
        trust.handle_shown(ms(10_115), ms(10_113), confirmed(1, 7));
        let late = trust.handle_shown(ms(10_120), ms(sent), observing(1, 7));
        assert_eq!(late, Counts::No);
        assert_eq!(trust.quarantine().is_none(), is_trusted, "sent at {sent}");
    }
}

#[test]
fn the_nonce_that_was_trusted_last_is_known_until_another_is_trusted() {
    let mut trust = new();
    trust.handle_shown(ms(2), ms(1), observing(1, 1));
    assert_eq!(trust.known(), None, "it is not trusted yet");
    trust.handle_shown(ms(4), ms(3), confirmed(1, 1));
    let others = [ShownMarker::Missing, ShownMarker::Anothers];
    for (at, marker) in (5..).zip(others) {
        trust.handle_shown(ms(at), ms(at), shown(2, marker));
        assert_eq!(trust.known(), Some(nonce(1)), "{marker:?}");
    }
    trust.handle_shown(ms(8), ms(8), observing(2, 2));
    assert_eq!(trust.known(), Some(nonce(1)));
    trust.handle_shown(ms(9), ms(9), confirmed(2, 2));
    assert_eq!(trust.known(), Some(nonce(2)));
}

/// A client that was suspended sees another process, whose marker another client has confirmed.
#[test]
fn another_process_that_others_have_watched_is_another_watch() {
    let mut trust = trusted();
    let before = trust.trusted();
    assert_eq!(
        trust.handle_shown(ms(90), ms(80), confirmed(2, 9)),
        Counts::Yes
    );
    assert!(trust.trusted().is_some() && trust.trusted() != before);
}

#[test]
fn of_two_addresses_of_one_server_one_does_not_count() {
    let mut trust = trusted();
    trust.handle_twin(ms(10), Process(1));
    assert_eq!(
        trust.handle_shown(ms(90), ms(80), confirmed(1, 1)),
        Counts::No
    );
    assert_eq!(trust.quarantine(), Some((Why::SameServer, None)));
    let moved = trust.handle_shown(ms(99), ms(95), confirmed(2, 1));
    assert_eq!(moved, Counts::Yes, "the address leads elsewhere now");
}

#[test]
fn a_twin_whose_other_address_leads_elsewhere_counts_again() {
    let mut trust = trusted();
    trust.handle_twin(ms(10), Process(1));
    trust.handle_single(ms(11), Process(2));
    assert!(trust.is_twin(Process(1)), "that is another process");
    trust.handle_single(ms(11), Process(1));
    assert_eq!(
        trust.handle_shown(ms(20), ms(9), confirmed(1, 1)),
        Counts::No
    );
    assert_eq!(
        trust.handle_shown(ms(20), ms(11), confirmed(1, 1)),
        Counts::Yes
    );
}

/// What a client with a longest lease of `own_secs` knows, to which node 1 has shown these figures.
fn longest(own_secs: u64, figures: Figures) -> LongestLease {
    let mut longest = LongestLease::new(Duration::from_secs(own_secs), true, 2);
    let marker = ShownMarker::Own(nonce(9), MarkerState::Confirmed, figures);
    longest.handle_shown(ms(3), ms(3), 1, shown(9, marker));
    longest
}

#[test]
fn a_node_that_was_watched_for_less_than_others_need_is_marked_anew_whatever_its_state() {
    for node in [confirmed(1, 1), observing(1, 1), observing(1, 2)] {
        let mut trust = trusted();
        trust.handle_longest(ms(3), &longest(10, Figures::same(20_000)));
        let counts = trust.handle_shown(ms(5), ms(4), node);
        assert_eq!(counts, Counts::No);
        assert_eq!(trust.quarantine(), Some((Why::WatchedTooShort, None)));
        assert!(trust.wants_marker() && trust.wants_new_marker());
        assert_eq!(trust.next_probe(ms(5)), Some(Probe::Check));
    }
}

/// A client with 20 s learns that nodes grant 10 s: the wait before the last stage of a raise relies on its probes.
#[test]
fn a_shorter_lease_that_nodes_grant_shortens_the_pause_between_probes_at_once() {
    let mut trust = Trust::new(&LongestLease::new(Duration::from_secs(20), true, 2));
    let long = ShownMarker::Own(nonce(1), MarkerState::Confirmed, Figures::same(20_000));
    trust.handle_shown(ms(2), ms(1), shown(1, long));
    assert_eq!(trust.poll_timeout(), ms(10_002));
    trust.handle_longest(ms(3), &longest(20, figures()));
    assert_eq!(trust.poll_timeout(), ms(5_003));
    trust.handle_shown(ms(4), ms(3), shown(1, long));
    assert_eq!(trust.poll_timeout(), ms(5_004));
}
