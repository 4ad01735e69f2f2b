use super::*;
use crate::failure::Execution;
use crate::fencing::Token;
use crate::lease::Lease;
use crate::message::Ttl;
use crate::round::{Answer, Round};

const TIMEOUT: Duration = Duration::from_millis(500);

fn three() -> Acquisition {
    waiting_for(vec![Threshold::majority(3)])
}

/// A round of three members, of which those in `answer` answer: the first grants, the others refuse.
fn round(a: &Acquisition, answer: &[usize]) -> Round {
    let lease = Lease::new(Duration::from_secs(10)).unwrap();
    let round = Round::new(ms(0), a.members.clone(), lease, TIMEOUT, Order::Parallel);
    let mut round = round.without_waiting_for(a.mute());
    let ids: Vec<_> = std::iter::from_fn(|| round.next_ask(ms(0))).collect();
    for index in answer {
        let answer = match index {
            0 => Answer::Granted(Token(1)),
            _ => Answer::Refused(Ttl::Millis(900)),
        };
        round.handle_answer(ms(1), ids[*index], answer);
    }
    round
}

fn timed_out(a: &Acquisition, answer: &[usize]) -> Round {
    let mut round = round(a, answer);
    round.handle_timeout(ms(500));
    round
}

#[test]
fn a_member_that_let_a_round_run_out_of_time_is_not_waited_for_in_the_next_rounds() {
    let mut a = three();
    assert!(a.mute().is_empty());
    a.handle_silence(&timed_out(&a, &[0, 1]));
    for _ in 0..4 {
        assert_eq!(a.mute(), a.members.all().skip(2).collect::<Vec<_>>());
        a.handle_silence(&round(&a, &[0, 1]));
    }
    assert!(a.mute().is_empty(), "it is waited for again");
}

/// The connection of the third member gives up the request before the round does.
#[test]
fn a_member_whose_reply_is_lost_is_not_waited_for_either() {
    let mut a = three();
    let mut round = round(&a, &[0, 1]);
    let third: Vec<_> = a.members.all().skip(2).collect();
    round.handle_answer(ms(499), third[0], Answer::Failed(Execution::Indeterminate));
    a.handle_silence(&round);
    assert_eq!(a.mute(), third);
    let mut round = self::round(&a, &[0, 1]);
    round.handle_answer(ms(2), third[0], Answer::Failed(Execution::Definite));
    a.handle_silence(&round);
    assert!(a.mute().is_empty(), "it says so at once");
    // It was cut off, and its transport has tried to connect for a while.
    let mut round = self::round(&a, &[0, 1]);
    round.handle_answer(ms(150), third[0], Answer::Failed(Execution::Definite));
    a.handle_silence(&round);
    assert_eq!(a.mute(), third);
}

#[test]
fn a_member_that_answers_is_waited_for_again() {
    let mut a = three();
    a.handle_silence(&timed_out(&a, &[0, 1]));
    a.handle_silence(&round(&a, &[1, 2]));
    assert!(a.mute().is_empty());
}

/// Both nodes that answer refuse, so the round is lost before the third one could answer.
#[test]
fn a_round_that_is_lost_without_a_member_says_nothing_of_it() {
    let mut a = three();
    let two_refuse = [1, 2];
    a.handle_silence(&round(&a, &two_refuse));
    assert!(a.mute().is_empty());
    a.handle_silence(&timed_out(&a, &[0, 2]));
    for _ in 0..100 {
        let mut round = Round::new(
            ms(0),
            a.members.clone(),
            Lease::new(Duration::from_secs(10)).unwrap(),
            TIMEOUT,
            Order::FirstMember,
        )
        .without_waiting_for(a.mute());
        let first = round.next_ask(ms(0)).unwrap();
        round.handle_answer(ms(1), first, Answer::Refused(Ttl::Millis(900)));
        a.handle_silence(&round);
    }
    assert_eq!(a.mute(), member(1));
}
