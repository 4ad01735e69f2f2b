//! Candidates in which something is left out.

use quorlock_sim_plan::fault::{
    ClientFault, ClientTarget, Fault, FaultKind, Kind, Meaning, NodeFault, Trigger, ValueMut,
};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{Persistence, Plan, Watchdog, WorkloadKind};

/// Ends a plan at a time. Later faults are left out, and faults that would last longer end at that time.
pub(super) fn end_at(plan: &mut Plan, end: SimTime) {
    plan.duration = plan.duration.min(end);
    let end = plan.duration;
    plan.faults.retain(|fault| fault.begins() < end);
    for fault in &mut plan.faults {
        fault.lasts = fault.lasts.min(end.minus(fault.begins()));
    }
    plan.outages.retain(|outage| outage.at < end);
    for outage in &mut plan.outages {
        outage.lasts = outage.lasts.min(end.minus(outage.at));
    }
    plan.healed_at = plan.healed_at.map(|at| at.min(end));
}

/// Moves every fault towards the beginning, except those at the very beginning.
pub(super) fn move_faults(plan: &mut Plan, by: SimTime) {
    for fault in &mut plan.faults {
        fault.when = fault.when.sooner(by);
    }
    for outage in &mut plan.outages {
        outage.at = outage.at.minus(by);
    }
    plan.healed_at = plan.healed_at.map(|at| at.minus(by));
}

/// Returns a plan in which one length is shorter by a fraction: the leases, or the length or time of a fault or an
/// outage. `place` selects which. Returns `None` beyond the last index.
pub(super) fn shorter(plan: &Plan, place: usize, divisor: u64) -> Option<Plan> {
    let part = |span: SimTime| SimTime::nanos(span.as_nanos() / divisor);
    let mut plan = plan.clone();
    let Some(place) = place.checked_sub(1) else {
        let lease = plan.workload.lease;
        plan.workload.lease = lease.minus(part(lease));
        return Some(plan);
    };
    let (index, is_begin) = (place / 2, place % 2 == 1);
    if let Some(fault) = plan.faults.get_mut(index) {
        if is_begin {
            fault.when = fault.when.sooner(part(fault.begins()));
        } else {
            fault.lasts = fault.lasts.minus(part(fault.lasts));
        }
        return Some(plan);
    }
    let outage = plan.outages.get_mut(index - plan.faults.len())?;
    if is_begin {
        outage.at = outage.at.minus(part(outage.at));
    } else {
        outage.lasts = outage.lasts.minus(part(outage.lasts));
    }
    Some(plan)
}

/// Returns plans with one client, node, replica or name less, or with one entry less in a list of a fault.
pub(super) fn smaller(plan: &Plan) -> Vec<Plan> {
    let mut plans = Vec::new();
    let mut push = |change: &dyn Fn(&mut Plan)| {
        let mut smaller = plan.clone();
        change(&mut smaller);
        if smaller != *plan {
            plans.push(smaller);
        }
    };
    for client in (0..plan.clients).rev().filter(|_| 1 < plan.clients) {
        push(&|plan: &mut Plan| {
            plan.clients -= 1;
            leave_out(plan, client, leave_out_client);
        });
    }
    // A fault that outlasts `healed_at` leaves a majority of the nodes, perhaps not of fewer.
    let has_healed = plan.healed_at.is_none_or(|at| {
        plan.faults
            .iter()
            .all(|fault| fault.ends().is_some_and(|ends| ends <= at))
    });
    if plan.nodes.replicas == 0 && has_healed {
        for node in (0..plan.nodes.count).rev().filter(|_| 1 < plan.nodes.count) {
            push(&|plan: &mut Plan| {
                plan.nodes.count -= 1;
                if usize::from(node) < plan.nodes.kinds.len() {
                    plan.nodes.kinds.remove(node.into());
                }
                leave_out(plan, node, leave_out_node);
            });
        }
    }
    push(&|plan: &mut Plan| plan.nodes.replicas = plan.nodes.replicas.saturating_sub(1));
    if 1 < plan.workload.names {
        push(&|plan: &mut Plan| plan.workload.names -= 1);
    }
    for index in 0..plan.outages.len() {
        push(&|plan: &mut Plan| {
            plan.outages.remove(index);
        });
    }
    for index in 0..plan.faults.len() {
        let lists = [
            FaultList::Clients,
            FaultList::Nodes,
            FaultList::LeftBehind,
            FaultList::Sentinels,
        ];
        for list in lists {
            for place in 0..usize::from(plan.clients.max(plan.nodes.count)) {
                push(&|plan: &mut Plan| shorten(plan, index, list, place));
            }
        }
    }
    plans
}

