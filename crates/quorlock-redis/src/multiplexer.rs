//! Many callers on one connection: requests go out in the order in which they were sent, and replies come back in it.
//!
//! Commands are written into one buffer, and the driver carries all that has gathered there with one write. Requests that can go
//! together with others wait in a queue while the server has enough to do, and then go as one call: [`queue`].
//! (The `redis` crate's own multiplexed connection passes each request through two channels, in a future of more than
//! a kilobyte: it cost most of the time of an acquisition.)

mod driver;
mod hearing;
mod queue;

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock_core::transport::TransportError;
use redis::{Cmd, Value};

pub(crate) use self::driver::{Driver, Owes};
use self::queue::{Call, Queue};
use crate::error;
use crate::script::batch::{self, BatchMember, Verdict};
use crate::sync::{Mutex, MutexGuard};
use crate::timer::Instant;

/// How many replies the server may owe.
const MOST_WAITING: usize = 65_536;

/// How many that had their replies stay in the list, behind the oldest that was not taken.
const KEPT: usize = 1024;

type Reply = Result<Value, TransportError>;

/// What callers and the driver share.
#[derive(Debug)]
pub(crate) struct Multiplexer(Mutex<MultiplexerState>);

#[derive(Debug)]
struct MultiplexerState {
    /// Packed commands that the driver has not taken yet. They go before what is in the queue.
    outbox: Vec<u8>,
    /// The last of those that wait: no call carries them yet.
    queue: Queue,
    /// What the server has not answered.
    calls: VecDeque<Call>,
    /// In the order in which they were sent.
    waiting: VecDeque<Waiting>,
    /// The number of the first that waits.
    first: u64,
    /// How many of them, from the first, have had their replies: the server owes the rest, but for what is in the queue.
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
        Arc::new(Multiplexer(Mutex::new(MultiplexerState {
            outbox: Vec::new(),
            queue: Queue::default(),
            calls: VecDeque::new(),
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
        self.enter(deadline, 0, |state| {
            state.write(cmd);
            sent();
        })
    }

    /// Sends a request right behind another command, whose reply no caller takes. No other caller's request comes between them, and
    /// a caller that leaves leaves both or none of them behind.
    ///
    /// # Errors
    /// A definite one, when the connection is closed or too many requests wait.
    pub(crate) fn send_behind(
        self: &Arc<Self>,
        first: &Cmd,
        cmd: &Cmd,
        deadline: Instant,
        sent: impl FnOnce(),
    ) -> Result<Answer, TransportError> {
        self.enter(deadline, 1, |state| {
            state.write(first);
            state.write(cmd);
            sent();
        })
    }

    /// Sends a request that may go together with others: at once, unless the server has enough to do. Its reply is
    /// [`Value::Nil`] where nothing was done about it and it may be sent alone.
    ///
    /// The driver says when it goes out, and that a silence of `patience` from then on is suspicious.
    ///
    /// # Errors
    /// A definite one, when the connection is closed or too many requests wait.
    ///
    /// # Cancel safety
    /// An answer that is dropped before its request has gone out takes that back.
    pub(crate) fn join(
        self: &Arc<Self>,
        member: BatchMember,
        deadline: Instant,
        patience: Duration,
    ) -> Result<Answer, TransportError> {
        self.enter(deadline, 0, |state| state.queue.push(member, patience))
    }

    /// Gives a request a place among those that wait, behind so many commands whose replies no caller takes.
    fn enter(
        self: &Arc<Self>,
        deadline: Instant,
        behind: usize,
        write: impl FnOnce(&mut MultiplexerState),
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
        for _ in 0..behind {
            let slot = Slot::Left;
            state.waiting.push_back(Waiting { deadline, slot });
        }
        let number = state.first + state.waiting.len() as u64;
        state.waiting.push_back(Waiting {
            deadline,
            slot: Slot::Open(None),
        });
        state.earliest = Some(state.earliest.map_or(deadline, |at| at.min(deadline)));
        write(&mut state);
        let driver = state.driver.take();
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
        act(if state.calls.is_empty() {
            Owed::Nothing
        } else {
            Owed::Some
        });
    }

    /// Ends every request that waits, and refuses those to come.
    pub(crate) fn close(&self, why: &TransportError) {
        let mut woken = Vec::new();
        {
            let mut state = self.lock();
            state.closed.get_or_insert_with(|| why.clone());
            state.outbox = Vec::new();
            state.answer_all(
                |_, stage| {
                    Some(Err(match stage {
                        RequestStage::Sent => why.clone(),
                        RequestStage::Queued => error::closed_before(&why.detail),
                    }))
                },
                &mut woken,
            );
            state.queue.clear();
        }
        wake(woken);
    }

    /// Held for a few instructions, never across an await.
    fn lock(&self) -> MutexGuard<'_, MultiplexerState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MultiplexerState {
    /// Writes a command, whose place among those that wait is taken under the same lock.
    fn write(&mut self, cmd: &Cmd) {
        if self.queue.is_empty() {
            cmd.write_packed_command(&mut self.outbox);
            self.calls.push_back(Call::command());
        } else {
            self.queue.push_command(cmd.get_packed_command());
        }
    }

    /// Whether there is something that the driver may take.
    fn has_more(&self) -> bool {
        !self.outbox.is_empty() || self.queue.may_go()
    }

    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.waiting.get_mut(index).map(|waiting| &mut waiting.slot)
    }

    /// The reply to the oldest call without one; `false` if there is none.
    fn reply(&mut self, value: Value, passed: &mut Passed) -> bool {
        let Some(call) = self.calls.pop_front() else {
            passed.unwanted.push(value);
            return false;
        };
        self.queue.is_answered(&call);
        match call.places() {
            &[place] => self.settle(place, Ok(value), passed),
            places => self.share_out(places, value, passed),
        }
        self.replied += call.covers();
        self.shorten();
        true
    }

    /// Gives one of those that wait its reply: the place is that after those that were replied to.
    fn settle(&mut self, place: usize, reply: Reply, passed: &mut Passed) {
        match self.waiting.get_mut(self.replied + place) {
            Some(Waiting { slot, .. }) if matches!(slot, Slot::Open(_)) => {
                slot.answer(reply, &mut passed.woken);
            }
            _ => passed.unwanted.extend(reply),
        }
    }

    /// Gives each of those that went together its reply.
    fn share_out(&mut self, places: &[usize], value: Value, passed: &mut Passed) {
        let all = places.iter().copied();
        match batch::judge(value, places.len()) {
            Verdict::Replies(values) => {
                for (place, value) in all.zip(values) {
                    self.settle(place, Ok(value), passed);
                }
            }
            Verdict::Error(value) => {
                all.for_each(|place| self.settle(place, Ok(value.clone()), passed));
            }
            Verdict::Alone(why) => {
                self.queue.go_alone(why);
                all.for_each(|place| self.settle(place, Ok(Value::Nil), passed));
            }
            Verdict::Nonsense(value) => {
                let error = error::nonsense(&value);
                all.for_each(|place| self.settle(place, Err(error.clone()), passed));
                passed.unwanted.push(value);
            }
        }
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

    /// Ends those that are out of time; the replies to those that were sent may still come.
    fn expire(&mut self, now: Instant, woken: &mut Vec<Waker>) {
        if self.earliest.is_none_or(|at| now < at) {
            return;
        }
        self.answer_all(
            |deadline, stage| {
                (deadline <= now).then(|| {
                    Err(match stage {
                        RequestStage::Sent => error::unanswered(),
                        RequestStage::Queued => error::not_sent_in_time(),
                    })
                })
            },
            woken,
        );
        let open = self.waiting.iter();
        let open = open.filter(|waiting| matches!(waiting.slot, Slot::Open(_)));
        self.earliest = open.map(|waiting| waiting.deadline).min();
    }

    /// Answers those that wait, as far as there is an answer for their deadlines.
    fn answer_all(
        &mut self,
        answer: impl Fn(Instant, RequestStage) -> Option<Reply>,
        woken: &mut Vec<Waker>,
    ) {
        let sent = self.waiting.len() - self.queue.len();
        for (at, waiting) in self.waiting.iter_mut().enumerate() {
            let stage = if at < sent {
                RequestStage::Sent
            } else {
                RequestStage::Queued
            };
            if let Slot::Open(_) = waiting.slot
                && let Some(answer) = answer(waiting.deadline, stage)
            {
                waiting.slot.answer(answer, woken);
            }
        }
    }
}

/// How far a request has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RequestStage {
    /// A call carries it: the server may have executed it.
    Sent,
    /// It is in the queue.
    Queued,
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
mod tests;

#[cfg(all(test, shuttle))]
mod threads;
