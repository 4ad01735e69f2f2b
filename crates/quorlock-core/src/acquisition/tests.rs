use super::*;
use crate::message::Mode;
use crate::quorum::{Members, Threshold};
use crate::round::Loss;

mod contention;
mod passing;
mod returns;
mod silence;

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn member(index: usize) -> Vec<MemberId> {
    let members = Members::new([Threshold::all(2)]);
    members.all().skip(index).take(1).collect()
}

fn wake(a: &mut Acquisition, index: usize) {
    wake_at(a, 0, index);
}

fn wake_at(a: &mut Acquisition, now: u64, index: usize) {
    let member = a.members.all().nth(index).unwrap();
    a.handle_wake(ms(now), member);
}

fn waiting(groups: usize) -> Acquisition {
    waiting_for(vec![Threshold::all(1); groups])
}

fn waiting_for(groups: Vec<Threshold>) -> Acquisition {
    Acquisition::new(
        RetryPolicy::default(),
        Patience::Wait,
        Duration::from_millis(500),
        Arc::new(Members::new(groups)),
    )
}

/// Three of five members refused, in a round of 8 ms that ended at 108 ms.
fn sleeping_at_108() -> Acquisition {
    let mut a = five();
    let loss = Loss::Refused {
        free_after: Some(Duration::from_millis(900)),
        split: false,
        refused: a.members.all().take(3).collect(),
    };
    a.handle_loss(ms(0), ms(0), loss.clone(), 1);
    a.handle_live();
    a.handle_loss(ms(108), ms(100), loss, 1);
    assert_eq!(*a.step(), Step::Sleep(ms(1_009)));
    a
}

/// Votes have split three times, and now one owner has all members.
fn contended() -> Acquisition {
    let mut a = five();
    for _ in 0..3 {
        a.handle_loss(ms(0), ms(0), split(), 0);
        a.handle_timeout(Time::NEVER);
    }
    let all = Loss::Refused {
        free_after: Some(Duration::from_millis(900)),
        split: false,
        refused: a.members.all().collect(),
    };
    a.handle_loss(ms(108), ms(100), all, 0);
    assert_eq!(*a.step(), Step::Sleep(ms(1_009)));
    a
}

fn wake_three(a: &mut Acquisition, now: u64) {
    for index in [4, 2, 0] {
        assert!(matches!(a.step(), Step::Sleep(_)), "{:?}", a.step());
        wake_at(a, now, index);
    }
}

#[test]
fn a_waiter_for_a_majority_asks_when_a_majority_says_that_it_is_free() {
    let mut a = sleeping_at_108();
    wake_at(&mut a, 200, 0);
    assert_eq!(*a.step(), Step::Sleep(ms(208)));
    wake_at(&mut a, 201, 0);
    wake_at(&mut a, 202, 4);
    assert_eq!(*a.step(), Step::Sleep(ms(208)));
    wake_at(&mut a, 203, 1);
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
}

#[test]
fn messages_that_do_not_come_are_waited_for_as_long_as_a_round_takes() {
    let mut a = sleeping_at_108();
    wake_at(&mut a, 200, 3);
    assert_eq!(*a.step(), Step::Sleep(ms(1_009)), "it had not refused");
    wake_at(&mut a, 300, 1);
    a.handle_timeout(ms(307));
    assert_eq!(*a.step(), Step::Sleep(ms(308)));
    a.handle_timeout(ms(308));
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
}

fn refused(free_after: Option<u64>) -> Loss {
    Loss::Refused {
        free_after: free_after.map(Duration::from_millis),
        split: false,
        refused: member(0),
    }
}

/// Of five members two granted, one refused and two were silent.
fn split() -> Loss {
    Loss::Refused {
        free_after: None,
        split: true,
        refused: member(0),
    }
}

fn five() -> Acquisition {
    waiting_for(vec![Threshold::majority(5)])
}

