//! The losses of an attempt's rounds, for the error at its end.

use std::time::Duration;

use quorlock_core::acquisition::GiveUp;
use quorlock_core::message::Mode;
use quorlock_core::round::Loss;
use quorlock_core::time::Time;

use super::request::LockRequest;
use super::round::RunningRound;
use crate::error::{AcquireError, Holder, NodeReport};
use crate::shared::layout::Layout;
use crate::telemetry;

/// Why the rounds of an attempt were lost.
pub(super) struct Losses {
    pub(super) problems: Vec<NodeReport>,
    /// The requested mode of the name that is locked in another mode.
    asked_mode: Mode,
    /// Whether another owner's claim refused any round so far.
    has_been_refused: bool,
}

impl Losses {
    /// Returns the record of an attempt that has lost no round.
    pub(super) fn new() -> Self {
        Losses {
            problems: Vec::new(),
            asked_mode: Mode::Plain,
            has_been_refused: false,
        }
    }

    /// Records a lost round. Returns whether it is the first one that another owner's claim refused.
    pub(super) fn add(
        &mut self,
        loss: &Loss,
        running: &RunningRound,
        now: Time,
        layout: &Layout,
    ) -> bool {
        let problems = running.problems(layout);
        telemetry::round_lost(layout, loss, now.since(running.began), &problems);
        if *loss != Loss::Postponed {
            // The answer of the first member alone says nothing about the others, so keep their errors.
            self.problems = problems;
        }
        if let Some((member, _)) = running.round.other_mode() {
            self.asked_mode = layout.place(member).mode;
        }
        let is_refused = matches!(loss, Loss::Refused { .. } | Loss::Postponed);
        is_refused && !std::mem::replace(&mut self.has_been_refused, true)
    }

    /// The error of an attempt that ends for this reason after `tried`.
    pub(super) fn error(
        &self,
        why: GiveUp,
        wanted: &LockRequest,
        tried: Duration,
        holder: impl FnOnce() -> Holder,
    ) -> AcquireError {
        let names = wanted.layout.title();
        match why {
            GiveUp::Contended => AcquireError::Contended {
                names,
                tried,
                holder: holder(),
                clients: Vec::new(),
            },
            GiveUp::NoQuorum => AcquireError::NoQuorum {
                names,
                tried,
                of: wanted.layout.most_nodes(),
                nodes: self.problems.clone(),
            },
            GiveUp::Denied => AcquireError::Refused {
                names,
                nodes: self.problems.clone(),
            },
            GiveUp::TooSlow => AcquireError::TooSlow {
                names,
                tried,
                lease: wanted.lease.length(),
            },
            GiveUp::OtherMode(found) => AcquireError::OtherMode {
                names,
                asked: self.asked_mode,
                found,
            },
        }
    }
}
