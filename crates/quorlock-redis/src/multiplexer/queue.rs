//! Requests that wait until they can go together, and the calls that carry them (group commit).
//!
//! A request that finds few calls under way goes at once, alone. What comes while there are as many as [`MOST_CALLS`] waits, and
//! goes as one call as soon as one of those is answered, or as the call is full: no timer is needed, and the more the server has to
//! do, the more requests share what a call costs it.
//!
//! ```text
//!  waiting:  [ replied .. | sent: calls[0] calls[1] .. | queued .. ]
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use super::{MultiplexerState, Slot, Waiting};
use crate::script::By;
use crate::script::batch::{Batch, BatchMember, MOST_CLAIMS, Why};

/// How many calls of requests that can go together are under way on a connection, before others wait for them.
///
/// It is a compromise. 64 callers on one thread fill calls of 32 requests by any bound. On two threads a caller that is woken writes at
/// once, and the next one comes too late to go with it: a call has 13 requests by this bound and 20 by one of 2, which saves the servers
/// 6 to 12 % of their time (five runs in turns, loopback); without a bound it is as slow as without any of this. Where the server is far
/// away, a request waits for the next of so many replies: for a quarter of a round trip at most if they come evenly, and for half of one
/// by a bound of 2. It never waits if there are no more callers than this.
pub(super) const MOST_CALLS: usize = 4;

/// How many requests go alone after the server has refused a call of several. Were each call of several tried and refused, requests
/// would take two round trips; were none tried again, a failover would slow a client down for ever.
const ALONE_AFTER_REFUSAL: u32 = 1_024;

/// What no call carries yet, in the order in which it was sent.
#[derive(Debug)]
pub(super) struct Queue {
    line: VecDeque<Queued>,
    /// How many of the line are commands: all before the last one goes at once.
    commands: usize,
    /// How many calls are under way whose requests could have gone together with others.
    under_way: usize,
    /// How many requests go alone yet.
    alone: u32,
    /// How the next call of several names its script.
    by: By,
}

#[derive(Debug)]
pub(super) enum Queued {
    /// A request, and for how long the server may be silent after it.
    Request(BatchMember, Duration),
    /// A packed command that has to stay behind the requests before it.
    Command(Vec<u8>),
}

/// One call: which of those that wait it answers.
#[derive(Debug)]
pub(super) struct Call {
    kind: EntryKind,
    /// Where its requests stand, in the order in which their replies come.
    places: Places,
    /// How many places it takes, with those whose callers left before it went.
    covers: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EntryKind {
    Command,
    /// Others wait for its reply.
    Awaited,
}

#[derive(Debug)]
enum Places {
    One([usize; 1]),
    Many(Vec<usize>),
}

impl Call {
    /// The call of a command that is sent by itself.
    pub(super) fn command() -> Call {
        Call {
            kind: EntryKind::Command,
            places: Places::One([0]),
            covers: 1,
        }
    }

    pub(super) fn places(&self) -> &[usize] {
        match &self.places {
            Places::One(place) => place,
            Places::Many(places) => places,
        }
    }

    pub(super) fn covers(&self) -> usize {
        self.covers
    }
}

/// What the driver writes next.
#[derive(Debug)]
pub(super) enum Load {
    Packed(Vec<u8>),
    /// One request, and for how long the server may be silent after it.
    Alone(BatchMember, Duration),
    /// Several, the shortest of their patiences, and how they name their script.
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

    pub(super) fn push_command(&mut self, packed: Vec<u8>) {
        self.commands += 1;
        self.line.push_back(Queued::Command(packed));
    }

    /// Whether the first of the line may go.
    pub(super) fn may_go(&self) -> bool {
        // No call takes more than these: a thousand callers of a server ten milliseconds away would have the replies of four calls
        // in that time, and it would do nothing between them.
        let is_full = MOST_CLAIMS <= self.line.len();
        // What goes alone gathers nothing by waiting.
        let is_alone = 0 < self.alone;
        let may_wait = self.commands == 0 && !is_full && !is_alone;
        !self.line.is_empty() && (self.under_way < MOST_CALLS || !may_wait)
    }

    /// A call has had its reply: another one may go.
    pub(super) fn is_answered(&mut self, call: &Call) {
        if call.kind == EntryKind::Awaited {
            self.under_way -= 1;
        }
    }

    /// A call of several has been refused.
    pub(super) fn go_alone(&mut self, why: Why) {
        match why {
            // The text makes it known.
            Why::UnknownScript => self.by = By::Text,
            Why::Untrusted => {}
            Why::Refused => self.alone = ALONE_AFTER_REFUSAL,
        }
    }
}

impl MultiplexerState {
    /// The next call, if one may go. From here on its requests count as sent.
    pub(super) fn next_call(&mut self) -> Option<Load> {
        self.skip_those_who_left();
        if !self.queue.may_go() {
            return None;
        }
        let place = self.waiting.len() - self.queue.len();
        match self.queue.line.pop_front()? {
            Queued::Command(packed) => {
                self.queue.commands -= 1;
                self.calls.push_back(Call::command());
                Some(Load::Packed(packed))
            }
            Queued::Request(member, patience) => Some(self.gather(place, member, patience)),
        }
    }

    /// The call of a request, which stands in this place, and of those behind it that go with it.
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
            });
            return Load::Alone(member.clone(), patience);
        }
        let order = batch.order().into_iter();
        let places = order.filter_map(|member| offsets.get(member).copied());
        self.calls.push_back(Call {
            kind,
            places: Places::Many(places.collect()),
            covers,
        });
        let by = std::mem::replace(&mut self.queue.by, By::Digest);
        Load::Together(batch, patience, by)
    }

    /// Takes those out of the front of the line that wait no more: they were cancelled, or are out of time. Nothing was sent.
    fn skip_those_who_left(&mut self) {
        while let Some(Queued::Request(..)) = self.queue.line.front()
            && let Some(waiting) = self.waiting.get(self.waiting.len() - self.queue.len())
            && !waiting.is_open()
        {
            self.queue.line.pop_front();
            // Its place is behind those of the last call, and forgotten with them.
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
