//! How a lock served its clients in a run: how soon one of them got it, and for how long none could.

use serde::{Deserialize, Serialize};

use quorlock_sim_check::run::Run;
use quorlock_sim_plan::fault::Fault;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_world::history::{Action, History, NameId, Outcome, Section};

/// How a lock served its clients from a fault to the end of the run. Times are in nanoseconds of true time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// From the fault until a client got a lock. It is absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_lock: Option<u64>,
    /// For how long a client asked for a lock that no client held.
    pub unavailable: u64,
    /// From the fault to the end of the run.
    pub lasted: u64,
}

impl Service {
    /// Measures a run from its first fault after a time, or from that time if there is none.
    #[must_use]
    pub fn of(run: &Run, after: SimTime) -> Self {
        let strikes = run.plan.faults.iter().map(Fault::begins);
        let first = strikes.filter(|begins| after <= *begins).min();
        let from = first.unwrap_or(after).as_nanos();
        let ended = run.lasted.as_nanos().max(from);
        let operations = run.history.operations.iter();
        let won = operations.filter(|op| is_asking(op.action) && op.outcome == Outcome::Ok);
        let won = won.map(|op| op.completed).filter(|at| from <= *at).min();
        let names = (0..run.history.names.len()).filter_map(|name| u16::try_from(name).ok());
        Service {
            next_lock: won.map(|at| at - from),
            unavailable: names
                .map(|name| unavailable(&run.history, NameId(name), from, ended))
                .sum(),
            lasted: ended - from,
        }
    }
}

fn is_asking(action: Action) -> bool {
    matches!(action, Action::Acquire | Action::Try)
}

/// Returns for how long a name was asked for while no client held it.
fn unavailable(history: &History, name: NameId, from: u64, ended: u64) -> u64 {
    let bit = 1u64.checked_shl(u32::from(name.0)).unwrap_or(0);
    let asks = history.operations.iter();
    let asks = asks.filter(|op| is_asking(op.action) && op.names & bit != 0);
    let asks = asks.map(|op| (op.invoked, history.ended(op)));
    let holds = history.sections.iter().filter(|of| of.name == name);
    let mut edges: Vec<(u64, Edge)> = Vec::new();
    let mut add = |from: u64, to: u64, begins, ends| {
        if from < to {
            edges.extend([(from, begins), (to, ends)]);
        }
    };
    asks.for_each(|(from, to)| add(from, to, Edge::Asked, Edge::Answered));
    holds.for_each(|of| add(of.won, held_until(of), Edge::Held, Edge::Free));
    edges.sort_unstable_by_key(|(at, _)| *at);
    let (mut asking, mut holding, mut before, mut sum) = (0u32, 0u32, from, 0);
    for (at, edge) in edges {
        let at = at.clamp(from, ended);
        if 0 < asking && holding == 0 {
            sum += at - before;
        }
        before = at;
        match edge {
            Edge::Asked => asking += 1,
            Edge::Answered => asking -= 1,
            Edge::Held => holding += 1,
            Edge::Free => holding -= 1,
        }
    }
    sum
}

#[derive(Clone, Copy)]
enum Edge {
    Asked,
    Answered,
    Held,
    Free,
}

/// Returns until when a client knew that it held the lock.
fn held_until(section: &Section) -> u64 {
    section.believed.unwrap_or(section.won)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorlock_sim_check::samples::{acquired, believed, history};

    /// From `from` on, a client asks from 10 to 20 and from 50 to 90; the lock is held from 15 to 40 and from 70 to 80.
    fn sample(from: u64) -> u64 {
        let mut history = history(vec![believed(0, 0, 15, 40), believed(1, 1, 70, 80)]);
        history.operations = vec![
            acquired(10, 20, Outcome::Ok),
            acquired(50, 90, Outcome::Fail),
        ];
        unavailable(&history, NameId(0), from, 85)
    }

    #[test]
    fn a_lock_is_unavailable_while_it_is_asked_for_and_not_held() {
        assert_eq!(sample(0), 5 + 20 + 5);
        assert_eq!(sample(60), 10 + 5, "what was before does not count");
    }

    #[test]
    fn a_client_that_died_asks_for_nothing() {
        let mut history = history(Vec::new());
        history.operations = vec![acquired(10, u64::MAX, Outcome::Indeterminate)];
        let process = history.operations[0].process;
        assert_eq!(unavailable(&history, NameId(0), 0, 100), 90);
        history.died = vec![(process, 30)];
        assert_eq!(unavailable(&history, NameId(0), 0, 100), 20);
    }
}
