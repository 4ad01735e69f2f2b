use super::*;
use crate::fencing::Token;
use crate::message::Ttl;
use crate::quorum::Threshold;

const TIMEOUT: Duration = Duration::from_millis(500);

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn round(groups: &[Threshold], order: Order) -> Round {
    let members = Arc::new(Members::new(groups.iter().copied()));
    let lease = Lease::new(Duration::from_secs(10)).unwrap();
    Round::new(ms(0), members, lease, TIMEOUT, order)
}

fn ask_all(round: &mut Round, now: Time) -> Vec<MemberId> {
    std::iter::from_fn(|| round.next_ask(now)).collect()
}

fn granted() -> Answer {
    Answer::Granted(Token(1))
}

fn refused(millis: u64) -> Answer {
    Answer::Refused(Ttl::Millis(millis))
}

#[test]
fn a_majority_in_time_wins_before_the_rest_has_answered() {
    let mut round = round(&[Threshold::majority(5)], Order::Parallel);
    let ids = ask_all(&mut round, ms(0));
    assert_eq!(ids.len(), 5);
    for id in ids.iter().take(2) {
        round.handle_answer(ms(1), *id, granted());
    }
    assert_eq!(round.outcome(ms(1)), Outcome::Pending);
    round.handle_answer(ms(1), ids[2], granted());
    assert_eq!(round.outcome(ms(1)), Outcome::Won);
    assert_eq!(round.terms().valid_until(), ms(9_898));
    assert!(round.may_hold(ids[4]));
}

/// Two nodes are down and fail at once, and the first of the others refuses: the round cannot be won. The last two
/// decide whether the lock is waited for or too few nodes answer.
#[test]
fn a_refusal_beside_a_dead_minority_is_contention_if_the_others_answer() {
    let mut round = round(&[Threshold::majority(5)], Order::Parallel);
    let ids = ask_all(&mut round, ms(0));
    for id in ids.iter().take(2) {
        round.handle_answer(ms(0), *id, Answer::Failed(Execution::Definite));
    }
    assert_eq!(round.outcome(ms(0)), Outcome::Pending);
    round.handle_answer(ms(1), ids[4], refused(9_000));
    assert_eq!(round.outcome(ms(1)), Outcome::Pending);
    round.handle_answer(ms(2), ids[3], granted());
    assert_eq!(round.outcome(ms(2)), Outcome::Pending);

    let mut answered = round.clone();
    answered.handle_answer(ms(3), ids[2], granted());
    let outcome = answered.outcome(ms(3));
    assert!(
        matches!(&outcome, Outcome::Lost(Loss::Refused { refused, split: true, .. }) if *refused == [ids[4]]),
        "{outcome:?}"
    );

    let mut failed = round.clone();
    failed.handle_answer(ms(3), ids[2], Answer::Failed(Execution::Definite));
    assert_eq!(failed.outcome(ms(3)), Outcome::Lost(Loss::NoQuorum));

    round.handle_timeout(ms(500));
    assert_eq!(round.outcome(ms(500)), Outcome::Lost(Loss::NoQuorum));
}

/// Node 2 let a round run out of time. In the next one node 0 grants and node 1 refuses. The grant is given back at
/// once, and a competitor with the opposite result gives back its grant too.
#[test]
fn a_split_vote_is_not_up_to_a_member_that_was_silent_before() {
    let mut before = round(&[Threshold::majority(3)], Order::Parallel);
    let ids = ask_all(&mut before, ms(0));
    before.handle_answer(ms(1), ids[0], granted());
    before.handle_answer(ms(1), ids[1], refused(900));
    assert_eq!(before.outcome(ms(1)), Outcome::Pending);
    assert!(before.is_healthy());
    let split = Outcome::Lost(Loss::Refused {
        free_after: Some(Duration::from_millis(900)),
        split: true,
        refused: vec![ids[1]],
    });
    for mute in [vec![ids[2]], vec![ids[1], ids[2]], vec![ids[1]], vec![]] {
        let mut round =
            round(&[Threshold::majority(3)], Order::Parallel).without_waiting_for(&mute);
        ask_all(&mut round, ms(0));
        round.handle_answer(ms(1), ids[0], granted());
        assert_eq!(
            round.outcome(ms(1)),
            Outcome::Pending,
            "nothing is in the way"
        );
        round.handle_answer(ms(1), ids[1], refused(900));
        let is_lost = mute.contains(&ids[2]);
        let expected = if is_lost { &split } else { &Outcome::Pending };
        assert_eq!(round.outcome(ms(1)), *expected, "{mute:?}");
        assert_eq!(round.is_silent(ids[2]), is_lost);
        assert_eq!(round.is_healthy(), !is_lost);
        assert!(round.may_hold(ids[2]), "it was asked");
        round.handle_answer(ms(2), ids[2], granted());
        assert_eq!(round.outcome(ms(2)), Outcome::Won, "it answered in time");
    }
}

