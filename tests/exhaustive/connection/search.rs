//! The model for the checker: its initial state, its steps, and its properties.

use stateright::{Model, Property};

use super::{ASKS, Action, Checked, Data, FIRST, SPARED, State, WATCHED};
use crate::EXCLUSION;

impl Model for Checked {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::first(self)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.is_done() {
            return;
        }
        match &state.a.call {
            None if state.a.is_connected && state.a.asks < ASKS => actions.push(Action::Send),
            None => {}
            Some(call) if call.reply.is_none() => actions.push(Action::Execute),
            Some(_) => actions.push(Action::Receive),
        }
        // An acquire shows as much as a probe of a trusted process.
        let is_trusted = state.b.trust.quarantine().is_none();
        if !is_trusted && state.b.trust.poll_timeout() <= state.now() {
            actions.push(Action::Probe);
        }
        if is_trusted && !state.b.has_asked {
            actions.push(Action::Acquire);
        }
        match state.servers[state.replica()].data {
            Data::Following => actions.push(Action::Replicate),
            Data::Old { has_other_writes } => {
                actions.push(Action::SyncAll);
                if !has_other_writes {
                    actions.push(Action::SyncMissing);
                }
            }
        }
        if 0 < state.failovers_left {
            actions.push(Action::FailOver);
        }
        if 0 < state.swaps_left {
            actions.push(Action::Swap);
        }
        if state.tick < self.ticks {
            actions.push(Action::Tick);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut next = last.clone();
        match action {
            Action::Send => next.send(self),
            Action::Execute => next.execute(self),
            Action::Receive => next.receive(self),
            Action::Probe => next.probe(self),
            Action::Acquire => next.acquire(self),
            Action::Replicate | Action::SyncMissing => next.follow(),
            Action::SyncAll => {
                next.follow();
                next.a.is_told |= next.primary == 1 && next.a.is_connected;
            }
            Action::FailOver => next.fail_over(),
            Action::Swap => {
                next.swaps_left -= 1;
                next.servers[next.primary].keys.flush();
            }
            Action::Tick => next.tick += 1,
        }
        next.tidy();
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(EXCLUSION, |_, state: &State| {
                state.a.holds.is_none() || state.b.holds.is_none()
            }),
            Property::sometimes(SPARED, |_, state: &State| {
                state.a.holds.is_some_and(|(_, is_spared)| is_spared)
            }),
            Property::sometimes(WATCHED, |_, state: &State| {
                state.b.holds.is_some_and(|(_, process)| process != FIRST)
            }),
        ]
    }

    fn format_action(&self, action: &Action) -> String {
        let told = match action {
            Action::Send => "A sends a request",
            Action::Execute => "the first server executes A's request",
            Action::Receive => "A receives the reply",
            Action::Probe => "B probes the primary",
            Action::Acquire => "B acquires on the primary",
            Action::Replicate => "the replica receives what the primary has written",
            Action::FailOver => "the replica becomes the primary",
            Action::SyncMissing => "the former primary receives the writes that it lacks",
            Action::SyncAll => "the former primary receives all data",
            Action::Swap => "the database of the primary is swapped with an empty one",
            Action::Tick => "time passes",
        };
        told.to_owned()
    }
}
