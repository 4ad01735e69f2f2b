//! Many callers on one connection: requests go out in the order in which they were sent, and replies come back in it.
//!
//! Callers write into one buffer and wait in one queue; the driver carries all that has gathered there with one write.
//! (The `redis` crate's own multiplexed connection passes each request through two channels, in a future of more than
//! a kilobyte: it cost most of the time of an acquisition.)

mod driver;

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use quorlock_core::transport::TransportError;
use redis::{Cmd, Value};

pub(crate) use self::driver::Driver;
use crate::error;
use crate::sync::{Mutex, MutexGuard};
use crate::timer::Instant;

/// How many replies the server may owe.
const MOST_WAITING: usize = 65_536;

/// How many that had their replies stay in the list, behind the oldest that was not taken.
const KEPT: usize = 1024;

type Reply = Result<Value, TransportError>;

/// What callers and the driver share.
#[derive(Debug)]
pub(crate) struct Multiplexer(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Packed requests that the driver has not taken yet.
    outbox: Vec<u8>,
    /// In the order in which they were sent.
    waiting: VecDeque<Waiting>,
    /// The number of the first that waits.
    first: u64,
    /// How many of them, from the first, have had their replies: the server owes the rest.
    replied: usize,
    /// Replies that their callers have not taken for long: each is that of a future that still exists, and was not
    /// polled.
    aside: BTreeMap<u64, Reply>,
    /// No request is out of time before this.
    earliest: Option<Instant>,
    /// Why the connection can be used no more.
    closed: Option<TransportError>,
    driver: Option<Waker>,
}

/// Whether the server owes a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owed {
    /// At least one.
    Some,
    Nothing,
}

#[derive(Debug)]
struct Waiting {
    deadline: Instant,
    slot: Slot,
}

#[derive(Debug)]
enum Slot {
    Open(Option<Waker>),
    Answered(Reply),
    /// The caller has its answer, or has gone.
    Left,
}

impl Multiplexer {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Multiplexer(Mutex::new(State {
            outbox: Vec::new(),
            waiting: VecDeque::new(),
            first: 0,
            replied: 0,
            aside: BTreeMap::new(),
            earliest: None,
            closed: None,
            driver: None,
        })))
    }

    /// Sends a request, whose reply is waited for until the deadline. `sent` is called before it can leave.
    ///
    /// # Errors
    /// A definite one, when the connection is closed or too many requests wait.
    pub(crate) fn send(
        self: &Arc<Self>,
        cmd: &Cmd,
        deadline: Instant,
        sent: impl FnOnce(),
    ) -> Result<Answer, TransportError> {
        let mut state = self.lock();
        if let Some(error) = &state.closed {
            // It had been made, so its address is right.
            return Err(error::closed_before(&error.detail));
        }
        if MOST_WAITING <= state.waiting.len() - state.replied {
            return Err(error::unreachable(
                "too many requests wait for this server: nothing was sent",
            ));
        }
        cmd.write_packed_command(&mut state.outbox);
        let number = state.first + state.waiting.len() as u64;
        state.waiting.push_back(Waiting {
            deadline,
            slot: Slot::Open(None),
        });
        state.earliest = Some(state.earliest.map_or(deadline, |at| at.min(deadline)));
        let driver = state.driver.take();
        sent();
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
        Ok(Answer {
            multiplexer: Arc::clone(self),
            number,
        })
    }

    /// Acts on whether the server owes a reply. Nothing is sent meanwhile.
    pub(crate) fn look(&self, act: impl FnOnce(Owed)) {
        let state = self.lock();
        act(if state.replied < state.waiting.len() {
            Owed::Some
        } else {
            Owed::Nothing
        });
    }

    /// Ends every request that waits, and refuses those to come.
    pub(crate) fn close(&self, why: &TransportError) {
        let mut woken = Vec::new();
        {
            let mut state = self.lock();
            state.closed.get_or_insert_with(|| why.clone());
            state.outbox = Vec::new();
            state.answer_all(|_| Some(Err(why.clone())), &mut woken);
        }
        wake(woken);
    }

    /// Held for a few instructions, never across an await.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.waiting.get_mut(index).map(|waiting| &mut waiting.slot)
    }

    /// The reply to the oldest request without one; `false` if there is none.
    fn reply(&mut self, value: Value, passed: &mut Passed) -> bool {
        let Some(waiting) = self.waiting.get_mut(self.replied) else {
            passed.unwanted.push(value);
            return false;
        };
        match waiting.slot {
            Slot::Open(_) => waiting.slot.answer(Ok(value), &mut passed.woken),
            Slot::Answered(_) | Slot::Left => passed.unwanted.push(value),
        }
        self.replied += 1;
        self.shorten();
        true
    }

    /// Forgets the requests at the front whose replies have come and whose callers have gone. Where a caller has not
    /// taken its reply, that is put aside after a while: all that came later would stay in the list behind it.
    fn shorten(&mut self) {
        while 0 < self.replied
            && let Some(Waiting { slot, .. }) = self.waiting.front_mut()
        {
            match std::mem::replace(slot, Slot::Left) {
                Slot::Left => {}
                Slot::Answered(reply) if KEPT < self.replied => {
                    self.aside.insert(self.first, reply);
                }
                stays => {
                    *slot = stays;
                    return;
                }
            }
            self.waiting.pop_front();
            self.first += 1;
            self.replied -= 1;
        }
    }

    /// Ends those that are out of time; their replies may still come.
    fn expire(&mut self, now: Instant, woken: &mut Vec<Waker>) {
        if self.earliest.is_none_or(|at| now < at) {
            return;
        }
        self.answer_all(
            |deadline| (deadline <= now).then(|| Err(error::unanswered())),
            woken,
        );
        let open = self.waiting.iter();
        let open = open.filter(|waiting| matches!(waiting.slot, Slot::Open(_)));
        self.earliest = open.map(|waiting| waiting.deadline).min();
    }

    /// Answers those that wait, as far as there is an answer for their deadlines.
    fn answer_all(&mut self, answer: impl Fn(Instant) -> Option<Reply>, woken: &mut Vec<Waker>) {
        for waiting in &mut self.waiting {
            if let Slot::Open(_) = waiting.slot
                && let Some(answer) = answer(waiting.deadline)
            {
                waiting.slot.answer(answer, woken);
            }
        }
    }
}

