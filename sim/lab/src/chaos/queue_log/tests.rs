//! Tests with reports of a server, in which an owner that overtakes another must be found.

use super::*;
use quorlock_sim_check::{Violation, check_one};
use quorlock_sim_plan::property::Property;
use quorlock_sim_world::history::History;

/// The wall clock of the server, in milliseconds.
const WALL: u64 = 1_764_110_000_000;

fn owner(client: u16) -> String {
    format!("00000000-0000-4000-8000-0000000000{client:02}:1")
}

fn line(after: u64, words: &str) -> String {
    let wall = WALL + after;
    let (seconds, millis) = (wall / 1_000, wall % 1_000);
    format!("+{seconds}.{millis:03}000 [0 lua] {words}")
}

/// An owner gets a place, or keeps it, for this long.
fn waits(log: &mut QueueLog, client: u16, after: u64, keep: u64) {
    let (owner, until) = (owner(client), WALL + after + keep);
    let push = format!("\"RPUSH\" \"redisson_lock_queue:{{lock-0}}\" \"{owner}\"");
    log.hear(0, after, &line(after, &push));
    let alive = format!("\"ZADD\" \"quorlock_lock_alive:{{lock-0}}\" \"{until}\" \"{owner}\"");
    log.hear(0, after, &line(after, &alive));
}

fn is_served(log: &mut QueueLog, client: u16, after: u64) {
    let owner = owner(client);
    log.hear(
        0,
        after,
        &line(after, &format!("\"HSET\" \"lock-0\" \"{owner}\" \"1\"")),
    );
    leaves(log, client, after);
}

fn leaves(log: &mut QueueLog, client: u16, after: u64) {
    let owner = owner(client);
    let remove = format!("\"ZREM\" \"redisson_lock_timeout:{{lock-0}}\" \"{owner}\"");
    log.hear(0, after, &line(after, &remove));
}

fn check(log: &QueueLog) -> Option<Violation> {
    let process_of = |owner: OwnerId| {
        let client = owner.to_string().get(34..36)?.parse().ok()?;
        Some(Process {
            client,
            restarts: 0,
        })
    };
    let history = History {
        names: vec!["lock-0".to_owned()],
        turns: log.answers(process_of),
        ..History::default()
    };
    check_one(Property::Fairness, &history)
}

#[test]
fn owners_that_are_served_in_the_order_of_the_queue_break_nothing() {
    let mut log = QueueLog::default();
    for client in 1..4 {
        waits(&mut log, client, u64::from(client), 1_000);
    }
    for client in 1..4 {
        is_served(&mut log, client, 10 + u64::from(client));
    }
    assert_eq!(check(&log), None);
    assert_eq!(log.ordered(), Some(2));
}

#[test]
fn an_owner_that_overtakes_another_is_found() {
    for has_waited in [true, false] {
        let mut log = QueueLog::default();
        waits(&mut log, 1, 1, 1_000);
        if has_waited {
            waits(&mut log, 2, 2, 1_000);
        }
        is_served(&mut log, 2, 10);
        let story = check(&log).map(|violation| violation.to_string());
        let story = story.expect("client 2 came later");
        assert!(story.contains("client 1"), "{story}");
    }
}

#[test]
fn an_owner_that_is_dead_or_has_left_is_not_overtaken() {
    let mut log = QueueLog::default();
    waits(&mut log, 1, 1, 5);
    waits(&mut log, 2, 2, 1_000);
    is_served(&mut log, 2, 10);
    waits(&mut log, 3, 11, 1_000);
    leaves(&mut log, 3, 12);
    is_served(&mut log, 4, 13);
    assert_eq!(check(&log), None);
}

#[test]
fn a_place_in_the_queue_from_before_the_report_is_not_judged() {
    let mut log = QueueLog::default();
    log.interrupted(0);
    // Client 2 may have entered before client 1.
    waits(&mut log, 1, 1, 1_000);
    is_served(&mut log, 2, 10);
    assert_eq!((check(&log), log.ordered()), (None, Some(0)));
    waits(&mut log, 3, 11, 1_000);
    is_served(&mut log, 3, 12);
    assert!(check(&log).is_some());
}

#[test]
fn queues_begin_again_when_the_server_loses_all_keys() {
    let mut log = QueueLog::default();
    waits(&mut log, 1, 1, 1_000);
    log.hear(0, 5, "+1764110000.000000 [0 127.0.0.1:4000] \"FLUSHALL\"");
    waits(&mut log, 2, 6, 1_000);
    is_served(&mut log, 2, 10);
    assert_eq!(check(&log), None);
}
