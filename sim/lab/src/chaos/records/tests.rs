//! Tests with possible reports of clients, in which violations must be found.

use super::*;
use crate::chaos::other_library::SharedWith;
use crate::chaos::verdict::{Observed, Vacuous};
use quorlock_sim_world::history::Access;

const BEGAN: u64 = 1_000;

fn process(client: u16) -> Process {
    Process {
        client,
        restarts: 0,
    }
}

fn records() -> Records {
    Records::new(BEGAN, vec!["lock-0".to_owned(), "lock-1".to_owned()])
}

/// Records a hold of the first name, from when it was won to the last check that found it held.
fn hold(records: &mut Records, client: u16, token: u64, (won, believed, left): (u64, u64, u64)) {
    let said = ClientReport::Won(WonHold {
        hold: 1,
        kind: HoldKind::Lock,
        names: vec![WonName { name: 0, token }],
        owner: format!("00000000-0000-4000-8000-0000000000{client:02}:1"),
        invoked: BEGAN + won - 5,
        won: BEGAN + won,
        access: Access::Alone,
        believed: Some(BEGAN + won),
    });
    records.hear(process(client), said, BEGAN + won);
    let believed = ClientReport::Believed {
        hold: 1,
        at: BEGAN + believed,
    };
    records.hear(process(client), believed, BEGAN + left);
    let at = BEGAN + left;
    records.hear(process(client), ClientReport::Left { hold: 1, at }, at);
}

fn observed(records: &mut Records) -> Observed {
    Observed::of(&records.end(BEGAN + 10_000), records.run_began())
}

#[test]
fn holds_one_after_the_other_break_nothing() {
    let mut records = records();
    hold(&mut records, 0, 5, (10, 20, 21));
    hold(&mut records, 1, 6, (30, 40, 41));
    let observed = observed(&mut records);
    assert_eq!(
        (observed.holds, observed.hand_overs, observed.overlaps),
        (2, 1, 0)
    );
    assert_eq!((&observed.exclusion, &observed.fencing), (&None, &None));
}

#[test]
fn holds_from_before_the_run_are_judged_and_not_counted() {
    let mut records = records();
    hold(&mut records, 0, 5, (10, 40, 41));
    hold(&mut records, 1, 6, (30, 50, 51));
    records.begin_run(BEGAN + 60);
    hold(&mut records, 0, 7, (70, 80, 81));
    let observed = observed(&mut records);
    assert_eq!((observed.holds, observed.hand_overs), (1, 0));
    assert_eq!(observed.overlaps, 1);
    assert!(observed.exclusion.is_some());
}

#[test]
fn two_that_believe_at_a_time_are_noticed() {
    let mut records = records();
    hold(&mut records, 0, 5, (10, 40, 41));
    hold(&mut records, 1, 6, (30, 50, 51));
    let observed = observed(&mut records);
    assert_eq!((observed.overlaps, observed.met_inside), (1, 1));
    assert!(
        observed
            .exclusion
            .is_some_and(|broke| broke.story.contains("client 1 won it"))
    );
}

#[test]
fn one_that_was_stopped_inside_and_believes_nothing_meets_another_and_breaks_nothing() {
    let mut records = records();
    hold(&mut records, 0, 5, (10, 20, 60));
    hold(&mut records, 1, 6, (30, 50, 51));
    let observed = observed(&mut records);
    assert_eq!((observed.overlaps, observed.met_inside), (0, 1));
    assert_eq!(observed.exclusion, None);
}

#[test]
fn tokens_that_repeat_or_go_back_are_noticed() {
    for second in [5, 4] {
        let mut records = records();
        hold(&mut records, 0, 5, (10, 20, 21));
        hold(&mut records, 1, second, (30, 40, 41));
        assert!(observed(&mut records).fencing.is_some(), "{second}");
    }
}

