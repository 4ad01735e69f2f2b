//! Requests without a script that are sent together: one command checks the fair queues of all of them.
//!
//! ```text
//! HDEL PUBLISH   HDEL PUBLISH  ..   as they come
//! MULTI  GET marker  INFO           on a majority of which the server is a node: see [`Watch`]
//! RESTORE  RESTORE  ..              when the bundle is closed: before any other command, or when it is sent
//! EXISTS queue queue  ..
//! INCR  INCR  ..
//! EXEC
//! ```
//!
//! What ends a claim may go before what makes one, although it came later, but not before the `RESTORE` of its own name: then
//! the bundle is closed.

use std::sync::Arc;

use redis::Value;

use super::queue::{Bundled, Call, Deed, Packed};
use super::watch::{self, Outcome, Watch};
use super::{MultiplexerState, Passed};
use crate::script::batch::MOST_CLAIMS;

/// The commands of a request without a script, as they are sent.
#[derive(Debug)]
pub(crate) enum Native {
    /// `HDEL` and `PUBLISH`.
    End { bytes: Vec<u8>, name: NameHash },
    /// `RESTORE`; the argument of `EXISTS`, which begins at `check`; `INCR`, which begins at `draw`.
    Take {
        bytes: Vec<u8>,
        check: usize,
        draw: usize,
        name: NameHash,
        /// The claim counts only if the server is the process that this is about.
        watch: Option<Arc<Watch>>,
    },
}

/// Tells names of one bundle apart. Two names with the same one are taken for one name.
pub(crate) type NameHash = u64;

/// What the open bundle keeps back until it is closed. The next one has its memory.
#[derive(Debug, Default)]
pub(super) struct Bundle {
    /// Whether there is a bundle.
    pub(super) is_open: bool,
    claims: Vec<u8>,
    checks: Vec<u8>,
    draws: Vec<u8>,
    /// The names of the acquires.
    names: Vec<NameHash>,
    watch: Option<Arc<Watch>>,
}

impl Native {
    /// The commands of this request alone.
    pub(super) fn packed(self) -> Packed {
        match self {
            Native::End { bytes, .. } => Packed::of(bytes, Deed::End, None),
            Native::Take {
                bytes,
                check,
                draw,
                watch,
                ..
            } => {
                let [claim, check, draw] = pieces(&bytes, check, draw);
                let (begin, end) = around(watch.as_ref());
                let bytes = [begin, claim, exists(1).as_bytes(), check, draw, end].concat();
                Packed::of(bytes, Deed::Take, watch)
            }
        }
    }

    /// Whether it can join a bundle.
    fn joins(&self, bundle: &Bundle) -> bool {
        let place = |watch: &Option<Arc<Watch>>| watch.as_ref().map(Arc::as_ptr);
        match self {
            Native::End { name, .. } => !bundle.names.contains(name),
            Native::Take { watch, .. } => {
                bundle.names.is_empty() || place(watch) == place(&bundle.watch)
            }
        }
    }
}

/// What surrounds the commands of acquires.
fn around(watch: Option<&Arc<Watch>>) -> (&[u8], &'static [u8]) {
    watch.map_or((&[], &[]), |watch| (watch.begin(), watch::END))
}

/// Splits the bytes of a [`Native::Take`].
fn pieces(bytes: &[u8], check: usize, draw: usize) -> [&[u8]; 3] {
    let (claim, rest) = bytes.split_at(check);
    let (check, draw) = rest.split_at(draw - check);
    [claim, check, draw]
}

/// The beginning of `EXISTS` with this number of keys.
fn exists(keys: usize) -> String {
    format!("*{}\r\n$6\r\nEXISTS\r\n", keys + 1)
}

/// The largest number of requests of a bundle: each gets its reply when all have been executed.
const MOST_REQUESTS: usize = 2 * MOST_CLAIMS;

impl MultiplexerState {
    /// Writes the commands of a request without a script. Its place in `waiting` is taken under the same lock.
    pub(super) fn write_native(&mut self, native: Native) {
        if !self.queue.is_empty() {
            self.queue.push_commands(native.packed());
            return;
        }
        if self.bundle.is_open && !native.joins(&self.bundle) {
            self.close_bundle();
        }
        let bundle = &mut self.bundle;
        if !bundle.is_open {
            bundle.is_open = true;
            self.calls.push_back(Call::bundled());
        }
        let Some(call) = self.calls.back_mut() else {
            return;
        };
        match native {
            Native::End { bytes, .. } => {
                call.add(Deed::End, None);
                self.outbox.extend_from_slice(&bytes);
            }
            Native::Take {
                bytes,
                check,
                draw,
                name,
                watch,
            } => {
                call.add(Deed::Take, watch.as_ref());
                bundle.watch = watch;
                let [claim, check, draw] = pieces(&bytes, check, draw);
                bundle.claims.extend_from_slice(claim);
                bundle.checks.extend_from_slice(check);
                bundle.draws.extend_from_slice(draw);
                bundle.names.push(name);
            }
        }
        if bundle.names.len() == MOST_CLAIMS || call.covers() == MOST_REQUESTS {
            self.close_bundle();
        }
    }

