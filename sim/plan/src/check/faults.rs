//! The conditions that a fault in a plan must meet.

use crate::Plan;
use crate::fault::{
    AfterMessage, ClientFault, ClientTarget, Fault, FaultKind, Kind, LinkFault, MOST_TIMES,
    NodeFault, RATES_PPM, Repeats, Trigger,
};
use crate::time::SimTime;

type Wrong = (&'static str, String);

/// Checks that a fault is possible in a plan. The error states the wrong field and the reason.
pub(super) fn check(plan: &Plan, fault: &Fault) -> Result<(), Wrong> {
    let client = |client: u16| {
        if client < plan.clients {
            Ok(())
        } else {
            Err((
                "client",
                format!("there is no client {client}, only {}", plan.clients),
            ))
        }
    };
    let node = |node: u16| {
        if node < plan.nodes.count {
            Ok(())
        } else {
            Err((
                "node",
                format!("there is no node {node}, only {}", plan.nodes.count),
            ))
        }
    };
    check_trigger(plan, fault)?;
    fault.clients().iter().copied().try_for_each(client)?;
    once("client", fault.clients())?;
    once("node", fault.nodes())?;
    once("sentinel", fault.sentinels())?;
    if let FaultKind::Client { client, .. } = fault.what {
        check_holder(plan, "client", client)?;
    }
    fault.nodes().iter().copied().try_for_each(node)?;
    check_group(plan, fault)?;
    match &fault.what {
        FaultKind::Link { fault, .. } => check_link(*fault),
        FaultKind::Client { fault, .. } => check_client(*fault),
        FaultKind::Node {
            fault: what,
            replica,
            ..
        } => {
            check_node(plan, what, fault.lasts)?;
            check_replica(plan, *replica)
        }
        FaultKind::Backup { .. } => Ok(()),
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

/// Checks that a fault of groups has a group as its target, and that a fault of nodes without sentinels does not.
fn check_group(plan: &Plan, fault: &Fault) -> Result<(), Wrong> {
    let kind = fault.kind();
    if plan.nodes.cluster.is_some() {
        return check_shard(fault);
    }
    if Kind::OF_CLUSTERS.contains(&kind) {
        let why = "there is no cluster: add [nodes.cluster]".to_owned();
        return Err(("kind", why));
    }
    let Some(sentinels) = &plan.nodes.sentinels else {
        if Kind::OF_GROUPS.contains(&kind) {
            let why = "there are no sentinels: add [nodes.sentinels]".to_owned();
            return Err(("kind", why));
        }
        return Ok(());
    };
    if kind == Kind::Failover {
        let why = "sentinels decide who is promoted: use sentinel-failover, isolate-primary, crash-node or pause-node";
        return Err(("kind", why.to_owned()));
    }
    let count = sentinels.count;
    let named = fault.sentinels().iter();
    match named.copied().find(|sentinel| count <= *sentinel) {
        Some(sentinel) => {
            let why = format!("there is no sentinel {sentinel}, only {count}");
            Err(("sentinel", why))
        }
        None => Ok(()),
    }
}

/// Checks that a fault is possible for a shard of a cluster.
fn check_shard(fault: &Fault) -> Result<(), Wrong> {
    let kind = fault.kind();
    if kind == Kind::Failover {
        let why = "a cluster decides who is promoted: use cluster-failover, isolate-primary, crash-node or pause-node";
        return Err(("kind", why.to_owned()));
    }
    if Kind::OF_GROUPS.contains(&kind) && kind != Kind::IsolatePrimary {
        return Err(("kind", "a cluster has no sentinels".to_owned()));
    }
    match fault.sentinels() {
        [] => Ok(()),
        _ => Err(("sentinels", "a cluster has no sentinels".to_owned())),
    }
}

fn check_replica(plan: &Plan, replica: Option<u16>) -> Result<(), Wrong> {
    let replicas = plan.nodes.replicas;
    match replica {
        Some(replica) if replicas <= replica => {
            let why = format!("there is no replica {replica}, only {replicas}");
            Err(("replica", why))
        }
        _ => Ok(()),
    }
}

fn check_link(fault: LinkFault) -> Result<(), Wrong> {
    match fault {
        LinkFault::Loss { of_million } | LinkFault::Duplicate { of_million, .. }
            if 1_000_000 < of_million =>
        {
            Err(("of_million", format!("{of_million} is more than a million")))
        }
        LinkFault::Delay { min, max } if max < min => {
            Err(("min", format!("{min} is more than {max}")))
        }
        _ => Ok(()),
    }
}

fn check_client(fault: ClientFault) -> Result<(), Wrong> {
    match fault {
        ClientFault::PauseInside { nth: 0 }
        | ClientFault::StopInside { nth: 0 }
        | ClientFault::Cancel { nth: 0 } => Err(("nth", "it counts from 1".to_owned())),
        ClientFault::Rate { rate_ppm } => check_rate(rate_ppm),
        _ => Ok(()),
    }
}

fn check_rate(rate_ppm: i32) -> Result<(), Wrong> {
    if RATES_PPM.contains(&rate_ppm) {
        return Ok(());
    }
    let (min, max) = (RATES_PPM.start(), RATES_PPM.end());
    let why = format!("{rate_ppm} is not between {min} and {max}");
    Err(("rate_ppm", why))
}

fn check_node(plan: &Plan, fault: &NodeFault, lasts: SimTime) -> Result<(), Wrong> {
    let (names, replicas) = (plan.workload.names, plan.nodes.replicas);
    match fault {
        NodeFault::Evict { name } | NodeFault::RevokeKeys { name } if names <= *name => {
            Err(("name", format!("there is no name {name}, only {names}")))
        }
        NodeFault::Rate { rate_ppm } => check_rate(*rate_ppm),
        NodeFault::SlowReplication { .. } if replicas == 0 => {
            Err(("kind", "there are no replicas".to_owned()))
        }
        NodeFault::Failover { replica, .. }
        | NodeFault::SlowReplication {
            replica: Some(replica),
            ..
        } if replicas <= *replica => {
            let why = format!("there is no replica {replica}, only {replicas}");
            Err(("replica", why))
        }
        NodeFault::Stall { nth: 0 } => Err(("nth", "it counts from 1".to_owned())),
        NodeFault::Misroute { to, .. } if plan.nodes.count <= *to => {
            let count = plan.nodes.count;
            Err(("to", format!("there is no node {to}, only {count}")))
        }
        NodeFault::MigrateSlot { to, .. } if plan.nodes.count <= *to => {
            let count = plan.nodes.count;
            Err(("to", format!("there is no node {to}, only {count}")))
        }
        NodeFault::MigrateSlot { name, .. } if names <= *name => {
            Err(("name", format!("there is no name {name}, only {names}")))
        }
        NodeFault::MigrateSlot { gap, .. } if lasts < *gap => {
            let why = format!("{gap} is more than {lasts}, the length of the whole fault");
            Err(("gap", why))
        }
        NodeFault::Misroute { .. } if plan.nodes.cluster.is_some() => {
            let why = "a cluster itself announces where slots are: use migrate-slot";
            Err(("kind", why.to_owned()))
        }
        NodeFault::Misroute { .. } if plan.nodes.sentinels.is_some() => {
            let why = "sentinels announce where a group is: use isolate-primary or stale-sentinel";
            Err(("kind", why.to_owned()))
        }
        _ => Ok(()),
    }
}
