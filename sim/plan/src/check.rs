//! Checks that a plan can be run.

mod algorithm;
mod faults;

use crate::time::SimTime;
use crate::{Lacks, LockKind, Plan, WorkloadKind};

/// The error of a plan that cannot be run. Its message names the place of the error.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A field of the plan has an impossible value.
    #[error("{place}: {why}")]
    Impossible {
        /// The field with the impossible value.
        place: String,
        /// The reason.
        why: String,
    },
    /// The lane of the plan does not support a part of the plan.
    #[error(transparent)]
    Lacks(#[from] Lacks),
}

impl PlanError {
    /// Returns the wrong field, if the error is about a field.
    #[must_use]
    pub fn field(&self) -> Option<String> {
        match self {
            PlanError::Impossible { place, .. } => Some(place.clone()),
            PlanError::Lacks(lacks) => lacks.field(),
        }
    }
}

fn wrong(place: impl Into<String>, why: impl Into<String>) -> PlanError {
    PlanError::Impossible {
        place: place.into(),
        why: why.into(),
    }
}

/// The shortest lease that the product accepts.
const SHORTEST_LEASE: SimTime = SimTime::millis(5);
/// The longest lease that the simulator configures.
const LONGEST_LEASE: SimTime = SimTime::secs(3600);
/// The longest duration of a run.
const LONGEST: SimTime = SimTime::secs(24 * 3600);

/// Checks that a plan can be run.
///
/// # Errors
/// Returns [`PlanError::Impossible`] or [`PlanError::Lacks`], which name the field.
pub fn check(plan: &Plan) -> Result<(), PlanError> {
    check_counts(plan)?;
    check_times(plan)?;
    check_work(plan)?;
    let mut demands = plan.not_demanded.iter().enumerate();
    if let Some((_, twice)) =
        demands.find(|(n, p)| plan.not_demanded.iter().take(*n).any(|q| q == *p))
    {
        return Err(wrong("not_demanded", format!("{twice} is named twice")));
    }
    for (fault, index) in plan.faults.iter().zip(0..) {
        faults::check(plan, fault)
            .map_err(|(field, why)| wrong(format!("faults[{index}].{field}"), why))?;
    }
    Lacks::check(plan)?;
    Ok(())
}

fn check_counts(plan: &Plan) -> Result<(), PlanError> {
    between("clients", plan.clients, 1, 60)?;
    between("nodes.count", plan.nodes.count, 1, 15)?;
    let replicas = plan.nodes.replicas;
    between("nodes.replicas", replicas, 0, 5)?;
    if let Some(wait) = &plan.nodes.wait {
        between("nodes.wait.replicas", wait.replicas, 1, replicas)?;
    }
    if let Some(demanded) = &plan.nodes.min_replicas {
        between("nodes.min_replicas.count", demanded.count, 1, replicas)?;
    }
    check_sentinels(plan)?;
    check_cluster(plan)?;
    check_kinds(plan)?;
    between("workload.names", plan.workload.names, 1, 60)
}

fn check_times(plan: &Plan) -> Result<(), PlanError> {
    let (network, workload) = (&plan.network, &plan.workload);
    // Without a minimum, a client could loop forever while no time passes.
    shortest("network.min", SimTime::micros(1), network.min)?;
    let wait = SimTime::millis(1);
    shortest("workload.poll_cap", wait, workload.poll_cap)?;
    shortest("workload.backoff_cap", wait, workload.backoff_cap)?;
    ordered("network.min", network.min, network.max)?;
    ordered("workload.hold_min", workload.hold_min, workload.hold_max)?;
    ordered("workload.think_min", workload.think_min, workload.think_max)?;
    shortest("workload.lease", SHORTEST_LEASE, workload.lease)?;
    longest("workload.lease", workload.lease, LONGEST_LEASE)?;
    shortest("duration", SimTime::millis(1), plan.duration)?;
    longest("duration", plan.duration, LONGEST)?;
    shortest("network.call_timeout", wait, network.call_timeout)?;
    shortest("network.connect_timeout", wait, network.connect_timeout)
}

