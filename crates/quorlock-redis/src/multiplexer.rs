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
mod tests;

#[cfg(all(test, shuttle))]
mod threads;
