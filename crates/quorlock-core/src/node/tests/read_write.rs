use super::*;

fn ask(access: Access, number: u64, lease_secs: u64) -> Request {
    let Request::Acquire(ask) = acquire(number, 1) else {
        unreachable!()
    };
    Request::Acquire(Acquire {
        access,
        lease: Lease::new(Duration::from_secs(lease_secs)).unwrap(),
        ..ask
    })
}

fn read(number: u64) -> Request {
    ask(Access::Read { under: None }, number, 10)
}

fn read_under(number: u64, writer: u64) -> Request {
    let under = Some(owner(writer));
    ask(Access::Read { under }, number, 10)
}

fn write(number: u64) -> Request {
    ask(Access::Write, number, 10)
}

fn give_back(mode: Mode, number: u64) -> Request {
    Request::Release(Release {
        name: name(),
        mode,
        owner: owner(number),
        count: 0,
    })
}

fn renew_as(mode: Mode, number: u64) -> Request {
    let Request::Renew(ask) = renew(number, 1) else {
        unreachable!()
    };
    Request::Renew(Renew { mode, ..ask })
}

fn is_granted(node: &mut Node, millis: u64, request: &Request) -> bool {
    match node.apply(at(millis), request).reply {
        Ok(Reply::Acquire(AcquireReply::Granted { .. })) => true,
        Ok(Reply::Acquire(AcquireReply::Refused { .. })) => false,
        other => panic!("{other:?}"),
    }
}

fn released(node: &mut Node, millis: u64, mode: Mode, number: u64) -> (ReleaseReply, bool) {
    let applied = node.apply(at(millis), &give_back(mode, number));
    let is_told = applied.published.is_some_and(|(channel, _)| {
        assert_eq!(channel, Channel::ReadWrite(name()));
        true
    });
    match applied.reply {
        Ok(Reply::Release(reply)) => (reply, is_told),
        other => panic!("{other:?}"),
    }
}

#[test]
fn readers_share_and_the_last_one_frees_it() {
    let mut node = Node::new();
    assert!(is_granted(&mut node, 0, &read(1)));
    assert!(is_granted(&mut node, 0, &read(2)));
    assert!(!is_granted(&mut node, 0, &write(3)));
    assert_eq!(
        released(&mut node, 1, Mode::Read, 1),
        (ReleaseReply::Left, false)
    );
    assert!(!is_granted(&mut node, 1, &write(3)));
    assert_eq!(
        released(&mut node, 2, Mode::Read, 2),
        (ReleaseReply::FREED, true)
    );
    assert!(is_granted(&mut node, 2, &write(3)));
    assert!(!is_granted(&mut node, 2, &read(1)));
    assert!(!is_granted(&mut node, 2, &write(4)));
}

#[test]
fn a_dead_reader_is_not_kept_alive_by_another() {
    let mut node = Node::new();
    is_granted(&mut node, 0, &read(1));
    is_granted(&mut node, 0, &read(2));
    let renewed = Ok(Reply::Renew(vec![RenewReply::AlreadyYours {
        token: Token(1),
    }]));
    assert_eq!(
        node.apply(at(9_000), &renew_as(Mode::Read, 2)).reply,
        renewed
    );
    // 1 has been dead since 10 s, and cannot become a reader again.
    let gone = Ok(Reply::Renew(vec![RenewReply::NotYours]));
    assert_eq!(node.apply(at(11_000), &renew_as(Mode::Read, 1)).reply, gone);
    assert_eq!(
        inspect(&mut node, 11_000).found,
        Found::ReadWrite {
            writer: None,
            readers: 1,
            ttl: Ttl::Millis(8_000),
        }
    );
    assert_eq!(
        released(&mut node, 12_000, Mode::Read, 2),
        (ReleaseReply::FREED, true)
    );
    assert!(is_granted(&mut node, 12_000, &write(3)));
}

#[test]
fn a_writer_does_not_wait_for_the_dead() {
    let mut node = Node::new();
    is_granted(&mut node, 0, &ask(Access::Read { under: None }, 1, 2));
    is_granted(&mut node, 0, &read(2));
    released(&mut node, 1_000, Mode::Read, 2);
    // The whole key has a TTL of 10 s, but the only reader had a lease of 2 s.
    assert!(!is_granted(&mut node, 2_000, &write(3)));
    assert!(is_granted(&mut node, 2_001, &write(3)));
    assert_eq!(
        node.names
            .values()
            .map(|keys| keys.reads.len())
            .sum::<usize>(),
        0
    );
}