#[test]
fn a_write_that_replaces_what_was_not_read_is_noticed_and_counted() {
    let mut records = records();
    let won = |client: u16, token: u64| {
        ClientReport::Won(WonHold {
            hold: 1,
            kind: HoldKind::Lock,
            names: vec![WonName { name: 0, token }],
            owner: format!("00000000-0000-4000-8000-0000000000{client:02}:1"),
            invoked: BEGAN,
            won: BEGAN + token,
            access: Access::Alone,
            believed: None,
        })
    };
    for client in [0, 1] {
        records.hear(process(client), won(client, 5), BEGAN + 10);
    }
    let read = ClientReport::Read {
        hold: 1,
        name: 0,
        token: 5,
    };
    let stands = records.hear(process(0), read.clone(), BEGAN + 20);
    assert!(matches!(
        stands,
        Some(ConductorReply::Stands { at: 20, count: 0 })
    ));
    records.hear(process(1), read, BEGAN + 21);
    for (client, at) in [(0, 30), (1, 40)] {
        let write = ClientReport::Write {
            hold: 1,
            name: 0,
            token: 5,
            read_at: 20,
            count: 1,
        };
        let told = records.hear(process(client), write, BEGAN + at);
        assert!(matches!(told, Some(ConductorReply::Taken)));
    }
    assert_eq!(records.lost_updates(), 1);
    assert!(observed(&mut records).usage.is_some());
}

#[test]
fn the_store_refuses_a_token_smaller_than_it_has_seen() {
    let mut records = records();
    let read = |token| ClientReport::Read {
        hold: 1,
        name: 0,
        token,
    };
    records.hear(process(0), read(7), BEGAN);
    let told = records.hear(process(1), read(6), BEGAN);
    assert!(matches!(told, Some(ConductorReply::Refused)));
}

#[test]
fn a_process_that_is_gone_is_inside_no_more_and_a_fault_counts_while_one_is() {
    let mut records = records();
    let won = ClientReport::Won(WonHold {
        hold: 1,
        kind: HoldKind::Lock,
        names: vec![WonName { name: 1, token: 0 }],
        owner: String::new(),
        invoked: BEGAN,
        won: BEGAN + 10,
        access: Access::Alone,
        believed: Some(BEGAN + 10),
    });
    records.hear(process(3), won, BEGAN + 10);
    assert_eq!(
        (records.holder(None), records.holder(Some(0))),
        (Some(3), None)
    );
    records.began(0, None, BEGAN + 20);
    records.gone(process(3), BEGAN + 30);
    assert_eq!(records.holder(None), None);
    records.began(1, None, BEGAN + 40);
    assert_eq!(observed(&mut records).during_holds, 1);
}

#[test]
fn a_claim_that_stays_is_noticed() {
    let mut records = records();
    records.left_over(2, 0);
    assert!(observed(&mut records).orphans.is_some());
}

/// Records a hold of several names, or of one as leader, that was believed from the beginning to the end.
fn held(
    records: &mut Records,
    client: u16,
    (kind, access): (HoldKind, Access),
    names: &[(u16, u64)],
    (won, left): (u64, u64),
) {
    let names = names.iter();
    let said = ClientReport::Won(WonHold {
        hold: 1,
        kind,
        names: names
            .map(|(name, token)| WonName {
                name: *name,
                token: *token,
            })
            .collect(),
        owner: format!("00000000-0000-4000-8000-0000000000{client:02}:1"),
        invoked: BEGAN + won - 5,
        won: BEGAN + won,
        access,
        believed: Some(BEGAN + won),
    });
    records.hear(process(client), said, BEGAN + won);
    let at = BEGAN + left;
    records.hear(process(client), ClientReport::Believed { hold: 1, at }, at);
    records.hear(process(client), ClientReport::Left { hold: 1, at }, at);
}

#[test]
fn every_name_of_a_hold_of_several_excludes_the_others() {
    let several = (HoldKind::Lock, Access::Alone);
    for (second, overlaps) in [(0, 1), (1, 1)] {
        let mut records = records();
        held(&mut records, 0, several, &[(0, 5), (1, 5)], (10, 40));
        held(&mut records, 1, several, &[(second, 6)], (30, 50));
        let observed = observed(&mut records);
        assert_eq!((observed.holds, observed.overlaps), (2, overlaps));
        assert!(observed.exclusion.is_some());
    }
    let mut records = records();
    held(&mut records, 0, several, &[(0, 5)], (10, 40));
    held(&mut records, 1, several, &[(1, 6)], (30, 50));
    assert_eq!(observed(&mut records).exclusion, None);
}

