//! Tests requests and replies on a connection whose other end is the test.

use std::time::Duration;

use quorlock_core::transport::{Cause, Execution};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::*;
use crate::subscription::registry::Registry;
use crate::timer;

fn connected() -> (Arc<Multiplexer>, DuplexStream) {
    connected_for(None)
}

fn connected_for(registry: Option<Arc<Registry>>) -> (Arc<Multiplexer>, DuplexStream) {
    let (stream, server) = tokio::io::duplex(64);
    let multiplexer = Multiplexer::new();
    let driver = Driver::new(
        Box::new(stream),
        Arc::clone(&multiplexer),
        registry,
        Box::new(|_| {}),
    );
    timer::spawn(driver);
    (multiplexer, server)
}

fn ask(multiplexer: &Arc<Multiplexer>, what: &str) -> Answer {
    let deadline = timer::now() + Duration::from_secs(2);
    let answer = multiplexer.send(&redis::cmd(what), deadline, || {});
    answer.expect("it is open")
}

async fn hears(server: &mut DuplexStream, what: &[&str]) {
    for what in what {
        let packed = redis::cmd(what).get_packed_command();
        let mut read = vec![0; packed.len()];
        server.read_exact(&mut read).await.unwrap();
        assert_eq!(read, packed);
    }
}

