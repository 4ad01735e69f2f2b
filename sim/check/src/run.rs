//! One run, with its verdict.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use quorlock_sim_plan::Plan;
use quorlock_sim_plan::fault::{ClientTarget, Fault, FaultKind, Trigger};
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_world::engine::{self, Ended};
use quorlock_sim_world::history::History;
use quorlock_sim_world::history::recording::Recording;
use quorlock_sim_world::world::branch::Branch;
use quorlock_sim_world::world::medium::Medium;
use quorlock_sim_world::world::task::Program;
use quorlock_sim_world::world::trail::PastEvent;
use quorlock_sim_world::world::{Counters, with};

use crate::{Violation, first, violations};

/// The verdict of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every demanded property holds.
    Holds,
    /// A property is violated.
    Violated(Violation),
    /// The run shows nothing, because no client acquired anything. With a user's own clients: no client did anything.
    Vacuous,
}

/// The result of one run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The plan that was run. Each repeated fault is replaced by its single faults.
    pub plan: Rc<Plan>,
    /// The verdict.
    pub verdict: Verdict,
    /// All properties that the history breaks, whether or not the plan demands them, each with the time of its first
    /// violation.
    pub violated: BTreeMap<Property, SimTime>,
    /// A hash of everything that happened. Two runs have the same hash only if they are the same, event for event.
    pub trace: u64,
    /// The history of the run.
    pub history: History,
    /// How many times each fault of the plan had an effect.
    pub effects: Vec<u32>,
    /// The numbers of events, requests and answers.
    pub counters: Counters,
    /// The length of the run in true time.
    pub lasted: SimTime,
}

impl Run {
    /// Returns a fault of the plan as it happened, with its actual time and client. Returns `None` if it never began.
    #[must_use]
    pub fn happened(&self, index: usize) -> Option<Fault> {
        let fault = self.plan.faults.get(index)?;
        if fault.is_fixed() {
            return Some(fault.clone());
        }
        let began = self
            .history
            .began
            .iter()
            .find(|began| began.fault == index)?;
        let mut fault = fault.clone();
        fault.when = Trigger::At(SimTime::nanos(began.at));
        if let (FaultKind::Client { client, .. }, Some(number)) = (&mut fault.what, began.client) {
            *client = ClientTarget::Client(number);
        }
        Some(fault)
    }
}

/// Calls `run`, and records what an observer can see of that run.
pub fn recorded(run: impl FnOnce() -> Run) -> (Run, Recording) {
    with(|world| world.recording = Some(Box::default()));
    let mut run = run();
    let recording = with(|world| world.recording.take());
    let mut recording = recording.map(|recording| *recording).unwrap_or_default();
    recording.name_acquired(&mut run.history);
    (run, recording)
}

/// Calls `run`, and keeps all events of that run.
pub fn trailed(run: impl FnOnce() -> Run) -> (Run, Vec<PastEvent>) {
    with(|world| world.trail = Some(Vec::new()));
    let run = run();
    let trail = with(|world| world.trail.take());
    (run, trail.unwrap_or_default())
}

/// Calls `run`, and draws anew what happens by chance in that run from an instant on, in nanoseconds of true time: latencies, losses, and
/// the random numbers of clients and of their work. Faults begin when the plan says.
pub fn branched(at: u64, seed: u64, run: impl FnOnce() -> Run) -> Run {
    with(|world| world.branch = Some(Branch::new(at, seed)));
    let run = run();
    with(|world| world.branch = None);
    run
}

/// Runs a plan, which must be valid, and judges its history. `program` receives the plan with each repeated fault replaced
/// by its single faults. The verdict is [`Verdict::Vacuous`] if `is_work_shown` finds no work in what has ended.
pub fn run(
    plan: &Rc<Plan>,
    medium: &dyn Medium,
    program: impl FnOnce(&Rc<Plan>) -> Program,
    is_work_shown: impl FnOnce(&Ended) -> bool,
) -> Run {
    let plan = &plan.spelled_out();
    let ended = engine::run(plan, medium, program(plan));
    let violations = violations(&ended.history);
    let violated = violations.iter().map(|one| (one.property, one.at));
    let violated = violated.collect();
    let verdict = match first(violations, &plan.not_demanded) {
        Some(violation) => Verdict::Violated(violation),
        None if !is_work_shown(&ended) => Verdict::Vacuous,
        None => Verdict::Holds,
    };
    Run {
        plan: Rc::clone(plan),
        verdict,
        violated,
        trace: ended.trace,
        history: ended.history,
        effects: ended.effects,
        counters: ended.counters,
        lasted: ended.lasted,
    }
}