#[test]
fn leaders_at_the_same_time_and_terms_that_do_not_grow_are_noticed() {
    let leads = (HoldKind::Leadership, Access::Alone);
    let of = |second: u64, won: u64| {
        let mut records = records();
        held(&mut records, 0, leads, &[(0, 5)], (10, 40));
        held(&mut records, 1, leads, &[(0, second)], (won, 60));
        let observed = observed(&mut records);
        assert_eq!((observed.hand_overs, observed.holds), (1, 2));
        (observed.exclusion.is_some(), observed.fencing.is_some())
    };
    assert_eq!(of(6, 41), (false, false));
    assert_eq!(of(6, 30), (true, false));
    assert_eq!(of(5, 41), (false, true));
}

#[test]
fn a_leader_without_terms_is_judged_by_exclusion_alone() {
    let leads = (HoldKind::Leadership, Access::Alone);
    let mut records = records();
    held(&mut records, 0, leads, &[(0, 0)], (10, 40));
    held(&mut records, 1, leads, &[(0, 0)], (30, 60));
    let observed = observed(&mut records);
    assert_eq!(observed.fencing, None);
    assert!(observed.exclusion.is_some());
}

#[test]
fn a_fault_strikes_a_leader_until_its_process_is_gone() {
    let mut records = records();
    let said = ClientReport::Won(WonHold {
        hold: 1,
        kind: HoldKind::Leadership,
        names: vec![WonName { name: 1, token: 7 }],
        owner: String::new(),
        invoked: BEGAN,
        won: BEGAN + 10,
        access: Access::Alone,
        believed: Some(BEGAN + 10),
    });
    records.hear(process(3), said, BEGAN + 10);
    assert_eq!(records.holder(Some(1)), Some(3));
    records.began(0, None, BEGAN + 20);
    records.gone(process(3), BEGAN + 30);
    assert_eq!(records.holder(None), None);
    records.began(1, None, BEGAN + 40);
    assert_eq!(observed(&mut records).during_holds, 1);
}

#[test]
fn readers_meet_and_break_nothing_and_a_writer_beside_them_is_noticed() {
    let of = |first: Access, second: Access| {
        let mut records = records();
        held(
            &mut records,
            0,
            (HoldKind::Lock, first),
            &[(0, 5)],
            (10, 40),
        );
        held(
            &mut records,
            1,
            (HoldKind::Lock, second),
            &[(0, 6)],
            (30, 50),
        );
        let observed = observed(&mut records);
        assert_eq!(observed.overlaps != 0, observed.exclusion.is_some());
        observed.overlaps
    };
    assert_eq!(of(Access::Read, Access::Read), 0);
    assert_eq!(of(Access::Read, Access::Write), 1);
    assert_eq!(of(Access::Write, Access::Read), 1);
    assert_eq!(of(Access::Write, Access::Write), 1);
}

#[test]
fn a_client_that_cannot_read_the_clock_is_told_the_time_of_its_question() {
    let told = records().hear(process(1), ClientReport::Now, BEGAN + 30);
    let at = BEGAN + 30;
    assert!(matches!(told, Some(ConductorReply::Now { at: told }) if told == at));
}

#[test]
fn a_run_with_two_libraries_needs_hand_overs_in_both_directions() {
    let shared = SharedWith {
        holds: 50,
        to_them: 10,
        to_us: 10,
        overlaps: 0,
    };
    let vacuous = |beside| {
        let observed = Observed {
            seconds: 60,
            holds: 100,
            hand_overs: 80,
            faults: 60,
            during_holds: 30,
            beside: Some(beside),
            ..Observed::default()
        };
        observed.vacuous()
    };
    assert_eq!(vacuous(shared), None);
    for less in [
        |shared: &mut SharedWith| shared.holds = 9,
        |shared: &mut SharedWith| shared.holds = 91,
        |shared: &mut SharedWith| shared.to_them = 9,
        |shared: &mut SharedWith| shared.to_us = 9,
    ] {
        let mut shared = shared;
        less(&mut shared);
        assert_eq!(vacuous(shared), Some(Vacuous::Beside));
    }
}
