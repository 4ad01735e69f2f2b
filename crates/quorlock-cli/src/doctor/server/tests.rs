use std::collections::BTreeMap;
use std::time::Duration;

use quorlock::operate::{ClockFacts, RightsTold, SlowCommand};

use super::*;

const LIMITS: Limits = Limits {
    needed: 1,
    is_watched: false,
    lease: Duration::from_secs(30),
    member_timeout: Duration::from_millis(1_500),
    longest_lease: Duration::from_secs(60),
    clock_margin: Duration::ZERO,
};

const SINGLE: Setting<'static> = Setting {
    of: 1,
    limits: &LIMITS,
    is_usable: true,
    is_of_cluster: false,
    is_of_group: false,
    is_tried: true,
};

const WATCHED: Limits = Limits {
    needed: 2,
    is_watched: true,
    clock_margin: Duration::from_secs(60),
    ..LIMITS
};

const MAJORITY: Setting<'static> = Setting {
    of: 3,
    limits: &WATCHED,
    ..SINGLE
};

/// A server that says these lines beside those of a healthy one.
fn server(info: &[(&str, &str)]) -> ServerFacts {
    let healthy = [
        ("redis_version", "7.0.15"),
        ("role", "master"),
        ("aof_enabled", "1"),
        ("connected_clients", "3"),
        ("maxclients", "10000"),
        ("used_memory", "1000000"),
        ("maxmemory", "0"),
        ("maxmemory_policy", "noeviction"),
        ("rejected_connections", "0"),
    ];
    let info = healthy.iter().chain(info);
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    ServerFacts {
        user: "default".into(),
        connected_in: Duration::from_micros(300),
        info: info.map(owned).collect(),
        settings: BTreeMap::from([("appendfsync".into(), "always".into())]),
        unread: Vec::new(),
        clock: Some(ClockFacts {
            ahead_micros: 200,
            within_micros: 50,
            faster_ppm: Some(100),
            within_ppm: 1_000,
        }),
        round_trips: vec![Duration::from_micros(100); 20],
        slowest: None,
        rights: RightsFacts::Told(RightsTold::default()),
        doubts: Vec::new(),
    }
}

/// Checks the level of a line, and some of its words.
#[track_caller]
fn says(facts: ServerFacts, setting: &Setting<'_>, subject: &str, level: Level, words: &str) {
    let lines = lines(&Ok(facts), setting);
    let line = lines.iter().find(|line| line.subject == subject);
    let line = line.unwrap_or_else(|| panic!("no {subject}: {lines:?}"));
    assert_eq!(line.level, level, "{line:?}");
    assert!(format!("{line:?}").contains(words), "{line:?}");
}

use Level::{Absent, Doubtful, Misconfigured, Ok as Fine};

#[test]
fn a_healthy_server_is_ok_alone_and_in_a_majority() {
    for setting in [SINGLE, MAJORITY] {
        for line in lines(&Ok(server(&[])), &setting) {
            assert_eq!((line.level, line.cures.len()), (Fine, 0), "{line:?}");
        }
    }
    says(server(&[]), &SINGLE, "clock", Fine, "no step is covered");
    says(
        server(&[]),
        &MAJORITY,
        "clock",
        Fine,
        "steps below 60 s are covered",
    );
}

#[test]
fn what_a_server_keeps_decides_on_one_server_alone() {
    let sync = |value: &str| {
        let mut facts = server(&[]);
        facts.settings.insert("appendfsync".into(), value.into());
        facts
    };
    says(sync("everysec"), &SINGLE, "persistence", Doubtful, "(S6)");
    says(
        sync("everysec"),
        &MAJORITY,
        "persistence",
        Fine,
        "costs the votes",
    );
    let mut unknown = server(&[]);
    unknown.settings.clear();
    says(unknown, &SINGLE, "persistence", Doubtful, "cannot be read");
    let nothing = || server(&[("aof_enabled", "0")]);
    says(
        nothing(),
        &SINGLE,
        "persistence",
        Doubtful,
        "CONFIG SET appendonly yes",
    );
    says(
        nothing(),
        &MAJORITY,
        "persistence",
        Fine,
        "no append-only file",
    );
    let unwatched = Setting {
        limits: &LIMITS,
        ..MAJORITY
    };
    says(
        nothing(),
        &unwatched,
        "persistence",
        Doubtful,
        "not watched",
    );
    let failed = server(&[("rdb_last_bgsave_status", "err")]);
    says(
        failed,
        &MAJORITY,
        "persistence",
        Doubtful,
        "the last snapshot failed",
    );
}