/// Checks that the lock and the variant of the plan have its kind of work.
fn check_work(plan: &Plan) -> Result<(), PlanError> {
    let why = match (plan.workload.kind, plan.lock) {
        (WorkloadKind::Reentrant, LockKind::Multi) => {
            "a lock that acquires one name from each node has no owner that could re-enter it"
        }
        (WorkloadKind::Leading, LockKind::Multi) => {
            "a leader holds one name: set lock = \"single\" or \"redlock\""
        }
        (WorkloadKind::Together, LockKind::Single | LockKind::Redlock) => {
            "there is only one client whose locks could be combined: set lock = \"multi\""
        }
        (WorkloadKind::Sides, LockKind::Multi) => {
            "an owner belongs to one client: set lock = \"single\" or \"redlock\""
        }
        (WorkloadKind::Fair, LockKind::Redlock) => {
            "queues on several nodes have no common order: a fair lock needs lock = \"single\" or \"multi\""
        }
        (
            WorkloadKind::Fair
            | WorkloadKind::ReadWrite
            | WorkloadKind::CompetingTasks
            | WorkloadKind::Together
            | WorkloadKind::Sides,
            _,
        ) if !plan.variant.has_product_clients() => {
            "the simulator's own lock has neither queues nor readers nor owners: this work needs variant = \"product\", \
             or one that is wrong about them"
        }
        (kind, _) if plan.variant.algorithm().is_some() && !algorithm::is_plain(kind) => {
            "an algorithm only acquires one name and releases it: use mutual-exclusion, long-work, try-storm, or a kind of writes or updates"
        }
        _ => return Ok(()),
    };
    Err(wrong("workload.kind", why))
}

fn between(place: &str, value: u16, min: u16, max: u16) -> Result<(), PlanError> {
    match (min..=max).contains(&value) {
        true => Ok(()),
        false => Err(wrong(
            place,
            format!("{value} is not between {min} and {max}"),
        )),
    }
}

fn ordered(place: &str, min: SimTime, max: SimTime) -> Result<(), PlanError> {
    match min <= max {
        true => Ok(()),
        false => Err(wrong(place, format!("{min} is more than {max}"))),
    }
}

fn shortest(place: &str, min: SimTime, value: SimTime) -> Result<(), PlanError> {
    match min <= value {
        true => Ok(()),
        false => Err(wrong(
            place,
            format!("{value} is too short: it must be at least {min}"),
        )),
    }
}

fn longest(place: &str, value: SimTime, max: SimTime) -> Result<(), PlanError> {
    match value <= max {
        true => Ok(()),
        false => Err(wrong(
            place,
            format!("{value} is too long: it must be at most {max}"),
        )),
    }
}

/// Checks that there are as many nodes as kinds, and that what is planted is a flaw of a store where there are stores.
fn check_kinds(plan: &Plan) -> Result<(), PlanError> {
    let (kinds, count) = (&plan.nodes.kinds, plan.nodes.count);
    if usize::from(count) < kinds.len() {
        let why = format!("there are {} kinds for {count} nodes", kinds.len());
        return Err(wrong("nodes.kinds", why));
    }
    let has_stores = kinds.iter().any(|kind| kind.is_store());
    if has_stores && plan.nodes.wait.is_some() {
        let why = "the replica of a database is asynchronous here: leave it out";
        return Err(wrong("nodes.wait", why));
    }
    let variant = plan.variant;
    if let Some(algorithm) = variant.algorithm() {
        return algorithm::check(plan, algorithm);
    }
    let mut flaws = variant.flaws().iter();
    let why = match has_stores {
        true if !variant.has_product_clients() || !flaws.all(|flaw| flaw.is_of_stores()) => {
            "is not a lock on stores: use product, or a variant with a flaw of a store"
        }
        false if flaws.any(|flaw| flaw.is_of_stores()) => {
            "has a flaw of a store: make a node one, in nodes.kinds"
        }
        _ => return Ok(()),
    };
    Err(wrong("variant", format!("{variant} {why}")))
}

