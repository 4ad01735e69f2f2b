use super::*;

/// The first request of an owner for a lease of 10 s and a margin of 60 s, or a later one.
fn versioned(number: u64, request: u64) -> Acquire {
    let Request::Acquire(ask) = acquire(number, 1) else {
        panic!("an acquire");
    };
    Acquire {
        keep: Some(ClockMargin {
            margin_millis: 60_000,
            number: request,
        }),
        ..ask
    }
}

fn version(number: u64, request: u64) -> ClaimVersion {
    ClaimVersion {
        owner: owner(number),
        number: request,
        lease_millis: 10_000,
    }
}

fn refused(left: u64, version: Option<ClaimVersion>) -> Result<Reply, Cause> {
    let ttl = Ttl::Millis(left);
    Ok(Reply::Acquire(AcquireReply::Refused { ttl, version }))
}

#[test]
fn a_claim_with_a_margin_outlives_its_lease_and_shows_its_largest_beat() {
    let mut node = Node::new();
    for request in [1, 3, 2] {
        node.apply(at(0), &Request::Acquire(versioned(1, request)));
    }
    let other = Request::Acquire(versioned(2, 1));
    let shown = Some(version(1, 3));
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
            ..versioned(2, 1)
        })
    };
    let longer = ClaimVersion {
        lease_millis: 10_001,
        ..version(1, 2)
    };
    let mut node = Node::new();
    node.apply(at(0), &Request::Acquire(versioned(1, 2)));
    for other in [version(1, 1), version(1, 3), version(3, 2), longer] {
        let reply = node.apply(at(0), &replacing(other)).reply;
        assert_eq!(reply, refused(70_000, Some(version(1, 2))));
    }
    let reply = node.apply(at(0), &replacing(version(1, 2))).reply;
    let anew = AcquireReply::Granted {
        freshness: Freshness::Anew,
        token: Token(START + 1),
    };
    assert_eq!(reply, Ok(Reply::Acquire(anew)));
    assert_eq!(node.version(at(0), &name()), Some(version(2, 1)));
}

/// A client of another kind took the name when it was free; the version of the previous claim is still stored.
#[test]
fn a_claim_that_the_beat_does_not_name_is_not_replaced() {
    let mut node = Node::new();
    node.apply(at(0), &Request::Acquire(versioned(1, 1)));
    let held = Held::Plain {
        owner: owner(9),
        count: 1,
    };
    node.put(&name(), held, Some(at(5_000)));
    let ask = Acquire {
        replaces: Some(version(1, 1)),
        ..versioned(2, 1)
    };
    let reply = node.apply(at(0), &Request::Acquire(ask)).reply;
    assert_eq!(reply, refused(5_000, None));
}

#[test]
fn a_renewal_beats_and_a_release_ends_the_beat() {
    let mut node = Node::new();
    node.apply(at(0), &Request::Acquire(versioned(1, 1)));
    let Request::Renew(mut ask) = renew(1, 5) else {
        panic!("a renewal");
    };
    for claim in &mut ask.claims {
        claim.keep = versioned(1, 2).keep;
    }
    node.apply(at(0), &Request::Renew(ask));
    assert_eq!(
        node.version(at(0), &name()).map(|version| version.number),
        Some(2)
    );
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

/// Three requests of one hold that state increasing values, in every order of arrival. Neither the claim version nor
/// the TTL ever decreases. Whatever count is stored, only a count of 0 frees the name, immediately and for good.
#[test]
fn requests_that_come_in_any_order_take_nothing_back() {
    let stated = [(16, 10, 1), (17, 20, 3), (18, 20, 2)].map(|(number, secs, count)| Claim {
        name: name(),
        owner: owner(1),
        count,
        lease: Lease::new(Duration::from_secs(secs)).unwrap(),
        token: Token(5),
        keep: versioned(1, number).keep,
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
        node.apply(at(0), &Request::Acquire(versioned(1, 1)));
        let (mut largest, mut longest) = (1, 10_000);
        for claim in order.map(|index| &stated[index]) {
            node.apply(at(0), &request(claim));
            largest = largest.max(claim.keep.unwrap().number);
            longest = longest.max(claim.lease.millis());
            let version = node.version(at(0), &name()).unwrap();
            assert_eq!((version.number, version.lease_millis), (largest, longest));
            let (_, left) = node.held(at(0), &name()).unwrap();
            assert_eq!(left, Ttl::Millis(longest + 60_000));

            let mut freed = node.clone();
            let kept = freed.apply(at(0), &release(1, 1)).reply;
            assert_eq!(kept, Ok(Reply::Release(ReleaseReply::Kept)));
            let reply = freed.apply(at(0), &release(1, 0)).reply;
            assert_eq!(reply, Ok(Reply::Release(ReleaseReply::FREED)));
            for late in &stated {
                let reply = freed.apply(at(0), &request(late)).reply;
                assert_eq!(reply, Ok(Reply::Renew(vec![RenewReply::NotYours])));
            }
        }
    }
}
