use super::*;

const KEPT: QueuePlace = QueuePlace::Kept { millis: 30_000 };

fn ask(number: u64, place: QueuePlace) -> Request {
    let Request::Acquire(ask) = acquire(number, 1) else {
        unreachable!()
    };
    Request::Acquire(Acquire {
        access: Access::Fair(place),
        ..ask
    })
}

fn give_back(number: u64) -> Request {
    Request::Release(Release {
        name: name(),
        mode: Mode::Fair,
        owner: owner(number),
        count: 0,
    })
}

fn is_granted(applied: &Applied) -> bool {
    matches!(
        applied.reply,
        Ok(Reply::Acquire(AcquireReply::Granted { .. }))
    )
}

fn queued(millis: u64) -> Result<Reply, Cause> {
    let ttl = Ttl::Millis(millis);
    Ok(Reply::Acquire(AcquireReply::Queued { ttl }))
}

fn woken(number: u64) -> Option<(Channel, Wake)> {
    let channel = Channel::Waiter(name(), owner(number));
    Some((channel, Wake::Unlocked))
}

fn waiting(node: &Node, millis: u64) -> Vec<u64> {
    let queue = node.queue(at(millis), &name());
    queue.iter().map(|(owner, _)| owner.number).collect()
}

/// Owner 1 holds the name; 2, 3 and 4 wait for it, in this order.
fn contended() -> Node {
    let mut node = Node::new();
    assert!(is_granted(&node.apply(at(0), &ask(1, KEPT))));
    for (number, millis) in [(2, 1), (3, 2), (4, 3)] {
        let reply = node.apply(at(millis), &ask(number, KEPT)).reply;
        assert_eq!(reply, queued(10_000 - millis));
    }
    node
}

#[test]
fn it_is_granted_in_the_order_in_which_it_was_asked_for() {
    let mut node = contended();
    for number in [1, 2, 3] {
        let released = node.apply(at(10), &give_back(number));
        assert_eq!(released.reply, Ok(Reply::Release(ReleaseReply::FREED)));
        // Only the next waiter is notified, and no other owner gets the lock.
        assert_eq!(released.published, woken(number + 1));
        for other in [4, 5] {
            if other != number + 1 {
                assert!(!is_granted(
                    &node.apply(at(10), &ask(other, QueuePlace::None))
                ));
            }
        }
        assert!(is_granted(&node.apply(at(10), &ask(number + 1, KEPT))));
    }
    assert_eq!(node.apply(at(10), &give_back(4)).published, None);
    assert!(node.keys(&name()).queue.is_none());
}

#[test]
fn asking_again_keeps_the_place() {
    let mut node = contended();
    for number in [3, 2, 4] {
        node.apply(at(5), &ask(number, KEPT));
    }
    assert_eq!(waiting(&node, 5), [2, 3, 4]);
}

#[test]
fn who_asks_without_a_place_gets_none() {
    let mut node = contended();
    node.apply(at(5), &ask(5, QueuePlace::None));
    assert_eq!(waiting(&node, 5), [2, 3, 4]);
}

#[test]
fn the_dead_at_the_head_are_passed_over_by_the_clock_of_the_node() {
    let mut node = contended();
    // Only 4 repeats its request.
    node.apply(at(20_000), &ask(4, KEPT));
    assert_eq!(waiting(&node, 20_000), [2, 3, 4]);
    // 1 expired at 10 s; 2 keeps its place until 30.001 s.
    let reply = node.apply(at(30_001), &ask(4, KEPT)).reply;
    assert_eq!(reply, queued(0));
    let other = node.apply(at(30_002), &ask(5, KEPT));
    assert_eq!((other.reply, other.published), (queued(0), woken(3)));
    assert!(is_granted(&node.apply(at(30_003), &ask(4, KEPT))));
    assert_eq!(waiting(&node, 30_003), [5]);
}

#[test]
fn who_gives_up_leaves_the_queue_and_passes_the_turn_on() {
    let mut node = contended();
    let left = node.apply(at(4), &give_back(3));
    assert_eq!(left.reply, Ok(Reply::Release(ReleaseReply::Left)));
    assert_eq!(left.published, None);
    assert_eq!(node.apply(at(5), &give_back(1)).published, woken(2));
    // 2 was notified, but gives up.
    assert_eq!(node.apply(at(6), &give_back(2)).published, woken(4));
    assert_eq!(waiting(&node, 6), [4]);
    let nothing = node.apply(at(7), &give_back(2));
    assert_eq!(nothing.reply, Ok(Reply::Release(ReleaseReply::NotYours)));
    assert_eq!(nothing.published, None);
}

#[test]
fn a_plain_lock_does_not_pass_a_queue() {
    let mut node = contended();
    let mode = Ok(Reply::Acquire(AcquireReply::OtherMode(Mode::Fair)));
    assert_eq!(node.apply(at(4), &acquire(5, 1)).reply, mode);
    node.apply(at(5), &give_back(1));
    assert_eq!(node.apply(at(5), &acquire(5, 1)).reply, mode);
    // When all waiters are dead, there is no queue.
    let granted = node.apply(at(40_000), &acquire(5, 1));
    assert!(is_granted(&granted), "{granted:?}");
}

#[test]
fn force_wakes_the_first_who_waits() {
    let mut node = contended();
    let force = Request::ForceRelease(ForceRelease { name: name() });
    assert_eq!(node.apply(at(5), &force).published, woken(2));
    assert_eq!(inspect(&mut node, 5).waiting, 3);
}
