use super::*;
use crate::beat::{Beat, Keep};
use crate::fencing::Fence;
use crate::lease::Lease;
use crate::message::Retention;
use crate::message::{
    Acquire, AcquireReply, Claim, Freshness, Place, Release, ReleaseReply, Renew, RenewReply,
};
use crate::owner::ClientId;
use std::time::Duration;

mod fair;
mod read_write;

const START: u64 = 1_700_000_000_000;

fn at(millis: u64) -> WallMillis {
    WallMillis(START + millis)
}

fn name() -> Name {
    Name::new("orders/42").unwrap()
}

fn owner(number: u64) -> OwnerId {
    OwnerId {
        client: ClientId::from_random(1),
        number,
    }
}

fn lease() -> Lease {
    Lease::new(Duration::from_secs(10)).unwrap()
}

fn acquire(number: u64, count: u32) -> Request {
    Request::Acquire(Acquire {
        name: name(),
        access: Access::Plain,
        owner: owner(number),
        count,
        lease: lease(),
        fence: Fence::Mint {
            floor: at(0),
            slack_millis: 15_000,
        },
        retention: Retention::Millis(86_400_000),
        keep: None,
        replaces: None,
        check: None,
    })
}

fn renew(number: u64, token: u64) -> Request {
    Request::Renew(Renew {
        mode: Mode::Plain,
        claims: vec![Claim {
            name: name(),
            owner: owner(number),
            count: 1,
            lease: lease(),
            token: Token(token),
            keep: None,
        }],
        retention: Retention::Forever,
    })
}

fn release(number: u64, count: u32) -> Request {
    Request::Release(Release {
        name: name(),
        mode: Mode::Plain,
        owner: owner(number),
        count,
    })
}

fn granted(freshness: Freshness, token: u64) -> Result<Reply, Cause> {
    let token = Token(token);
    Ok(Reply::Acquire(AcquireReply::Granted { freshness, token }))
}

#[test]
fn a_free_name_is_granted_anew_with_the_floor_as_its_token() {
    let mut node = Node::new();
    let reply = node.apply(at(0), &acquire(1, 1)).reply;
    assert_eq!(reply, granted(Freshness::Anew, START));
    let held = Held::Plain {
        owner: owner(1),
        count: 1,
    };
    assert_eq!(node.held(at(0), &name()), Some((held, Ttl::Millis(10_000))));
}

#[test]
fn a_request_executed_twice_changes_nothing() {
    for request in [acquire(1, 2), renew(1, 5), release(1, 1)] {
        let mut once = Node::new();
        once.apply(at(0), &acquire(1, 1));
        once.apply(at(1), &request);
        let mut twice = once.clone();
        twice.apply(at(1), &request);
        assert_eq!(once, twice);
    }
    let mut node = Node::new();
    assert_eq!(
        node.apply(at(0), &acquire(1, 1)).reply,
        granted(Freshness::Anew, START)
    );
    assert_eq!(
        node.apply(at(9), &acquire(1, 1)).reply,
        granted(Freshness::AlreadyYours, START)
    );
}

#[test]
fn a_held_name_is_refused_with_its_ttl_until_it_expires() {
    let mut node = Node::new();
    node.apply(at(0), &acquire(1, 1));
    let refused = |left| {
        let ttl = Ttl::Millis(left);
        Ok(Reply::Acquire(AcquireReply::Refused { ttl, beat: None }))
    };
    assert_eq!(node.apply(at(4_000), &acquire(2, 1)).reply, refused(6_000));
    assert_eq!(node.apply(at(10_000), &acquire(2, 1)).reply, refused(0));
    assert_eq!(
        node.apply(at(10_001), &acquire(2, 1)).reply,
        granted(Freshness::Anew, START + 1)
    );
}

#[test]
fn a_shorter_lease_never_shortens_the_ttl() {
    let mut node = Node::new();
    node.apply(at(0), &acquire(1, 1));
    let Request::Acquire(mut again) = acquire(1, 2) else {
        unreachable!()
    };
    again.lease = Lease::new(Duration::from_secs(1)).unwrap();
    node.apply(at(0), &Request::Acquire(again));
    assert_eq!(node.held(at(0), &name()).unwrap().1, Ttl::Millis(10_000));
}

