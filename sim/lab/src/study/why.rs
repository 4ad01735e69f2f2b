//! Why a run broke a property: what led to the violation, and without what it would not have happened.
//!
//! The *slice* is what can have led to the violation: from the instant at which the first of the involved holds was asked for, every
//! message that reached an involved client in time, every message that reached its sender in time before that, and so on, with the
//! faults of the places that it passes, and of those from which a place waited for a message. Whatever is outside of it cannot have had an influence since then.
//!
//! What is *necessary* is found by trying: the plan is run again without one fault of the slice, or with one message of it lost, and
//! everything else as before. If the property is not broken until then, and for as long afterwards as the slice is long, the fault or the
//! message was necessary. Later faults of the plan may break the property again. The rest of such a run may differ, because a client that
//! misses an answer does something else; so each of them is a run in which the property held for so long, and not a proof that nothing
//! else would have broken it. What is outside of the slice is not tried: it changes when everything behind it happens, and so hides the
//! violation without having led to it.
//!
//! The *curve* tells when it was decided: see [`Explained::draw_curve`].

mod curve;
mod slice;

use std::rc::Rc;

use serde::Serialize;

use crate::simulation::{run, run_recorded};
use quorlock_sim::report::{self, Chance, Necessary, Twin};
use quorlock_sim_check::Violation;
use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_plan::fault::{Direction, Fault, FaultKind, LinkFault, Trigger};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{Plan, check};
use quorlock_sim_world::history::recording::{Message, MessageSort, Recording};

pub use curve::{Decided, Likelihood};
use slice::Slice;

/// Why a run broke a property.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Why {
    /// What was violated.
    pub violation: Violation,
    /// When the first of the involved holds was asked for.
    pub since: SimTime,
    /// The faults of the plan, repeated ones one by one, that began before the violation.
    pub faults: Vec<Cause>,
    /// The messages that were sent before the violation, in their order.
    pub messages: Vec<Cause>,
    /// How the nearest run differs in which the property holds: the last message that was necessary is lost, or else the last
    /// fault that was necessary is left out; `None` if nothing alone was necessary.
    pub twin: Option<String>,
    /// How likely the violation was at instants of the run, in their order; empty until [`Explained::draw_curve`].
    pub curve: Vec<Likelihood>,
}

/// A fault or a message, and what it had to do with the violation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Cause {
    /// When it began, or was sent.
    pub at: SimTime,
    /// What it was, in words.
    pub text: String,
    /// Whether it can have led to the violation.
    pub is_in_slice: bool,
    /// Whether the property would have held without it; `None` if that was not tried.
    pub is_necessary: Option<bool>,
    /// Its index among the faults of the plan, or the messages of the run.
    #[serde(skip)]
    index: usize,
}

/// A violation that is explained, with what its page shows.
#[derive(Debug)]
pub struct Explained {
    /// The explanation.
    pub why: Why,
    /// The run.
    pub run: Run,
    /// What an observer saw of the run.
    pub recording: Recording,
    /// The plan of the nearest run in which the property holds.
    pub twin: Option<Plan>,
}

/// The error for a run that broke nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no property is broken, so there is nothing to explain: give a seed that breaks one (--seed)"
)]
pub struct NothingBroken;

/// Explains the first violation of a plan, which must be valid and in the fast lane. At most `most` messages of the slice are tried,
/// the last ones.
///
/// # Errors
/// Returns [`NothingBroken`] if the run breaks no property.
pub fn explain(plan: &Rc<Plan>, most: usize) -> Result<Explained, NothingBroken> {
    let (ran, recording) = run_recorded(plan);
    let Verdict::Violated(violation) = ran.verdict.clone() else {
        return Err(NothingBroken);
    };
    let at = violation.at.as_nanos();
    let since = asked(&ran, &violation).min(at);
    let trial = Trial {
        plan: Plan::clone(&ran.plan),
        violation: &violation,
        until: must_hold_until(since, at),
    };
    let slice = Slice::of(&ran, &recording, &violation, since);
    let faults = 0..ran.plan.faults.len();
    let faults = faults.filter_map(|index| {
        let fault = ran
            .happened(index)
            .filter(|fault| fault.begins() <= violation.at)?;
        let is_in_slice = slice.has_fault(&fault);
        Some(Cause {
            at: fault.begins(),
            text: fault.to_string(),
            is_in_slice,
            is_necessary: is_in_slice.then(|| trial.holds(trial.without(index))),
            index,
        })
    });
    let faults: Vec<Cause> = faults.collect();
    let sent = recording.messages.iter().enumerate();
    let sent: Vec<(usize, &Message)> = sent.filter(|(_, message)| message.sent <= at).collect();
    let in_slice = sent.iter().filter(|(_, message)| slice.has(message));
    let in_slice = in_slice.count();
    let mut untried = in_slice.saturating_sub(most);
    let messages = sent.into_iter().map(|(index, message)| {
        let is_in_slice = slice.has(message);
        let is_tried = is_in_slice && untried == 0;
        untried -= usize::from(is_in_slice && 0 < untried);
        Cause {
            at: SimTime::nanos(message.sent),
            text: words(message),
            is_in_slice,
            is_necessary: is_tried
                .then(|| Some(trial.holds(trial.if_lost(message)?)))
                .flatten(),
            index,
        }
    });
    let messages: Vec<Cause> = messages.collect();
    let (text, twin) = trial.nearest(&faults, &messages, &recording).unzip();
    let why = Why {
        since: SimTime::nanos(since),
        faults,
        messages,
        twin: text,
        curve: Vec::new(),
        violation: violation.clone(),
    };
    Ok(Explained {
        why,
        run: ran,
        recording,
        twin,
    })
}

