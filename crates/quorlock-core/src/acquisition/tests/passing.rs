//! Existing subscriptions, letting others pass, and waiting behind the same client.

use super::*;

fn all_refused() -> Loss {
    Loss::Refused {
        free_after: Some(Duration::from_millis(900)),
        split: false,
        refused: five().members.all().collect(),
    }
}

#[test]
fn with_subscriptions_from_before_one_refusal_is_enough() {
    let mut a = five();
    a.handle_listening();
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
    a.handle_loss(ms(1), ms(0), all_refused(), 1);
    assert_eq!(*a.step(), Step::Sleep(ms(902)));
    wake_three(&mut a, 5);
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
}

#[test]
fn others_have_their_time_unless_they_have_released_before() {
    let mut a = five();
    a.handle_listening();
    a.let_pass(ms(4));
    wake_at(&mut a, 1, 0);
    wake_at(&mut a, 1, 1);
    a.handle_timeout(ms(3));
    assert_eq!(*a.step(), Step::Sleep(ms(4)), "a competitor gives back");
    let mut released = a.clone();
    wake_at(&mut released, 3, 2);
    assert_eq!(*released.step(), Step::Ask(Order::Parallel));
    a.handle_timeout(ms(4));
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
    assert_eq!(a.was_passed(), Some(false));
    a.handle_loss(ms(5), ms(4), all_refused(), 1);
    assert_eq!(a.was_passed(), Some(true));
}

#[test]
fn without_subscriptions_it_subscribes_while_others_pass() {
    let mut a = five();
    a.let_pass(ms(4));
    assert_eq!(*a.step(), Step::Listen(ms(4)));
    a.handle_live();
    assert_eq!(*a.step(), Step::BackOff(ms(4)));
    a.handle_timeout(ms(4));
    assert_eq!(*a.step(), Step::Ask(Order::Parallel));
    a.handle_loss(ms(5), ms(4), all_refused(), 1);
    assert!(matches!(a.step(), Step::Sleep(_)), "{:?}", a.step());

    let mut late = five();
    late.let_pass(ms(4));
    late.handle_timeout(ms(4));
    assert_eq!(*late.step(), Step::Ask(Order::Parallel));
}

#[test]
fn one_that_does_not_let_pass_says_so() {
    let mut a = five();
    a.handle_loss(ms(1), ms(0), all_refused(), 1);
    a.handle_live();
    assert_eq!(a.was_passed(), None);
}

/// Suppose 50 waiters of one process: the next one knows that the previous one holds the name.
#[test]
fn the_next_caller_of_a_client_that_has_the_lock_asks_when_it_is_released() {
    let lease = Duration::from_secs(10);
    let mut a = sleeping_at_108();
    wake_three(&mut a, 200);
    a.handle_win(ms(203), ms(200));
    let mut next = a.begin_again(ms(204), lease);
    assert_eq!(
        *next.step(),
        Step::Sleep(ms(2_704)),
        "a quarter of the lease"
    );
    // A message about the previous release arrives late.
    wake_at(&mut next, 205, 3);
    assert_eq!(
        *next.step(),
        Step::Sleep(ms(208)),
        "as long as a round takes"
    );
    wake_at(&mut next, 206, 0);
    wake_at(&mut next, 206, 1);
    assert_eq!(*next.step(), Step::Ask(Order::Parallel));
    let idle = a.begin_again(ms(204), lease * 10);
    assert_eq!(*idle.step(), Step::Sleep(ms(5_204)), "it looks every 5 s");
}

#[test]
fn the_next_caller_subscribes_first_if_the_one_before_did_not_have_to() {
    let lease = Duration::from_secs(10);
    let mut a = five();
    a.handle_win(ms(1), ms(0));
    let mut next = a.begin_again(ms(2), lease);
    assert_eq!(*next.step(), Step::Listen(ms(502)));
    next.handle_live();
    assert_eq!(
        *next.step(),
        Step::Ask(Order::Parallel),
        "it may be released by now"
    );
}

#[test]
fn the_next_caller_asks_at_once_when_the_one_before_has_given_up() {
    let mut a = five();
    a.handle_loss(ms(1), ms(0), Loss::Denied, 0);
    let next = a.begin_again(ms(2), Duration::from_secs(10));
    assert_eq!(*next.step(), Step::Ask(Order::Parallel));
}
