use super::*;

#[test]
fn votes_that_keep_splitting_make_rounds_ask_the_first_member_first() {
    let mut a = five();
    let mut orders = Vec::new();
    for number in 0..7 {
        let Step::Ask(order) = *a.step() else {
            panic!("{:?}", a.step())
        };
        orders.push(order);
        let loss = match number {
            4 => Loss::Postponed,
            _ => split(),
        };
        a.handle_loss(ms(0), ms(0), loss, 0);
        a.handle_timeout(Time::NEVER);
    }
    use Order::{FirstMember as F, Parallel as P};
    assert_eq!(orders, [P, P, P, F, F, P, F]);
}

#[test]
fn whoever_is_woken_and_too_late_asks_the_first_member_first_from_then_on() {
    let mut a = sleeping_at_108();
    for (now, order) in [(200, Order::Parallel), (300, Order::FirstMember)] {
        for index in [0, 1, 2] {
            wake_at(&mut a, now, index);
        }
        assert_eq!(*a.step(), Step::Ask(order));
        let loss = Loss::Refused {
            free_after: None,
            split: false,
            refused: a.members.all().collect(),
        };
        a.handle_loss(ms(now + 1), ms(now), loss, 1);
    }
}

#[test]
fn a_crowd_that_is_woken_asks_the_first_member_each_time() {
    let mut a = contended();
    for now in [200, 300, 400] {
        wake_three(&mut a, now);
        assert_eq!(*a.step(), Step::Ask(Order::FirstMember));
        a.handle_loss(ms(now), ms(now), Loss::Postponed, u64::MAX);
    }
    a.handle_timeout(Time::NEVER);
    assert_eq!(
        *a.step(),
        Step::Ask(Order::Parallel),
        "no message woke it, and the first member may be held for long"
    );
}

#[test]
fn a_crowd_is_not_woken_at_once_by_what_a_competitor_gives_back() {
    let mut a = contended();
    wake_three(&mut a, 200);
    a.handle_loss(ms(200), ms(199), Loss::Postponed, u64::MAX);
    assert_eq!(
        *a.step(),
        Step::Sleep(ms(214)),
        "it has time to ask the rest"
    );
    wake_at(&mut a, 201, 0);
    wake_at(&mut a, 202, 1);
    assert_eq!(*a.step(), Step::Sleep(ms(209)), "eight rounds");
    wake_at(&mut a, 203, 2);
    assert_eq!(*a.step(), Step::Ask(Order::FirstMember));
}

/// The competitor that passed gives back the first member and one more. The lock may be free, and competitors that
/// asked all members at once would split the vote.
#[test]
fn a_crowd_asks_the_first_member_again_when_that_is_free() {
    let mut a = contended();
    let mut pauses = Vec::new();
    for now in [1_000, 2_000, 3_000] {
        wake_three(&mut a, now);
        a.handle_loss(ms(now + 1), ms(now), Loss::Postponed, u64::MAX);
        wake_at(&mut a, now + 2, 0);
        pauses.push(a.poll_timeout().since(ms(now + 2)).as_millis());
        a.handle_timeout(a.poll_timeout());
        assert_eq!(*a.step(), Step::Ask(Order::FirstMember));
        a.handle_loss(ms(now + 100), ms(now + 99), Loss::Postponed, u64::MAX);
    }
    assert_eq!(
        pauses,
        [8, 16, 32],
        "a holder of the others is asked less and less"
    );
}

/// The result of each round that collides: some members granted, the others name two owners.
fn collision() -> Loss {
    Loss::Refused {
        free_after: Some(Duration::from_millis(900)),
        split: true,
        refused: five().members.all().take(4).collect(),
    }
}

#[test]
fn a_collision_is_over_after_some_rounds_and_never_after_a_second() {
    let mut a = five();
    a.handle_listening();
    let mut pauses = Vec::new();
    for round in 0..7 {
        let now = 1_000 * round;
        a.handle_rivals();
        a.handle_loss(ms(now + 1), ms(now), collision(), u64::MAX);
        pauses.push(a.poll_timeout().since(ms(now + 1)).as_millis());
        a.handle_timeout(a.poll_timeout());
        assert_eq!(*a.step(), Step::Ask(Order::FirstMember));
    }
    assert_eq!(pauses, [2, 4, 8, 16, 32, 32, 32]);
}

