//! The model for the checker: its initial states, its steps, and its properties.

use std::collections::BTreeSet;

use quorlock_core::node::Node;
use quorlock_core::round::Answer;
use quorlock_core::transport::Execution;
use stateright::{Model, Property};

use super::{Action, CLIENTS, CONTENTION, Checked, Client, Doing, Message, Server, State, What};
use crate::EXCLUSION;
use crate::variant::{JUMP, LEASE, Restart};

impl Model for Checked {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let node = Server {
            keys: Node::new(),
            ahead: 0,
            down_since: None,
        };
        let client = Client {
            behind: 0,
            number: 0,
            doing: Doing::Nothing,
        };
        let mut state = State {
            tick: 0,
            nodes: [node.clone(), node.clone(), node],
            clients: [client.clone(), client],
            touched: 0,
            wire: BTreeSet::new(),
            jumps_left: self.variant.jumps,
            crashes_left: self.variant.crashes,
        };
        // One of two identical clients begins, and nothing before that makes a difference.
        state.start(self, 0);
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if (0..CLIENTS).any(|client| state.is_done(self, client)) {
            return;
        }
        for (id, client) in state.clients.iter().enumerate() {
            match client.doing {
                Doing::Nothing if client.number < self.rounds => actions.push(Action::Start(id)),
                Doing::Nothing => {}
                Doing::Asking(_) => actions.push(Action::Look(id)),
                Doing::Holding { .. } => actions.push(Action::GiveBack(id)),
            }
        }
        for message in state.wire.iter().filter(|m| state.is_known(m.node)) {
            let is_up = state.nodes[message.node].down_since.is_none();
            if is_up {
                actions.push(Action::Deliver(*message));
            }
            // A lost release is the same as one that never arrives.
            let may_be_lost = !is_up || self.variant.messages_are_lost;
            if may_be_lost && message.what == What::Acquire {
                actions.push(Action::Lose(*message));
            }
        }
        if state.tick < self.ticks {
            actions.push(Action::Tick);
            if self.variant.a_clock_stops {
                actions.push(Action::TickUnseen);
            }
        }
        let nodes = state.nodes.iter().enumerate();
        for (id, node) in nodes.filter(|(id, _)| state.is_known(*id)) {
            // If nothing is stored, nothing expires.
            if 0 < state.jumps_left && node.keys != Node::new() {
                actions.push(Action::Jump(id));
            }
            match node.down_since {
                None if 0 < state.crashes_left => actions.push(Action::Crash(id)),
                None => {}
                Some(since) => {
                    let is_early = state.tick < since + LEASE;
                    if self.variant.restart != Restart::EmptyAfterLease || !is_early {
                        actions.push(Action::Restart(id));
                    }
                }
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut next = last.clone();
        match action {
            Action::Start(client) => next.start(self, client),
            Action::Deliver(message) => {
                next.wire.remove(&message);
                next.touch(message.node);
                next.deliver(self, message);
            }
            Action::Lose(message) => {
                next.wire.remove(&message);
                next.touch(message.node);
                let lost = Answer::Failed(Execution::Indeterminate);
                next.answered(self, message, lost);
            }
            Action::Look(client) => next.look(self, client),
            Action::GiveBack(client) => next.release(client, &self.ids),
            Action::Tick => next.tick += 1,
            Action::TickUnseen => {
                next.tick += 1;
                next.clients[0].behind += 1;
            }
            Action::Jump(node) => {
                next.jumps_left -= 1;
                next.nodes[node].ahead += JUMP;
            }
            Action::Crash(node) => {
                next.crashes_left -= 1;
                next.touch(node);
                next.nodes[node].down_since = Some(next.tick);
                if self.variant.restart != Restart::Complete {
                    next.nodes[node].keys.flush();
                }
            }
            Action::Restart(node) => next.nodes[node].down_since = None,
        }
        next.tidy(self);
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let exclusion = Property::always(EXCLUSION, |checked: &Checked, state: &State| {
            let believes = |client| state.believes(&checked.variant, client);
            !(0..CLIENTS).all(believes)
        });
        let contention = Property::sometimes(CONTENTION, |checked: &Checked, state: &State| {
            state.believes(&checked.variant, 0) && state.has_a_part(checked, 1)
        });
        vec![exclusion, contention]
    }

    fn format_action(&self, action: &Action) -> String {
        let told = |message: &Message| {
            let Message {
                what, client, node, ..
            } = message;
            format!("{what:?} of client {client} at node {node}")
        };
        match action {
            Action::Start(client) => format!("client {client} asks all nodes"),
            Action::Deliver(message) => told(message),
            Action::Lose(message) => format!("{} is lost", told(message)),
            Action::Look(client) => format!("client {client} looks what its round has come to"),
            Action::GiveBack(client) => format!("client {client} gives back"),
            Action::Tick => "time passes".to_owned(),
            Action::TickUnseen => "time passes, and the clock of client 0 stands still".to_owned(),
            Action::Jump(node) => format!("the clock of node {node} jumps by a lease"),
            Action::Crash(node) => format!("node {node} ends"),
            Action::Restart(node) => format!("node {node} is there again"),
        }
    }
}
