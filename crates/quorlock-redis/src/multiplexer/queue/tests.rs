//! Tests which requests are batched and which are sent alone, on a connection whose other end is the test.

use std::sync::Arc;

use quorlock_core::message::{Mode, Release, Request};
use quorlock_core::name::Name;
use quorlock_core::owner::{ClientId, OwnerId};
use quorlock_core::transport::{Execution, TransportError};
use redis::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::*;
use crate::multiplexer::{Answer, Driver, Multiplexer};
use crate::resp::Decoder;
use crate::script::batch;
use crate::timer::{self, Instant};

/// Returns a release for the owner and the name of this number.
pub(in crate::multiplexer) fn member(number: u64) -> BatchMember {
    let request = Request::Release(Release {
        name: Name::new(format!("orders/{number}")).unwrap(),
        mode: Mode::Plain,
        owner: OwnerId {
            client: ClientId::from_random(0),
            number,
        },
        count: 0,
    });
    BatchMember::of(&Arc::new(request)).expect("it can go together with others")
}

/// The other end of a connection.
struct Server {
    stream: DuplexStream,
    heard: Vec<u8>,
}

impl Server {
    /// Reads the next call: the numbers of its requests, and how it identifies its script. A command has its first word.
    async fn call(&mut self) -> (String, Vec<u64>) {
        let words = loop {
            if let Some(words) = self.words() {
                break words;
            }
            let mut buffer = [0; 4096];
            let read = self.stream.read(&mut buffer).await.unwrap();
            assert_ne!(read, 0, "the connection ended");
            self.heard.extend_from_slice(&buffer[..read]);
        };
        let owners = words.iter().filter_map(|word| word.strip_prefix(OWNER));
        let numbers = owners.map(|number| number.parse().unwrap()).collect();
        (words[0].clone(), numbers)
    }

    fn words(&mut self) -> Option<Vec<String>> {
        let decoded = Decoder::default().decode(&self.heard).unwrap();
        let Some(Value::Array(words)) = decoded.reply else {
            return None;
        };
        self.heard.drain(..decoded.used);
        let text = |word: Value| match word {
            Value::BulkString(bytes) => String::from_utf8(bytes).unwrap(),
            other => panic!("{other:?} is no word"),
        };
        Some(words.into_iter().map(text).collect())
    }

    /// Checks that nothing more was sent.
    async fn hears_nothing(&mut self) {
        let mut buffer = [0; 4096];
        let bound = timer::now() + Duration::from_millis(100);
        let read = timer::by(bound, self.stream.read(&mut buffer)).await;
        assert!(read.is_none(), "{:?}", String::from_utf8_lossy(&buffer));
        assert!(self.heard.is_empty());
    }

    async fn says(&mut self, reply: &str) {
        self.stream.write_all(reply.as_bytes()).await.unwrap();
    }

    /// Answers a batch with these numbers.
    async fn answers(&mut self, numbers: &[u64]) {
        let replies: String = numbers.iter().map(|n| format!(":{n}\r\n")).collect();
        self.says(&format!("*{}\r\n{replies}", numbers.len())).await;
    }
}

const OWNER: &str = "00000000-0000-4000-8000-000000000000:";

fn connected() -> (Arc<Multiplexer>, Server) {
    connected_by(1 << 16)
}

/// Returns a connection with room for so many bytes on their way to the server.
fn connected_by(room: usize) -> (Arc<Multiplexer>, Server) {
    let (stream, server) = tokio::io::duplex(room);
    let multiplexer = Multiplexer::new();
    let shared = Arc::clone(&multiplexer);
    timer::spawn(Driver::new(
        Box::new(stream),
        shared,
        None,
        Box::new(|_| {}),
    ));
    let heard = Vec::new();
    let stream = server;
    (multiplexer, Server { stream, heard })
}

fn soon() -> Instant {
    timer::now() + Duration::from_secs(2)
}