#[test]
fn a_waiter_subscribes_and_tries_again_before_it_sleeps() {
    let mut a = waiting(1);
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
    a.handle_loss(ms(0), ms(0), refused(Some(900)), 1);
    assert_eq!(*a.step(), Step::Listen(ms(500)));
    a.handle_live();
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
    a.handle_loss(ms(10), ms(9), refused(Some(900)), 1);
    assert_eq!(*a.step(), Step::Sleep(ms(911)));
    wake(&mut a, 0);
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
}

#[test]
fn a_first_split_vote_is_tried_again_as_soon_as_the_subscriptions_are_live() {
    let mut a = five();
    a.handle_loss(ms(0), ms(0), split(), u64::MAX);
    assert_eq!(*a.step(), Step::Listen(ms(500)));
    a.handle_live();
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
}

/// The holder has three of five members. The other two grant, and the grants are given back.
#[test]
fn a_holder_of_a_bare_majority_is_waited_for_but_a_second_split_is_a_collision() {
    let mut a = five();
    let loss = Loss::Refused {
        free_after: Some(Duration::from_millis(900)),
        split: true,
        refused: a.members.all().take(3).collect(),
    };
    a.handle_loss(ms(0), ms(0), loss.clone(), u64::MAX);
    a.handle_live();
    a.handle_loss(ms(8), ms(0), loss.clone(), u64::MAX);
    assert_eq!(*a.step(), Step::Sleep(ms(909)));
    for index in [3, 4] {
        wake_at(&mut a, 9, index);
        assert_eq!(*a.step(), Step::Sleep(ms(909)), "our own giving back");
    }
    wake_at(&mut a, 100, 0);
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
    a.handle_loss(ms(108), ms(100), loss, u64::MAX);
    assert!(matches!(a.step(), Step::BackOff(_)), "{:?}", a.step());
}

#[test]
fn a_quarantine_is_waited_out_and_no_wake_up_ends_that() {
    let mut a = waiting(1);
    let until = |millis| Loss::Quarantined {
        until: Some(ms(millis)),
    };
    a.handle_loss(ms(10), ms(9), until(3_000), 1);
    wake(&mut a, 0);
    assert_eq!(*a.step(), Step::Sleep(ms(3_000)));
    a.handle_timeout(ms(3_000));
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
    a.handle_loss(ms(3_001), ms(3_000), until(60_000), 1);
    assert_eq!(*a.step(), Step::Sleep(ms(8_001)), "it looks every 5 s");
    for _ in 0..9 {
        a.handle_timeout(ms(9_000));
        a.handle_loss(ms(9_001), ms(9_000), until(9_000), 1 << 60);
        assert!(
            matches!(*a.step(), Step::BackOff(_)),
            "soon, and not given up"
        );
        a.handle_timeout(Time::NEVER);
    }
}

#[test]
fn whoever_only_tries_does_not_wait_for_a_quarantine() {
    let policy = RetryPolicy::default();
    let members = Arc::new(Members::new([Threshold::all(1)]));
    let mut a = Acquisition::new(policy, Patience::Try, Duration::from_millis(500), members);
    a.handle_loss(ms(10), ms(9), Loss::Quarantined { until: None }, 1);
    assert_eq!(*a.step(), Step::GiveUp(GiveUp::NoQuorum));
}

#[test]
fn a_subscription_that_does_not_come_is_not_waited_for() {
    let mut a = waiting(1);
    a.handle_loss(ms(0), ms(0), refused(None), 1);
    a.handle_timeout(ms(499));
    assert_eq!(*a.step(), Step::Listen(ms(500)));
    a.handle_timeout(ms(500));
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
}

#[test]
fn a_wake_up_during_a_round_is_not_forgotten() {
    let mut a = waiting(1);
    a.handle_loss(ms(0), ms(0), refused(None), 1);
    a.handle_live();
    wake(&mut a, 0);
    a.handle_loss(ms(1), ms(0), refused(None), 1);
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
    a.handle_loss(ms(1), ms(0), refused(None), 1);
    assert_eq!(*a.step(), Step::Sleep(ms(5_001)));
}

