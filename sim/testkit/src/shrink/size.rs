//! The identity and the size of a failure.

use quorlock_sim_check::Violation;
use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_world::history::Operation;
use serde::Serialize;

/// What makes two failures the same: the property that is broken, and the roles of the clients that break it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Identity {
    /// The property that is broken.
    pub property: Property,
    /// The name of the property, if a test states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated: Option<String>,
    /// For each process in the story, the index of its client by first appearance, and whether it was restarted.
    pub roles: Vec<(usize, bool)>,
}

impl Identity {
    /// Returns the identity of a violation.
    #[must_use]
    pub fn of(violation: &Violation) -> Self {
        let mut seen: Vec<u16> = Vec::new();
        let mut role = |client: u16| {
            let known = seen.iter().position(|seen| *seen == client);
            known.unwrap_or_else(|| {
                seen.push(client);
                seen.len() - 1
            })
        };
        let processes = violation.processes.iter();
        Identity {
            property: violation.property,
            stated: violation
                .name
                .clone()
                .filter(|_| violation.property.is_stated()),
            roles: processes
                .map(|process| (role(process.client), 0 < process.restarts))
                .collect(),
        }
    }

    /// Returns whether a run is this failure.
    #[must_use]
    pub fn is_of(&self, run: &Run) -> bool {
        match &run.verdict {
            Verdict::Violated(violation) => *self == Identity::of(violation),
            _ => false,
        }
    }
}

/// The size of a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Size {
    /// The number of faults and outages in the plan.
    pub faults: usize,
    /// The number of clients.
    pub clients: u16,
    /// The number of nodes, with their replicas.
    pub nodes: u16,
    /// The number of operations of clients before the failure, with the marks and calls of a user's own clients.
    pub operations: usize,
    /// The number of events of the whole run.
    pub events: u64,
    /// The time of the failure, in true time.
    pub at: SimTime,
}

impl Size {
    pub(super) fn of(run: &Run) -> Self {
        let at = match &run.verdict {
            Verdict::Violated(violation) => violation.at,
            _ => run.lasted,
        };
        let begun = |op: &&Operation| op.invoked <= at.as_nanos();
        Size {
            faults: run.plan.faults.len() + run.plan.outages.len(),
            clients: run.plan.clients,
            nodes: run.plan.nodes.count * (1 + run.plan.nodes.replicas),
            operations: run.history.operations.iter().filter(begun).count() + own_steps(run, at),
            events: run.counters.events,
            at,
        }
    }
}

/// Returns the number of marks and calls that a user's own clients had made by a time.
fn own_steps(run: &Run, at: SimTime) -> usize {
    let at = at.as_nanos();
    let marks = run.history.marks.iter().filter(|mark| mark.at <= at);
    let asked = run.history.asked.iter().filter(|asked| asked.sent <= at);
    marks.count() + asked.count()
}

/// A candidate that was accepted. The choice of the next candidate depends on nothing else of its run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// The number of the candidate, from 1, or 0 for the run that shrinking began with.
    pub(crate) attempt: u32,
    /// When the candidate failed.
    pub(crate) at: SimTime,
}

impl Taken {
    /// Returns the size of the candidate's run, as far as it is known.
    pub(super) fn size(self) -> Size {
        Size {
            faults: 0,
            clients: 0,
            nodes: 0,
            operations: 0,
            events: 0,
            at: self.at,
        }
    }
}
