//! The amounts of a plan: lengths, steps, rates and numbers. They can be smaller or rounder in a similar plan.
//!
//! Indices and choices are not amounts. The numbers of clients, nodes and names are shrunk separately.

use quorlock_sim_plan::fault::{AfterMessage, Fault, Field, Repeats, Trigger, ValueMut};
use quorlock_sim_plan::time::{ClockStep, SimTime};
use quorlock_sim_plan::{
    Cluster, MinReplicas, Network, Nodes, Outage, Plan, Sentinels, Wait, Workload,
};

/// A mutable reference to an amount in its plan.
#[derive(Debug)]
pub(super) enum Amount<'a> {
    Span(&'a mut SimTime),
    Step(&'a mut ClockStep),
    Small(&'a mut u16),
    Large(&'a mut u32),
    Rate(&'a mut i32),
}

impl Amount<'_> {
    /// Returns the amount as a number. Times are in nanoseconds.
    pub(super) fn number(&self) -> i64 {
        match self {
            Amount::Span(span) => i64::try_from(span.as_nanos()).unwrap_or(i64::MAX),
            Amount::Step(step) => step.as_nanos(),
            Amount::Small(number) => i64::from(**number),
            Amount::Large(number) => i64::from(**number),
            Amount::Rate(rate) => i64::from(**rate),
        }
    }

    /// Sets the amount. A number that is impossible for it is ignored.
    pub(super) fn set(self, number: i64) {
        match self {
            Amount::Span(span) => replace(span, u64::try_from(number).map(SimTime::nanos)),
            Amount::Step(step) => *step = ClockStep::nanos(number),
            Amount::Small(small) => replace(small, number.try_into()),
            Amount::Large(large) => replace(large, number.try_into()),
            Amount::Rate(rate) => replace(rate, number.try_into()),
        }
    }
}

fn replace<T, E>(place: &mut T, with: Result<T, E>) {
    if let Ok(with) = with {
        *place = with;
    }
}

/// How the bounds on a plan's progress are treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ProgressBounds {
    /// The bounds shrink like other amounts.
    Shrink,
    /// The bounds stay, because a failure to make progress depends on them.
    Stay,
}

/// Returns every amount of a plan, in alphabetical order of the field names in files. The order determines which
/// failure a search ends at.
pub(super) fn amounts(plan: &mut Plan, bounds: ProgressBounds) -> Vec<Amount<'_>> {
    let Plan {
        duration,
        faults,
        healed_at,
        network,
        nodes,
        outages,
        progress_within,
        workload,
        // A smaller margin than the clocks need would be a failure of the plan, not of the lock.
        remedies: _,
        seed: _,
        lane: _,
        lock: _,
        variant: _,
        clients: _,
        not_demanded: _,
        idle_within: _,
        free_within: _,
        holds_last: _,
    } = plan;
    let mut all = vec![Amount::Span(duration)];
    all.extend(faults.iter_mut().flat_map(of_fault));
    if bounds == ProgressBounds::Shrink {
        all.extend(healed_at.as_mut().map(Amount::Span));
    }
    all.extend(of_network(network));
    all.extend(of_nodes(nodes));
    if bounds == ProgressBounds::Shrink {
        all.extend(progress_within.as_mut().map(Amount::Span));
    }
    all.extend(of_workload(workload));
    for Outage { at, lasts, .. } in outages {
        all.extend([at, lasts].map(Amount::Span));
    }
    all
}

fn of_network(network: &mut Network) -> [Amount<'_>; 4] {
    let Network {
        call_timeout,
        connect_timeout,
        min,
        max,
    } = network;
    [call_timeout, connect_timeout, min, max].map(Amount::Span)
}

fn of_nodes(nodes: &mut Nodes) -> Vec<Amount<'_>> {
    let Nodes {
        min_replicas,
        replicas,
        replication_lag,
        sentinels,
        cluster,
        wait,
        count: _,
        kinds: _,
        persistence: _,
    } = nodes;
    let mut all = Vec::new();
    if let Some(MinReplicas { max_lag, count: _ }) = min_replicas {
        all.push(Amount::Span(max_lag));
    }
    all.extend([Amount::Small(replicas), Amount::Span(replication_lag)]);
    if let Some(Sentinels {
        down_after,
        election,
        gossip,
        demotion,
        count: _,
        quorum: _,
        connections: _,
    }) = sentinels
    {
        all.extend([demotion, down_after, election, gossip].map(Amount::Span));
    }
    if let Some(Cluster {
        node_timeout,
        election,
        gossip,
        coverage: _,
    }) = cluster
    {
        all.extend([node_timeout, election, gossip].map(Amount::Span));
    }
    if let Some(Wait { replicas, within }) = wait {
        all.extend([Amount::Small(replicas), Amount::Span(within)]);
    }
    all
}

fn of_workload(workload: &mut Workload) -> [Amount<'_>; 8] {
    let Workload {
        backoff_cap,
        hold_min,
        hold_max,
        lease,
        checks,
        poll_cap,
        think_min,
        think_max,
        kind: _,
        names: _,
        watchdog: _,
        max_hold: _,
        longer: _,
    } = workload;
    [
        Amount::Span(backoff_cap),
        Amount::Span(hold_min),
        Amount::Span(hold_max),
        Amount::Span(lease),
        Amount::Small(checks),
        Amount::Span(poll_cap),
        Amount::Span(think_min),
        Amount::Span(think_max),
    ]
}

/// Returns the amounts of a fault. Among its fields, the length stands where the name of its field does.
fn of_fault(fault: &mut Fault) -> Vec<Amount<'_>> {
    let length = fault.kind().length_field();
    let Fault { when, lasts, what } = fault;
    let mut all = of_trigger(when);
    let fields = what.fields_mut().into_iter();
    let (before, after): (Vec<_>, Vec<_>) = fields.partition(|(field, _)| field.name() < length);
    all.extend(before.into_iter().flat_map(of_field));
    all.push(Amount::Span(lasts));
    all.extend(after.into_iter().flat_map(of_field));
    all
}

fn of_field((field, value): (Field, ValueMut<'_>)) -> Vec<Amount<'_>> {
    match value {
        ValueMut::Span(span) => vec![Amount::Span(span)],
        ValueMut::Step(step) => vec![Amount::Step(step)],
        ValueMut::Count(count) => vec![Amount::Large(count)],
        ValueMut::Rate(rate) => vec![Amount::Rate(rate)],
        ValueMut::Numbers(clients) if field == Field::left_behind => {
            clients.iter_mut().map(Amount::Small).collect()
        }
        ValueMut::Number(_) | ValueMut::Numbers(_) | ValueMut::Choice => Vec::new(),
    }
}

fn of_trigger(when: &mut Trigger) -> Vec<Amount<'_>> {
    match when {
        Trigger::At(at) => vec![Amount::Span(at)],
        Trigger::Every {
            first,
            every,
            repeats,
        } => {
            let mut all = vec![Amount::Span(first), Amount::Span(every)];
            all.push(match repeats {
                Repeats::Times(times) => Amount::Large(times),
                Repeats::Until(until) => Amount::Span(until),
            });
            all
        }
        Trigger::After(AfterMessage {
            since,
            delay,
            nth,
            message: _,
            towards: _,
            client: _,
            node: _,
        }) => vec![Amount::Span(since), Amount::Span(delay), Amount::Large(nth)],
    }
}
