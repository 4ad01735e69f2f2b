use super::known::{COLD, MOST_NAMES};
use super::*;
use std::time::Duration;

use quorlock_core::claim_version::ClockMargin;
use quorlock_core::lease::Lease;
use quorlock_core::marker::{Act, Check, ConfirmedMarker, Figures, Nonce, Process, Restarts};
use quorlock_core::name::Name;
use quorlock_core::owner::{ClientId, OwnerId};
use quorlock_core::time::WallMillis;
use redis::parse_redis_value;

use crate::timer;

/// The clock of the client, in milliseconds since 1970.
const CLOCK: u64 = 1_795_000_000_000;

fn owner(number: u64) -> OwnerId {
    let client = ClientId::from_random(7);
    OwnerId { client, number }
}

pub(super) fn acquire(name: &str, number: u64) -> Acquire {
    Acquire {
        name: Name::new(name).unwrap(),
        access: Access::Plain,
        owner: owner(number),
        count: 1,
        lease: Lease::new(Duration::from_secs(30)).unwrap(),
        fence: Fence::Mint {
            floor: WallMillis(CLOCK),
            slack_millis: 15_000,
        },
        retention: Retention::Millis(86_400_000),
        keep: None,
        after: Some(Token(7)),
        replaces: None,
        continues: None,
        check: None,
    }
}

fn release(name: &str, number: u64) -> Release {
    Release {
        name: Name::new(name).unwrap(),
        mode: Mode::Plain,
        owner: owner(number),
        count: 0,
    }
}

fn error(words: &str) -> Value {
    parse_redis_value(format!("-{words}\r\n").as_bytes()).unwrap()
}

/// A connection, and what is known about it.
struct Bench {
    link: Arc<Connection>,
    natives: Natives,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        Bench::with(Duration::ZERO)
    }

    fn with(youngest: Duration) -> Self {
        let bench = Bench {
            link: Arc::new(Connection::idle()),
            natives: Natives::new(youngest),
            now: timer::now(),
        };
        // It becomes the known connection.
        drop(bench.natives.of(&bench.link));
        bench
    }

    fn take(&self, ask: &Acquire) -> Option<Tried> {
        let taken = self.natives.take(&self.link, ask, &Home::PLAIN, self.now);
        taken.map(|(_, tried)| tried)
    }

    fn takes(&self, name: &str) -> bool {
        self.take(&acquire(name, 99)).is_some()
    }

    fn ends(&self, name: &str) -> bool {
        let ask = release(name, 99);
        self.natives.end(&self.link, &ask, self.now).is_some()
    }

    /// Judges these replies to the commands of an acquire.
    fn taken(&self, ask: &Acquire, replies: [Value; 3]) -> Result<Value, NotGranted> {
        let tried = self.take(ask).expect("it needs no script");
        let answer = Value::Array(replies.into());
        self.natives
            .taken(&self.link, ask, tried, &answer, || self.now)
    }
}

fn busy_key() -> Value {
    error("BUSYKEY Target key name already exists.")
}

#[tokio::test]
async fn a_server_that_does_not_know_the_compact_form_gets_the_oldest_one() {
    let bench = Bench::new();
    let ask = acquire("a", 2);
    let refused = || error("ERR Bad data format");
    let sent = bench.take(&ask).expect("it needs no script");
    let replies = || Value::Array(vec![refused(), Value::Int(0), Value::Int(8)]);
    for _ in 0..2 {
        // Both were sent in the compact form.
        let told = bench
            .natives
            .taken(&bench.link, &ask, sent, &replies(), || bench.now);
        assert_eq!(told.unwrap_err().claim, Made::Nothing);
    }
    assert!(bench.takes("c"));
    let ask = acquire("b", 4);
    let next = bench.take(&ask).expect("the commands are used further on");
    assert_ne!(sent.form, next.form);
    let told = bench
        .natives
        .taken(&bench.link, &ask, next, &replies(), || bench.now);
    assert_eq!(told.unwrap_err().claim, Made::Nothing);
    assert!(!bench.takes("c"), "it knows neither form");
}

#[tokio::test]
async fn an_acquire_that_has_seen_no_token_is_a_script() {
    let bench = Bench::new();
    let mut ask = acquire("a", 1);
    assert!(bench.take(&ask).is_some());
    ask.after = None;
    assert!(bench.take(&ask).is_none());
}

#[tokio::test]
async fn a_young_connection_may_be_to_a_server_that_has_lost_what_was_seen() {
    let mut bench = Bench::with(Duration::from_secs(2));
    assert!(!bench.takes("a"));
    assert!(
        bench.take(&on_a_majority("a", 1)).is_some(),
        "it is trusted"
    );
    bench.now += Duration::from_millis(1_999);
    assert!(!bench.takes("a"));
    bench.now += Duration::from_millis(1);
    assert!(bench.takes("a"));
}

