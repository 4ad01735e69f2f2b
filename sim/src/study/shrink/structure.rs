//! Plans that are like another, with something left out.

use serde_json::Value;

use crate::plan::fault::Fault;
use crate::plan::time::Span;
use crate::plan::{Persistence, Plan, Watchdog, WorkloadKind};

/// Ends a plan: later faults are left out, and those that go on end with it.
pub(super) fn end_at(plan: &mut Plan, end: Span) {
    plan.duration = plan.duration.min(end);
    let end = plan.duration;
    plan.faults.retain(|fault| fault.at() < end);
    edit(plan, |value| {
        for fault in faults(value) {
            let at = span(fault.get("at")).unwrap_or_default();
            for field in ["lasts", "restart_after", "rejoin_after"] {
                if let Some(place) = fault.get_mut(field)
                    && let Some(lasts) = span(Some(place))
                    && end < at.plus(lasts)
                {
                    *place = end.minus(at).to_string().into();
                }
            }
        }
    });
    plan.healed_at = plan.healed_at.map(|at| at.min(end));
}

/// Moves every fault towards the beginning; those at the very beginning stay.
pub(super) fn move_faults(plan: &mut Plan, by: Span) {
    edit(plan, |value| {
        for fault in faults(value) {
            if let Some(place) = fault.get_mut("at")
                && let Some(at) = span(Some(place))
            {
                *place = at.minus(by).to_string().into();
            }
        }
    });
    plan.healed_at = plan.healed_at.map(|at| at.minus(by));
}

/// Plans with one client, node, replica or name less, or with one less in one fault.
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
            leave_out(plan, client, &["client", "clients", "left_behind"]);
        });
    }
    if plan.nodes.replicas == 0 {
        for node in (0..plan.nodes.count).rev().filter(|_| 1 < plan.nodes.count) {
            push(&|plan: &mut Plan| {
                plan.nodes.count -= 1;
                leave_out(plan, node, &["node", "nodes"]);
            });
        }
    }
    push(&|plan: &mut Plan| plan.nodes.replicas = plan.nodes.replicas.saturating_sub(1));
    if 1 < plan.workload.names {
        push(&|plan: &mut Plan| plan.workload.names -= 1);
    }
    for index in 0..plan.faults.len() {
        for field in ["clients", "nodes", "left_behind"] {
            for place in 0..usize::from(plan.clients.max(plan.nodes.count)) {
                push(&|plan: &mut Plan| shorten(plan, index, field, place));
            }
        }
    }
    plans
}

/// Takes one entry out of a list of a fault; the last one of a link stays.
fn shorten(plan: &mut Plan, index: usize, field: &str, place: usize) {
    edit(plan, |value| {
        let list = faults(value).nth(index).and_then(|f| f.get_mut(field));
        if let Some(list) = list.and_then(Value::as_array_mut)
            && (1 < list.len() || field == "left_behind")
            && place < list.len()
        {
            list.remove(place);
        }
    });
}

/// Leaves out one client or node: its faults go, and whoever comes after it has a smaller number.
fn leave_out(plan: &mut Plan, gone: u16, fields: &[&str]) {
    edit(plan, |value| {
        let Some(faults) = value.get_mut("faults").and_then(Value::as_array_mut) else {
            return;
        };
        let gone = u64::from(gone);
        let later = |number: u64| Value::from(number - u64::from(gone < number));
        faults.retain_mut(|fault| {
            fields.iter().all(|field| match fault.get_mut(*field) {
                Some(Value::Array(list)) => {
                    let had_any = !list.is_empty();
                    list.retain(|number| number.as_u64() != Some(gone));
                    for number in &mut *list {
                        *number = later(number.as_u64().unwrap_or(0));
                    }
                    !had_any || !list.is_empty() || *field == "left_behind"
                }
                Some(number) => {
                    let is_gone = number.as_u64() == Some(gone);
                    *number = later(number.as_u64().unwrap_or(0));
                    !is_gone
                }
                None => true,
            })
        });
    });
}

type Change = Box<dyn Fn(&mut Plan)>;

/// Ways to make a plan more usual.
pub(super) fn plainer(plan: &Plan) -> Vec<Change> {
    let mut changes: Vec<Change> = vec![
        Box::new(|plan| plan.workload.kind = WorkloadKind::MutualExclusion),
        Box::new(|plan| plan.workload.watchdog = Watchdog::Off),
        Box::new(|plan| plan.nodes.persistence = Persistence::EveryWrite),
        Box::new(|plan| plan.network.most = plan.network.least),
        Box::new(|plan| plan.workload.hold_least = plan.workload.hold_most),
        Box::new(|plan| plan.workload.hold_most = plan.workload.hold_least),
        Box::new(|plan| plan.workload.think_most = plan.workload.think_least),
        Box::new(|plan| plan.workload.looks = 1),
    ];
    for index in 0..plan.faults.len() {
        // A pause between two steps is plainer than one in the middle of one.
        changes.push(Box::new(move |plan| {
            if let Some(place) = plan.faults.get_mut(index)
                && let Fault::PauseInside {
                    at, lasts, client, ..
                } = *place
            {
                *place = Fault::PauseClient { at, lasts, client };
            }
        }));
    }
    changes
}

/// Changes a plan in the form that it has in files. What is no plan any more is not taken.
fn edit(plan: &mut Plan, change: impl FnOnce(&mut Value)) {
    let Ok(mut value) = serde_json::to_value(&*plan) else {
        return;
    };
    change(&mut value);
    if let Ok(changed) = serde_json::from_value(value) {
        *plan = changed;
    }
}

fn faults(plan: &mut Value) -> impl Iterator<Item = &mut Value> {
    let faults = plan.get_mut("faults").and_then(Value::as_array_mut);
    faults.into_iter().flatten()
}

fn span(value: Option<&Value>) -> Option<Span> {
    value?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fault::Direction;

    fn plan() -> Plan {
        Plan {
            faults: vec![
                Fault::Cut {
                    at: Span::millis(10),
                    lasts: Span::millis(100),
                    clients: vec![0, 2],
                    nodes: vec![1],
                    direction: Direction::Both,
                },
                Fault::PauseClient {
                    at: Span::millis(60),
                    lasts: Span::millis(5),
                    client: 1,
                },
            ],
            ..Plan::default()
        }
    }

    #[test]
    fn whoever_comes_after_a_client_that_is_gone_moves_up() {
        let mut plan = plan();
        leave_out(&mut plan, 1, &["client", "clients", "left_behind"]);
        let [Fault::Cut { clients, .. }] = plan.faults.as_slice() else {
            panic!("{:?}", plan.faults)
        };
        assert_eq!(*clients, [0, 1]);
        leave_out(&mut plan, 1, &["node", "nodes"]);
        assert!(plan.faults.is_empty());
    }

    #[test]
    fn a_plan_that_ends_sooner_has_no_fault_beyond_its_end() {
        let mut plan = plan();
        end_at(&mut plan, Span::millis(50));
        assert_eq!(plan.faults.len(), 1);
        assert_eq!(plan.heals_at(), Span::millis(50));
        crate::plan::file::check(&plan).expect("it can be run");
    }

    #[test]
    fn every_smaller_plan_is_smaller_and_can_be_run() {
        let plan = plan();
        let size = |plan: &Plan| serde_json::to_string(plan).map_or(0, |text| text.len());
        let plans = smaller(&plan);
        assert!(8 < plans.len());
        for smaller in plans {
            assert!(size(&smaller) <= size(&plan));
            crate::plan::file::check(&smaller).expect("it can be run");
        }
    }
}