/// One of three nodes refuses, and both others may be dead. That does not prove that there is a holder, so the round is
/// not lost as refused.
#[test]
fn a_refusal_alone_does_not_end_a_round_whose_others_were_silent_before() {
    let ids: Vec<_> = Members::new([Threshold::majority(3)]).all().collect();
    let mut round = round(&[Threshold::majority(3)], Order::Parallel).without_waiting_for(&ids);
    ask_all(&mut round, ms(0));
    round.handle_answer(ms(1), ids[0], refused(900));
    assert_eq!(round.outcome(ms(1)), Outcome::Pending);
}

#[test]
fn refusals_that_leave_no_threshold_end_a_round_at_once() {
    let mut round = round(&[Threshold::majority(5)], Order::Parallel);
    let ids = ask_all(&mut round, ms(0));
    for id in &ids[..3] {
        assert_eq!(round.outcome(ms(1)), Outcome::Pending);
        round.handle_answer(ms(1), *id, refused(9_000));
    }
    assert!(matches!(
        round.outcome(ms(1)),
        Outcome::Lost(Loss::Refused { split: false, .. })
    ));
}

#[test]
fn a_majority_that_comes_after_the_lease_is_too_slow() {
    let mut round = round(&[Threshold::majority(3)], Order::Parallel);
    for id in ask_all(&mut round, ms(0)) {
        round.handle_answer(ms(9_898), id, granted());
    }
    assert_eq!(round.outcome(ms(9_897)), Outcome::Won);
    assert_eq!(round.outcome(ms(9_898)), Outcome::Lost(Loss::TooSlow));
}

#[test]
fn the_vote_of_a_quarantined_member_is_not_counted_but_its_claim_is_given_back() {
    let mut round = round(&[Threshold::majority(3)], Order::Parallel);
    let ids = ask_all(&mut round, ms(0));
    round.handle_answer(ms(1), ids[0], granted());
    let left = Some(Duration::from_millis(699));
    round.handle_answer(ms(1), ids[1], Answer::Quarantined(left));
    assert_eq!(round.outcome(ms(1)), Outcome::Pending);
    round.handle_answer(ms(1), ids[2], Answer::Quarantined(None));
    let until = Some(ms(700));
    assert_eq!(
        round.outcome(ms(1)),
        Outcome::Lost(Loss::Quarantined { until })
    );
    assert!(ids.iter().all(|id| round.may_hold(*id)));
    assert!(!round.has_granted(ids[1]) && round.is_quarantined(ids[1]));
}

#[test]
fn one_member_that_never_will_is_no_reason_to_give_up_and_a_threshold_out_of_reach_is() {
    for (denied, loss) in [(1, Loss::NoQuorum), (2, Loss::NoQuorum), (3, Loss::Denied)] {
        let mut round = round(&[Threshold::majority(5)], Order::Parallel);
        for (index, id) in ask_all(&mut round, ms(0)).into_iter().enumerate() {
            if index < denied {
                round.handle_denied(ms(1), id, Execution::Definite);
            } else {
                round.handle_answer(ms(1), id, Answer::Failed(Execution::Definite));
            }
        }
        assert_eq!(round.outcome(ms(1)), Outcome::Lost(loss), "{denied}");
    }
}