#[tokio::test]
async fn a_name_that_was_taken_is_asked_for_and_freed_by_scripts_for_a_second() {
    let mut bench = Bench::new();
    let taken = bench.taken(&acquire("a", 2), [busy_key(), Value::Int(0), Value::Int(8)]);
    let rest = NotGranted {
        claim: Made::Nothing,
        is_counter_new: false,
    };
    assert_eq!(taken, Err(rest));
    // The script has granted it in the meantime.
    let ask = acquire("a", 3);
    bench
        .natives
        .told(&bench.link, &ask, &Value::Int(9), bench.now);
    assert!(!bench.takes("a") && !bench.ends("a"));
    assert!(bench.takes("b") && bench.ends("b"));
    bench.now += COLD;
    assert!(bench.takes("a") && bench.ends("a"));
    // The script has refused it, also on a server that is not trusted.
    let refused = Value::Array(vec![Value::Int(0), Value::Int(900)]);
    let shown = |reply| {
        let rest = [5, 2, 7].map(Value::Int).into_iter().chain([Value::Nil]);
        Value::Array(std::iter::once(reply).chain(rest).collect())
    };
    for (answer, is_cold) in [
        (shown(Value::Int(9)), false),
        (Value::Array(vec![Value::Int(2), Value::Int(9)]), false),
        (refused.clone(), true),
        (shown(refused), true),
    ] {
        bench.now += COLD;
        bench.natives.told(&bench.link, &ask, &answer, bench.now);
        assert_eq!([bench.takes("a"), bench.ends("a")], [!is_cold; 2]);
    }
}

#[tokio::test]
async fn another_connection_knows_nothing() {
    let bench = Bench::new();
    assert!(
        bench
            .taken(&acquire("a", 2), [busy_key(), Value::Int(0), Value::Int(8)])
            .is_err()
    );
    assert!(!bench.takes("a"));
    let other = Arc::new(Connection::idle());
    let taken = bench
        .natives
        .take(&other, &acquire("a", 2), &Home::PLAIN, bench.now);
    assert!(taken.is_some());
    // A late reply on the connection before.
    let refused = Value::Array(vec![Value::Int(0), Value::Int(900)]);
    let ask = acquire("b", 1);
    bench.natives.told(&bench.link, &ask, &refused, bench.now);
    let taken = bench.natives.take(&other, &ask, &Home::PLAIN, bench.now);
    assert!(taken.is_some());
}

#[tokio::test]
async fn a_release_that_does_not_free_is_a_script() {
    let bench = Bench::new();
    let of = |mode, count| {
        let ask = Release {
            mode,
            count,
            ..release("a", 1)
        };
        bench.natives.end(&bench.link, &ask, bench.now).is_some()
    };
    assert!(of(Mode::Plain, 0));
    assert!(!of(Mode::Plain, 1) && !of(Mode::Fair, 0) && !of(Mode::Read, 0));
}

#[tokio::test]
async fn a_grant_needs_three_replies_and_a_newer_token() {
    let mut ask = acquire("a", 2);
    let no_number = || error("ERR value is not an integer or out of range");
    let busy = || error("BUSY Redis is busy running a script.");
    let seen: i64 = 1_794_999_999_000;
    ask.after = Some(Token(seen.unsigned_abs()));
    let no = |claim, is_counter_new| {
        Err(NotGranted {
            claim,
            is_counter_new,
        })
    };
    let by_the_clock = || Made::Unnumbered(Token(CLOCK));
    let (free, newer) = (Value::Int(0), Value::Int(seen + 1));
    for (waiters, drawn, expected) in [
        (free.clone(), newer.clone(), Ok(newer.clone())),
        (free.clone(), Value::Int(seen), no(by_the_clock(), true)),
        (free.clone(), Value::Int(1), no(by_the_clock(), true)),
        (free.clone(), Value::Int(1 << 53), no(by_the_clock(), false)),
        (free, no_number(), no(Made::Void(no_number()), false)),
        (Value::Int(1), newer.clone(), no(Made::Behind, false)),
        (Value::Int(1), Value::Int(1), no(Made::Behind, true)),
        (busy(), newer, no(Made::Void(busy()), false)),
    ] {
        let bench = Bench::new();
        let taken = bench.taken(&ask, [Value::Okay, waiters, drawn]);
        assert_eq!(taken, expected);
    }
}

#[tokio::test]
async fn a_token_by_the_clock_is_near_the_newest_one() {
    let fence = |floor| Fence::Mint {
        floor: WallMillis(floor),
        slack_millis: 10,
    };
    // A storm in which the slack was shorter than a name stays warm got a token that was too small.
    let late = 100 + MOST_BEHIND;
    for (floor, seen, token) in [
        (0, 100, 101),
        (105, 100, 105),
        (late, 100, late),
        (late * 2, 100, late + 11),
    ] {
        assert_eq!(by_the_clock(fence(floor), seen), Token(token));
    }
}

