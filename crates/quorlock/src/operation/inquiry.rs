//! A request to the members of a hold, the tally of their answers, and a report of missing ones.

use std::task::{Context, Poll};

use quorlock_core::message::{Reply, Request};
use quorlock_core::quorum::MemberId;
use quorlock_core::release::{Confirmation, Confirming};
use quorlock_core::time::Time;
use quorlock_core::transport::{Call, TransportError};

use crate::error::NodeReport;
use crate::runtime::{Runtime, Timer};
use crate::shared::calls::Calls;
use crate::shared::layout::{Layout, Place};

/// A request to the members of a hold whose answers are awaited until a deadline.
pub(crate) struct Inquiry {
    confirming: Confirming,
    calls: Calls<MemberId>,
    failed: Vec<(MemberId, TransportError)>,
    deadline: Time,
    timer: Box<dyn Timer>,
}

impl Inquiry {
    /// Sends a request to each member for which `is_asked` returns true. Answers are awaited until `deadline`.
    pub(crate) fn begin(
        layout: &Layout,
        runtime: &dyn Runtime,
        deadline: Time,
        is_asked: impl Fn(MemberId) -> bool,
        request: impl Fn(MemberId, &Place) -> Request,
    ) -> Self {
        let confirming = Confirming::new(layout.members.clone(), is_asked);
        let mut calls = Calls::of(layout.members.len());
        for (member, place) in layout.all() {
            if confirming.is_unanswered(member) {
                calls.push(member, place.node.call(request(member, place)));
            }
        }
        Inquiry {
            confirming,
            calls,
            failed: Vec::new(),
            deadline,
            timer: runtime.timer(),
        }
    }

    /// Moves the deadline to `end`, if that is earlier.
    pub(crate) fn end_by(&mut self, end: Time) {
        self.deadline = self.deadline.min(end);
    }

    /// Passes on the replies received so far, with the time of each. Ready when they decide the inquiry, or at its
    /// deadline.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
        mut handle: impl FnMut(&mut Confirming, MemberId, Time, &Reply),
    ) -> Poll<()> {
        let Inquiry {
            confirming,
            calls,
            failed,
            ..
        } = self;
        calls.poll(cx, runtime, |member, received| match received.result {
            Ok(reply) => handle(confirming, member, received.at, &reply),
            Err(error) => {
                confirming.handle_failed(member);
                failed.push((member, error));
            }
        });
        match self.confirming.outcome() {
            Confirmation::Pending => self.timer.poll_until(cx, self.deadline),
            _ => Poll::Ready(()),
        }
    }

    /// The outcome of the answers so far.
    pub(crate) fn outcome(&self) -> Confirmation {
        self.confirming.outcome()
    }

    /// Reports the members that failed and, after the deadline, those that have not answered.
    pub(crate) fn reports(&self, layout: &Layout, now: Time) -> Vec<NodeReport> {
        let is_late = self.deadline <= now;
        let is_silent = |member| is_late && self.confirming.is_unanswered(member);
        layout.reports(&self.failed, is_silent, |_| None)
    }

    /// Removes and returns the members whose requests failed.
    pub(crate) fn take_failed(&mut self) -> Vec<MemberId> {
        self.failed.drain(..).map(|(member, _)| member).collect()
    }

    /// Removes and returns the requests that have not ended.
    pub(crate) fn take_unanswered(&mut self) -> Vec<(MemberId, Call)> {
        self.calls.drain().collect()
    }
}