impl Slot {
    fn answer(&mut self, reply: Reply, woken: &mut Vec<Waker>) {
        if let Slot::Open(waker) = self {
            woken.extend(waker.take());
            *self = Slot::Answered(reply);
        }
    }
}

/// What is done about replies outside of the mutex.
#[derive(Default)]
struct Passed {
    woken: Vec<Waker>,
    /// Replies that no caller takes any more. Dropping one of a million elements takes milliseconds.
    unwanted: Vec<Value>,
}

impl Passed {
    fn wake(self) {
        wake(self.woken);
    }
}

fn wake(woken: Vec<Waker>) {
    for waker in woken {
        waker.wake();
    }
}

/// The reply to one request. Dropped early, the reply is discarded when it comes.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub(crate) struct Answer {
    multiplexer: Arc<Multiplexer>,
    number: u64,
}

impl Future for Answer {
    type Output = Reply;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        let mut state = self.multiplexer.lock();
        if let Some(reply) = state.aside.remove(&self.number) {
            return Poll::Ready(reply);
        }
        let slot = state
            .slot(self.number)
            .expect("BUG: an answer was forgotten, or is polled again");
        match slot {
            Slot::Open(Some(waker)) => waker.clone_from(cx.waker()),
            Slot::Open(none) => *none = Some(cx.waker().clone()),
            Slot::Answered(_) => {
                let slot = std::mem::replace(slot, Slot::Left);
                state.shorten();
                if let Slot::Answered(reply) = slot {
                    return Poll::Ready(reply);
                }
            }
            Slot::Left => {}
        }
        Poll::Pending
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let mut state = self.multiplexer.lock();
        if let Some(slot) = state.slot(self.number) {
            let before = std::mem::replace(slot, Slot::Left);
            state.shorten();
            // Whatever a waker or a value does when it is dropped, it does not do it here inside.
            drop(state);
            drop(before);
        } else {
            let reply = state.aside.remove(&self.number);
            drop(state);
            drop(reply);
        }
    }
}

#[cfg(test)]
mod tests {
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
        let driver = Driver::new(Box::new(stream), Arc::clone(&multiplexer), registry);
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
                // In pieces that end anywhere.
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

    /// Replies to so many requests with `:1`, and then to no more.
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

    /// Futures that are neither polled nor dropped keep their answers, and keep no other call from being sent.
    #[tokio::test(start_paused = true)]
    async fn answers_that_are_not_taken_do_not_count_as_requests_that_wait() {
        let (multiplexer, server) = connected();
        timer::spawn(answer(server, 200_000));
        let mut kept = Vec::new();
        for round in 0..100 {
            let mut answers: Vec<_> = (0..2_000).map(|_| ask(&multiplexer, "PING")).collect();
            // Every second one of the first rounds, 70,000 in all, and a single one later.
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
        // Whether or not the callers still wait for it.
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
            // It had been made: its address was right.
            assert_eq!(refused.cause, Cause::Closed);
            assert!(!refused.to_string().contains("address"), "{refused}");
        }
    }
}
