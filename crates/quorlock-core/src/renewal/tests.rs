use super::*;
use crate::fencing::Token;
use crate::quorum::{Members, Threshold};
use std::sync::Arc;

const YOURS: RenewReply = RenewReply::AlreadyYours { token: Token(1) };

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn lease() -> Lease {
    Lease::new(Duration::from_secs(30)).unwrap()
}

/// A lock on `n` nodes. The first `granted` of them granted at 0 s, for 30 s: valid until 29.698 s.
fn hold(n: usize, granted: usize, until: Time) -> (Renewal, Vec<MemberId>) {
    let members = Arc::new(Members::new([Threshold::majority(n)]));
    let ids: Vec<_> = members.all().collect();
    let mut terms = Terms::new(members);
    for id in ids.iter().take(granted) {
        terms.confirm(*id, lease().term(ms(0)));
    }
    let watchdog = Some(Watchdog::for_lease(lease()));
    (Renewal::new(ms(0), terms, lease(), watchdog, until), ids)
}

fn asks(hold: &mut Renewal, now: Time) -> Vec<(usize, Ask)> {
    std::iter::from_fn(|| hold.next_ask(now))
        .map(|(member, ask)| (member.index(), ask))
        .collect()
}

#[test]
fn every_member_is_renewed_each_third_of_the_lease_and_missing_ones_are_re_acquired() {
    let (mut hold, ids) = hold(3, 2, Time::NEVER);
    assert_eq!(asks(&mut hold, ms(9_999)), []);
    assert_eq!(
        asks(&mut hold, ms(10_000)),
        [(0, Ask::Renew), (1, Ask::Renew), (2, Ask::Reacquire)]
    );
    for id in &ids[..2] {
        hold.handle_end(*id);
        hold.handle_renewed(ms(10_001), *id, ms(10_000), lease(), YOURS);
    }
    assert_eq!(hold.valid_until(), ms(39_698));
    assert!(hold.handle_granted(ms(10_002), ids[2], ms(10_000), lease()));
    assert!(hold.counts(ids[2]));
}

#[test]
fn one_silent_node_delays_nobody_and_is_asked_again_inside_the_lease() {
    let (mut hold, ids) = hold(3, 3, Time::NEVER);
    asks(&mut hold, ms(10_000));
    for id in &ids[1..] {
        hold.handle_end(*id);
        hold.handle_renewed(ms(10_001), *id, ms(10_000), lease(), YOURS);
    }
    assert_eq!(hold.valid_until(), ms(39_698));
    hold.handle_end(ids[0]);
    hold.handle_failed(ms(12_000), ids[0]);
    assert_eq!(hold.poll_timeout(), ms(14_000));
    assert_eq!(asks(&mut hold, ms(14_000)), [(0, Ask::Renew)]);
}

#[test]
fn a_failed_renewal_neither_extends_nor_ends() {
    let (mut hold, ids) = hold(1, 1, Time::NEVER);
    asks(&mut hold, ms(10_000));
    hold.handle_end(ids[0]);
    hold.handle_failed(ms(10_500), ids[0]);
    assert_eq!(hold.status(ms(29_697)), Status::Held);
    assert_eq!(hold.status(ms(29_698)), Status::Lost(Lost::Unreachable));
}

#[test]
fn a_renewal_that_is_never_answered_makes_it_unreachable() {
    let (mut hold, _) = hold(1, 1, Time::NEVER);
    asks(&mut hold, ms(10_000));
    assert_eq!(hold.status(ms(29_698)), Status::Lost(Lost::Unreachable));
}

#[test]
fn a_hold_that_nobody_renews_expires() {
    let (mut hold, _) = hold(3, 3, Time::NEVER);
    assert_eq!(hold.status(ms(29_698)), Status::Lost(Lost::Expired));
    assert_eq!(hold.next_ask(ms(29_699)), None);
    assert_eq!(hold.poll_timeout(), Time::ZERO, "its claims are given back");
}

#[test]
fn not_yours_from_one_of_a_bare_quorum_loses_it_at_once() {
    let (mut hold, ids) = hold(5, 3, Time::NEVER);
    hold.handle_renewed(ms(10), ids[0], ms(9), lease(), RenewReply::NotYours);
    assert_eq!(hold.status(ms(10)), Status::Lost(Lost::Taken));
}

#[test]
fn a_member_that_left_comes_back_only_by_a_request_sent_after_that() {
    let (mut hold, ids) = hold(3, 3, Time::NEVER);
    hold.handle_renewed(ms(100), ids[0], ms(90), lease(), RenewReply::NotYours);
    assert!(!hold.counts(ids[0]));
    hold.handle_renewed(ms(110), ids[0], ms(105), lease(), YOURS);
    assert!(!hold.counts(ids[0]), "a renewal does not bring it back");
    hold.handle_granted(ms(120), ids[0], ms(95), lease());
    assert!(!hold.counts(ids[0]), "nor does a request from before");
    hold.handle_granted(ms(130), ids[0], ms(101), lease());
    assert!(hold.counts(ids[0]));
}

#[test]
fn an_answer_after_the_end_revives_nothing() {
    let (mut hold, ids) = hold(1, 1, Time::NEVER);
    hold.handle_renewed(ms(29_698), ids[0], ms(29_000), lease(), YOURS);
    assert_eq!(hold.status(ms(29_698)), Status::Lost(Lost::Expired));
    assert!(!hold.handle_granted(ms(29_699), ids[0], ms(29_000), lease()));
}

#[test]
fn nothing_is_asked_after_release_began() {
    let (mut hold, _) = hold(3, 2, Time::NEVER);
    assert_eq!(hold.begin_release(ms(10)), Status::Held);
    assert_eq!(asks(&mut hold, ms(10_000)), []);
    assert_eq!(hold.status(ms(99_999)), Status::Releasing);
}

#[test]
fn the_longest_hold_ends_a_hold_whatever_the_nodes_say() {
    let (mut hold, ids) = hold(1, 1, ms(35_000));
    assert_eq!(asks(&mut hold, ms(10_000)), [(0, Ask::Renew)]);
    hold.handle_end(ids[0]);
    hold.handle_renewed(ms(10_001), ids[0], ms(10_000), lease(), YOURS);
    assert_eq!(hold.valid_until(), ms(35_000));
    assert_eq!(
        asks(&mut hold, ms(20_000)),
        [],
        "renewing would buy nothing"
    );
    assert_eq!(hold.poll_timeout(), ms(35_000));
    assert_eq!(hold.status(ms(35_000)), Status::Lost(Lost::Expired));
}

#[test]
fn a_stated_lease_never_shrinks() {
    let (mut hold, _) = hold(1, 1, Time::NEVER);
    let shorter = Lease::new(Duration::from_secs(1)).unwrap();
    assert_eq!(hold.raise_lease(shorter), lease());
    let longer = Lease::new(Duration::from_secs(40)).unwrap();
    assert_eq!(hold.raise_lease(longer), longer);
}