#[test]
fn a_shorter_lease_of_a_reader_cuts_nobody_short() {
    let mut node = Node::new();
    is_granted(&mut node, 0, &read(1));
    is_granted(&mut node, 0, &ask(Access::Read { under: None }, 2, 1));
    is_granted(&mut node, 0, &ask(Access::Read { under: None }, 1, 1));
    assert!(!is_granted(&mut node, 9_999, &write(3)));
}

#[test]
fn a_writer_reads_and_goes_on_reading_and_others_are_told() {
    let mut node = Node::new();
    is_granted(&mut node, 0, &write(1));
    assert!(!is_granted(&mut node, 0, &read_under(3, 2)));
    assert!(is_granted(&mut node, 0, &read_under(2, 1)));
    assert!(!is_granted(&mut node, 0, &read(3)));
    assert_eq!(
        released(&mut node, 1, Mode::Write, 1),
        (ReleaseReply::Left, true)
    );
    assert!(is_granted(&mut node, 1, &read(3)));
    assert!(!is_granted(&mut node, 1, &write(4)));
}

#[test]
fn a_writer_whose_reading_ended_first_still_writes() {
    let mut node = Node::new();
    is_granted(&mut node, 0, &write(1));
    is_granted(&mut node, 0, &read_under(2, 1));
    assert_eq!(
        released(&mut node, 1, Mode::Read, 2),
        (ReleaseReply::Left, false)
    );
    assert!(!is_granted(&mut node, 1, &read(3)));
    assert_eq!(
        released(&mut node, 2, Mode::Write, 1),
        (ReleaseReply::FREED, true)
    );
}

/// Some libraries add the lease to the remaining TTL.
#[test]
fn a_writer_that_enters_again_has_the_larger_lease_not_the_sum() {
    let mut node = Node::new();
    for _ in 0..3 {
        is_granted(&mut node, 0, &write(1));
    }
    assert_eq!(node.held(at(0), &name()).unwrap().1, Ttl::Millis(10_000));
}

#[test]
fn a_reader_is_told_the_token_of_the_last_writer_and_uses_none_up() {
    let mut node = Node::new();
    let token = |node: &mut Node, request: &Request| match node.apply(at(0), request).reply {
        Ok(Reply::Acquire(AcquireReply::Granted { token, .. })) => token,
        other => panic!("{other:?}"),
    };
    assert_eq!(token(&mut node, &read(1)), Token(0));
    released(&mut node, 0, Mode::Read, 1);
    let written = token(&mut node, &write(2));
    released(&mut node, 0, Mode::Write, 2);
    assert_eq!(token(&mut node, &read(3)), written);
    assert_eq!(token(&mut node, &read(4)), written);
}

#[test]
fn requests_executed_twice_change_nothing() {
    for request in [read(1), read_under(3, 2), write(2), renew_as(Mode::Read, 1)] {
        for first in [read(1), write(2)] {
            let mut once = Node::new();
            once.apply(at(0), &first);
            once.apply(at(1), &request);
            let mut twice = once.clone();
            twice.apply(at(1), &request);
            assert_eq!(once, twice);
        }
    }
}

#[test]
fn readers_and_writers_refuse_other_kinds_of_locks_by_name_and_are_refused() {
    let mut node = Node::new();
    node.apply(at(0), &acquire(1, 1));
    let mode = |mode| Ok(Reply::Acquire(AcquireReply::OtherMode(mode)));
    assert_eq!(node.apply(at(0), &read(2)).reply, mode(Mode::Plain));
    assert_eq!(node.apply(at(0), &write(2)).reply, mode(Mode::Plain));
    assert_eq!(
        released(&mut node, 0, Mode::Read, 1),
        (ReleaseReply::NotYours, false)
    );
    let mut node = Node::new();
    node.apply(at(0), &read(1));
    assert_eq!(node.apply(at(0), &acquire(1, 1)).reply, mode(Mode::Read));
    node.apply(at(0), &give_back(Mode::Read, 1));
    node.apply(at(0), &write(1));
    assert_eq!(node.apply(at(0), &acquire(1, 1)).reply, mode(Mode::Write));
}