/// The longest time of any step of an election.
const LONGEST_ELECTION: SimTime = SimTime::secs(600);

fn check_cluster(plan: &Plan) -> Result<(), PlanError> {
    let Some(cluster) = &plan.nodes.cluster else {
        if plan
            .variant
            .flaws()
            .iter()
            .any(|flaw| flaw.is_of_clusters())
        {
            let variant = plan.variant;
            let why = format!("{variant} has a flaw in the way to a cluster: add [nodes.cluster]");
            return Err(wrong("variant", why));
        }
        return Ok(());
    };
    let (place, nodes) = ("nodes.cluster", &plan.nodes);
    if nodes.sentinels.is_some() {
        let why = "a cluster elects its primaries by itself: leave out nodes.sentinels";
        return Err(wrong(place, why));
    }
    if nodes.replicas == 0 {
        let why = "a cluster has no replica to promote: set nodes.replicas = 1 or more";
        return Err(wrong(place, why));
    }
    if nodes.count < 3 {
        let count = nodes.count;
        let why = format!("{count} is not enough for a vote: a cluster has at least 3 primaries");
        return Err(wrong("nodes.count", why));
    }
    if plan.lock == LockKind::Multi {
        let why = "a cluster is one node or a majority of its shards: set lock = \"single\" or \"redlock\"";
        return Err(wrong("lock", why));
    }
    let spans = [
        ("node_timeout", cluster.node_timeout),
        ("election", cluster.election),
        ("gossip", cluster.gossip),
    ];
    if let Some((field, span)) = spans.into_iter().find(|(_, span)| LONGEST_ELECTION < *span) {
        let why = format!("{span} is too long: it must be at most {LONGEST_ELECTION}");
        return Err(wrong(format!("{place}.{field}"), why));
    }
    let (timeout, min) = (cluster.node_timeout, SimTime::millis(10));
    if timeout < min {
        let why = format!("{timeout} is too short: it must be at least {min}");
        return Err(wrong(format!("{place}.node_timeout"), why));
    }
    Ok(())
}

fn check_sentinels(plan: &Plan) -> Result<(), PlanError> {
    let Some(sentinels) = &plan.nodes.sentinels else {
        if plan.variant.flaws().iter().any(|flaw| flaw.is_of_groups()) {
            let variant = plan.variant;
            let why = format!("{variant} has a flaw in the way to a group: add [nodes.sentinels]");
            return Err(wrong("variant", why));
        }
        return Ok(());
    };
    let place = |field: &str| format!("nodes.sentinels.{field}");
    if plan.nodes.replicas == 0 {
        let why = "sentinels have no replica to promote: set nodes.replicas = 1 or more";
        return Err(wrong("nodes.sentinels", why));
    }
    let count = sentinels.count;
    if !(1..=7).contains(&count) {
        return Err(wrong(
            place("count"),
            format!("{count} is not between 1 and 7"),
        ));
    }
    let quorum = sentinels.quorum();
    if !(1..=count).contains(&quorum) {
        let why = format!("{quorum} is not between 1 and {count}, the number of sentinels");
        return Err(wrong(place("quorum"), why));
    }
    let spans = [
        ("down_after", sentinels.down_after),
        ("election", sentinels.election),
        ("gossip", sentinels.gossip),
        ("demotion", sentinels.demotion),
    ];
    if let Some((field, span)) = spans.into_iter().find(|(_, span)| LONGEST_ELECTION < *span) {
        let why = format!("{span} is too long: it must be at most {LONGEST_ELECTION}");
        return Err(wrong(place(field), why));
    }
    // Sentinels check servers every few milliseconds.
    let min = SimTime::millis(10);
    if sentinels.down_after < min {
        let after = sentinels.down_after;
        let why = format!("{after} is too short: it must be at least {min}");
        return Err(wrong(place("down_after"), why));
    }
    Ok(())
}