#[test]
fn a_wake_up_never_cuts_a_back_off() {
    let mut a = five();
    a.handle_loss(ms(0), ms(0), split(), u64::MAX);
    a.handle_live();
    a.handle_loss(ms(0), ms(0), split(), u64::MAX);
    assert_eq!(*a.step(), Step::BackOff(ms(10)));
    wake(&mut a, 0);
    assert_eq!(*a.step(), Step::BackOff(ms(10)));
    a.handle_timeout(ms(10));
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
}

#[test]
fn only_the_members_that_refused_are_listened_to_anew() {
    let mut a = waiting(2);
    a.queue_at(1);
    let loss = |index| Loss::Refused {
        free_after: None,
        split: false,
        refused: member(index),
    };
    a.handle_deaf(member(1));
    a.handle_loss(ms(0), ms(0), loss(0), 0);
    assert!(matches!(a.step(), Step::Listen(_)));
    a.handle_live();
    assert_eq!(*a.step(), Step::Ask(Order::Canonical { first: 1 }));
    // The fair lock was granted and given back. The next round has another owner, so the channel of this one does not
    // matter.
    a.handle_deaf(member(1));
    a.handle_loss(ms(0), ms(0), loss(0), 0);
    assert_eq!(*a.step(), Step::Sleep(ms(5_000)));
    wake(&mut a, 0);
    assert_eq!(*a.step(), Step::Ask(Order::Canonical { first: 1 }));
    a.handle_loss(ms(0), ms(0), loss(1), 0);
    assert!(matches!(a.step(), Step::Listen(_)));
    a.handle_live();
    a.handle_loss(ms(0), ms(0), loss(1), 0);
    assert_eq!(*a.step(), Step::Sleep(ms(5_000)));
}

#[test]
fn a_second_place_given_up_is_a_collision() {
    let mut a = waiting(2);
    let loss = |index| Loss::Refused {
        free_after: None,
        split: true,
        refused: member(index),
    };
    a.queue_at(0);
    a.handle_lost_place(0);
    a.handle_loss(ms(0), ms(0), loss(0), 0);
    a.handle_live();
    for (index, is_collision) in [(1, true), (0, true)] {
        a.handle_lost_place(index);
        a.handle_loss(ms(0), ms(0), loss(index), u64::MAX);
        assert_eq!(matches!(a.step(), Step::BackOff(_)), is_collision);
        a.handle_timeout(Time::NEVER);
        assert_eq!(*a.step(), Step::Ask(Order::Canonical { first: index }));
    }
}

/// Queues keep owners in step that collide there, so a cap that is shorter than a round must not bound their pauses.
#[test]
fn pauses_after_lost_places_grow_to_rounds_whatever_the_cap_is() {
    let policy = RetryPolicy::default().backoff_cap(ms(8).since(ms(0)));
    let mut a = Acquisition::new(
        policy,
        Patience::Wait,
        Duration::from_millis(100),
        waiting(2).members,
    );
    a.queue_at(0);
    let loss = |index| Loss::Refused {
        free_after: None,
        split: true,
        refused: member(index),
    };
    let mut pauses = Vec::new();
    for index in [1, 0, 1, 0, 1, 0, 1, 0] {
        a.handle_lost_place(index);
        a.handle_loss(ms(10), ms(0), loss(index), u64::MAX);
        a.handle_live();
        if let Step::BackOff(at) = *a.step() {
            pauses.push(at.since(ms(10)).as_millis());
        }
        a.handle_timeout(Time::NEVER);
    }
    assert_eq!(pauses, [20, 40, 80, 160, 320, 320, 320]);
}

#[test]
fn giving_back_one_lock_of_several_does_not_wake_ourselves() {
    let mut a = waiting(2);
    let loss = Loss::Refused {
        free_after: None,
        split: false,
        refused: member(1),
    };
    a.handle_loss(ms(0), ms(0), loss.clone(), 0);
    a.handle_live();
    a.handle_loss(ms(0), ms(0), loss, 0);
    wake(&mut a, 0);
    assert!(matches!(a.step(), Step::Sleep(_)));
    wake(&mut a, 1);
    assert!(matches!(a.step(), Step::Ask(_)));
}