#[tokio::test]
async fn what_is_refused_for_good_is_not_tried_again() {
    for (words, is_tried_again) in [
        ("BUSYKEY Target key name already exists.", true),
        (
            "OOM command not allowed when used memory > 'maxmemory'.",
            true,
        ),
        (
            "READONLY You can't write against a read only replica.",
            true,
        ),
        ("ERR DUMP payload version or checksum are wrong", false),
        (
            "ERR unknown command 'RESTORE', with args beginning with: 'a' ",
            false,
        ),
        (
            "NOPERM this user has no permissions to run the 'restore' command",
            false,
        ),
    ] {
        let bench = Bench::new();
        let taken = bench.taken(
            &acquire("a", 3),
            [error(words), Value::Int(0), Value::Int(8)],
        );
        assert!(taken.is_err(), "{words}");
        assert_eq!(bench.takes("b"), is_tried_again, "{words}");
    }
}

#[tokio::test]
async fn only_simple_claims_need_no_script() {
    let bench = Bench::new();
    let usual = acquire("a", 2);
    assert!(bench.take(&usual).is_some());
    let mut again = usual.clone();
    again.count = 2;
    let mut carrying = usual.clone();
    carrying.fence = Fence::Carry(Token(9));
    let mut writing = usual.clone();
    writing.access = Access::Write;
    let [mut restating, mut unknown, mut longer] = [(); 3].map(|()| on_a_majority("a", 2));
    let check = |ask: &mut Acquire, change: fn(&mut Check)| change(ask.check.as_mut().unwrap());
    check(&mut restating, |it| it.act = Act::Restate);
    check(&mut unknown, |it| it.trusted = None);
    longer.lease = Lease::new(Duration::from_millis(60_001)).unwrap();
    for other in [again, carrying, writing, restating, unknown, longer] {
        assert!(bench.take(&other).is_none(), "{other:?}");
    }
    let mut kept = usual;
    kept.keep = on_a_majority("a", 2).keep;
    for other in [kept, on_a_majority("a", 2)] {
        assert!(bench.take(&other).is_some(), "{other:?}");
    }
}

/// An acquire on a node of a majority, which the client trusts.
fn on_a_majority(name: &str, number: u64) -> Acquire {
    let figures = Figures::same(60_000);
    Acquire {
        keep: Some(ClockMargin {
            margin_millis: 60_000,
            number: 1,
        }),
        check: Some(Check {
            figures,
            act: Act::Look,
            trusted: Some(ConfirmedMarker {
                process: Process(5),
                nonce: Nonce::new(3),
                figures,
            }),
            restarts: Restarts::MayForget,
            known: None,
        }),
        ..acquire(name, number)
    }
}

#[tokio::test]
async fn a_claim_on_a_process_that_is_not_trusted_ends_before_the_script() {
    let bench = Bench::new();
    let ask = on_a_majority("a", 2);
    for (made, claim) in [(Value::Okay, Made::Untrusted), (busy_key(), Made::Nothing)] {
        let tried = bench.take(&ask).expect("it needs no script");
        let answer = Value::Array(vec![made, Value::Int(0), Value::Int(8), Value::Nil]);
        let taken = bench
            .natives
            .taken(&bench.link, &ask, tried, &answer, || bench.now);
        let expected = NotGranted {
            claim,
            is_counter_new: false,
        };
        assert_eq!(taken, Err(expected));
    }
}

#[tokio::test]
async fn names_are_forgotten_when_there_are_too_many() {
    let mut bench = Bench::new();
    for number in 0..2 * MOST_NAMES {
        let ask = acquire(&format!("name {number}"), 1);
        bench
            .natives
            .told(&bench.link, &ask, &Value::Nil, bench.now);
    }
    assert_eq!(bench.natives.of(&bench.link).cold.len(), MOST_NAMES);
    bench.now += COLD;
    bench
        .natives
        .told(&bench.link, &acquire("new", 1), &Value::Nil, bench.now);
    assert_eq!(bench.natives.of(&bench.link).cold.len(), 1);
}

#[tokio::test]
async fn the_replies_to_a_release_are_those_of_the_script() {
    let bench = Bench::new();
    let no = || error("NOPERM No permissions to access a channel");
    for (gone, told, expected) in [
        (Value::Int(1), Value::Int(0), Some(Value::Int(1))),
        (Value::Int(1), Value::Int(2), Some(Value::Int(5))),
        (
            Value::Int(1),
            no(),
            Some(Value::Array(vec![Value::Int(1), no()])),
        ),
        (Value::Int(0), Value::Int(2), Some(Value::Int(0))),
        (error("WRONGTYPE Operation"), Value::Int(0), None),
    ] {
        let answer = Value::Array(vec![gone, told]);
        assert_eq!(bench.natives.ended(&bench.link, answer), expected);
    }
}