#[tokio::test(start_paused = true)]
async fn replies_go_to_callers_in_the_order_in_which_they_asked() {
    let (multiplexer, mut server) = connected();
    let answers: Vec<_> = (0..100).map(|_| ask(&multiplexer, "PING")).collect();
    hears(&mut server, &["PING"; 100]).await;
    timer::spawn(async move {
        for number in 0..100 {
            // In packets with arbitrary boundaries.
            for byte in format!(":{number}\r\n").into_bytes() {
                server.write_all(&[byte]).await.unwrap();
            }
        }
        std::future::pending::<()>().await;
    });
    for (number, answer) in (0..).zip(answers) {
        assert_eq!(answer.await, Ok(Value::Int(number)));
    }
    assert!(multiplexer.lock().waiting.is_empty());
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_wait_for_a_reply_leaves_it_to_nobody_else() {
    let (multiplexer, mut server) = connected();
    drop(ask(&multiplexer, "ONE"));
    let two = ask(&multiplexer, "TWO");
    hears(&mut server, &["ONE", "TWO"]).await;
    server.write_all(b":1\r\n:2\r\n").await.unwrap();
    assert_eq!(two.await, Ok(Value::Int(2)));
    assert!(multiplexer.lock().waiting.is_empty());
}

/// Answers the first `many` requests with `:1`, and does not answer later ones.
async fn answer(mut server: DuplexStream, many: usize) {
    let len = redis::cmd("PING").get_packed_command().len();
    let mut left = many * len;
    let (mut owed, mut buffer) = (0, vec![0; 64 * 1024]);
    while 0 < left {
        let read = server.read(&mut buffer).await.unwrap();
        left -= read;
        owed += read;
        server
            .write_all(&b":1\r\n".repeat(owed / len))
            .await
            .unwrap();
        owed %= len;
    }
    std::future::pending().await
}

/// Futures that are neither polled nor dropped keep their replies, and do not prevent further calls.
#[tokio::test(start_paused = true)]
async fn answers_that_are_not_taken_do_not_count_as_requests_that_wait() {
    let (multiplexer, server) = connected();
    timer::spawn(answer(server, 200_000));
    let mut kept = Vec::new();
    for round in 0..100 {
        let mut answers: Vec<_> = (0..2_000).map(|_| ask(&multiplexer, "PING")).collect();
        // Keeps every second answer of the first rounds, 70,000 in all, and a single one later.
        match round {
            0..70 => kept.extend(answers.split_off(1_000)),
            80 => kept.extend(answers.pop()),
            _ => {}
        }
        for answer in answers {
            assert_eq!(answer.await, Ok(Value::Int(1)));
        }
        let state = multiplexer.lock();
        assert!(
            state.waiting.len() <= KEPT + 2_000,
            "{}",
            state.waiting.len()
        );
    }
    assert_eq!(kept.len(), 70_001);
    drop(kept.split_off(40_000));
    for answer in kept {
        assert_eq!(answer.await, Ok(Value::Int(1)));
    }
    let state = multiplexer.lock();
    assert!(state.waiting.is_empty() && state.aside.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_the_server_owes_is_bounded() {
    let (multiplexer, server) = connected();
    let mut answers: Vec<_> = (0..MOST_WAITING)
        .map(|_| ask(&multiplexer, "PING"))
        .collect();
    // Their callers may still wait or not.
    drop(answers.split_off(1_000));
    let deadline = timer::now() + Duration::from_secs(2);
    let refused = multiplexer.send(&redis::cmd("PING"), deadline, || {});
    assert_eq!(refused.unwrap_err().execution, Execution::Definite);
    timer::spawn(answer(server, MOST_WAITING + 1));
    for answer in answers {
        assert_eq!(answer.await, Ok(Value::Int(1)));
    }
    assert_eq!(ask(&multiplexer, "PING").await, Ok(Value::Int(1)));
}

#[tokio::test(start_paused = true)]
async fn what_the_server_publishes_is_no_reply() {
    let message = b"*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$1\r\n0\r\n";
    for is_wanted in [true, false] {
        let registry = is_wanted.then(Arc::default);
        let (multiplexer, mut server) = connected_for(registry);
        let answer = ask(&multiplexer, "ONE");
        hears(&mut server, &["ONE"]).await;
        server.write_all(message).await.unwrap();
        server.write_all(b":1\r\n").await.unwrap();
        match answer.await {
            Ok(reply) => assert_eq!(reply == Value::Int(1), is_wanted),
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_too_long_or_too_deep_ends_the_connection_when_it_says_so() {
    let many = format!("*500000\r\n{}", ":1\r\n".repeat(10));
    let deep = "*1\r\n".repeat(9);
    for (reply, says) in [
        ("$16777217\r\n", "more than 16 MiB"),
        ("$9223372036854775807\r\n", "more than 16 MiB"),
        (&many, "more than 16 MiB"),
        (&deep, "nested"),
    ] {
        let (multiplexer, mut server) = connected();
        let (one, two) = (ask(&multiplexer, "ONE"), ask(&multiplexer, "TWO"));
        hears(&mut server, &["ONE", "TWO"]).await;
        server.write_all(b":1\r\n").await.unwrap();
        let _ = server.write_all(reply.as_bytes()).await;
        assert_eq!(one.await, Ok(Value::Int(1)));
        let error = two.await.unwrap_err();
        let kind = (error.cause, error.execution);
        assert_eq!(kind, (Cause::Protocol, Execution::Indeterminate), "{error}");
        assert!(error.detail.contains(says), "{error}");
        let deadline = timer::now() + Duration::from_secs(1);
        multiplexer
            .send(&redis::cmd("THREE"), deadline, || {})
            .unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_reply_by_its_deadline_a_request_is_unanswered_and_the_next_is_not() {
    let (multiplexer, mut server) = connected();
    let late = ask(&multiplexer, "ONE");
    let began = timer::now();
    let error = late.await.unwrap_err();
    assert_eq!(timer::now() - began, Duration::from_secs(2));
    assert_eq!(
        (error.cause, error.execution),
        (Cause::TimedOut, Execution::Indeterminate)
    );
    let next = ask(&multiplexer, "TWO");
    hears(&mut server, &["ONE", "TWO"]).await;
    server.write_all(b":1\r\n:2\r\n").await.unwrap();
    assert_eq!(next.await, Ok(Value::Int(2)));
}

#[tokio::test(start_paused = true)]
async fn an_earlier_deadline_of_a_later_request_counts() {
    let (multiplexer, _server) = connected();
    let began = timer::now();
    let patient = ask(&multiplexer, "ONE");
    tokio::task::yield_now().await;
    let soon = began + Duration::from_millis(100);
    let hasty = multiplexer.send(&redis::cmd("TWO"), soon, || {}).unwrap();
    hasty.await.unwrap_err();
    assert_eq!(timer::now(), soon);
    patient.await.unwrap_err();
    assert_eq!(timer::now() - began, Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn when_the_connection_ends_everybody_hears_it_and_nothing_more_is_sent() {
    for last in ["", ":1", "HTTP/1.1 200 OK\r\n", ":1\r\n:2\r\n:3\r\n"] {
        let (multiplexer, mut server) = connected();
        let (one, two) = (ask(&multiplexer, "ONE"), ask(&multiplexer, "TWO"));
        hears(&mut server, &["ONE", "TWO"]).await;
        server.write_all(last.as_bytes()).await.unwrap();
        drop(server);
        let answers = [one.await, two.await];
        if last.starts_with(":1\r\n") {
            assert_eq!(answers, [Ok(Value::Int(1)), Ok(Value::Int(2))]);
        } else {
            for answer in answers {
                assert_eq!(answer.unwrap_err().execution, Execution::Indeterminate);
            }
        }
        let deadline = timer::now() + Duration::from_secs(1);
        let refused = multiplexer.send(&redis::cmd("THREE"), deadline, || {});
        let refused = refused.unwrap_err();
        assert_eq!(refused.execution, Execution::Definite);
        // The connection had been made, so its address was right.
        assert_eq!(refused.cause, Cause::Closed);
        assert!(!refused.to_string().contains("address"), "{refused}");
    }
}

#[tokio::test]
async fn nothing_comes_between_a_request_and_the_command_before_it() {
    let (multiplexer, mut server) = connected();
    let one = ask(&multiplexer, "ONE");
    let deadline = timer::now() + Duration::from_secs(2);
    let cmds = [redis::cmd("FIRST"), redis::cmd("SECOND")];
    let behind = || multiplexer.send_behind(&cmds[0], &cmds[1], deadline, || {});
    let second = behind().unwrap();
    // The caller is dropped before anything is written. Both commands are sent, or neither: the next request must not
    // follow the first one.
    drop(behind().unwrap());
    let two = ask(&multiplexer, "TWO");
    let sent = ["ONE", "FIRST", "SECOND", "FIRST", "SECOND", "TWO"];
    hears(&mut server, &sent).await;
    let replies = b":1\r\n+OK\r\n:2\r\n-ERR no\r\n:3\r\n:4\r\n";
    server.write_all(replies).await.unwrap();
    assert_eq!(one.await, Ok(Value::Int(1)));
    assert_eq!(second.await, Ok(Value::Int(2)));
    assert_eq!(two.await, Ok(Value::Int(4)));
}