#[test]
fn replicas_matter_where_no_majority_watches_them() {
    let lagging = || {
        server(&[
            (
                "slave0",
                "ip=127.0.0.1,port=7,state=online,offset=1000,lag=1",
            ),
            ("slave_repl_offset", "1"),
            ("master_repl_offset", "3500"),
        ])
    };
    says(
        lagging(),
        &SINGLE,
        "role",
        Doubtful,
        "1 replica, at most 2.4 KiB behind",
    );
    says(lagging(), &MAJORITY, "role", Fine, "for one longest lease");
    let group = Setting {
        is_of_group: true,
        ..SINGLE
    };
    says(lagging(), &group, "role", Doubtful, "majority of groups");
    let joining = server(&[(
        "slave0",
        "ip=127.0.0.1,port=7,state=wait_bgsave,offset=0,lag=0",
    )]);
    says(joining, &SINGLE, "role", Doubtful, "not online");
    let replica = server(&[
        ("role", "slave"),
        ("master_host", "10.0.0.1"),
        ("master_port", "6379"),
    ]);
    says(replica, &SINGLE, "role", Misconfigured, "10.0.0.1:6379");
}

#[test]
fn memory_is_short_near_the_limit() {
    let full = |used: &str| server(&[("maxmemory", "1000"), ("used_memory", used)]);
    says(full("899"), &SINGLE, "memory", Fine, "899 B of 1000 B");
    says(full("900"), &SINGLE, "memory", Doubtful, "no new lock");
    let mut evicting = server(&[("evicted_keys", "7")]);
    evicting.doubts = vec![Doubt::Evicts {
        policy: "allkeys-lru".into(),
    }];
    says(
        evicting,
        &MAJORITY,
        "memory",
        Doubtful,
        "7 keys evicted since the start",
    );
}

#[test]
fn connections_are_short_near_the_limit() {
    let used = |used: &str| server(&[("connected_clients", used)]);
    says(used("7999"), &SINGLE, "connections", Fine, "7999 of 10000");
    says(
        used("8000"),
        &SINGLE,
        "connections",
        Doubtful,
        "turned away",
    );
    let rejected = server(&[("rejected_connections", "1")]);
    says(
        rejected,
        &SINGLE,
        "connections",
        Doubtful,
        "1 client turned away since the start",
    );
}

#[test]
fn a_clock_is_doubtful_beyond_its_bounds_and_the_error_of_the_measurement() {
    let clock = |ahead_micros, faster_ppm, within_ppm| {
        let mut facts = server(&[]);
        facts.clock = Some(ClockFacts {
            ahead_micros,
            within_micros: 1_000,
            faster_ppm: Some(faster_ppm),
            within_ppm,
        });
        facts
    };
    says(clock(15_001_000, 0, 0), &SINGLE, "clock", Fine, "+15 s");
    says(
        clock(15_001_001, 0, 0),
        &SINGLE,
        "clock",
        Doubtful,
        "quarter of the longest lease, 15 s",
    );
    says(
        clock(-15_001_001, 0, 0),
        &SINGLE,
        "clock",
        Doubtful,
        "-15 s",
    );
    says(
        clock(0, 12_000, 2_000),
        &SINGLE,
        "clock",
        Fine,
        "101.20 % as fast within 0.20 %",
    );
    says(
        clock(0, -12_000, 1_999),
        &SINGLE,
        "clock",
        Doubtful,
        "the drift allowance is 1 %",
    );
}

