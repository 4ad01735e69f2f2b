use std::sync::Arc;
use std::time::Duration;

use quorlock_core::marker::{ConfirmedMarker, Figures, Nonce, Process};

use super::*;
use crate::multiplexer::{Answer, Multiplexer};
use crate::timer;

const BEGIN: &str = "*1.$5.MULTI.*2.$3.GET.$1.m.*2.$4.INFO.$11.replication.";

fn send(multiplexer: &Arc<Multiplexer>, native: Native) -> Answer {
    let deadline = timer::now() + Duration::from_secs(2);
    let answer = multiplexer.send_native(native, deadline, || {});
    answer.expect("it is open")
}

/// An acquire whose commands are `RESTORE=..`, the check of `..`, and `INCR=..`.
fn take(name: &str) -> Native {
    let bytes = format!("RESTORE={name};{name};INCR={name};").into_bytes();
    let check = "RESTORE=;".len() + name.len();
    let draw = check + name.len() + 1;
    Native::Take {
        bytes,
        check,
        draw,
        name: hash(name),
        watch: None,
    }
}

fn hash(name: &str) -> NameHash {
    name.bytes().map(u64::from).sum()
}

fn watch() -> Arc<Watch> {
    let figures = Figures::same(60_000);
    let trusted = ConfirmedMarker {
        process: Process(0xabc),
        nonce: Nonce::new(3),
        figures,
    };
    Arc::new(Watch::new(trusted, b"", b"m"))
}

/// The same, which counts only on a certain process.
fn watched(name: &str, by: &Arc<Watch>) -> Native {
    match take(name) {
        Native::Take {
            bytes,
            check,
            draw,
            name,
            ..
        } => Native::Take {
            bytes,
            check,
            draw,
            name,
            watch: Some(Arc::clone(by)),
        },
        other => other,
    }
}

fn end(name: &str) -> Native {
    Native::End {
        bytes: format!("HDEL={name};").into_bytes(),
        name: hash(name),
    }
}

/// What is written when the driver takes it.
fn written(multiplexer: &Multiplexer) -> String {
    let mut state = multiplexer.lock();
    state.close_bundle();
    let bytes = std::mem::take(&mut state.outbox);
    String::from_utf8(bytes).expect("text").replace("\r\n", ".")
}

/// The server answers with these.
fn reply(multiplexer: &Multiplexer, values: impl IntoIterator<Item = Value>) {
    let mut passed = Passed::default();
    for value in values {
        assert!(multiplexer.lock().reply(value, &mut passed));
    }
    assert!(passed.unwanted.is_empty());
}

fn ints<const N: usize>(values: [i64; N]) -> Value {
    Value::Array(values.map(Value::Int).into())
}

