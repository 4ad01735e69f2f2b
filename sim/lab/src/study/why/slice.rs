//! The slice: what can have led to a violation.

use std::collections::BTreeMap;

use quorlock_sim_check::Violation;
use quorlock_sim_check::run::Run;
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::fault::{ClientTarget, Fault, FaultKind};
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_world::history::recording::{Message, MessageSort, ProcessPlace, Recording};

/// Until when each place can have had an influence on the violation. A node and its replicas are one place, because what one of them has
/// written reaches the others.
pub(super) struct Slice {
    since: u64,
    until: BTreeMap<ProcessPlace, u64>,
    /// Until when each node was asked by a client of the slice. That it did not answer is an influence, too.
    asked: BTreeMap<u16, u64>,
    nodes: Nodes,
}

impl Slice {
    pub(super) fn of(run: &Run, recording: &Recording, violation: &Violation, since: u64) -> Self {
        let at = violation.at.as_nanos();
        let nodes = Nodes::of(&run.plan);
        let clients = violation.processes.iter().map(|process| process.client);
        let mut until: BTreeMap<ProcessPlace, u64> = clients
            .map(|client| (ProcessPlace::Client(client), at))
            .collect();
        let is_of_all = until.is_empty();
        for message in &recording.messages {
            if is_of_all {
                until.insert(ProcessPlace::Client(message.client), at);
            }
            if is_of_all || is_of_nodes(violation.property) {
                until.insert(nodes.place(message.node), at);
            }
        }
        let mut arrived: Vec<(u64, &Message)> = recording
            .messages
            .iter()
            .filter_map(|message| Some((message.arrives?, message)))
            .collect();
        arrived.sort_by_key(|(arrives, _)| std::cmp::Reverse(*arrives));
        for (arrives, message) in arrived {
            let (from, to) = nodes.ends(message);
            if until.get(&to).is_some_and(|until| arrives <= *until) && since <= arrives {
                let known = until.entry(from).or_insert(0);
                *known = (*known).max(message.sent);
            }
        }
        let mut asked = BTreeMap::new();
        for message in &recording.messages {
            let client = until.get(&ProcessPlace::Client(message.client)).copied();
            if let Some(client) = client.filter(|client| message.sent <= *client) {
                let known = asked.entry(nodes.first(message.node)).or_insert(client);
                *known = client.max(*known);
            }
        }
        Slice {
            since,
            until,
            asked,
            nodes,
        }
    }

    pub(super) fn has(&self, message: &Message) -> bool {
        let (_, to) = self.nodes.ends(message);
        let until = self.until.get(&to).copied();
        let is_in_time =
            |arrives| until.is_some_and(|until| self.since <= arrives && arrives <= until);
        message.arrives.is_some_and(is_in_time)
    }

    /// Returns whether a fault strikes a place of the slice before its end, or a node that a place of it has asked, and is not over when
    /// the slice begins. A fault that happens once, or lasts until the end of the run, is not over. A link is struck if one of its ends is:
    /// a message that did not come is an influence on the end that waits for it.
    pub(super) fn has_fault(&self, fault: &Fault) -> bool {
        let begins = fault.begins().as_nanos();
        let ends = begins.saturating_add(fault.lasts.as_nanos());
        let is_over = fault.lasts != SimTime::ZERO && ends < self.since;
        let strikes = |until: Option<&u64>| until.is_some_and(|until| begins <= *until);
        let client = |client: &u16| strikes(self.until.get(&ProcessPlace::Client(*client)));
        let node = |node: &u16| {
            strikes(self.until.get(&self.nodes.place(*node)))
                || strikes(self.asked.get(&self.nodes.first(*node)))
        };
        !is_over
            && match &fault.what {
                FaultKind::Client {
                    client: ClientTarget::Client(one),
                    ..
                } => client(one),
                FaultKind::Client { .. } => true,
                FaultKind::Node { node: one, .. } => node(one),
                FaultKind::Nodes { nodes, .. } => nodes.iter().any(node),
                FaultKind::Link { clients, nodes, .. } => {
                    clients.iter().any(client) || nodes.iter().any(node)
                }
            }
    }
}

/// How the nodes of a run are numbered: first the nodes of the plan, then the replicas of each.
#[derive(Clone, Copy)]
struct Nodes {
    count: u16,
    replicas: u16,
}

impl Nodes {
    fn of(plan: &Plan) -> Self {
        Nodes {
            count: plan.nodes.count,
            replicas: plan.nodes.replicas.max(1),
        }
    }

    /// Returns the node of the plan that a node is, or whose replica it is.
    fn first(self, node: u16) -> u16 {
        let replica = node.checked_sub(self.count);
        replica.map_or(node, |replica| replica / self.replicas)
    }

    fn place(self, node: u16) -> ProcessPlace {
        ProcessPlace::Node(self.first(node))
    }

    /// Returns from where to where a message goes.
    fn ends(self, message: &Message) -> (ProcessPlace, ProcessPlace) {
        let client = ProcessPlace::Client(message.client);
        let node = self.place(message.node);
        match message.sort {
            MessageSort::Request => (client, node),
            MessageSort::Yes | MessageSort::No | MessageSort::Wake => (node, client),
        }
    }
}

/// Returns whether it shows at a node, and not at a client, that a property is broken.
fn is_of_nodes(property: Property) -> bool {
    matches!(
        property,
        Property::Ownership
            | Property::Expiry
            | Property::Fairness
            | Property::Orphans
            | Property::ReadWrite
            | Property::Statements
    )
}
