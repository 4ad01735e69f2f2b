//! Tests callers and the driver on several threads.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Mutex as StdMutex;
use std::task::Poll;
use std::time::Duration;

use quorlock_core::message::Request;
use quorlock_core::transport::Execution;
use quorlock_explore::{Pace, draw, explore, explore_all};
use shuttle::future::spawn;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::queue::tests::member;
use super::queue::{Load, MOST_CALLS};
use super::*;
use crate::timer;

fn send(multiplexer: &Arc<Multiplexer>, what: &str) -> Result<Answer, TransportError> {
    let deadline = timer::now() + Duration::from_secs(2);
    multiplexer.send(&redis::cmd(what), deadline, || {})
}

/// Passes on a reply as the driver does.
fn reply(multiplexer: &Multiplexer, value: i64) {
    let mut passed = Passed::default();
    let is_asked_for = multiplexer.lock().reply(Value::Int(value), &mut passed);
    assert!(is_asked_for, "a reply that was asked for");
    passed.wake();
}

/// One caller is dropped at any moment before its reply comes. The other one still gets its own reply.
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

/// A reply comes while its caller polls, and a third request takes a place behind those that are removed.
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

/// The connection ends while requests are sent. Each of them is answered or refused.
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

/// Returns the server's answer to a request that was taken: the number of its owner, which is noted.
fn executed(member: &BatchMember, taken: &StdMutex<Vec<u64>>) -> Value {
    let Request::Release(ask) = member.request() else {
        unreachable!("the tests release")
    };
    taken.lock().unwrap().push(ask.owner.number);
    Value::Int(i64::try_from(ask.owner.number).unwrap())
}

/// Takes the next call, if one may be sent, as the driver does. Returns the server's answer to it.
fn take(multiplexer: &Multiplexer, taken: &StdMutex<Vec<u64>>) -> Option<Value> {
    // Noted under the mutex, before another thread can look.
    take_from(&mut multiplexer.lock(), taken)
}

fn take_from(state: &mut MultiplexerState, taken: &StdMutex<Vec<u64>>) -> Option<Value> {
    let load = state.next_call()?;
    Some(match load {
        Load::Packed(_) => Value::Int(77),
        Load::Alone(member, _) => executed(&member, taken),
        Load::Together(batch, ..) => {
            let members = batch.order().into_iter().map(|at| &batch.members()[at]);
            Value::Array(members.map(|member| executed(member, taken)).collect())
        }
    })
}

fn answered(multiplexer: &Multiplexer, value: Value) {
    let mut passed = Passed::default();
    assert!(multiplexer.lock().reply(value, &mut passed));
    passed.wake();
}

fn join(multiplexer: &Arc<Multiplexer>, number: u64) -> Result<Answer, TransportError> {
    let deadline = timer::now() + Duration::from_secs(2);
    multiplexer.join(member(number), deadline, Duration::from_secs(1))
}

/// Returns a multiplexer with the maximum number of calls in flight, whose callers were dropped.
fn busy() -> Arc<Multiplexer> {
    let multiplexer = Multiplexer::new();
    for number in 0..MOST_CALLS as u64 {
        let answer = join(&multiplexer, number).unwrap();
        assert!(take(&multiplexer, &StdMutex::default()).is_some());
        drop(answer);
    }
    multiplexer
}

/// Answers the calls in flight, and those that follow.
fn answer_all(multiplexer: &Multiplexer, taken: &StdMutex<Vec<u64>>) {
    answered(multiplexer, Value::Int(0));
    let mut replies: VecDeque<_> = (1..MOST_CALLS as i64).map(Value::Int).collect();
    replies.extend(take(multiplexer, taken));
    while let Some(reply) = replies.pop_front() {
        answered(multiplexer, reply);
        replies.extend(take(multiplexer, taken));
    }
}

/// One of three waiting callers is dropped at any moment: before the batch is made, while it is in flight, or after it
/// was answered. The others still get their own replies.
#[test]
fn a_caller_that_goes_while_it_waits_leaves_the_others_their_own_replies() {
    let name = "a_caller_that_goes_while_it_waits_leaves_the_others_their_own_replies";
    explore_all(name, 20_000, async || {
        let multiplexer = busy();
        let [one, two, three] = [10, 11, 12].map(|number| join(&multiplexer, number).unwrap());
        let driver = multiplexer.clone();
        let driving = spawn(async move { answer_all(&driver, &StdMutex::default()) });
        let going = spawn(async move { drop(two) });
        assert_eq!(one.await, Ok(Value::Int(10)));
        assert_eq!(three.await, Ok(Value::Int(12)));
        going.await.unwrap();
        driving.await.unwrap();
        let state = multiplexer.lock();
        assert!(state.waiting.is_empty() && state.calls.is_empty() && state.queue.is_empty());
    });
}