#[test]
fn renewal_extends_what_is_there_and_makes_nothing() {
    let mut node = Node::new();
    let reply = |reply| Ok(Reply::Renew(vec![reply]));
    assert_eq!(
        node.apply(at(0), &renew(1, 7)).reply,
        reply(RenewReply::NotYours)
    );
    assert_eq!(node.names(at(0)).count(), 0);
    node.apply(at(0), &acquire(1, 1));
    assert_eq!(
        node.apply(at(5_000), &renew(2, 7)).reply,
        reply(RenewReply::NotYours)
    );
    let token = Token(START + 7);
    assert_eq!(
        node.apply(at(5_000), &renew(1, START + 7)).reply,
        reply(RenewReply::AlreadyYours { token })
    );
    assert_eq!(
        node.held(at(5_000), &name()).unwrap().1,
        Ttl::Millis(10_000)
    );
    assert_eq!(node.stored_token(at(5_000), &name()), Some(token));
}

#[test]
fn only_the_owner_releases_and_only_the_last_release_wakes() {
    let mut node = Node::new();
    node.apply(at(0), &acquire(1, 2));
    let reply = |reply| Ok(Reply::Release(reply));
    let stranger = node.apply(at(0), &release(2, 0));
    assert_eq!(stranger.reply, reply(ReleaseReply::NotYours));
    let inner = node.apply(at(0), &release(1, 1));
    assert_eq!(inner.reply, reply(ReleaseReply::Kept));
    assert_eq!(inner.published, None);
    let outer = node.apply(at(0), &release(1, 0));
    assert_eq!(outer.reply, reply(ReleaseReply::Freed));
    assert_eq!(
        outer.published,
        Some((Channel::Lock(name()), Wake::Unlocked))
    );
    let again = node.apply(at(0), &release(1, 0));
    assert_eq!(again.reply, reply(ReleaseReply::NotYours));
    assert_eq!(again.published, None);
}

#[test]
fn another_mode_is_named_and_another_type_is_an_error() {
    let mut node = Node::new();
    node.put(&name(), Held::read(owner(9), 1), None);
    let reply = node.apply(at(0), &acquire(1, 1)).reply;
    assert_eq!(
        reply,
        Ok(Reply::Acquire(AcquireReply::OtherMode(Mode::Read)))
    );
    let before = node.clone();
    node.put(&name(), Held::NotALock, None);
    assert_eq!(
        node.apply(at(0), &acquire(1, 1)).reply,
        Err(Cause::WrongType)
    );
    assert_eq!(
        node.apply(at(0), &release(1, 0)).reply,
        Err(Cause::WrongType)
    );
    assert_eq!(
        node.apply(at(0), &renew(1, 1)).reply,
        Ok(Reply::Renew(vec![RenewReply::NotYours]))
    );
    node.put(&name(), Held::read(owner(9), 1), None);
    assert_eq!(node, before);
}

#[test]
fn a_claim_without_expiry_is_shown_as_such() {
    let mut node = Node::new();
    let held = Held::Plain {
        owner: owner(9),
        count: 1,
    };
    node.put(&name(), held, None);
    let ttl = Ttl::Unbounded;
    let reply = node.apply(at(0), &acquire(1, 1)).reply;
    assert_eq!(
        reply,
        Ok(Reply::Acquire(AcquireReply::Refused { ttl, beat: None }))
    );
}