    /// Writes what the open bundle has kept back.
    pub(super) fn close_bundle(&mut self) {
        let (bundle, outbox) = (&mut self.bundle, &mut self.outbox);
        bundle.is_open = false;
        if bundle.names.is_empty() {
            return;
        }
        let watch = bundle.watch.take();
        let (begin, end) = around(watch.as_ref());
        outbox.extend_from_slice(begin);
        outbox.append(&mut bundle.claims);
        outbox.extend_from_slice(exists(bundle.names.len()).as_bytes());
        outbox.append(&mut bundle.checks);
        outbox.append(&mut bundle.draws);
        outbox.extend_from_slice(end);
        bundle.names.clear();
    }

    /// Gives each request of a bundle its replies, as if it had been sent alone: to an acquire those of `RESTORE`, `EXISTS` and `INCR`, and
    /// a fourth value if it was not shown that the server is the process that is trusted. Most replies grant or release a claim, and
    /// are one value: the token, or a 1 where no client listens.
    ///
    /// If a fair lock of one of the names has waiters, or the user may not look at one of the queues, it is not known of which: the
    /// reply to the check is [`Value::Nil`] for each, which then asks for its own.
    pub(super) fn share_out_bundle(
        &mut self,
        bundled: &Bundled,
        value: Value,
        passed: &mut Passed,
    ) {
        let Value::Array(mut ended) = value else {
            return;
        };
        let deeds = &bundled.deeds;
        let takes = deeds.iter().filter(|deed| **deed == Deed::Take).count();
        let replies = ended.split_off(2 * (deeds.len() - takes));
        let mut ended = ended.into_iter();
        let mut taken = Taken::of(bundled.watch.as_deref(), replies, takes);
        for (place, deed) in deeds.iter().enumerate() {
            let reply = match deed {
                Deed::End => match (ended.next(), ended.next()) {
                    (Some(gone @ Value::Int(1)), Some(Value::Int(0))) => gone,
                    (gone, told) => Value::Array(gone.into_iter().chain(told).collect()),
                },
                Deed::Take => taken.next().unwrap_or(Value::Array(Vec::new())),
            };
            self.settle(place, Ok(reply), passed);
        }
    }
}

/// The replies to the acquires of a bundle.
struct Taken {
    claims: std::vec::IntoIter<Value>,
    check: Value,
    drawn: std::vec::IntoIter<Value>,
    is_untrusted: bool,
}

impl Taken {
    fn of(watch: Option<&Watch>, replies: Vec<Value>, takes: usize) -> Self {
        let outcome = match watch {
            Some(watch) => watch.outcome(replies),
            None => Outcome::Trusted(replies),
        };
        let (mut claims, instead, is_untrusted) = match outcome {
            Outcome::Trusted(replies) => (replies, None, false),
            Outcome::Untrusted(replies) => (replies, None, true),
            Outcome::Aborted(replies) => (replies, Some(Value::Nil), false),
            Outcome::Apart(why, replies) => (replies, Some(why), true),
        };
        let mut rest = claims.split_off(takes.min(claims.len())).into_iter();
        let check = match (rest.next(), instead) {
            (_, Some(instead)) => instead,
            (Some(check), None) if takes == 1 || check == Value::Int(0) => check,
            _ => Value::Nil,
        };
        Taken {
            claims: claims.into_iter(),
            check,
            drawn: rest,
            is_untrusted,
        }
    }

    fn next(&mut self) -> Option<Value> {
        let (claim, drawn) = (self.claims.next()?, self.drawn.next()?);
        let is_granted = claim == Value::Okay && self.check == Value::Int(0) && !self.is_untrusted;
        if is_granted && matches!(drawn, Value::Int(_)) {
            return Some(drawn);
        }
        let untrusted = self.is_untrusted.then_some(Value::Nil);
        let parts = [claim, self.check.clone(), drawn];
        Some(Value::Array(parts.into_iter().chain(untrusted).collect()))
    }
}

#[cfg(test)]
mod tests;