#[test]
fn no_number_of_failed_rounds_ends_an_acquisition_but_a_time_does() {
    let mut a = waiting(1);
    let bounded = Limit::At(ms(90_000));
    let unbounded = Limit::WithoutQuorumFrom(ms(0));
    assert_eq!(a.gives_up_at(unbounded), Time::NEVER);
    for (n, loss) in (0..100).zip([Loss::NoQuorum, Loss::TooSlow].iter().cycle()) {
        a.handle_loss(ms(1_001 + n), ms(1_000 + n), loss.clone(), 0);
        assert!(matches!(a.step(), Step::BackOff(_)), "{n}: {:?}", a.step());
        a.handle_timeout(Time::NEVER);
        // The time counts from the beginning of the first failed round.
        assert_eq!(a.gives_up_at(unbounded), ms(31_000));
        assert_eq!(a.gives_up_at(bounded), ms(90_000));
    }
    assert_eq!(a.last_loss(), Some(GiveUp::TooSlow));
    // A caller that came later has not waited as long.
    assert_eq!(
        a.gives_up_at(Limit::WithoutQuorumFrom(ms(7_000))),
        ms(37_000)
    );
}

#[test]
fn a_quorum_that_answers_ends_the_time_without_one() {
    let unbounded = Limit::WithoutQuorumFrom(ms(0));
    let until = Some(ms(9_000));
    for answer in [refused(None), split(), Loss::Quarantined { until }] {
        let mut a = five();
        a.handle_loss(ms(1), ms(0), Loss::NoQuorum, 0);
        assert_eq!(a.failing_since(), Some(ms(0)));
        a.handle_loss(ms(3), ms(2), answer.clone(), 0);
        assert_eq!(a.gives_up_at(unbounded), Time::NEVER, "{answer:?}");
        a.handle_loss(ms(29_500), ms(29_000), Loss::NoQuorum, 0);
        assert_eq!(a.gives_up_at(unbounded), ms(59_000), "{answer:?}");
    }
}

/// Competitors in first-member order are alternately refused and granted by the first member; no other member answers.
#[test]
fn the_first_member_alone_is_no_quorum_that_answers() {
    let unbounded = Limit::WithoutQuorumFrom(ms(0));
    let mut a = contended();
    wake_three(&mut a, 200);
    a.handle_loss(ms(210), ms(200), Loss::NoQuorum, 0);
    let mut now = 300;
    while now < 60_000 {
        assert_eq!(a.gives_up_at(unbounded), ms(30_200), "at {now} ms");
        assert_eq!(a.last_loss(), Some(GiveUp::NoQuorum));
        a.handle_timeout(Time::NEVER);
        let loss = match *a.step() {
            Step::Ask(Order::FirstMember) => Loss::Postponed,
            _ => Loss::NoQuorum,
        };
        a.handle_loss(ms(now + 10), ms(now), loss, 0);
        now += 100;
    }
    a.handle_timeout(Time::NEVER);
    a.handle_loss(ms(now), ms(now), refused(None), 0);
    assert_eq!(a.gives_up_at(unbounded), Time::NEVER);
}

#[test]
fn what_waiting_does_not_cure_is_not_waited_for() {
    let mut a = waiting(1);
    a.handle_loss(ms(1), ms(0), Loss::Denied, 0);
    assert_eq!(*a.step(), Step::GiveUp(GiveUp::Denied));
}

#[test]
fn a_try_is_one_round() {
    for (loss, end) in [
        (refused(None), GiveUp::Contended),
        (split(), GiveUp::Contended),
        (Loss::NoQuorum, GiveUp::NoQuorum),
        (Loss::Denied, GiveUp::Denied),
        (Loss::TooSlow, GiveUp::TooSlow),
        (Loss::OtherMode(Mode::Read), GiveUp::OtherMode(Mode::Read)),
    ] {
        let mut a = Acquisition::new(
            RetryPolicy::default(),
            Patience::Try,
            Duration::from_millis(500),
            Arc::new(Members::new([Threshold::all(1)])),
        );
        a.handle_loss(ms(0), ms(0), loss, 0);
        assert_eq!(*a.step(), Step::GiveUp(end));
    }
}
