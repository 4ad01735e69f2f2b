//! Members that can be reached again.

use super::*;

/// Ten rounds have failed, the last of them at 10 s. The random bits make each pause as long as possible.
fn backing_off() -> Acquisition {
    let mut a = waiting(1);
    for _ in 0..9 {
        a.handle_loss(ms(0), ms(0), Loss::NoQuorum, u64::MAX);
        a.handle_timeout(Time::NEVER);
    }
    a.handle_loss(ms(10_000), ms(10_000), Loss::NoQuorum, u64::MAX);
    assert_eq!(*a.step(), Step::BackOff(ms(11_000)));
    a
}

#[test]
fn a_member_that_is_back_is_asked_soon() {
    let mut a = backing_off();
    a.handle_return(ms(10_200), u64::MAX);
    assert_eq!(*a.step(), Step::BackOff(ms(10_300)));
    a.handle_timeout(ms(10_300));
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
}

#[test]
fn a_return_makes_no_pause_longer() {
    let mut a = backing_off();
    a.handle_return(ms(10_990), u64::MAX);
    assert_eq!(*a.step(), Step::BackOff(ms(11_000)));
}

#[test]
fn waiters_do_not_ask_all_at_once_when_a_member_is_back() {
    let mut ends: Vec<Time> = Vec::new();
    for random in [1 << 62, 1 << 63, 3 << 62] {
        let mut a = backing_off();
        a.handle_return(ms(10_200), random);
        ends.push(a.poll_timeout());
    }
    let at = |millis| ms(millis) + Duration::from_nanos(1);
    assert_eq!(ends, [at(10_225), at(10_250), at(10_275)]);
}

#[test]
fn a_member_that_comes_and_goes_is_asked_less_and_less_until_a_quorum_answers() {
    let mut a = backing_off();
    let mut pauses = Vec::new();
    for _ in 0..5 {
        a.handle_return(ms(10_000), u64::MAX);
        pauses.push(a.poll_timeout());
        a.handle_timeout(Time::NEVER);
        a.handle_loss(ms(10_000), ms(10_000), Loss::NoQuorum, u64::MAX);
    }
    assert_eq!(pauses, [10_100, 10_200, 10_400, 10_800, 11_000].map(ms));
    a.handle_timeout(Time::NEVER);
    a.handle_loss(ms(10_000), ms(10_000), refused(None), u64::MAX);
    a.handle_timeout(Time::NEVER);
    a.handle_loss(ms(10_000), ms(10_000), Loss::NoQuorum, u64::MAX);
    a.handle_return(ms(10_000), u64::MAX);
    assert_eq!(*a.step(), Step::BackOff(ms(10_100)));
}

#[test]
fn a_member_that_comes_back_during_a_round_that_fails_is_asked_soon() {
    let mut a = backing_off();
    a.handle_timeout(ms(11_000));
    a.handle_return(ms(11_100), u64::MAX);
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
    a.handle_loss(ms(11_500), ms(11_000), Loss::NoQuorum, u64::MAX);
    assert_eq!(*a.step(), Step::BackOff(ms(11_600)));
    // The return has been used up.
    a.handle_timeout(ms(11_600));
    a.handle_loss(ms(11_600), ms(11_600), Loss::NoQuorum, u64::MAX);
    assert_eq!(*a.step(), Step::BackOff(ms(12_600)));
}

#[test]
fn a_return_ends_no_pause_after_a_collision_and_no_sleep() {
    let mut a = five();
    for _ in 0..3 {
        a.handle_loss(ms(0), ms(0), split(), u64::MAX);
        a.handle_live();
        a.handle_timeout(Time::NEVER);
    }
    a.handle_loss(ms(0), ms(0), split(), u64::MAX);
    let before = a.step().clone();
    assert!(matches!(before, Step::BackOff(_)), "{before:?}");
    a.handle_return(ms(0), 0);
    assert_eq!(*a.step(), before);
    let mut a = sleeping_at_108();
    a.handle_return(ms(200), 0);
    assert_eq!(*a.step(), Step::Sleep(ms(1_009)));
}
