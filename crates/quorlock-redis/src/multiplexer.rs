//! Shares one connection between many callers. Requests are sent in the order of calls, and replies come in this order.
//!
//! The driver sends all commands in its buffer with one write. Requests that can be batched wait in a queue while
//! enough calls are in flight, and are then sent as one call: [`queue`]. (The multiplexed connection of the `redis`
//! crate passes each request through two channels, in a future of over a kilobyte. This took most of the time of an
//! acquisition.)

mod answer;
mod bundle;
mod driver;
mod hearing;
mod queue;
mod watch;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::Duration;

use quorlock_core::transport::TransportError;
use redis::{Cmd, Value};

pub(crate) use self::answer::Answer;
use self::bundle::Bundle;
pub(crate) use self::bundle::{NameHash, Native};
pub(crate) use self::driver::{Driver, Owes};
use self::queue::{Call, Packed, Places, Queue};
pub(crate) use self::watch::Watch;
use crate::error;
use crate::script::batch::{self, BatchMember, Verdict};
use crate::sync::{Mutex, MutexGuard};
use crate::timer::Instant;

/// Largest number of replies that the server may owe. Above this number, requests fail immediately instead of waiting.
const MOST_WAITING: usize = 65_536;

/// Number of answered requests that are kept behind the oldest reply that was not taken, so that the list stays short.
const KEPT: usize = 1024;

type Reply = Result<Value, TransportError>;

/// The state that callers and the driver share.
#[derive(Debug)]
pub(crate) struct Multiplexer(Mutex<MultiplexerState>);

#[derive(Debug)]
struct MultiplexerState {
    /// Packed commands that the driver has not taken yet. They are sent before the queue.
    outbox: Vec<u8>,
    /// Requests without a script to which more can be added: behind the outbox, and the last of the calls.
    bundle: Bundle,
    /// The newest of the waiting requests, which no call carries yet.
    queue: Queue,
    /// Calls that the server has not answered.
    calls: VecDeque<Call>,
    /// Requests that have no reply or whose reply was not taken, in the order in which they were sent.
    waiting: VecDeque<Waiting>,
    /// Number of the first request in `waiting`.
    first: u64,
    /// Number of answered requests at the front of `waiting`. The server owes the rest, except to the queue.
    replied: usize,
    /// Replies that were not taken for a long time. Each belongs to a future that exists but is not polled.
    aside: BTreeMap<u64, Reply>,
    /// No request times out before this time.
    earliest: Option<Instant>,
    /// Why the connection is unusable.
    closed: Option<TransportError>,
    driver: Option<Waker>,
}

/// Whether the server owes a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owed {
    /// The server owes at least one reply.
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
    /// The caller has its reply, or was dropped.
    Left,
}

