use super::*;

#[test]
fn a_look_says_what_stands_there_and_changes_nothing() {
    let mut node = Node::new();
    let nothing = InspectReply {
        found: Found::Nothing,
        waiting: 0,
        token: None,
        client: None,
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
        client: None,
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
