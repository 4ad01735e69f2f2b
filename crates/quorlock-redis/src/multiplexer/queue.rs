//! Requests that wait to be batched, and the calls that carry them (group commit).
//!
//! A request that finds few calls in flight is sent immediately, alone. Once [`MOST_CALLS`] are in flight, requests
//! wait. They are sent as one call as soon as one of those calls is answered, or the batch is full. This needs no
//! timer, and the busier the server is, the more requests share the cost of a call.
//!
//! ```text
//!  waiting:  [ replied .. | sent: calls[0] calls[1] .. | queued .. ]
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use super::watch::{self, Watch};
use super::{MultiplexerState, Slot, Waiting};
use crate::script::By;
use crate::script::batch::{Batch, BatchMember, MOST_CLAIMS, Why};

/// Number of batchable calls in flight at which further requests wait.
///
/// The number is a compromise. 64 callers on one thread fill batches of 32 requests with any bound. On two threads, a
/// woken caller writes immediately, and the next one comes too late for its batch. A batch has 13 requests with this
/// bound and 20 with a bound of 2, which saves the servers 6 to 12 % of their time (five alternating runs, loopback).
/// Without a bound, calls are as slow as without batches. If the server is far away, a request waits for the next of
/// these replies: at most a quarter of a round trip if they are evenly spaced, and half of one with a bound of 2.
/// With at most this many callers, no request waits.
pub(super) const MOST_CALLS: usize = 4;

/// Number of requests that are sent alone after the server has refused a batch. If every batch were tried and
/// refused, requests would take two round trips. If no batch were tried again, one failover would slow a client
/// down for ever.
const ALONE_AFTER_REFUSAL: u32 = 1_024;

/// Requests that no call carries yet, in the order in which they were sent.
#[derive(Debug)]
pub(super) struct Queue {
    line: VecDeque<Queued>,
    /// Number of entries of commands in the queue. All entries up to the last one are sent immediately.
    commands: usize,
    /// Number of calls in flight whose requests could have been batched.
    under_way: usize,
    /// Number of requests that still have to be sent alone.
    alone: u32,
    /// How the next batch identifies its script.
    by: By,
}

#[derive(Debug)]
pub(super) enum Queued {
    /// A request, and how long the server may be silent after it.
    Request(BatchMember, Duration),
    /// Packed commands that must stay behind the requests before them.
    Commands(Packed),
}

/// Commands that are sent with no other request between them.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) bytes: Vec<u8>,
    call: Call,
}

impl Packed {
    /// Packs commands that get this number of replies.
    pub(super) fn commands(bytes: Vec<u8>, replies: usize) -> Self {
        let call = Call::commands(replies);
        Packed { bytes, call }
    }

    /// Packs the commands of one request without a script.
    pub(super) fn of(bytes: Vec<u8>, deed: Deed, watch: Option<Arc<Watch>>) -> Self {
        let mut call = Call::bundled();
        call.add(deed, watch.as_ref());
        Packed { bytes, call }
    }
}

/// One call, and the waiting requests that it answers.
#[derive(Debug)]
pub(super) struct Call {
    kind: EntryKind,
    /// Positions of its requests in `waiting`, from the first one of the call, in the order of their replies.
    places: Places,
    /// Number of positions that the call covers. It includes those of callers that were dropped before the call
    /// was sent.
    covers: usize,
    /// Number of replies that are missing.
    missing: usize,
    /// The replies so far, if there are several.
    parts: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EntryKind {
    Command,
    /// Requests in the queue wait for its reply.
    Awaited,
}

#[derive(Debug)]
pub(super) enum Places {
    One([usize; 1]),
    Many(Vec<usize>),
    /// All requests that the call covers.
    Bundled(Bundled),
}

/// Requests without a script that are sent together.
#[derive(Debug)]
pub(super) struct Bundled {
    pub(super) deeds: Vec<Deed>,
    /// What surrounds the acquires.
    pub(super) watch: Option<Arc<Watch>>,
}

/// What a request without a script does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Deed {
    End,
    Take,
}

impl Call {
    /// Returns the call of one waiting request, which gets this number of replies.
    pub(super) fn commands(replies: usize) -> Call {
        Call {
            kind: EntryKind::Command,
            places: Places::One([0]),
            covers: 1,
            missing: replies,
            parts: Vec::new(),
        }
    }

    /// Adds a reply. Returns the reply of the whole call once all are there: an array, if there are several.
    pub(super) fn collect(&mut self, value: Value) -> Option<Value> {
        self.missing = self.missing.saturating_sub(1);
        if self.missing == 0 && self.parts.is_empty() {
            return Some(value);
        }
        self.parts.reserve_exact(self.missing + 1);
        self.parts.push(value);
        (self.missing == 0).then(|| Value::Array(std::mem::take(&mut self.parts)))
    }

    /// Returns the call of a bundle to which requests are added.
    pub(super) fn bundled() -> Call {
        Call {
            kind: EntryKind::Command,
            places: Places::Bundled(Bundled {
                deeds: Vec::with_capacity(MOST_CLAIMS),
                watch: None,
            }),
            covers: 0,
            missing: 0,
            parts: Vec::new(),
        }
    }

