//! Callers and the driver on threads of their own.

use std::future::poll_fn;
use std::time::Duration;

use quorlock_explore::{Pace, draw, explore, explore_all};
use shuttle::future::spawn;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;
use crate::timer;

fn send(multiplexer: &Arc<Multiplexer>, what: &str) -> Result<Answer, TransportError> {
    let deadline = timer::now() + Duration::from_secs(2);
    multiplexer.send(&redis::cmd(what), deadline, || {})
}

/// What the driver does with a reply.
fn reply(multiplexer: &Multiplexer, value: i64) {
    let mut passed = Passed::default();
    let is_asked_for = multiplexer.lock().reply(Value::Int(value), &mut passed);
    assert!(is_asked_for, "a reply that was asked for");
    passed.wake();
}

/// One caller goes before its reply comes, at any moment; the other one has its own all the same.
#[test]
fn a_caller_that_goes_leaves_its_reply_to_nobody() {
    let name = "a_caller_that_goes_leaves_its_reply_to_nobody";
    explore_all(name, 20_000, async || {
        let multiplexer = Multiplexer::new();
        let (one, two) = (send(&multiplexer, "ONE"), send(&multiplexer, "TWO"));
        let (one, two) = (one.unwrap(), two.unwrap());
        let driver = multiplexer.clone();
        drop(spawn(async move {
            reply(&driver, 1);
            reply(&driver, 2);
        }));
        let going = spawn(async move { drop(one) });
        assert_eq!(two.await, Ok(Value::Int(2)));
        going.await.unwrap();
        assert!(multiplexer.lock().slot(0).is_none());
    });
}

/// A reply comes while its caller looks for it, and a third request takes a place behind those that are forgotten.
#[test]
fn a_place_that_is_used_again_has_the_reply_of_its_own_request() {
    let name = "a_place_that_is_used_again_has_the_reply_of_its_own_request";
    explore_all(name, 20_000, async || {
        let multiplexer = Multiplexer::new();
        let one = send(&multiplexer, "ONE").unwrap();
        let driver = multiplexer.clone();
        drop(spawn(async move {
            reply(&driver, 1);
            poll_fn(|cx| {
                let mut state = driver.lock();
                state.driver = Some(cx.waker().clone());
                match state.replied < state.waiting.len() {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            })
            .await;
            reply(&driver, 2);
        }));
        assert_eq!(one.await, Ok(Value::Int(1)));
        let two = send(&multiplexer, "TWO").unwrap();
        assert_eq!(two.await, Ok(Value::Int(2)));
        assert!(multiplexer.lock().waiting.is_empty());
    });
}

/// The connection ends while requests are sent: each is answered, or was refused.
#[test]
fn no_request_outlives_its_connection() {
    let name = "no_request_outlives_its_connection";
    explore_all(name, 20_000, async || {
        let multiplexer = Multiplexer::new();
        let ending = multiplexer.clone();
        drop(spawn(async move { ending.close(&error::closed("a test")) }));
        if let Ok(answer) = send(&multiplexer, "ONE") {
            answer.await.unwrap_err();
        }
        let waited = send(&multiplexer, "TWO");
        if let Ok(answer) = waited {
            answer.await.unwrap_err();
        }
    });
}

/// Reads requests that are numbers, and answers each with its number: in pieces, and not always at once.
async fn serve(mut stream: DuplexStream, most: usize) {
    let (mut heard, mut answered) = (Vec::new(), 0);
    let mut buffer = [0; 64];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        heard.extend_from_slice(&buffer[..read]);
        // `*1`, `$2`, and two digits: twelve bytes.
        while 12 <= heard.len() {
            let number: Vec<u8> = heard.drain(..12).skip(8).take(2).collect();
            let text = String::from_utf8(number).unwrap();
            for piece in format!(":{text}\r\n").as_bytes().chunks(3) {
                if stream.write_all(piece).await.is_err() {
                    return;
                }
            }
            answered += 1;
            if answered == most {
                return;
            }
        }
    }
}

/// Several callers share a connection over a narrow stream, and some go early. The server ends it somewhere on the way, or
/// not: each caller has the reply to its own request, or an error.
async fn many_callers() {
    let (stream, server) = duplex(16);
    let ends_after = match draw() % 2 {
        0 => usize::MAX,
        _ => 2,
    };
    drop(spawn(serve(server, ends_after)));
    let multiplexer = Multiplexer::new();
    let driver = Driver::new(
        Box::new(stream),
        multiplexer.clone(),
        None,
        Box::new(|_| {}),
    );
    let driving = timer::spawn(driver);
    let callers = (10..14).map(|number: i64| {
        let multiplexer = multiplexer.clone();
        spawn(async move {
            for again in [0, 10] {
                let number = number + again;
                let answer = send(&multiplexer, &number.to_string());
                let Ok(answer) = answer else { return };
                if number == 11 {
                    drop(answer);
                    continue;
                }
                match answer.await {
                    Ok(value) => assert_eq!(value, Value::Int(number)),
                    Err(_) => assert_ne!(ends_after, usize::MAX, "it did not end"),
                }
            }
        })
    });
    let callers: Vec<_> = callers.collect();
    for caller in callers {
        caller.await.unwrap();
    }
    driving.abort();
}

#[test]
fn each_caller_has_the_reply_to_its_own_request() {
    let name = "each_caller_has_the_reply_to_its_own_request";
    timer::with_timers(|| explore(name, Pace::Untimed, many_callers));
}