#[tokio::test(start_paused = true)]
async fn acquires_that_are_sent_together_have_one_check() {
    let multiplexer = Multiplexer::new();
    let answers = [take("a"), end("x"), take("b"), end("y")].map(|it| send(&multiplexer, it));
    let expected = "HDEL=x;HDEL=y;RESTORE=a;RESTORE=b;*3.$6.EXISTS.a;b;INCR=a;INCR=b;";
    assert_eq!(written(&multiplexer), expected);
    reply(&multiplexer, [1, 2, 3, 4, 5, 6, 0, 7, 8].map(Value::Int));
    let expected = [ints([5, 0, 7]), ints([1, 2]), ints([6, 0, 8]), ints([3, 4])];
    for (answer, expected) in answers.into_iter().zip(expected) {
        assert_eq!(answer.await, Ok(expected));
    }
    assert!(multiplexer.lock().waiting.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_check_of_several_that_is_no_zero_is_not_known_for_any() {
    let multiplexer = Multiplexer::new();
    for together in [1, 2] {
        let answers: Vec<_> = (0..together)
            .map(|_| send(&multiplexer, take("a")))
            .collect();
        written(&multiplexer);
        reply(&multiplexer, (0..=2 * together).map(Value::Int));
        for (at, answer) in (0..).zip(answers) {
            let check = match together {
                1 => Value::Int(1),
                _ => Value::Nil,
            };
            let parts = [Value::Int(at), check, Value::Int(together + 1 + at)];
            assert_eq!(answer.await, Ok(Value::Array(parts.into())));
        }
    }
}

/// The release of a claim whose acquire waits in the bundle would be executed before it, and the claim would stay.
#[tokio::test(start_paused = true)]
async fn a_claim_is_not_ended_before_it_is_made() {
    let multiplexer = Multiplexer::new();
    let all = [take("a"), end("b"), end("a"), take("a")];
    let _answers = all.map(|it| send(&multiplexer, it));
    let expected = "HDEL=b;RESTORE=a;*2.$6.EXISTS.a;INCR=a;HDEL=a;RESTORE=a;*2.$6.EXISTS.a;INCR=a;";
    assert_eq!(written(&multiplexer), expected);
}

#[tokio::test(start_paused = true)]
async fn any_other_command_is_sent_behind_the_bundle() {
    let multiplexer = Multiplexer::new();
    let before = send(&multiplexer, take("a"));
    let deadline = timer::now() + Duration::from_secs(2);
    let ping = multiplexer.send(&redis::cmd("PING"), deadline, || {});
    let behind = send(&multiplexer, end("a"));
    let expected = "RESTORE=a;*2.$6.EXISTS.a;INCR=a;*1.$4.PING.HDEL=a;";
    assert_eq!(written(&multiplexer), expected);
    reply(&multiplexer, (0..6).map(Value::Int));
    assert_eq!(before.await, Ok(ints([0, 1, 2])));
    assert_eq!(ping.expect("it is open").await, Ok(Value::Int(3)));
    assert_eq!(behind.await, Ok(ints([4, 5])));
}

#[tokio::test(start_paused = true)]
async fn a_release_does_not_wait_for_thousands_of_others() {
    let multiplexer = Multiplexer::new();
    let mut answers: Vec<_> = (0..1_000).map(|_| send(&multiplexer, end("a"))).collect();
    written(&multiplexer);
    reply(&multiplexer, (0..2 * MOST_REQUESTS as i64).map(Value::Int));
    for (at, answer) in (0..).zip(answers.drain(..MOST_REQUESTS)) {
        assert_eq!(answer.await, Ok(ints([2 * at, 2 * at + 1])));
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_bundle_is_closed_and_what_is_dropped_leaves_its_replies_to_no_other() {
    let multiplexer = Multiplexer::new();
    let mut answers: Vec<_> = (0..=MOST_CLAIMS)
        .map(|_| send(&multiplexer, take("a")))
        .collect();
    drop(answers.remove(0));
    let text = written(&multiplexer);
    assert_eq!(text.matches("EXISTS").count(), 2);
    let claims = std::iter::repeat_n(Value::Okay, MOST_CLAIMS);
    let tokens = (1..=MOST_CLAIMS as i64).map(Value::Int);
    let mut passed = Passed::default();
    for value in claims.chain([Value::Int(0)]).chain(tokens).chain([
        Value::Okay,
        Value::Int(0),
        Value::Int(99),
    ]) {
        assert!(multiplexer.lock().reply(value, &mut passed));
    }
    let last = answers.pop().expect("the one in the second bundle");
    assert_eq!(last.await, Ok(Value::Int(99)));
    for (token, answer) in (2..).zip(answers) {
        assert_eq!(answer.await, Ok(Value::Int(token)));
    }
}

fn queued(number: usize) -> Vec<Value> {
    let queued = std::iter::repeat_n(Value::Okay, number);
    std::iter::once(Value::Okay).chain(queued).collect()
}

fn text(text: &str) -> Value {
    Value::BulkString(text.into())
}

fn refused(words: &str) -> Value {
    redis::parse_redis_value(format!("-{words}\r\n").as_bytes()).unwrap()
}

/// What `GET` and `INFO` return on the trusted process.
fn shown() -> [Value; 2] {
    let info = "role:master\r\nmaster_replid:0000000000abc0123456789abcdef0123456789a\r\n";
    [text("0000000000abc:3:60000:ripe"), text(info)]
}

/// Sends two acquires and a release together, and returns what they get for these replies of the transaction.
async fn together(transaction: Vec<Value>) -> [Value; 2] {
    let multiplexer = Multiplexer::new();
    let by = watch();
    let all = [watched("a", &by), end("x"), watched("b", &by)];
    let [one, ended, two] = all.map(|it| send(&multiplexer, it));
    let expected =
        format!("HDEL=x;{BEGIN}RESTORE=a;RESTORE=b;*3.$6.EXISTS.a;b;INCR=a;INCR=b;*1.$4.EXEC.");
    assert_eq!(written(&multiplexer), expected);
    let ends = [Value::Int(1), Value::Int(0)];
    reply(&multiplexer, ends.into_iter().chain(transaction));
    assert_eq!(ended.await, Ok(Value::Int(1)));
    assert!(multiplexer.lock().calls.is_empty());
    [one.await, two.await].map(|answer| answer.expect("all replies are there"))
}

fn parts(parts: impl Into<Vec<Value>>) -> Value {
    Value::Array(parts.into())
}

#[tokio::test(start_paused = true)]
async fn acquires_count_if_their_transaction_shows_the_trusted_process() {
    let executed = |shown: [Value; 2]| {
        let claims = [
            Value::Okay,
            refused("BUSYKEY Target key name already exists."),
        ];
        let rest = [0, 8, 9].map(Value::Int);
        let all = shown.into_iter().chain(claims).chain(rest).collect();
        let mut replies = queued(7);
        replies.push(Value::Array(all));
        replies
    };
    let busy = refused("BUSYKEY Target key name already exists.");
    let expected = [
        Value::Int(8),
        parts([busy.clone(), Value::Int(0), Value::Int(9)]),
    ];
    assert_eq!(together(executed(shown())).await, expected);
    let [marker, info] = shown();
    for strange in [
        [Value::Nil, info.clone()],
        [text("0000000000abc:4:60000:ripe"), info],
        [
            marker,
            text("master_replid:0000000000abd0123456789abcdef0123456789a\r\n"),
        ],
    ] {
        let expected = [
            parts([Value::Okay, Value::Int(0), Value::Int(8), Value::Nil]),
            parts([busy.clone(), Value::Int(0), Value::Int(9), Value::Nil]),
        ];
        assert_eq!(together(executed(strange)).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_that_is_refused_lets_none_of_its_transaction_count() {
    let mut replies = queued(7);
    let no = || refused("NOPERM No permissions to access a key");
    replies[3] = no();
    let aborted = || refused("EXECABORT Transaction discarded because of previous errors.");
    replies.push(aborted());
    let expected = [
        parts([no(), Value::Nil, aborted()]),
        parts([aborted(), Value::Nil, aborted()]),
    ];
    assert_eq!(together(replies).await, expected);
}

#[tokio::test(start_paused = true)]
async fn what_a_server_without_transactions_has_executed_is_known() {
    let unknown = || refused("ERR unknown command 'MULTI'");
    let mut replies = vec![unknown()];
    replies.extend(shown());
    replies.extend([Value::Okay, Value::Okay]);
    replies.extend([0, 8, 9].map(Value::Int));
    replies.push(refused("ERR unknown command 'EXEC'"));
    let expected =
        [8, 9].map(|token| parts([Value::Okay, unknown(), Value::Int(token), Value::Nil]));
    assert_eq!(together(replies).await, expected);
}

#[tokio::test(start_paused = true)]
async fn acquires_of_several_processes_are_not_sent_together() {
    let multiplexer = Multiplexer::new();
    let [one, other] = [watch(), watch()];
    let all = [watched("a", &one), watched("b", &other), take("c")];
    let _answers = all.map(|it| send(&multiplexer, it));
    let written = written(&multiplexer);
    assert_eq!(written.matches("MULTI").count(), 2, "{written}");
    assert!(
        written.ends_with("EXEC.RESTORE=c;*2.$6.EXISTS.c;INCR=c;"),
        "{written}"
    );
}