/// A list in a fault.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FaultList {
    Clients,
    Nodes,
    LeftBehind,
    Sentinels,
}

/// Removes one entry from a list of a fault. The last entry of a target stays.
fn shorten(plan: &mut Plan, index: usize, list: FaultList, place: usize) {
    let Some(what) = plan.faults.get_mut(index).map(|fault| &mut fault.what) else {
        return;
    };
    let numbers = match (what, list) {
        (FaultKind::Link { clients, .. }, FaultList::Clients) => Some(clients),
        (FaultKind::Link { nodes, .. } | FaultKind::Nodes { nodes, .. }, FaultList::Nodes) => {
            Some(nodes)
        }
        (what, FaultList::LeftBehind) => list_of(what, Meaning::Clients),
        (what, FaultList::Sentinels) => list_of(what, Meaning::Sentinels),
        (_, FaultList::Clients | FaultList::Nodes) => None,
    };
    let may_be_empty = matches!(list, FaultList::LeftBehind | FaultList::Sentinels);
    if let Some(numbers) = numbers
        && (1 < numbers.len() || may_be_empty)
        && place < numbers.len()
    {
        numbers.remove(place);
    }
}

/// Returns the field of a fault that lists indices with this meaning.
fn list_of(what: &mut FaultKind, meaning: Meaning) -> Option<&mut Vec<u16>> {
    let fields = what.fields_mut().into_iter();
    let mut lists = fields.filter_map(|(field, value)| match value {
        ValueMut::Numbers(numbers) if field.meaning() == meaning => Some(numbers),
        _ => None,
    });
    lists.next()
}

/// Leaves out one client or node, together with its faults and those triggered by its messages. The numbers of all
/// later clients or nodes decrease by one.
fn leave_out(plan: &mut Plan, gone: u16, from: fn(&mut Fault, u16) -> Remainder) {
    plan.faults
        .retain_mut(|fault| from(fault, gone) == Remainder::Something);
}

/// Whether a fault still has a target after something was left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Remainder {
    Something,
    Nothing,
}

fn leave_out_client(fault: &mut Fault, gone: u16) -> Remainder {
    if let Trigger::After(after) = &mut fault.when
        && let Some(client) = after.client.as_mut().and_then(ClientTarget::number_mut)
        && leave_out_one(client, gone) == Remainder::Nothing
    {
        return Remainder::Nothing;
    }
    let kind = fault.kind();
    match &mut fault.what {
        FaultKind::Link { clients, .. } => leave_out_of(clients, gone),
        FaultKind::Client { client, .. } => match client.number_mut() {
            Some(client) => leave_out_one(client, gone),
            None => Remainder::Something,
        },
        what @ (FaultKind::Node { .. } | FaultKind::Nodes { .. }) => {
            let clients = list_of(what, Meaning::Clients);
            match clients.map(|clients| leave_out_of(clients, gone)) {
                Some(remainder) if kind == Kind::Misroute => remainder,
                // A failover that every client notices is still a fault.
                _ => Remainder::Something,
            }
        }
    }
}

fn leave_out_node(fault: &mut Fault, gone: u16) -> Remainder {
    if let Trigger::After(after) = &mut fault.when
        && let Some(node) = &mut after.node
        && leave_out_one(node, gone) == Remainder::Nothing
    {
        return Remainder::Nothing;
    }
    let (struck, to) = match &mut fault.what {
        FaultKind::Link { nodes, .. } | FaultKind::Nodes { nodes, .. } => {
            return leave_out_of(nodes, gone);
        }
        FaultKind::Client { .. } => return Remainder::Something,
        FaultKind::Node { node, fault, .. } => (node, other_node(fault)),
    };
    match (leave_out_one(struck, gone), to) {
        (Remainder::Something, None) => Remainder::Something,
        (Remainder::Something, Some(to)) => match leave_out_one(to, gone) {
            Remainder::Something if struck != to => Remainder::Something,
            _ => Remainder::Nothing,
        },
        (Remainder::Nothing, _) => Remainder::Nothing,
    }
}

