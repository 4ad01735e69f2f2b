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
    let mut a = crowded();
    for now in [200, 300, 400] {
        wake_three(&mut a, now);
        assert_eq!(*a.step(), Step::Ask(Order::FirstMember));
        a.handle_loss(ms(now), ms(now), Loss::Postponed, u64::MAX);
    }
    a.handle_timeout(Time::NEVER);
    assert_eq!(
        *a.step(),
        Step::Ask(Order::Parallel),
        "nobody woke it, and the first member may be held for long"
    );
}

#[test]
fn a_crowd_is_not_woken_by_what_a_competitor_gives_back() {
    let mut a = crowded();
    wake_three(&mut a, 200);
    a.handle_loss(ms(200), ms(199), Loss::Postponed, u64::MAX);
    let pause = Step::Sleep(ms(210));
    assert_eq!(*a.step(), pause);
    wake_at(&mut a, 201, 0);
    wake_at(&mut a, 201, 1);
    assert_eq!(*a.step(), pause);
    wake_at(&mut a, 201, 2);
    assert_eq!(*a.step(), Step::Ask(Order::FirstMember));
}

#[test]
fn a_silent_first_member_is_not_asked_first_again() {
    let mut a = crowded();
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