/// Of tries that collide, one passes in first-member order. A try that finds a holder, or collides again, is over.
#[test]
fn a_try_that_collides_is_repeated_once() {
    let a_try = || Acquisition {
        patience: Patience::Try,
        ..five()
    };
    let mut a = a_try();
    a.handle_rivals();
    a.handle_loss(ms(2), ms(1), collision(), u64::MAX);
    assert_eq!(*a.step(), Step::Sleep(ms(4)));
    a.handle_timeout(ms(4));
    assert_eq!(*a.step(), Step::Ask(Order::FirstMember));
    let mut postponed = a.clone();
    postponed.handle_loss(ms(5), ms(4), Loss::Postponed, u64::MAX);
    a.handle_rivals();
    a.handle_loss(ms(6), ms(4), collision(), u64::MAX);
    let mut held = a_try();
    held.handle_loss(ms(2), ms(1), collision(), u64::MAX);
    for over in [a, postponed, held] {
        assert_eq!(*over.step(), Step::GiveUp(GiveUp::Contended));
    }
}

/// The first round of a try whose client has collided is in canonical order, if there are several groups.
#[test]
fn a_try_that_expects_a_collision_asks_one_group_after_another() {
    for (groups, order) in [(2, Order::Canonical { first: 0 }), (1, Order::Parallel)] {
        let mut a = waiting(groups);
        a.expect_collision_of_tries();
        assert_eq!(*a.step(), Step::Ask(order));
    }
}

#[test]
fn what_rivals_give_back_ends_the_pause_after_a_collision() {
    let mut a = five();
    a.handle_listening();
    a.handle_rivals();
    a.handle_loss(ms(101), ms(100), collision(), u64::MAX);
    assert_eq!(*a.step(), Step::Sleep(ms(103)));
    wake_three(&mut a, 102);
    assert_eq!(*a.step(), Step::Ask(Order::FirstMember), "no vote is split");
}

/// One of three clients has had the lock. It leaves two releases to the other clients, unless they do not acquire it.
#[test]
fn one_that_has_had_the_lock_comes_after_those_that_have_not() {
    let mut a = five();
    a.handle_listening();
    a.expect_crowd(2);
    let all = Loss::Refused {
        free_after: Some(Duration::from_millis(900)),
        split: false,
        refused: a.members.all().collect(),
    };
    a.handle_loss(ms(101), ms(100), all.clone(), 0);
    for now in [200, 300] {
        wake_three(&mut a, now);
        assert_eq!(*a.step(), Step::Sleep(ms(now + 4)), "four rounds");
        a.handle_timeout(ms(now + 4));
        assert_eq!(*a.step(), Step::Ask(Order::Parallel));
        a.handle_loss(ms(now + 6), ms(now + 5), all.clone(), 0);
    }
    wake_three(&mut a, 400);
    assert_eq!(*a.step(), Step::Ask(Order::Parallel), "it is its turn");
}

/// In its turn a client usually asks alone. Another round trip before the others are asked would be for nothing.
#[test]
fn a_crowd_that_is_expected_asks_all_members_together() {
    let mut a = five();
    a.handle_listening();
    a.expect_crowd(2);
    a.let_pass(ms(4));
    a.handle_timeout(ms(4));
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
}

#[test]
fn a_collision_that_is_expected_asks_the_first_member_from_the_beginning() {
    let mut a = five();
    a.handle_listening();
    a.expect_crowd(2);
    a.expect_collision();
    a.let_pass(ms(4));
    a.handle_timeout(ms(4));
    assert_eq!(*a.step(), Step::Ask(Order::FirstMember));
    let mut alone = waiting(1);
    alone.expect_crowd(2);
    alone.expect_collision();
    alone.let_pass(ms(4));
    alone.handle_timeout(ms(500));
    assert_eq!(*alone.step(), Step::Ask(Order::Parallel), "one member");
}

#[test]
fn a_silent_first_member_is_not_asked_first_again() {
    let mut a = contended();
    wake_three(&mut a, 200);
    a.handle_loss(ms(700), ms(200), split(), 0);
    a.handle_timeout(Time::NEVER);
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
    let none = Loss::Refused {
        free_after: None,
        split: false,
        refused: a.members.all().collect(),
    };
    a.handle_loss(ms(701), ms(700), none, 0);
    wake_three(&mut a, 702);
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
}

#[test]
fn several_locks_are_asked_one_by_one_after_two_lost_rounds() {
    let mut a = waiting(2);
    let mut orders = Vec::new();
    for _ in 0..4 {
        let Step::Ask(order) = *a.step() else {
            panic!("{:?}", a.step())
        };
        orders.push(order);
        a.handle_loss(ms(0), ms(0), refused(None), 0);
        a.handle_timeout(Time::NEVER);
    }
    let (p, c) = (Order::Parallel, Order::Canonical { first: 0 });
    assert_eq!(orders, [p, p, c, c]);
}
