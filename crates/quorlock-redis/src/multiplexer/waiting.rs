//! Requests that wait for their replies, in the order in which they were sent.

use std::task::Waker;

use super::{MultiplexerState, Reply};
use crate::error;
use crate::timer::Instant;

/// Number of answered requests that are kept behind the oldest reply that was not taken, so that the list stays short.
pub(super) const KEPT: usize = 1024;

#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) deadline: Instant,
    pub(super) slot: Slot,
}

#[derive(Debug)]
pub(super) enum Slot {
    Open(Option<Waker>),
    Answered(Reply),
    /// The caller has its reply, or was dropped.
    Left,
}

/// The stage of a waiting request, which decides whether its error is definite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RequestStage {
    /// A call carries the request: the server may have executed it.
    Sent,
    /// The request is in the queue: nothing was sent, and nothing will be if its caller leaves.
    Queued,
    /// The command is in the queue, and is sent even if its caller leaves, unless the connection ends before.
    Follows,
}

impl MultiplexerState {
    pub(super) fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.waiting.get_mut(index).map(|waiting| &mut waiting.slot)
    }

    /// Removes the answered requests at the front whose callers have taken their replies or were dropped.
    ///
    /// A reply that its caller does not take is moved to `aside` once more than [`KEPT`] answered requests wait.
    /// Otherwise all later requests would stay in the list behind it.
    pub(super) fn shorten(&mut self) {
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
    pub(super) fn expire(&mut self, now: Instant, woken: &mut Vec<Waker>) {
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
    pub(super) fn answer_all(
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

impl Waiting {
    pub(super) fn is_open(&self) -> bool {
        matches!(self.slot, Slot::Open(_))
    }
}

impl Slot {
    pub(super) fn answer(&mut self, reply: Reply, woken: &mut Vec<Waker>) {
        if let Slot::Open(waker) = self {
            woken.extend(waker.take());
            *self = Slot::Answered(reply);
        }
    }
}