#[test]
fn quarantine_and_silence_together_are_no_quorum() {
    let mut round = round(&[Threshold::majority(3)], Order::Parallel);
    let ids = ask_all(&mut round, ms(0));
    let left = Some(Duration::from_millis(699));
    round.handle_answer(ms(1), ids[0], Answer::Quarantined(left));
    for id in &ids[1..] {
        round.handle_answer(ms(1), *id, Answer::Failed(Execution::Definite));
    }
    assert_eq!(round.outcome(ms(1)), Outcome::Lost(Loss::NoQuorum));
}

/// Every combination of the answers of three members. Checks the verdict, which members must be released, and that a
/// lost round is "refused" only if refusals alone decided it.
#[test]
fn every_combination_of_three_answers() {
    let answers = [
        None,
        Some(granted()),
        Some(refused(100)),
        Some(Answer::Failed(Execution::Definite)),
        Some(Answer::Failed(Execution::Indeterminate)),
    ];
    for code in 0..125usize {
        let given = [0, 1, 2].map(|i: u32| answers[code / 5usize.pow(i) % 5]);
        let mut round = round(&[Threshold::majority(3)], Order::Parallel);
        let ids = ask_all(&mut round, ms(0));
        for (id, answer) in ids.iter().zip(given) {
            if let Some(answer) = answer {
                round.handle_answer(ms(1), *id, answer);
            }
        }
        let count = |f: fn(&Answer) -> bool| given.iter().flatten().filter(|a| f(a)).count();
        let grants = count(|a| matches!(a, Answer::Granted(_)));
        let refusals = count(|a| matches!(a, Answer::Refused(_)));
        let failures = count(|a| matches!(a, Answer::Failed(_)));
        round.handle_timeout(ms(500));
        match round.outcome(ms(500)) {
            Outcome::Won => assert!(2 <= grants),
            Outcome::Lost(Loss::Refused { split, .. }) => {
                assert!(2 <= refusals || (0 < refusals && 2 <= refusals + grants));
                assert_eq!(split, 0 < grants);
            }
            Outcome::Lost(Loss::NoQuorum) => assert!(grants + refusals < 2 || refusals == 0),
            other => panic!("{other:?} {given:?} {failures}"),
        }
        for (id, answer) in ids.iter().zip(given) {
            let silent_or_granted = !matches!(
                answer,
                Some(Answer::Refused(_) | Answer::Failed(Execution::Definite))
            );
            assert_eq!(round.may_hold(*id), silent_or_granted);
        }
    }
}

#[test]
fn a_refused_round_says_when_a_threshold_will_be_free() {
    let mut round = round(&[Threshold::majority(5)], Order::Parallel);
    let ids = ask_all(&mut round, ms(0));
    let answers = [
        granted(),
        refused(300),
        refused(100),
        refused(200),
        granted(),
    ];
    for (id, answer) in ids.iter().zip(answers) {
        round.handle_answer(ms(1), *id, answer);
    }
    assert_eq!(
        round.outcome(ms(1)),
        Outcome::Lost(Loss::Refused {
            free_after: Some(Duration::from_millis(100)),
            split: true,
            refused: vec![ids[1], ids[2], ids[3]],
        })
    );
}

/// All of three nodes are needed: one is busy, one refuses for 77 ms, one has not answered. A waiter that assumed the
/// silent node to be held for ever would sleep far beyond the end of the claim.
#[test]
fn a_member_that_did_not_answer_is_not_taken_for_held_for_ever() {
    let mut round = round(&[Threshold::all(3)], Order::Parallel);
    let ids = ask_all(&mut round, ms(0));
    round.handle_answer(ms(1), ids[0], Answer::Failed(Execution::Definite));
    round.handle_answer(ms(1), ids[2], refused(77));
    let outcome = round.outcome(ms(1));
    let Outcome::Lost(Loss::Refused { free_after, .. }) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(free_after, Some(Duration::from_millis(77)));
}

#[test]
fn a_claim_without_expiry_is_free_at_no_foreseeable_time() {
    let mut round = round(&[Threshold::all(1)], Order::Parallel);
    let ids = ask_all(&mut round, ms(0));
    round.handle_answer(ms(1), ids[0], Answer::Refused(Ttl::Unbounded));
    assert_eq!(
        round.outcome(ms(1)),
        Outcome::Lost(Loss::Refused {
            free_after: None,
            split: false,
            refused: ids,
        })
    );
}