impl Multiplexer {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Multiplexer(Mutex::new(MultiplexerState {
            outbox: Vec::new(),
            bundle: Bundle::default(),
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

    /// Sends a request, and waits for the reply until the deadline. `sent` is called before the request can leave.
    ///
    /// # Errors
    /// A definite error if the connection is closed or too many requests wait.
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

    /// Sends the commands of a request without a script, and waits for all replies until the deadline: they are one
    /// array. `sent` is called before the commands can leave.
    ///
    /// # Errors
    /// A definite error if the connection is closed or too many requests wait.
    pub(crate) fn send_native(
        self: &Arc<Self>,
        native: Native,
        deadline: Instant,
        sent: impl FnOnce(),
    ) -> Result<Answer, TransportError> {
        self.enter(deadline, 0, |state| {
            state.write_native(native);
            sent();
        })
    }

    /// Sends two commands with no other request between them. The reply to `first` is discarded. If the caller is
    /// dropped, either both are sent or neither is.
    ///
    /// # Errors
    /// A definite error if the connection is closed or too many requests wait.
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

    /// Sends a request that may be batched with others: at once, unless enough calls are in flight. The reply is
    /// [`Value::Nil`] if nothing was done and the request may be sent alone.
    ///
    /// When the request is sent, the driver records that a silence of `patience` is suspicious from then on.
    ///
    /// # Errors
    /// A definite error if the connection is closed or too many requests wait.
    ///
    /// # Cancel safety
    /// If the answer is dropped before its request is sent, the request is not sent.
    pub(crate) fn join(
        self: &Arc<Self>,
        member: BatchMember,
        deadline: Instant,
        patience: Duration,
    ) -> Result<Answer, TransportError> {
        self.enter(deadline, 0, |state| state.queue.push(member, patience))
    }

    /// Queues a request behind the waiting ones, after `behind` commands whose replies are discarded.
    fn enter(
        self: &Arc<Self>,
        deadline: Instant,
        behind: usize,
        write: impl FnOnce(&mut MultiplexerState),
    ) -> Result<Answer, TransportError> {
        let mut state = self.lock();
        if let Some(error) = &state.closed {
            // The cause is `Closed`, not `Unreachable`: the connection had been made, so the address is right.
            return Err(error::closed_before(error));
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
        // Outside the mutex; otherwise the driver would wake up and wait for it.
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
        Ok(Answer {
            multiplexer: Arc::clone(self),
            number: Some(number),
        })
    }

    /// Calls `act` and tells it whether the server owes a reply. No request is sent meanwhile.
    pub(crate) fn look(&self, act: impl FnOnce(Owed)) {
        let state = self.lock();
        act(if state.calls.is_empty() {
            Owed::Nothing
        } else {
            Owed::Some
        });
    }

    /// Ends every waiting request, and refuses later ones.
    pub(crate) fn close(&self, why: &TransportError) {
        let mut woken = Vec::new();
        {
            let mut state = self.lock();
            state.closed.get_or_insert_with(|| why.clone());
            state.outbox = Vec::new();
            state.bundle = Bundle::default();
            state.answer_all(
                |_, stage| {
                    Some(Err(match stage {
                        RequestStage::Sent => why.clone(),
                        RequestStage::Queued | RequestStage::Follows => error::closed_before(why),
                    }))
                },
                &mut woken,
            );
            state.queue.clear();
        }
        wake(woken);
    }

    /// The mutex is held for a few instructions, never across an await.
    fn lock(&self) -> MutexGuard<'_, MultiplexerState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MultiplexerState {
    /// Writes a command. Its place in `waiting` is taken under the same lock, in the order of sending.
    fn write(&mut self, cmd: &Cmd) {
        if self.queue.is_empty() {
            self.close_bundle();
            cmd.write_packed_command(&mut self.outbox);
            self.calls.push_back(Call::commands(1));
        } else {
            let bytes = cmd.get_packed_command();
            self.queue.push_commands(Packed::commands(bytes, 1));
        }
    }

    /// Whether the driver has something to send.
    fn has_more(&self) -> bool {
        !self.outbox.is_empty() || self.bundle.is_open || self.queue.may_go()
    }

    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.waiting.get_mut(index).map(|waiting| &mut waiting.slot)
    }

    /// Assigns a reply to the oldest call that misses one. Returns `false` if there is none.
    fn reply(&mut self, value: Value, passed: &mut Passed) -> bool {
        let Some(oldest) = self.calls.front_mut() else {
            passed.unwanted.push(value);
            return false;
        };
        let Some(value) = oldest.collect(value) else {
            return true;
        };
        let call = self.calls.pop_front().expect("BUG: a call was forgotten");
        self.queue.is_answered(&call);
        match call.places() {
            Places::One([place]) => self.settle(*place, Ok(value), passed),
            Places::Many(places) => self.share_out(places, value, passed),
            Places::Bundled(bundled) => self.share_out_bundle(bundled, value, passed),
        }
        self.replied += call.covers();
        self.shorten();
        true
    }

    /// Gives a waiting request its reply. `place` counts from the first request without a reply.
    fn settle(&mut self, place: usize, reply: Reply, passed: &mut Passed) {
        match self.waiting.get_mut(self.replied + place) {
            Some(Waiting { slot, .. }) if matches!(slot, Slot::Open(_)) => {
                slot.answer(reply, &mut passed.woken);
            }
            _ => passed.unwanted.extend(reply),
        }
    }

    /// Gives each request of a batch its reply.
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

    /// Removes the answered requests at the front whose callers have taken their replies or were dropped.
    ///
    /// A reply that its caller does not take is moved to `aside` once more than [`KEPT`] answered requests wait.
    /// Otherwise all later requests would stay in the list behind it.
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

    /// Ends requests that have timed out. Replies to those that were sent may still come.
    fn expire(&mut self, now: Instant, woken: &mut Vec<Waker>) {
        if self.earliest.is_none_or(|at| now < at) {
            return;
        }
        self.answer_all(
            |deadline, stage| {
                (deadline <= now).then(|| {
                    Err(match stage {
                        RequestStage::Sent | RequestStage::Follows => error::unanswered(),
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

    /// Answers the waiting requests for which `answer` returns a reply.
    fn answer_all(
        &mut self,
        answer: impl Fn(Instant, RequestStage) -> Option<Reply>,
        woken: &mut Vec<Waker>,
    ) {
        let sent = self.waiting.len() - self.queue.len();
        for (at, waiting) in self.waiting.iter_mut().enumerate() {
            let stage = match at.checked_sub(sent) {
                None => RequestStage::Sent,
                Some(at) if self.queue.is_commands(at) => RequestStage::Follows,
                Some(_) => RequestStage::Queued,
            };
            if let Slot::Open(_) = waiting.slot
                && let Some(answer) = answer(waiting.deadline, stage)
            {
                waiting.slot.answer(answer, woken);
            }
        }
    }
}

/// The stage of a waiting request, which decides whether its error is definite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RequestStage {
    /// A call carries the request: the server may have executed it.
    Sent,
    /// The request is in the queue: nothing was sent, and nothing will be if its caller leaves.
    Queued,
    /// The command is in the queue, and is sent even if its caller leaves, unless the connection ends before.
    Follows,
}

impl Slot {
    fn answer(&mut self, reply: Reply, woken: &mut Vec<Waker>) {
        if let Slot::Open(waker) = self {
            woken.extend(waker.take());
            *self = Slot::Answered(reply);
        }
    }
}

/// What must be done about replies outside the mutex.
#[derive(Default)]
struct Passed {
    woken: Vec<Waker>,
    /// Replies that no caller takes. Dropping one with a million elements takes milliseconds, for which all
    /// callers would wait.
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

#[cfg(test)]
mod tests;

#[cfg(all(test, shuttle))]
mod threads;
