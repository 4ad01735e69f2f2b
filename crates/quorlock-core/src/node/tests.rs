use super::*;
use crate::claim_version::{ClaimVersion, ClockMargin};
use crate::fencing::Fence;
use crate::lease::Lease;
use crate::message::{
    Acquire, AcquireReply, Claim, Freshness, QueuePlace, Release, ReleaseReply, Renew, RenewReply,
    Retention,
};
use crate::owner::ClientId;
use std::time::Duration;

mod claim_versions;
mod fair;
mod harmless;
mod operators;
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
        after: None,
        replaces: None,
        continues: None,
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

fn inspect(node: &mut Node, millis: u64) -> InspectReply {
    let request = Request::Inspect(Inspect::of(name()));
    let before = node.clone();
    let applied = node.apply(at(millis), &request);
    assert_eq!((&before, applied.published), (&*node, None));
    match applied.reply {
        Ok(Reply::Inspect(reply)) => reply,
        other => panic!("{other:?}"),
    }
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
        Ok(Reply::Acquire(AcquireReply::Refused { ttl, version: None }))
    };
    assert_eq!(node.apply(at(4_000), &acquire(2, 1)).reply, refused(6_000));
    assert_eq!(node.apply(at(10_000), &acquire(2, 1)).reply, refused(0));
    assert_eq!(
        node.apply(at(10_001), &acquire(2, 1)).reply,
        granted(Freshness::Anew, START + 1)
    );
}

#[test]
fn a_claim_that_a_request_found_expired_does_not_stand_again_when_the_clock_is_set_back() {
    for found in [release(1, 0), renew(1, START), acquire(2, 1)] {
        let mut node = Node::new();
        node.apply(at(0), &acquire(1, 1));
        assert_eq!(node.names(at(10_000)).count(), 1);
        node.apply(at(10_001), &found);
        let held = node.held(at(5_000), &name());
        let held = held.map(|(held, _)| held.clone());
        let stands = matches!(held, Some(Held::Plain { owner: first, .. }) if first == owner(1));
        assert!(!stands, "{found:?}");
    }
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
    assert_eq!(outer.reply, reply(ReleaseReply::FREED));
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
        Ok(Reply::Acquire(AcquireReply::Refused { ttl, version: None }))
    );
}

#[test]
fn unused_token_counters_are_forgotten() {
    let mut node = Node::new();
    for i in 0..10_000u64 {
        let name = Name::new(format!("n{i}")).unwrap();
        let now = at(i * 100);
        node.with_keys(now, &name, |keys| {
            keys.store_token(now, Token(i), Retention::Millis(1_000));
        });
    }
    assert!(node.stems.len() < 3_000, "{}", node.stems.len());
}

/// A hold of an hour is renewed hundreds of times. Its counter is written once half of its retention is over.
#[test]
fn a_renewal_writes_the_counter_when_half_of_its_time_is_over_or_it_grows() {
    let retention = 86_400_000;
    let renewed_at = |now: u64, token: u64, retention: u64| {
        let mut node = Node::new();
        let mut first = acquire(1, 1);
        if let Request::Acquire(ask) = &mut first {
            ask.retention = Retention::Millis(retention);
        }
        node.apply(at(0), &first);
        let mut asking = renew(1, token);
        if let Request::Renew(ask) = &mut asking {
            ask.retention = Retention::Millis(retention);
        }
        let held = Held::Plain {
            owner: owner(1),
            count: 1,
        };
        node.put(&name(), held, None);
        node.apply(at(now), &asking);
        // If the counter was written, it is kept for this long from now on.
        let is_there = |millis| node.stored_token(at(millis), &name()).is_some();
        is_there(retention + now) && !is_there(retention + now + 1)
    };
    let (half, same) = (retention / 2, START);
    // The TTL of the counter is looked at for 10 s, the lease, from here on.
    let eighth = retention / 8;
    let first_look = eighth - at(0).0 % eighth;
    let look = (first_look..).step_by(usize::try_from(eighth).unwrap());
    let (early, late): (Vec<_>, Vec<_>) = look.take(6).partition(|look| *look <= half);
    assert!(!early.iter().any(|look| renewed_at(*look, same, retention)));
    assert!(late.iter().all(|look| renewed_at(*look, same, retention)));
    let late = late[0];
    assert!(renewed_at(late + 9_999, same, retention));
    assert!(!renewed_at(late + 10_000, same, retention), "nobody looks");
    assert!(!renewed_at(late - 1, same, retention), "nobody looks yet");
    assert!(renewed_at(1, same + 1, retention), "a larger token");
    assert!(renewed_at(1, same, 19_999), "the claim would outlive it");
    assert!(renewed_at(40_001, same, 80_000), "each renewal looks");
    assert!(!renewed_at(40_000, same, 80_000));
}