#[test]
fn the_first_member_decides_who_asks_the_rest() {
    let fresh = || round(&[Threshold::majority(3)], Order::FirstMember);
    let mut lucky = fresh();
    let first = ask_all(&mut lucky, ms(0));
    assert_eq!(first.len(), 1);
    lucky.handle_answer(ms(1), first[0], granted());
    assert_eq!(ask_all(&mut lucky, ms(1)).len(), 2);

    let mut postponed = fresh();
    let first = ask_all(&mut postponed, ms(0));
    postponed.handle_answer(ms(1), first[0], refused(9));
    assert_eq!(postponed.outcome(ms(1)), Outcome::Lost(Loss::Postponed));

    let mut silent = fresh();
    assert_eq!(ask_all(&mut silent, ms(0)).len(), 1);
    silent.handle_timeout(ms(500));
    assert_eq!(ask_all(&mut silent, ms(500)).len(), 2);
    assert_eq!(silent.poll_timeout(), ms(1_000));
}

/// While the first of five members is down, the second one decides.
#[test]
fn a_first_member_that_fails_is_replaced_by_the_next_one() {
    let mut failing = round(&[Threshold::majority(5)], Order::FirstMember);
    let first = ask_all(&mut failing, ms(0));
    let down = Answer::Failed(Execution::Definite);
    failing.handle_answer(ms(1), first[0], down);
    let second = ask_all(&mut failing, ms(1));
    assert_eq!(second.len(), 1);
    assert_eq!(failing.poll_timeout(), ms(501));

    let mut postponed = failing.clone();
    postponed.handle_answer(ms(2), second[0], refused(9));
    assert_eq!(postponed.outcome(ms(2)), Outcome::Lost(Loss::Postponed));

    let mut lucky = failing.clone();
    lucky.handle_answer(ms(2), second[0], granted());
    assert_eq!(ask_all(&mut lucky, ms(2)).len(), 3);

    failing.handle_timeout(ms(501));
    assert_eq!(ask_all(&mut failing, ms(501)).len(), 3);
}

#[test]
fn canonical_order_asks_for_the_next_lock_when_it_has_the_one_before() {
    let groups = [Threshold::all(1), Threshold::majority(3)];
    let mut round = round(&groups, Order::Canonical { first: 0 });
    let first = ask_all(&mut round, ms(0));
    assert_eq!(first.len(), 1);
    round.handle_answer(ms(1), first[0], granted());
    let rest = ask_all(&mut round, ms(1));
    assert_eq!(rest.len(), 3);
    round.handle_answer(ms(2), rest[0], refused(5));
    round.handle_answer(ms(2), rest[1], refused(5));
    assert!(matches!(
        round.outcome(ms(2)),
        Outcome::Lost(Loss::Refused { split: false, .. })
    ));
    assert!(round.may_hold(first[0]) && round.may_hold(rest[2]));
}

#[test]
fn any_group_can_be_asked_before_the_rest() {
    let groups = [1, 3, 1, 2].map(Threshold::all);
    for (first, orders) in [
        (0, [&[0][..], &[1, 2, 3], &[4], &[5, 6]]),
        (1, [&[1, 2, 3], &[0], &[4], &[5, 6]]),
        (2, [&[4], &[0], &[1, 2, 3], &[5, 6]]),
        (3, [&[5, 6], &[0], &[1, 2, 3], &[4]]),
    ] {
        let mut round = round(&groups, Order::Canonical { first });
        for expected in orders {
            let asked = ask_all(&mut round, ms(0));
            let places: Vec<_> = asked.iter().map(|member| member.index()).collect();
            assert_eq!(places, expected, "{first}");
            for member in asked {
                assert_eq!(round.outcome(ms(0)), Outcome::Pending);
                round.handle_answer(ms(0), member, granted());
            }
        }
        assert_eq!(round.outcome(ms(0)), Outcome::Won);
    }
}

#[test]
fn a_lock_of_another_mode_is_named_if_it_is_in_the_way() {
    for third in [granted(), refused(5)] {
        let mut round = round(&[Threshold::majority(3)], Order::Parallel);
        let ids = ask_all(&mut round, ms(0));
        round.handle_answer(ms(1), ids[0], granted());
        round.handle_answer(ms(1), ids[1], Answer::OtherMode(Mode::Write));
        round.handle_answer(ms(1), ids[2], third);
        let expected = if third == granted() {
            Outcome::Won
        } else {
            Outcome::Lost(Loss::OtherMode(Mode::Write))
        };
        assert_eq!(round.outcome(ms(1)), expected);
        assert!(round.may_hold(ids[0]) && !round.may_hold(ids[1]));
    }
}

