//! The slice: what can have led to a violation.

use std::collections::BTreeMap;

use quorlock_sim_check::Violation;
use quorlock_sim_plan::fault::{ClientTarget, Fault, FaultKind};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_world::history::recording::{Message, MessageSort, ProcessPlace, Recording};

/// Until when each place can have had an influence on the violation.
pub(super) struct Slice {
    since: u64,
    until: BTreeMap<ProcessPlace, u64>,
}

impl Slice {
    pub(super) fn of(recording: &Recording, violation: &Violation, since: u64) -> Self {
        let at = violation.at.as_nanos();
        let clients = violation.processes.iter().map(|process| process.client);
        let mut until: BTreeMap<ProcessPlace, u64> = clients
            .map(|client| (ProcessPlace::Client(client), at))
            .collect();
        if until.is_empty() {
            let all = recording.messages.iter().flat_map(|message| {
                [
                    ProcessPlace::Client(message.client),
                    ProcessPlace::Node(message.node),
                ]
            });
            until = all.map(|place| (place, at)).collect();
        }
        let mut arrived: Vec<(u64, &Message)> = recording
            .messages
            .iter()
            .filter_map(|message| Some((message.arrives?, message)))
            .collect();
        arrived.sort_by_key(|(arrives, _)| std::cmp::Reverse(*arrives));
        for (arrives, message) in arrived {
            let (from, to) = ends(message);
            if until.get(&to).is_some_and(|until| arrives <= *until) && since <= arrives {
                let known = until.entry(from).or_insert(0);
                *known = (*known).max(message.sent);
            }
        }
        Slice { since, until }
    }

    pub(super) fn has(&self, message: &Message) -> bool {
        let (_, to) = ends(message);
        let until = self.until.get(&to).copied();
        let is_in_time =
            |arrives| until.is_some_and(|until| self.since <= arrives && arrives <= until);
        message.arrives.is_some_and(is_in_time)
    }

    /// Returns whether a fault strikes a place of the slice before its end, and is not over when the slice begins. A fault that
    /// happens once, or lasts until the end of the run, is not over.
    pub(super) fn has_fault(&self, fault: &Fault) -> bool {
        let begins = fault.begins().as_nanos();
        let ends = begins.saturating_add(fault.lasts.as_nanos());
        let is_over = fault.lasts != SimTime::ZERO && ends < self.since;
        let strikes =
            |place: ProcessPlace| self.until.get(&place).is_some_and(|until| begins <= *until);
        let of = |all: &[u16], place: fn(u16) -> ProcessPlace| {
            all.iter().any(|one| strikes(place(*one)))
        };
        !is_over
            && match &fault.what {
                FaultKind::Client {
                    client: ClientTarget::Client(client),
                    ..
                } => strikes(ProcessPlace::Client(*client)),
                FaultKind::Client { .. } => true,
                FaultKind::Node { node, .. } => strikes(ProcessPlace::Node(*node)),
                FaultKind::Nodes { nodes, .. } => of(nodes, ProcessPlace::Node),
                FaultKind::Link { clients, nodes, .. } => {
                    of(clients, ProcessPlace::Client) && of(nodes, ProcessPlace::Node)
                }
            }
    }
}

/// Returns from where to where a message goes.
fn ends(message: &Message) -> (ProcessPlace, ProcessPlace) {
    let places = (
        ProcessPlace::Client(message.client),
        ProcessPlace::Node(message.node),
    );
    match message.sort {
        MessageSort::Request => places,
        MessageSort::Yes | MessageSort::No | MessageSort::Wake => (places.1, places.0),
    }
}