/// A waiting request is ended while the driver makes a batch of it and another one. Either it was definitely not sent, or
/// the batch contains it.
fn ends_while_it_waits(name: &'static str, end: fn(&Multiplexer)) {
    explore_all(name, 20_000, move || async move {
        let multiplexer = busy();
        let answers = [10, 11].map(|number| join(&multiplexer, number).unwrap());
        let taken = Arc::<StdMutex<Vec<u64>>>::default();
        let (driver, seen) = (multiplexer.clone(), taken.clone());
        let driving = spawn(async move { answer_all(&driver, &seen) });
        let ended = multiplexer.clone();
        let ending = spawn(async move { end(&ended) });
        for (number, answer) in (10..).zip(answers) {
            let answer = answer.await;
            let is_taken = taken.lock().unwrap().contains(&number);
            match answer {
                Ok(value) => assert_eq!(value, Value::Int(number as i64)),
                Err(error) => {
                    let is_in_doubt = error.execution == Execution::Indeterminate;
                    assert_eq!(is_in_doubt, is_taken, "{error}");
                }
            }
        }
        ending.await.unwrap();
        driving.await.unwrap();
    });
}

#[test]
fn a_request_whose_time_is_over_while_it_waits_is_definitely_not_sent() {
    let name = "a_request_whose_time_is_over_while_it_waits_is_definitely_not_sent";
    ends_while_it_waits(name, |multiplexer| {
        let mut woken = Vec::new();
        let late = timer::now() + Duration::from_secs(9);
        multiplexer.lock().expire(late, &mut woken);
        wake(woken);
    });
}

#[test]
fn what_waits_when_the_connection_is_closed_is_definitely_not_sent() {
    let name = "what_waits_when_the_connection_is_closed_is_definitely_not_sent";
    ends_while_it_waits(name, |multiplexer| {
        multiplexer.close(&error::closed("a test"));
    });
}

/// The server refuses a batch of two while a third request comes. Each is answered once; those two after they were sent
/// alone.
#[test]
fn who_was_refused_together_asks_alone() {
    let name = "who_was_refused_together_asks_alone";
    explore_all(name, 20_000, async || {
        let multiplexer = busy();
        let answers = [10, 11].map(|number| join(&multiplexer, number).unwrap());
        let refused = answers.map(|answer| {
            let multiplexer = multiplexer.clone();
            spawn(async move {
                assert_eq!(answer.await, Ok(Value::Nil));
                let alone = send(&multiplexer, "ALONE").unwrap();
                assert_eq!(alone.await, Ok(Value::Int(77)));
            })
        });
        let later = multiplexer.clone();
        let third = spawn(async move {
            let value = join(&later, 12).unwrap().await.unwrap();
            assert!(matches!(value, Value::Int(12)), "{value:?}");
        });
        let driver = multiplexer.clone();
        let driving = spawn(async move { refuse_then_serve(&driver).await });
        for caller in refused {
            caller.await.unwrap();
        }
        third.await.unwrap();
        driving.abort();
    });
}

/// Answers the calls in flight, refuses the batch of the two waiting requests, and answers all later ones.
async fn refuse_then_serve(multiplexer: &Multiplexer) {
    let taken = StdMutex::default();
    for number in 0..MOST_CALLS as i64 {
        answered(multiplexer, Value::Int(number));
    }
    let mut refusal = take(multiplexer, &taken).map(|reply| match reply {
        // The third request came before the batch was made.
        Value::Array(all) if all.len() == 3 => {
            Value::Array(vec![Value::Nil, Value::Nil, Value::Int(12)])
        }
        _ => Value::Nil,
    });
    let mut owed: VecDeque<_> = refusal.take().into_iter().collect();
    loop {
        while let Some(reply) = owed.pop_front() {
            answered(multiplexer, reply);
        }
        poll_fn(|cx| {
            let mut state = multiplexer.lock();
            state.driver = Some(cx.waker().clone());
            match state.has_more() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
        let mut state = multiplexer.lock();
        state.outbox.clear();
        owed.extend((0..state.calls.len()).map(|_| Value::Int(77)));
        owed.extend(take_from(&mut state, &taken));
    }
}

/// Reads requests that are numbers, and answers each with its number, in several packets and not always at once.
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

/// Several callers share a connection over a narrow stream, and some are dropped early. The server may close it at some
/// point. Each caller gets the reply to its own request, or an error.
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
