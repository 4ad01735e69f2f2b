//! The conditions that a fault in a plan must meet.

use crate::fault::{
    AfterMessage, ClientTarget, Fault, FaultKind, Field, Kind, MOST_TIMES, Meaning, Needs,
    RATES_PPM, Repeats, Trigger, Value,
};
use crate::time::SimTime;
use crate::{NodeKind, Plan};

type Wrong = (&'static str, String);

/// Checks that a fault is possible in a plan. The error states the wrong field and the reason.
pub(super) fn check(plan: &Plan, fault: &Fault) -> Result<(), Wrong> {
    check_trigger(plan, fault)?;
    below("client", "client", fault.clients(), plan.clients)?;
    once("client", fault.clients())?;
    once("node", fault.nodes())?;
    once("sentinel", fault.sentinels())?;
    if let FaultKind::Client { client, .. } = fault.what {
        check_holder(plan, "client", client)?;
    }
    below("node", "node", fault.nodes(), plan.nodes.count)?;
    check_deployment(plan, fault)?;
    check_store(plan, fault)?;
    if let FaultKind::Node {
        replica: Some(replica),
        ..
    } = fault.what
    {
        if !fault.kind().strikes_replicas() {
            let why = format!("{} strikes no replica", fault.kind().name());
            return Err(("replica", why));
        }
        below("replica", "replica", &[replica], plan.nodes.replicas)?;
    }
    for (field, value) in fault.fields() {
        check_field(plan, field, value)?;
    }
    check_spans(fault)
}

/// Checks the lengths that bound each other.
fn check_spans(fault: &Fault) -> Result<(), Wrong> {
    let span = |wanted: Field| {
        let mut fields = fault.fields().into_iter();
        fields.find_map(|(field, value)| match value {
            Value::Span(span) if field == wanted => Some(span),
            _ => None,
        })
    };
    let lasts = fault.lasts;
    match (span(Field::min), span(Field::max), span(Field::gap)) {
        (Some(min), Some(max), _) if max < min => Err(("min", format!("{min} is more than {max}"))),
        (_, _, Some(gap)) if lasts < gap => {
            let why = format!("{gap} is more than {lasts}, the length of the whole fault");
            Err(("gap", why))
        }
        _ => Ok(()),
    }
}

/// Checks the value of one field by what it stands for.
fn check_field(plan: &Plan, field: Field, value: Value<'_>) -> Result<(), Wrong> {
    let (name, nodes) = (field.name(), &plan.nodes);
    match (field.meaning(), value) {
        (Meaning::Names, Value::Numbers(numbers)) => {
            below(name, "name", numbers, plan.workload.names)
        }
        (Meaning::Nodes, Value::Numbers(numbers)) => below(name, "node", numbers, nodes.count),
        (Meaning::Replicas, Value::Numbers(numbers)) => {
            below(name, "replica", numbers, nodes.replicas)
        }
        (Meaning::Ordinal, Value::Count(0)) => Err((name, "it counts from 1".to_owned())),
        (Meaning::Share, Value::Count(of_million)) if 1_000_000 < of_million => {
            Err((name, format!("{of_million} is more than a million")))
        }
        (Meaning::Rate, Value::Rate(rate)) if !RATES_PPM.contains(&rate) => {
            let (min, max) = (RATES_PPM.start(), RATES_PPM.end());
            Err((name, format!("{rate} is not between {min} and {max}")))
        }
        // Clients and sentinels are checked together with the targets.
        (Meaning::Clients | Meaning::Sentinels | Meaning::Anything, _)
        | (
            Meaning::Names
            | Meaning::Nodes
            | Meaning::Replicas
            | Meaning::Ordinal
            | Meaning::Share
            | Meaning::Rate,
            _,
        ) => Ok(()),
    }
}

/// Checks that indices are below a number.
fn below(field: &'static str, what: &str, numbers: &[u16], many: u16) -> Result<(), Wrong> {
    match numbers.iter().find(|number| many <= **number) {
        Some(number) => Err((field, format!("there is no {what} {number}, only {many}"))),
        None => Ok(()),
    }
}

/// Checks that a list contains no number twice.
fn once(what: &'static str, numbers: &[u16]) -> Result<(), Wrong> {
    let mut each = numbers.iter().enumerate();
    let twice = each.find(|(n, number)| numbers.iter().take(*n).any(|before| before == *number));
    match twice {
        Some((_, number)) => Err((what, format!("{what} {number} is named twice"))),
        None => Ok(()),
    }
}

/// Checks that a fault begins and ends within the run.
fn check_trigger(plan: &Plan, fault: &Fault) -> Result<(), Wrong> {
    let duration = plan.duration;
    match fault.when {
        Trigger::At(_) => {}
        Trigger::Every {
            first,
            every,
            repeats,
        } => {
            if every < SimTime::millis(1) {
                let why = format!("{every} is too short: it must be at least 1ms");
                return Err(("every", why));
            }
            match repeats {
                Repeats::Times(times) if !(1..=MOST_TIMES).contains(&times) => {
                    let why = format!("{times} is not between 1 and {MOST_TIMES}");
                    return Err(("times", why));
                }
                Repeats::Until(until) if until <= first => {
                    let why = format!("{until} is not after {first}, the first time");
                    return Err(("until", why));
                }
                _ => {}
            }
        }
        Trigger::After(after) => check_message(plan, fault, &after)?,
    }
    if duration < fault.begins().plus(fault.lasts) && !fault.is_fixed() {
        let why = format!("it would last beyond the run ({duration}), whenever it begins");
        return Err(("at", why));
    }
    match fault.ends() {
        Some(end) if duration < end => {
            let why = format!("it ends at {end}, beyond the run ({duration})");
            Err(("at", why))
        }
        _ => Ok(()),
    }
}

fn check_message(plan: &Plan, fault: &Fault, after: &AfterMessage) -> Result<(), Wrong> {
    if after.nth == 0 {
        return Err(("after.nth", "it counts from 1".to_owned()));
    }
    let nodes = plan.nodes.count;
    if let Some(node) = after.node.filter(|node| nodes <= *node) {
        return Err(("after", format!("there is no node {node}, only {nodes}")));
    }
    if let Some(target) = after.client {
        let clients = plan.clients;
        if let Some(client) = target.number().filter(|client| clients <= *client) {
            let why = format!("there is no client {client}, only {clients}");
            return Err(("after", why));
        }
        check_holder(plan, "after", target)?;
    }
    if fault.kind() == Kind::PowerLoss {
        let why = "what is lost is written before it, so its time must be known: set only at, or at and every";
        return Err(("after", why.to_owned()));
    }
    Ok(())
}

/// Checks that the name whose holder is the target exists.
fn check_holder(plan: &Plan, field: &'static str, target: ClientTarget) -> Result<(), Wrong> {
    let names = plan.workload.names;
    match target.name() {
        Some(name) if names <= name => {
            Err((field, format!("there is no name {name}, only {names}")))
        }
        _ => Ok(()),
    }
}

/// Checks that no replica takes the place of a consensus store, which does that by itself and forgets nothing.
fn check_store(plan: &Plan, fault: &Fault) -> Result<(), Wrong> {
    let takes_over = fault.kind() == Kind::Failover;
    let is_consensus = |node: &u16| plan.nodes.kind(*node) == NodeKind::Consensus;
    match takes_over && fault.nodes().iter().any(is_consensus) {
        true => {
            let why = "a consensus store chooses its leader by itself and forgets nothing: use crash-node or pause-node";
            Err(("kind", why.to_owned()))
        }
        false => Ok(()),
    }
}

/// Checks that the nodes are what the fault needs, and that the group has the sentinels that it names.
fn check_deployment(plan: &Plan, fault: &Fault) -> Result<(), Wrong> {
    let nodes = &plan.nodes;
    let (is_cluster, is_group) = (nodes.cluster.is_some(), nodes.sentinels.is_some());
    let why = match fault.kind().needs() {
        Needs::PlainServers {
            not_in_clusters, ..
        } if is_cluster => not_in_clusters,
        Needs::PlainServers { not_in_groups, .. } if is_group => not_in_groups,
        Needs::Replicas if nodes.replicas == 0 => "there are no replicas",
        Needs::Sentinels if is_cluster => "a cluster has no sentinels",
        Needs::Sentinels | Needs::Elections if !is_cluster && !is_group => {
            "there are no sentinels: add [nodes.sentinels]"
        }
        Needs::Cluster if !is_cluster => "there is no cluster: add [nodes.cluster]",
        Needs::Nothing
        | Needs::Replicas
        | Needs::PlainServers { .. }
        | Needs::Elections
        | Needs::Sentinels
        | Needs::Cluster => {
            let named = fault.sentinels();
            return match &nodes.sentinels {
                Some(sentinels) => below("sentinel", "sentinel", named, sentinels.count),
                None if named.is_empty() => Ok(()),
                None => Err(("sentinels", "a cluster has no sentinels".to_owned())),
            };
        }
    };
    Err(("kind", why.to_owned()))
}