    /// Adds a request to a bundle. All acquires of a bundle have the same watch.
    pub(super) fn add(&mut self, deed: Deed, watch: Option<&Arc<Watch>>) {
        let Places::Bundled(bundled) = &mut self.places else {
            return;
        };
        let is_first = deed == Deed::Take && !bundled.deeds.contains(&Deed::Take);
        bundled.deeds.push(deed);
        self.covers += 1;
        // Two commands of its own, and those that a bundle has once.
        self.missing += 2;
        if is_first {
            bundled.watch = watch.cloned();
            self.missing += 1 + watch.map_or(0, |_| watch::REPLIES);
        }
    }

    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    pub(super) fn covers(&self) -> usize {
        self.covers
    }
}

/// The next call that the driver writes.
#[derive(Debug)]
pub(super) enum Load {
    Packed(Vec<u8>),
    /// One request, and how long the server may be silent after it.
    Alone(BatchMember, Duration),
    /// Several requests, the shortest of their patiences, and how the call identifies its script.
    Together(Batch, Duration, By),
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            line: VecDeque::new(),
            commands: 0,
            under_way: 0,
            alone: 0,
            by: By::Digest,
        }
    }
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.line.len()
    }

    pub(super) fn clear(&mut self) {
        self.line.clear();
        self.commands = 0;
    }

    pub(super) fn push(&mut self, member: BatchMember, patience: Duration) {
        self.line.push_back(Queued::Request(member, patience));
    }

    pub(super) fn push_commands(&mut self, packed: Packed) {
        self.commands += 1;
        self.line.push_back(Queued::Commands(packed));
    }

    /// Whether commands are at this place in the line.
    pub(super) fn is_commands(&self, at: usize) -> bool {
        matches!(self.line.get(at), Some(Queued::Commands(_)))
    }

    /// Whether the first request in the line may be sent.
    pub(super) fn may_go(&self) -> bool {
        // A full batch does not wait. A server ten milliseconds away returns only four replies in that time:
        // with a thousand callers it would be idle between them.
        let is_full = MOST_CLAIMS <= self.line.len();
        // A request that must be sent alone gains nothing by waiting for others.
        let is_alone = 0 < self.alone;
        let may_wait = self.commands == 0 && !is_full && !is_alone;
        !self.line.is_empty() && (self.under_way < MOST_CALLS || !may_wait)
    }

    /// Records that a call was answered: another one may be sent.
    pub(super) fn is_answered(&mut self, call: &Call) {
        if call.kind == EntryKind::Awaited {
            self.under_way -= 1;
        }
    }

    /// Records that a batch was refused.
    pub(super) fn go_alone(&mut self, why: Why) {
        match why {
            // A server loads a script that it receives as text.
            Why::UnknownScript => self.by = By::Text,
            Why::Untrusted => {}
            Why::Refused => self.alone = ALONE_AFTER_REFUSAL,
        }
    }
}

impl MultiplexerState {
    /// Returns the next call, if one may be sent. From here on, its requests count as sent.
    pub(super) fn next_call(&mut self) -> Option<Load> {
        self.skip_those_who_left();
        if !self.queue.may_go() {
            return None;
        }
        let place = self.waiting.len() - self.queue.len();
        match self.queue.line.pop_front()? {
            Queued::Commands(packed) => {
                self.queue.commands -= 1;
                self.calls.push_back(packed.call);
                Some(Load::Packed(packed.bytes))
            }
            Queued::Request(member, patience) => Some(self.gather(place, member, patience)),
        }
    }

    /// Makes a call of the request at this place and of the requests behind it that can join it.
    fn gather(&mut self, place: usize, first: BatchMember, mut patience: Duration) -> Load {
        let mut batch = Batch::default();
        let (mut offsets, mut covers) = (vec![0], 1);
        batch.push(first);
        let is_alone = 0 < self.queue.alone;
        while !is_alone
            && let Some(Queued::Request(member, its)) = self.queue.line.front()
            && let Some(waiting) = self.waiting.get(place + covers)
        {
            let waits = waiting.is_open();
            if waits && !batch.takes(member) {
                break;
            }
            patience = if waits { patience.min(*its) } else { patience };
            if let Some(Queued::Request(member, _)) = self.queue.line.pop_front()
                && waits
            {
                batch.push(member);
                offsets.push(covers);
            }
            covers += 1;
        }
        self.queue.alone = self.queue.alone.saturating_sub(1);
        self.queue.under_way += 1;
        let kind = EntryKind::Awaited;
        if let [member] = batch.members() {
            self.calls.push_back(Call {
                kind,
                places: Places::One([0]),
                covers,
                missing: 1,
                parts: Vec::new(),
            });
            return Load::Alone(member.clone(), patience);
        }
        let order = batch.order().into_iter();
        let places = order.filter_map(|member| offsets.get(member).copied());
        self.calls.push_back(Call {
            kind,
            places: Places::Many(places.collect()),
            covers,
            missing: 1,
            parts: Vec::new(),
        });
        let by = std::mem::replace(&mut self.queue.by, By::Digest);
        Load::Together(batch, patience, by)
    }

    /// Removes requests at the front that were cancelled or have timed out. They were never sent.
    fn skip_those_who_left(&mut self) {
        while let Some(Queued::Request(..)) = self.queue.line.front()
            && let Some(waiting) = self.waiting.get(self.waiting.len() - self.queue.len())
            && !waiting.is_open()
        {
            self.queue.line.pop_front();
            // Its place in `waiting` is behind those of the last call, and is removed with them.
            if let Some(last) = self.calls.back_mut() {
                last.covers += 1;
            } else {
                self.replied += 1;
                self.shorten();
            }
        }
    }
}

impl Waiting {
    fn is_open(&self) -> bool {
        matches!(self.slot, Slot::Open(_))
    }
}

#[cfg(test)]
pub(super) mod tests;