impl Why {
    /// Returns the faults, and then the messages.
    fn causes(&self) -> impl Iterator<Item = &Cause> {
        self.faults.iter().chain(&self.messages)
    }

    fn chances(&self) -> Vec<Chance> {
        let points = self.curve.iter().map(|point| Chance {
            at: point.at.as_nanos(),
            share: point.share(),
            text: point.to_string(),
        });
        points.collect()
    }

    /// Returns what the page of the violation shows of it. `page` is the address of the page of the nearest run that passes.
    #[must_use]
    pub fn slice(&self, page: Option<String>) -> report::Slice {
        let inside = |causes: &[Cause]| {
            let inside = causes.iter().filter(|cause| cause.is_in_slice);
            inside.map(|cause| cause.index).collect()
        };
        let necessary = self
            .causes()
            .filter(|cause| cause.is_necessary == Some(true));
        let mut necessary: Vec<Necessary> = necessary
            .map(|cause| Necessary {
                at: cause.at.as_nanos(),
                text: cause.text.clone(),
            })
            .collect();
        necessary.sort_by_key(|cause| cause.at);
        let twin = page.zip(self.twin.clone());
        report::Slice {
            since: self.since.as_nanos(),
            until: self.violation.at.as_nanos(),
            messages: inside(&self.messages),
            faults: inside(&self.faults),
            necessary,
            curve: self.chances(),
            twin: twin.map(|(page, text)| Twin { page, text }),
        }
    }
}

/// Returns when the first of the involved holds was asked for: the last ones that the involved processes won before the violation.
fn asked(ran: &Run, violation: &Violation) -> u64 {
    let at = violation.at.as_nanos();
    let of_process = |process| {
        let won = ran.history.grants.iter();
        let won = won.filter(|grant| grant.process == process && grant.won <= at);
        won.max_by_key(|grant| grant.won).map(|grant| grant.invoked)
    };
    let asked = violation
        .processes
        .iter()
        .filter_map(|process| of_process(*process));
    asked.min().unwrap_or(0)
}

fn words(message: &Message) -> String {
    let (client, node) = (message.client, message.node);
    match message.sort {
        MessageSort::Request => format!("client {client} to node {node}: {}", message.text),
        _ => format!("node {node} to client {client}: {}", message.text),
    }
}

/// Returns until when a property must hold in a run that counts as one that passes: for as long behind the violation as the slice is long.
fn must_hold_until(since: u64, violated: u64) -> SimTime {
    SimTime::nanos(violated + violated.saturating_sub(since))
}

/// The plan with its violation, to be run again with a difference.
struct Trial<'a> {
    plan: Plan,
    violation: &'a Violation,
    /// Until when the property must hold.
    until: SimTime,
}

impl Trial<'_> {
    fn holds(&self, plan: Plan) -> bool {
        let violated = run(&Rc::new(plan)).violated;
        let at = violated.get(&self.violation.property);
        at.is_none_or(|at| self.until < *at)
    }

    /// Returns the nearest run in which the property holds, and how it differs: one without the last necessary message, or else
    /// without the last necessary fault.
    fn nearest(
        &self,
        faults: &[Cause],
        messages: &[Cause],
        recording: &Recording,
    ) -> Option<(String, Plan)> {
        let last = |causes: &[Cause]| {
            let necessary = causes
                .iter()
                .filter(|cause| cause.is_necessary == Some(true));
            necessary.max_by_key(|cause| cause.at).cloned()
        };
        if let Some(lost) = last(messages) {
            let plan = self.if_lost(recording.messages.get(lost.index)?)?;
            return Some((format!("at {}, this is lost: {}", lost.at, lost.text), plan));
        }
        let dropped = last(faults)?;
        let text = format!("without the fault at {}: {}", dropped.at, dropped.text);
        Some((text, self.without(dropped.index)))
    }

    /// Returns the plan without a fault.
    fn without(&self, index: usize) -> Plan {
        let mut plan = self.plan.clone();
        plan.faults.remove(index);
        plan
    }

    /// Returns the plan in which a message is lost; `None` if no plan can say that.
    fn if_lost(&self, message: &Message) -> Option<Plan> {
        let mut plan = self.plan.clone();
        plan.faults.push(Fault {
            when: Trigger::At(SimTime::nanos(message.sent.saturating_sub(1))),
            // Longer than the instant of the message: a message that is sent when a fault ends is not lost.
            lasts: SimTime::nanos(2),
            what: FaultKind::Link {
                clients: vec![message.client],
                nodes: vec![message.node],
                direction: match message.sort {
                    MessageSort::Request => Direction::ToNode,
                    _ => Direction::ToClient,
                },
                fault: LinkFault::Cut,
            },
        });
        check(&plan).ok()?;
        Some(plan)
    }
}
