//! Which process a connection leads to, so that it need not be asked for with each acquire.
//!
//! The process is shown by `INFO`, at first and again after half of a longest lease. In between, the marker alone is looked
//! at. A server may become a replica and a primary again under its connections, and is another process then. But it still
//! has each claim that it has granted, unless all its data was replaced. What may be missing are claims of a process that
//! took its place, and that one is watched for a longest lease before its votes count. The rules, each of which is needed
//! (docs/src/exhaustive.md, "What a connection shows"):
//!
//! - What was shown lasts for one longest lease without the drift, from before it was asked for.
//! - It has to last until the reply to an acquire is there. A request that was sent in time may be executed later.
//! - A server whose data is replaced says so on this connection, before any later reply (`CLIENT TRACKING`). A server that
//!   does not promise that is asked with each acquire.

use quorlock_core::marker::Process;
use redis::Value;

use super::watch::{Outcome, Watch, Watched};
use crate::timer::{self, Instant};

/// What a connection has shown.
#[derive(Debug, Default)]
pub(super) struct Identity {
    reports: Reports,
    /// The process, and a time before it was asked for.
    shown: Option<(Process, Instant)>,
}

/// Whether the server says that all its data was replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Reports {
    #[default]
    Unasked,
    Asked,
    Promised,
    Refused,
}

/// Asks for reports. Only in RESP3 do they come on the connection of the commands. `OPTIN` without any key that is asked
/// for: the server remembers nothing, and reports only that everything has changed.
const QUESTION: &[u8] = b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*4\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n$5\r\nOPTIN\r\n";

/// The replies to [`QUESTION`].
pub(super) const REPLIES: usize = 2;

impl Identity {
    /// Returns the commands that ask for reports, once.
    pub(super) fn question(&mut self) -> Option<&'static [u8]> {
        let is_first = self.reports == Reports::Unasked;
        is_first.then(|| {
            self.reports = Reports::Asked;
            QUESTION
        })
    }

    /// Handles the replies to the question.
    pub(super) fn handle_answer(&mut self, answer: &Value) {
        let is_promised = matches!(answer, Value::Array(replies)
            if matches!(replies.as_slice(), [Value::Array(_), Value::Okay]));
        self.reports = match is_promised {
            true => Reports::Promised,
            false => Reports::Refused,
        };
    }

    /// Whether an acquire that is sent now has to ask for the process.
    pub(super) fn is_due(&self, watch: &Watch, now: Instant) -> bool {
        !self.is_shown(watch, now + watch.lasts() / 2)
    }

    fn is_shown(&self, watch: &Watch, now: Instant) -> bool {
        self.shown
            .is_some_and(|(process, from)| process == watch.process() && now < from + watch.lasts())
    }

    /// Handles the outcome of a transaction, and returns it as it counts.
    pub(super) fn judge(&mut self, watched: &Watched, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Trusted(_) if watched.asks_for_process => {
                // What was shown before the server promised to report does not last.
                if self.reports == Reports::Promised {
                    self.shown = Some((watched.watch.process(), watched.at));
                }
                outcome
            }
            Outcome::Trusted(replies) if !self.is_shown(&watched.watch, timer::now()) => {
                Outcome::Untrusted(replies)
            }
            Outcome::Untrusted(_) => {
                self.withdraw();
                outcome
            }
            Outcome::Trusted(_) | Outcome::Aborted(_) | Outcome::Apart(..) => outcome,
        }
    }

    /// Handles what the server says without being asked. Replies behind it count only if they show the process.
    pub(super) fn withdraw(&mut self) {
        self.shown = None;
    }
}