fn join(multiplexer: &Arc<Multiplexer>, number: u64) -> Answer {
    let patience = Duration::from_secs(1);
    multiplexer.join(member(number), soon(), patience).unwrap()
}

/// Returns a connection with the maximum number of calls in flight, each with one request.
async fn busy() -> (Arc<Multiplexer>, Server, Vec<Answer>) {
    let (multiplexer, mut server) = connected();
    let mut answers = Vec::new();
    for number in 0..MOST_CALLS as u64 {
        answers.push(join(&multiplexer, number));
        let (verb, numbers) = server.call().await;
        assert_eq!((verb.as_str(), numbers), ("EVALSHA", vec![number]));
    }
    (multiplexer, server, answers)
}

async fn number(answer: Answer) -> u64 {
    match answer.await {
        Ok(Value::Int(number)) => u64::try_from(number).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_while_enough_calls_are_under_way_goes_together_after_the_next_reply() {
    let (multiplexer, mut server, mut first) = busy().await;
    let waiting: Vec<_> = (10..15).map(|number| join(&multiplexer, number)).collect();
    server.hears_nothing().await;
    server.says(":0\r\n").await;
    assert_eq!(number(first.remove(0)).await, 0);
    let (verb, numbers) = server.call().await;
    assert_eq!(
        (verb.as_str(), &numbers),
        ("EVALSHA", &vec![10, 11, 12, 13, 14])
    );
    server.says(":1\r\n:2\r\n:3\r\n").await;
    server.answers(&numbers).await;
    for (expected, answer) in (10..).zip(waiting) {
        assert_eq!(number(answer).await, expected);
    }
    for (expected, answer) in (1..).zip(first) {
        assert_eq!(number(answer).await, expected);
    }
    let state = multiplexer.lock();
    assert!(state.waiting.is_empty() && state.calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_cancelled_while_it_waits_is_not_sent() {
    let (multiplexer, mut server, first) = busy().await;
    let [one, two, three, four] = [10, 11, 12, 13].map(|number| join(&multiplexer, number));
    drop((one, three));
    server.says(":0\r\n").await;
    let (_, numbers) = server.call().await;
    assert_eq!(numbers, [11, 13]);
    drop(two);
    server.says(":1\r\n:2\r\n:3\r\n").await;
    server.answers(&numbers).await;
    assert_eq!(number(four).await, 13);
    // All requests in the queue may have been cancelled.
    let last: Vec<_> = (20..23).map(|number| join(&multiplexer, number)).collect();
    drop((first, last));
    server.hears_nothing().await;
    let state = multiplexer.lock();
    assert!(state.waiting.is_empty() && state.calls.is_empty() && state.queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_time_is_over_while_it_waits_was_not_sent() {
    let (multiplexer, mut server, first) = busy().await;
    let early = timer::now() + Duration::from_millis(50);
    let patience = Duration::from_secs(1);
    let hasty = multiplexer.join(member(10), early, patience).unwrap();
    let patient = join(&multiplexer, 11);
    let error = hasty.await.unwrap_err();
    assert_eq!(timer::now(), early);
    assert_eq!(error.execution, Execution::Definite, "{error}");
    server.says(":0\r\n").await;
    assert_eq!(server.call().await.1, [11]);
    server.says(":1\r\n:2\r\n:3\r\n:11\r\n").await;
    assert_eq!(number(patient).await, 11);
    for (expected, answer) in (0..).zip(first) {
        assert_eq!(number(answer).await, expected);
    }
}

/// The network is stuck, and the command is behind a request that waits. When the network recovers, the server executes
/// the command: a client that was told that nothing was sent would leave its claim behind.
#[tokio::test(start_paused = true)]
async fn a_command_whose_time_is_over_while_it_waits_is_still_sent_and_is_in_doubt() {
    let (multiplexer, mut server) = connected_by(64);
    let first = join(&multiplexer, 0);
    // The driver writes a part of it.
    tokio::task::yield_now().await;
    let second = join(&multiplexer, 1);
    let early = timer::now() + Duration::from_millis(50);
    let ping = redis::cmd("PING");
    let send = || multiplexer.send(&ping, early, || {}).unwrap();
    for command in [send(), send()] {
        let error = command.await.unwrap_err();
        assert_eq!(timer::now(), early);
        assert_eq!(error.execution, Execution::Indeterminate, "{error}");
    }
    assert_eq!(server.call().await.1, [0]);
    assert_eq!(server.call().await.1, [1]);
    assert_eq!(server.call().await.0, "PING");
    assert_eq!(server.call().await.0, "PING");
    server.says(":0\r\n:1\r\n+PONG\r\n+PONG\r\n").await;
    assert_eq!((number(first).await, number(second).await), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn when_the_connection_ends_what_was_sent_is_in_doubt_and_what_waits_is_not() {
    let (multiplexer, mut server, mut first) = busy().await;
    let [one, two] = [10, 11].map(|number| join(&multiplexer, number));
    server.says(":0\r\n").await;
    assert_eq!(server.call().await.1, [10, 11]);
    let waits = join(&multiplexer, 12);
    assert_eq!(number(first.remove(0)).await, 0);
    drop(server);
    let doubt = |answer: Result<Value, TransportError>| answer.unwrap_err().execution;
    for answer in first.into_iter().chain([one, two]) {
        assert_eq!(doubt(answer.await), Execution::Indeterminate);
    }
    assert_eq!(doubt(waits.await), Execution::Definite);
}

#[tokio::test(start_paused = true)]
async fn a_call_of_several_that_is_refused_was_not_executed_and_the_next_ones_go_alone() {
    for refusal in [
        "-UNDONE ERR The user executing the script can't run this command\r\n",
        "-NOPERM No permissions to access a key\r\n",
        "-CROSSSLOT Keys in request don't hash to the same slot\r\n",
    ] {
        let (multiplexer, mut server, first) = busy().await;
        let [one, two] = [10, 11].map(|number| join(&multiplexer, number));
        server.says(":0\r\n").await;
        assert_eq!(server.call().await.1, [10, 11]);
        server.says(":1\r\n:2\r\n:3\r\n").await;
        server.says(refusal).await;
        assert_eq!([one.await, two.await], [Ok(Value::Nil), Ok(Value::Nil)]);
        drop(first);
        let alone = [20, 21].map(|number| join(&multiplexer, number));
        assert_eq!(server.call().await.1, [20]);
        assert_eq!(server.call().await.1, [21]);
        drop(alone);
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_call_that_found_another_process_or_no_script_the_next_ones_go_together() {
    for (refusal, says) in [
        // The script is sent as text.
        ("-NOSCRIPT No matching script.\r\n", "EVAL"),
        ("$-1\r\n", "EVALSHA"),
    ] {
        let (multiplexer, mut server, first) = busy().await;
        let [one, two] = [10, 11].map(|number| join(&multiplexer, number));
        server.says(":0\r\n").await;
        assert_eq!(server.call().await.1, [10, 11]);
        let waiting = [20, 21].map(|number| join(&multiplexer, number));
        server.says(":1\r\n:2\r\n:3\r\n").await;
        let (_, together) = server.call().await;
        assert_eq!(together, [20, 21]);
        server.says(refusal).await;
        assert_eq!([one.await, two.await], [Ok(Value::Nil), Ok(Value::Nil)]);
        server.answers(&together).await;
        for (expected, answer) in (20..).zip(waiting) {
            assert_eq!(number(answer).await, expected);
        }
        let singles: Vec<_> = (30..30 + MOST_CALLS as u64)
            .map(|number| join(&multiplexer, number))
            .collect();
        let (verb, numbers) = server.call().await;
        assert_eq!((verb.as_str(), numbers.len()), (says, MOST_CALLS));
        drop((first, singles));
    }
}

#[tokio::test(start_paused = true)]
async fn any_other_error_is_that_of_each() {
    let (multiplexer, mut server, first) = busy().await;
    let [one, two] = [10, 11].map(|number| join(&multiplexer, number));
    server.says(":0\r\n").await;
    assert_eq!(server.call().await.1, [10, 11]);
    server.says(":1\r\n:2\r\n:3\r\n-LOADING it\r\n").await;
    for answer in [one.await, two.await] {
        assert!(matches!(answer, Ok(Value::ServerError(_))), "{answer:?}");
    }
    // There are fewer replies than requests, so it is not known which request each one answers.
    let [one, two] = [20, 21].map(|number| join(&multiplexer, number));
    assert_eq!(server.call().await.1, [20, 21]);
    server.answers(&[20]).await;
    for answer in [one.await, two.await] {
        assert_eq!(answer.unwrap_err().execution, Execution::Indeterminate);
    }
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn a_command_does_not_overtake_what_waits_and_does_not_wait_itself() {
    let (multiplexer, mut server, first) = busy().await;
    let waiting = [10, 11].map(|number| join(&multiplexer, number));
    let command = multiplexer
        .send(&redis::cmd("PING"), soon(), || {})
        .unwrap();
    let last = join(&multiplexer, 12);
    assert_eq!(server.call().await.1, [10, 11]);
    assert_eq!(server.call().await.0, "PING");
    server.hears_nothing().await;
    server.says(":0\r\n:1\r\n:2\r\n:3\r\n").await;
    server.answers(&[10, 11]).await;
    server.says(":77\r\n").await;
    assert_eq!(number(command).await, 77);
    assert_eq!(server.call().await.1, [12]);
    drop((first, waiting, last));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_full_waits_for_no_reply() {
    let (multiplexer, mut server, first) = busy().await;
    let most = batch::MOST_CLAIMS as u64;
    let mut waiting: Vec<_> = (10..9 + most).map(|n| join(&multiplexer, n)).collect();
    server.hears_nothing().await;
    waiting.push(join(&multiplexer, 9 + most));
    let full: Vec<u64> = (10..10 + most).collect();
    assert_eq!(server.call().await.1, full);
    let last = join(&multiplexer, 1_000);
    server.hears_nothing().await;
    drop((first, waiting, last));
}

#[tokio::test(start_paused = true)]
async fn what_goes_alone_waits_for_no_reply() {
    let (multiplexer, mut server, first) = busy().await;
    let [one, two] = [10, 11].map(|number| join(&multiplexer, number));
    server.says(":0\r\n").await;
    assert_eq!(server.call().await.1, [10, 11]);
    server.says(":1\r\n:2\r\n:3\r\n").await;
    server
        .says("-CROSSSLOT Keys in request don't hash to the same slot\r\n")
        .await;
    assert_eq!([one.await, two.await], [Ok(Value::Nil), Ok(Value::Nil)]);
    let numbers = 20..22 + MOST_CALLS as u64;
    let alone: Vec<_> = numbers.clone().map(|n| join(&multiplexer, n)).collect();
    for number in numbers {
        assert_eq!(server.call().await.1, [number]);
    }
    drop((first, alone));
}

#[tokio::test(start_paused = true)]
async fn one_name_stands_once_in_a_call_and_a_call_has_a_bound() {
    let (multiplexer, mut server, first) = busy().await;
    let most = batch::MOST_CLAIMS as u64;
    let waiting: Vec<_> = (10..15)
        .chain([12])
        .chain(100..100 + most)
        .map(|number| join(&multiplexer, number))
        .collect();
    server.says(":0\r\n:1\r\n:2\r\n:3\r\n").await;
    assert_eq!(server.call().await.1, [10, 11, 12, 13, 14]);
    let expected: Vec<u64> = [12].into_iter().chain(100..99 + most).collect();
    assert_eq!(server.call().await.1, expected);
    assert_eq!(server.call().await.1, [99 + most]);
    drop((first, waiting));
}