/// Returns the second node that a fault of a node names.
fn other_node(fault: &mut NodeFault) -> Option<&mut u16> {
    let fields = fault.fields_mut().into_iter();
    let mut nodes = fields.filter_map(|(field, value)| match value {
        ValueMut::Number(node) if field.meaning() == Meaning::Nodes => Some(node),
        _ => None,
    });
    nodes.next()
}

/// Removes a number from a list. A list that was already empty is no reason to leave out the fault.
fn leave_out_of(numbers: &mut Vec<u16>, gone: u16) -> Remainder {
    let had_any = !numbers.is_empty();
    numbers.retain(|number| *number != gone);
    for number in &mut *numbers {
        *number -= u16::from(gone < *number);
    }
    if had_any && numbers.is_empty() {
        Remainder::Nothing
    } else {
        Remainder::Something
    }
}

fn leave_out_one(number: &mut u16, gone: u16) -> Remainder {
    if *number == gone {
        return Remainder::Nothing;
    }
    *number -= u16::from(gone < *number);
    Remainder::Something
}

type Change = Box<dyn Fn(&mut Plan)>;

/// Returns changes that replace special choices of a plan by common ones.
pub(super) fn plainer(plan: &Plan) -> Vec<Change> {
    let mut changes: Vec<Change> = vec![
        Box::new(|plan| plan.workload.kind = WorkloadKind::MutualExclusion),
        Box::new(|plan| plan.workload.watchdog = Watchdog::Off),
        Box::new(|plan| plan.nodes.persistence = Persistence::EveryWrite),
        Box::new(|plan| plan.network.max = plan.network.min),
        Box::new(|plan| plan.workload.hold_min = plan.workload.hold_max),
        Box::new(|plan| plan.workload.hold_max = plan.workload.hold_min),
        Box::new(|plan| plan.workload.think_max = plan.workload.think_min),
        Box::new(|plan| plan.workload.checks = 1),
        Box::new(|plan| plan.workload.longer = 0),
    ];
    for index in 0..plan.faults.len() {
        // A pause between two steps is plainer than a pause within a step.
        changes.push(Box::new(move |plan| {
            if let Some(FaultKind::Client { fault, .. }) =
                plan.faults.get_mut(index).map(|fault| &mut fault.what)
                && matches!(
                    fault,
                    ClientFault::PauseInside { .. } | ClientFault::StopInside { .. }
                )
            {
                *fault = ClientFault::Pause;
            }
        }));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorlock_sim_plan::fault::{ClientFault, Direction, LinkFault};

    fn plan() -> Plan {
        Plan {
            faults: vec![
                Fault {
                    when: Trigger::At(SimTime::millis(10)),
                    lasts: SimTime::millis(100),
                    what: FaultKind::Link {
                        clients: vec![0, 2],
                        nodes: vec![1],
                        direction: Direction::Both,
                        fault: LinkFault::Cut,
                    },
                },
                Fault::of_client(SimTime::millis(60), 1, ClientFault::Pause)
                    .lasting(SimTime::millis(5)),
            ],
            ..Plan::default()
        }
    }

    #[test]
    fn whoever_comes_after_a_client_that_is_gone_moves_up() {
        let mut plan = plan();
        leave_out(&mut plan, 1, leave_out_client);
        let left: Vec<&[u16]> = plan.faults.iter().map(Fault::clients).collect();
        assert_eq!(left, [[0, 1]]);
        leave_out(&mut plan, 1, leave_out_node);
        assert!(plan.faults.is_empty());
    }

    #[test]
    fn a_plan_that_ends_sooner_has_no_fault_beyond_its_end() {
        let mut plan = plan();
        end_at(&mut plan, SimTime::millis(50));
        assert_eq!(plan.faults.len(), 1);
        assert_eq!(plan.heals_at(), SimTime::millis(50));
        quorlock_sim_plan::check(&plan).expect("it can be run");
    }

    #[test]
    fn every_smaller_plan_is_smaller_and_can_be_run() {
        let plan = plan();
        let size = |plan: &Plan| serde_json::to_string(plan).map_or(0, |text| text.len());
        let plans = smaller(&plan);
        assert!(8 < plans.len());
        for smaller in plans {
            assert!(size(&smaller) <= size(&plan));
            quorlock_sim_plan::check(&smaller).expect("it can be run");
        }
    }
}