#[test]
fn round_trips_must_fit_into_what_a_server_has_to_answer() {
    let trips = |median: u64, longest: u64| {
        let mut facts = server(&[]);
        facts.round_trips = vec![Duration::from_millis(median); 20];
        facts.round_trips.push(Duration::from_millis(longest));
        facts
    };
    says(
        trips(1, 750),
        &SINGLE,
        "latency",
        Fine,
        "median 1 ms, longest 750 ms of 21",
    );
    says(trips(1, 751), &SINGLE, "latency", Doubtful, "at least 30 s");
    says(trips(1_500, 1_500), &SINGLE, "latency", Absent, "too slow");
}

#[test]
fn a_slow_command_leaves_too_little_time() {
    let slow = |millis| {
        let mut facts = server(&[]);
        let (verb, took) = ("KEYS".into(), Duration::from_millis(millis));
        facts.slowest = Some(SlowCommand { verb, took });
        facts
    };
    says(slow(750), &SINGLE, "slow log", Fine, "KEYS, 750 ms");
    says(slow(751), &SINGLE, "slow log", Doubtful, "KEYS took 751 ms");
}

#[test]
fn what_cannot_be_read_is_said_and_not_guessed() {
    let mut facts = server(&[]);
    facts.info.clear();
    facts.unread = vec![("INFO", "NOPERM".into()), ("SLOWLOG GET", "NOPERM".into())];
    says(
        facts.clone(),
        &SINGLE,
        "report",
        Doubtful,
        "INFO, SLOWLOG GET cannot be read",
    );
    let subjects: Vec<&str> = lines(&Ok(facts), &SINGLE)
        .iter()
        .map(|line| line.subject)
        .collect();
    for guessed in [
        "version",
        "role",
        "persistence",
        "memory",
        "slow log",
        "connections",
    ] {
        assert!(!subjects.contains(&guessed), "{guessed}");
    }
}

#[test]
fn a_program_that_names_itself_is_told() {
    says(
        server(&[("valkey_version", "9.1.2")]),
        &SINGLE,
        "version",
        Fine,
        "Valkey 9.1.2",
    );
    says(
        server(&[("garnet_version", "1.0")]),
        &SINGLE,
        "version",
        Doubtful,
        "do not run on it",
    );
}

#[test]
fn a_server_that_does_not_tell_rights_is_believed_when_it_was_locked() {
    let mut facts = server(&[]);
    facts.rights = RightsFacts::NotTold;
    says(
        facts.clone(),
        &SINGLE,
        "rights",
        Fine,
        "a lock was acquired",
    );
    let untried = Setting {
        is_tried: false,
        ..SINGLE
    };
    says(facts.clone(), &untried, "rights", Doubtful, "unknown");
    facts.rights = RightsFacts::Refused("the user jobs lacks EVAL: ACL SETUSER jobs +eval".into());
    says(
        facts,
        &SINGLE,
        "rights",
        Misconfigured,
        "cures: [\"ACL SETUSER jobs +eval\"]",
    );
}

fn sentinel(address: &str, primary: Result<&str, &str>) -> SentinelFacts {
    SentinelFacts {
        address: address.into(),
        primary: primary.map(String::from).map_err(String::from),
        quorum: Some(2),
    }
}

#[test]
fn sentinels_must_be_enough_for_a_failover_and_agree() {
    assert_eq!(of_sentinels(&[]), None);
    for (answers, level, words) in [
        (
            vec![Ok("p"), Ok("p"), Ok("p")],
            Fine,
            "3 of 3 answer, quorum 2, and name p",
        ),
        (vec![Ok("p"), Ok("p"), Err("down")], Fine, "s2: down"),
        (
            vec![Ok("p"), Err("down"), Err("down")],
            Doubtful,
            "too few for a failover",
        ),
        (vec![Ok("p"), Ok("q"), Ok("p")], Doubtful, "s1 names q"),
        (vec![Ok("p"), Ok("p")], Doubtful, "with 2 sentinels"),
        (vec![Err("down"), Err("down")], Absent, "none of 2 answers"),
    ] {
        let sentinels = answers.iter().enumerate();
        let sentinels: Vec<_> = sentinels
            .map(|(at, answer)| sentinel(&format!("s{at}"), *answer))
            .collect();
        let line = of_sentinels(&sentinels).unwrap();
        assert_eq!(line.level, level, "{line:?}");
        assert!(format!("{line:?}").contains(words), "{line:?}");
    }
}
