//! The state of one record as a client knows it, and what requests make of it.

use quorlock_core::failure::TransportError;
use quorlock_core::fencing::Fence;
use quorlock_core::marker::Process;
use quorlock_core::message::{
    Access, Acquire, AcquireReply, QueuePlace, RenewReply, Reply, Request,
};
use quorlock_core::node::record::Record;
use quorlock_core::time::{Time, WallMillis};

use crate::remembered::{Reading, Seen};
use crate::store::Version;

/// A record, and the time at which requests are applied to it.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) record: Record,
    /// The version to be named in the write; `None` if there is no record.
    pub(crate) version: Option<Version>,
    pub(crate) process: Process,
    pub(crate) clock: Clock,
    /// Whether the view is a memory: only a write that the store executes proves that it was still true.
    pub(crate) is_remembered: bool,
}

/// The clock by which the times of a record are judged.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    /// The clock of the store, read together with the record.
    Store(WallMillis),
    /// The clock of the store, which was read before, and the latest time that it can show now.
    Reckoned(Reading, WallMillis),
    /// The record's own time, which advances by what clients have observed.
    Observed(WallMillis),
}

impl Clock {
    fn now(self) -> WallMillis {
        match self {
            Clock::Store(now) | Clock::Reckoned(_, now) | Clock::Observed(now) => now,
        }
    }

    /// Returns the time as the store's clock has it, if it has one.
    pub(crate) fn of_store(self) -> Option<WallMillis> {
        match self {
            Clock::Store(now) | Clock::Reckoned(_, now) => Some(now),
            Clock::Observed(_) => None,
        }
    }
}

/// What requests make of a record.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) record: Record,
    /// One for each request, in order.
    pub(crate) replies: Vec<Result<Reply, TransportError>>,
    pub(crate) is_changed: bool,
}

impl View {
    /// Returns the view of a record as it is remembered; `None` if the outcome of a request could be another one now.
    pub(crate) fn remembered(seen: &Seen, reading: Option<Reading>, now: Time) -> Option<View> {
        let clock = match reading {
            None if seen.is_observed => Clock::Observed(seen.observed(now)),
            None => return None,
            Some(reading) => {
                // What is judged must be judged by a time that has certainly come, or B takes A's claim while A relies on
                // it. What is written must be written by a time that has certainly not passed when the request was
                // sent, or A's claim ends before A's term. Where no key expires in between, one time serves both.
                let latest = reading.at_most(now);
                if !seen.record.is_steady(reading.shown(), latest) {
                    return None;
                }
                Clock::Reckoned(reading, latest)
            }
        };
        Some(View {
            record: seen.record.clone(),
            version: Some(seen.version.clone()),
            process: seen.process,
            clock,
            is_remembered: true,
        })
    }

    /// Applies requests, one after another.
    pub(crate) fn apply<'a>(&self, requests: impl Iterator<Item = &'a Request>) -> Applied {
        let mut record = self.record.clone();
        let now = self.clock.now();
        let replies = requests.map(|request| {
            let reply = match (self.clock, request) {
                (Clock::Observed(_), Request::Acquire(ask)) => {
                    let ask = without_clock(ask.clone());
                    let before = record.clone();
                    let reply = record.apply(self.process, now, &Request::Acquire(ask.clone()));
                    if is_early(&before, now, &ask) && record.has_only_later_places_than(&before) {
                        record = before;
                    }
                    reply
                }
                _ => record.apply(self.process, now, request),
            };
            reply.map_err(TransportError::refused)
        });
        let replies: Vec<_> = replies.collect();
        let mut is_changed = record != self.record;
        if let Clock::Observed(now) = self.clock {
            // A has renewed its claim, and the record's time is what it was at A's last request, so the record is the same.
            // It is written nevertheless: B, which has observed the version before for a while, must begin again.
            is_changed |= replies.iter().flatten().any(promises);
            if is_changed {
                record.set_clock(now);
            }
        }
        Applied {
            record,
            replies,
            is_changed,
        }
    }
}

/// Returns whether a waiter asks again while it has its place for half of its time at least, as it usually does.
///
/// Its place is then left as it is. If each of many waiters wrote whenever it asks, every write would begin the observations of
/// the others again. No time would pass in the record, and a dead holder or waiter would stay for ever.
fn is_early(record: &Record, now: WallMillis, ask: &Acquire) -> bool {
    let Access::Fair(QueuePlace::Kept { millis }) = ask.access else {
        return false;
    };
    let place = record.place(ask.owner);
    place.is_some_and(|until| now.plus(millis / 2) <= until)
}

/// Returns whether a client relies on the record from now on.
fn promises(reply: &Reply) -> bool {
    match reply {
        Reply::Acquire(AcquireReply::Granted { .. }) => true,
        Reply::Renew(replies) => replies
            .iter()
            .any(|reply| matches!(reply, RenewReply::AlreadyYours { .. })),
        _ => false,
    }
}

/// Returns the request without the bound on its floor: a record's own time says nothing about the wall clock, and a floor
/// that is too high does no more than use up numbers.
fn without_clock(ask: Acquire) -> Acquire {
    let fence = match ask.fence {
        Fence::Mint { floor, .. } => Fence::Mint {
            floor,
            slack_millis: u64::MAX,
        },
        carry @ Fence::Carry(_) => carry,
    };
    Acquire { fence, ..ask }
}
