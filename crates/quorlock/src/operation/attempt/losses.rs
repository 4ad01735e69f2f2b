//! What the rounds of an attempt were lost by, for the error at its end.

use std::time::Duration;

use quorlock_core::acquisition::GiveUp;
use quorlock_core::message::Mode;
use quorlock_core::round::Loss;
use quorlock_core::time::Time;

use super::request::LockRequest;
use super::round::RunningRound;
use crate::error::{AcquireError, ConfigError, Holder, NodeReport};
use crate::shared::layout::Layout;
use crate::telemetry;

/// What the rounds since the attempt began were lost by.
pub(super) struct Losses {
    pub(super) problems: Vec<NodeReport>,
    /// In which mode a name was asked for that is held in another.
    asked_mode: Mode,
    /// Another client of the deployment has another idea of the longest lease.
    disagreement: Option<ConfigError>,
    /// By another's claim, since the first round.
    has_been_refused: bool,
}

impl Losses {
    /// No round was lost.
    pub(super) fn new() -> Self {
        Losses {
            problems: Vec::new(),
            asked_mode: Mode::Plain,
            disagreement: None,
            has_been_refused: false,
        }
    }

    /// A round was lost. Returns whether it is the first that was refused by another's claim.
    pub(super) fn add(
        &mut self,
        loss: &Loss,
        running: &RunningRound,
        now: Time,
        layout: &Layout,
    ) -> bool {
        let problems = running.problems(layout);
        // One node of another figure is one node that does not count, for as long as there are enough of the others.
        self.disagreement = (*loss == Loss::Denied)
            .then(|| running.disagreement(layout))
            .flatten();
        telemetry::round_lost(layout, loss, now.since(running.began), &problems);
        if *loss != Loss::Postponed {
            // What the first member says alone is no news of the others.
            self.problems = problems;
        }
        if let Some((member, _)) = running.round.other_mode() {
            self.asked_mode = layout.place(member).mode;
        }
        let is_refused = matches!(loss, Loss::Refused { .. } | Loss::Postponed);
        is_refused && !std::mem::replace(&mut self.has_been_refused, true)
    }

    /// Why the attempt ends, which was tried for this time.
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
            },
            GiveUp::NoQuorum => AcquireError::NoQuorum {
                names,
                tried,
                of: wanted.layout.most_nodes(),
                nodes: self.problems.clone(),
            },
            GiveUp::Denied => match &self.disagreement {
                Some(error) => AcquireError::Config(error.clone()),
                None => AcquireError::Refused {
                    names,
                    nodes: self.problems.clone(),
                },
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