fn inspect(node: &mut Node, millis: u64) -> InspectReply {
    let request = Request::Inspect(Inspect { name: name() });
    let before = node.clone();
    let applied = node.apply(at(millis), &request);
    assert_eq!((&before, applied.published), (&*node, None));
    match applied.reply {
        Ok(Reply::Inspect(reply)) => reply,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_look_says_what_stands_there_and_changes_nothing() {
    let mut node = Node::new();
    let nothing = InspectReply {
        found: Found::Nothing,
        waiting: 0,
        token: None,
    };
    assert_eq!(inspect(&mut node, 0), nothing);
    node.apply(at(0), &acquire(1, 3));
    let held = InspectReply {
        found: Found::Plain {
            owner: owner(1).to_string(),
            count: 3,
            ttl: Ttl::Millis(6_000),
        },
        waiting: 0,
        token: Some(Token(START)),
    };
    assert_eq!(inspect(&mut node, 4_000), held);
    let expired = InspectReply {
        token: Some(Token(START)),
        ..nothing
    };
    assert_eq!(inspect(&mut node, 10_001), expired);
    node.put(&name(), Held::write(owner(9), 1), None);
    let found = Found::ReadWrite {
        writer: Some((owner(9).to_string(), 1)),
        readers: 0,
        ttl: Ttl::Unbounded,
    };
    assert_eq!(inspect(&mut node, 0).found, found);
    node.put(&name(), Held::NotALock, None);
    assert_eq!(inspect(&mut node, 0).found, Found::NotALock);
}

#[test]
fn force_ends_a_plain_lock_whoever_holds_it_and_wakes_once() {
    let mut node = Node::new();
    node.apply(at(0), &acquire(1, 2));
    let force = Request::ForceRelease(ForceRelease { name: name() });
    let reply = |reply| Ok(Reply::ForceRelease(reply));
    let freed = node.apply(at(0), &force);
    assert_eq!(freed.reply, reply(ForceReleaseReply::Freed));
    assert_eq!(
        freed.published,
        Some((Channel::Lock(name()), Wake::Unlocked))
    );
    let again = node.apply(at(0), &force);
    assert_eq!(again.reply, reply(ForceReleaseReply::WasFree));
    assert_eq!(again.published, None);
    // The counter stays: the next hold's token is larger.
    let next = node.apply(at(0), &acquire(2, 1)).reply;
    assert_eq!(next, granted(Freshness::Anew, START + 1));
}

#[test]
fn force_ends_nothing_that_is_no_lock() {
    let mut node = Node::new();
    let force = Request::ForceRelease(ForceRelease { name: name() });
    node.put(&name(), Held::NotALock, None);
    let before = node.clone();
    let applied = node.apply(at(0), &force);
    assert_eq!(applied.reply, Err(Cause::WrongType));
    assert_eq!((applied.published, node), (None, before));
}

#[test]
fn unused_token_counters_are_forgotten() {
    let mut node = Node::new();
    for i in 0..10_000u64 {
        let name = Name::new(format!("n{i}")).unwrap();
        let now = at(i * 100);
        let keys = node.keys_mut(now, &name);
        keys.store_token(now, Token(i), Retention::Millis(1_000));
    }
    assert!(node.names.len() < 3_000, "{}", node.names.len());
}

/// The first request of an owner for a lease of 10 s and a margin of 60 s, or a later one.
fn beating(number: u64, request: u64) -> Acquire {
    let Request::Acquire(ask) = acquire(number, 1) else {
        panic!("an acquire");
    };
    Acquire {
        keep: Some(Keep {
            margin_millis: 60_000,
            number: request,
        }),
        ..ask
    }
}

fn beat(number: u64, request: u64) -> Beat {
    Beat {
        owner: owner(number),
        number: request,
        lease_millis: 10_000,
    }
}

fn refused(left: u64, beat: Option<Beat>) -> Result<Reply, Cause> {
    let ttl = Ttl::Millis(left);
    Ok(Reply::Acquire(AcquireReply::Refused { ttl, beat }))
}

#[test]
fn a_claim_with_a_margin_outlives_its_lease_and_shows_its_largest_beat() {
    let mut node = Node::new();
    for request in [1, 3, 2] {
        node.apply(at(0), &Request::Acquire(beating(1, request)));
    }
    let other = Request::Acquire(beating(2, 1));
    let shown = Some(beat(1, 3));
    assert_eq!(node.apply(at(0), &other).reply, refused(70_000, shown));
    assert_eq!(node.apply(at(69_999), &other).reply, refused(1, shown));
    let free = node.apply(at(70_001), &other).reply;
    assert!(matches!(
        free,
        Ok(Reply::Acquire(AcquireReply::Granted { .. }))
    ));
}

#[test]
fn a_claim_is_replaced_only_by_who_names_its_very_beat() {
    let replacing = |replaces| {
        Request::Acquire(Acquire {
            replaces: Some(replaces),
            ..beating(2, 1)
        })
    };
    let longer = Beat {
        lease_millis: 10_001,
        ..beat(1, 2)
    };
    let mut node = Node::new();
    node.apply(at(0), &Request::Acquire(beating(1, 2)));
    for other in [beat(1, 1), beat(1, 3), beat(3, 2), longer] {
        let reply = node.apply(at(0), &replacing(other)).reply;
        assert_eq!(reply, refused(70_000, Some(beat(1, 2))));
    }
    let reply = node.apply(at(0), &replacing(beat(1, 2))).reply;
    let anew = AcquireReply::Granted {
        freshness: Freshness::Anew,
        token: Token(START + 1),
    };
    assert_eq!(reply, Ok(Reply::Acquire(anew)));
    assert_eq!(node.beat(at(0), &name()), Some(beat(2, 1)));
}

/// A client of other make took the name when it was free; the beat of before is still there.
#[test]
fn a_claim_that_the_beat_does_not_name_is_not_replaced() {
    let mut node = Node::new();
    node.apply(at(0), &Request::Acquire(beating(1, 1)));
    let held = Held::Plain {
        owner: owner(9),
        count: 1,
    };
    node.put(&name(), held, Some(at(5_000)));
    let ask = Acquire {
        replaces: Some(beat(1, 1)),
        ..beating(2, 1)
    };
    let reply = node.apply(at(0), &Request::Acquire(ask)).reply;
    assert_eq!(reply, refused(5_000, None));
}

#[test]
fn a_renewal_beats_and_a_release_ends_the_beat() {
    let mut node = Node::new();
    node.apply(at(0), &Request::Acquire(beating(1, 1)));
    let Request::Renew(mut ask) = renew(1, 5) else {
        panic!("a renewal");
    };
    for claim in &mut ask.claims {
        claim.keep = beating(1, 2).keep;
    }
    node.apply(at(0), &Request::Renew(ask));
    assert_eq!(node.beat(at(0), &name()).map(|beat| beat.number), Some(2));
    node.apply(
        at(0),
        &Request::Release(Release {
            mode: Mode::Plain,
            name: name(),
            owner: owner(1),
            count: 0,
        }),
    );
    assert_eq!(node, {
        let mut empty = Node::new();
        let token = node.stored_token(at(0), &name()).unwrap();
        empty.put_token(&name(), token, None);
        empty
    });
}

/// Three requests of one hold that state more and more, in every order in which they can come: neither the beat nor the
/// TTL ever goes back, and whatever count is stored, only "0" frees the name, at once and for good.
#[test]
fn requests_that_come_in_any_order_take_nothing_back() {
    let stated = [(16, 10, 1), (17, 20, 3), (18, 20, 2)].map(|(number, secs, count)| Claim {
        name: name(),
        owner: owner(1),
        count,
        lease: Lease::new(Duration::from_secs(secs)).unwrap(),
        token: Token(5),
        keep: beating(1, number).keep,
    });
    let request = |claim: &Claim| {
        Request::Renew(Renew {
            mode: Mode::Plain,
            claims: vec![claim.clone()],
            retention: Retention::Forever,
        })
    };
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let mut node = Node::new();
        node.apply(at(0), &Request::Acquire(beating(1, 1)));
        let (mut largest, mut longest) = (1, 10_000);
        for claim in order.map(|index| &stated[index]) {
            node.apply(at(0), &request(claim));
            largest = largest.max(claim.keep.unwrap().number);
            longest = longest.max(claim.lease.millis());
            let beat = node.beat(at(0), &name()).unwrap();
            assert_eq!((beat.number, beat.lease_millis), (largest, longest));
            let (_, left) = node.held(at(0), &name()).unwrap();
            assert_eq!(left, Ttl::Millis(longest + 60_000));

            let mut freed = node.clone();
            let kept = freed.apply(at(0), &release(1, 1)).reply;
            assert_eq!(kept, Ok(Reply::Release(ReleaseReply::Kept)));
            let reply = freed.apply(at(0), &release(1, 0)).reply;
            assert_eq!(reply, Ok(Reply::Release(ReleaseReply::Freed)));
            for late in &stated {
                let reply = freed.apply(at(0), &request(late)).reply;
                assert_eq!(reply, Ok(Reply::Renew(vec![RenewReply::NotYours])));
            }
        }
    }
}