fn owner(number: u64) -> OwnerId {
    OwnerId {
        client: crate::owner::ClientId::from_random(7),
        number,
    }
}

/// A round with five members. For each owner and number, this many members refuse and name the owner; the others grant.
fn refused_for(owners: &[(usize, u64)]) -> Round {
    let mut round = round(&[Threshold::majority(5)], Order::Parallel);
    let mut ids = ask_all(&mut round, ms(0)).into_iter();
    for (members, number) in owners {
        for id in ids.by_ref().take(*members) {
            round.handle_owner(id, owner(*number));
            round.handle_answer(ms(1), id, refused(9_000));
        }
    }
    for id in ids {
        round.handle_answer(ms(1), id, granted());
    }
    round
}

#[test]
fn a_holder_of_a_bare_majority_that_is_named_splits_no_vote() {
    for (owners, is_split, has_rivals) in [
        (&[(3, 1)][..], false, false),
        (&[(3, 1), (2, 2)], false, false),
        (&[(3, 1), (1, 2)], false, false),
        (&[(2, 1), (2, 2)], true, true),
        (&[(2, 1), (2, 2), (1, 3)], false, true),
        (&[(5, 1)], false, false),
    ] {
        let round = refused_for(owners);
        assert_eq!(round.has_rivals(), has_rivals, "{owners:?}");
        assert!(
            matches!(round.outcome(ms(1)), Outcome::Lost(Loss::Refused { split, .. }) if split == is_split),
            "{owners:?}: {:?}",
            round.outcome(ms(1))
        );
    }
    assert_eq!(refused_for(&[(2, 1)]).outcome(ms(1)), Outcome::Won);
}

/// A may have 1, and is refused at 2. If all groups refuse, or the others were not asked, there is no sign of a collision.
#[test]
fn a_round_that_wins_only_some_of_its_groups_is_divided() {
    for (order, first, second, is_divided) in [
        (Order::Parallel, Some(granted()), Some(refused(9)), true),
        (Order::Parallel, None, Some(refused(9)), true),
        (Order::Parallel, Some(refused(9)), Some(refused(9)), false),
        (Order::Canonical { first: 0 }, Some(refused(9)), None, false),
        (
            Order::Canonical { first: 0 },
            Some(granted()),
            Some(refused(9)),
            true,
        ),
    ] {
        let mut round = round(&[Threshold::all(1); 2], order);
        let mut ids = ask_all(&mut round, ms(0));
        for (place, answer) in [first, second].into_iter().enumerate() {
            if let (Some(id), Some(answer)) = (ids.get(place).copied(), answer) {
                round.handle_answer(ms(1), id, answer);
            }
            ids.extend(ask_all(&mut round, ms(1)));
        }
        assert_eq!(round.is_divided(), is_divided, "{order:?}, {first:?}");
    }
}

/// The members are asked at 0, 100 and 200 ms.
#[test]
fn a_withdrawn_vote_leaves_neither_a_grant_nor_a_term_but_a_claim() {
    let mut round = round(&[Threshold::majority(3)], Order::Parallel);
    let ids = [0, 100, 200].map(|at| round.next_ask(ms(at)).unwrap());
    round.withdraw_vote(ms(200), ids[0]);
    assert!(round.is_unanswered(ids[0]), "it has not voted");
    round.handle_answer(ms(201), ids[0], granted());
    round.handle_answer(ms(201), ids[2], granted());
    assert_eq!(round.outcome(ms(201)), Outcome::Won);
    round.withdraw_vote(ms(201), ids[2]);
    assert_eq!(round.outcome(ms(201)), Outcome::Pending);
    assert!(round.may_hold(ids[2]));
    round.handle_answer(ms(202), ids[1], granted());
    assert_eq!(round.outcome(ms(202)), Outcome::Won);
    assert_eq!(round.terms().valid_until(), ms(9_898));
}
