//! Plans in TOML, and what a plan must be to be run.

mod faults;

use std::fs;
use std::path::{Path, PathBuf};

use crate::plan::time::Span;
use crate::plan::{Lacks, LockKind, Plan, WorkloadKind};

/// Why a plan cannot be run. Each error names the place.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The file cannot be read.
    #[error("{path}: {error}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is no plan.
    #[error("{path}: {error}")]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// Where and why.
        error: Box<toml::de::Error>,
    },
    /// A plan cannot be written.
    #[error("{0}")]
    Write(#[from] toml::ser::Error),
    /// Something in it is impossible.
    #[error("{place}: {why}")]
    Impossible {
        /// Which field.
        place: String,
        /// Why.
        why: String,
    },
    /// Its lane cannot do something in it.
    #[error(transparent)]
    Lacks(#[from] Lacks),
    /// The same, in a file.
    #[error("{path}: {error}")]
    InFile {
        /// Which file.
        path: PathBuf,
        /// What.
        error: Box<PlanError>,
    },
}

/// Reads and checks a plan.
///
/// # Errors
/// [`PlanError`], which names the file and the place in it.
pub fn read(path: &Path) -> Result<Plan, PlanError> {
    let io = |error| PlanError::Io {
        path: path.to_owned(),
        error,
    };
    let text = fs::read_to_string(path).map_err(io)?;
    let plan: Plan = toml::from_str(&text).map_err(|error| PlanError::Syntax {
        path: path.to_owned(),
        error: Box::new(error),
    })?;
    check(&plan).map_err(|error| PlanError::InFile {
        path: path.to_owned(),
        error: Box::new(error),
    })?;
    Ok(plan)
}

/// A plan as TOML.
///
/// # Errors
/// [`PlanError::Write`].
pub fn write(plan: &Plan) -> Result<String, PlanError> {
    Ok(toml::to_string(plan)?)
}

fn wrong(place: impl Into<String>, why: impl Into<String>) -> PlanError {
    PlanError::Impossible {
        place: place.into(),
        why: why.into(),
    }
}

/// The shortest lease that the product takes.
const SHORTEST_LEASE: Span = Span::millis(5);
/// The longest lease that the simulator configures.
const LONGEST_LEASE: Span = Span::secs(3600);
/// The longest run.
const LONGEST: Span = Span::secs(24 * 3600);

/// Whether a plan can be run.
///
/// # Errors
/// [`PlanError::Impossible`], which names the field.
pub fn check(plan: &Plan) -> Result<(), PlanError> {
    let between = |place: &str, value: u16, least: u16, most: u16| {
        if (least..=most).contains(&value) {
            Ok(())
        } else {
            Err(wrong(
                place,
                format!("{value} is not between {least} and {most}"),
            ))
        }
    };
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
    between("workload.names", plan.workload.names, 1, 60)?;
    let ordered = |place: &str, least: Span, most: Span| {
        if least <= most {
            Ok(())
        } else {
            Err(wrong(place, format!("{least} is more than {most}")))
        }
    };
    let shortest = |place: &str, least: Span, value: Span| {
        if least <= value {
            Ok(())
        } else {
            Err(wrong(
                place,
                format!("{value} is too short: say at least {least}"),
            ))
        }
    };
    // Without any, a client could go round for ever while no time passes.
    shortest("network.least", Span::micros(1), plan.network.least)?;
    let wait = Span::millis(1);
    shortest("workload.poll_cap", wait, plan.workload.poll_cap)?;
    shortest("workload.backoff_cap", wait, plan.workload.backoff_cap)?;
    ordered("network.least", plan.network.least, plan.network.most)?;
    ordered(
        "workload.hold_least",
        plan.workload.hold_least,
        plan.workload.hold_most,
    )?;
    ordered(
        "workload.think_least",
        plan.workload.think_least,
        plan.workload.think_most,
    )?;
    let longest = |place: &str, value: Span, most: Span| {
        if value <= most {
            Ok(())
        } else {
            let why = format!("{value} is too long: say at most {most}");
            Err(wrong(place, why))
        }
    };
    shortest("workload.lease", SHORTEST_LEASE, plan.workload.lease)?;
    longest("workload.lease", plan.workload.lease, LONGEST_LEASE)?;
    shortest("duration", Span::millis(1), plan.duration)?;
    longest("duration", plan.duration, LONGEST)?;
    shortest("network.call_timeout", wait, plan.network.call_timeout)?;
    shortest(
        "network.connect_timeout",
        wait,
        plan.network.connect_timeout,
    )?;
    if plan.workload.kind == WorkloadKind::Reentrant && plan.lock == LockKind::Multi {
        let why = "a lock that takes one name from each node has no owner to enter it again";
        return Err(wrong("workload.kind", why));
    }
    if plan.workload.kind == WorkloadKind::Leading && plan.lock == LockKind::Multi {
        let why = "a leader holds one name: say lock = \"single\" or \"redlock\"";
        return Err(wrong("workload.kind", why));
    }
    let is_of_the_product = matches!(
        plan.workload.kind,
        WorkloadKind::Fair | WorkloadKind::ReadWrite | WorkloadKind::Crowd
    );
    if plan.workload.kind == WorkloadKind::Fair && plan.lock == LockKind::Redlock {
        let why = "queues on several nodes have no common order: a fair lock needs lock = \"single\" or \"multi\"";
        return Err(wrong("workload.kind", why));
    }
    if is_of_the_product && !plan.variant.has_product_clients() {
        let why = "the simulator's own lock has neither queues nor readers nor owners: this work needs variant = \"product\", \
                   or one that is wrong about them";
        return Err(wrong("workload.kind", why));
    }
    for (fault, index) in plan.faults.iter().zip(0..) {
        faults::check(plan, fault)
            .map_err(|(field, why)| wrong(format!("faults[{index}].{field}"), why))?;
    }
    Lacks::check(plan)?;
    Ok(())
}

/// The longest that anything about an election takes.
const LONGEST_ELECTION: Span = Span::secs(600);

fn check_sentinels(plan: &Plan) -> Result<(), PlanError> {
    let Some(sentinels) = &plan.nodes.sentinels else {
        if plan.variant.flaws().iter().any(|flaw| flaw.is_of_groups()) {
            let variant = plan.variant;
            let why = format!("{variant} is wrong about groups: say [nodes.sentinels]");
            return Err(wrong("variant", why));
        }
        return Ok(());
    };
    let place = |field: &str| format!("nodes.sentinels.{field}");
    if plan.nodes.replicas == 0 {
        let why = "sentinels have no replica to promote: say nodes.replicas = 1 or more";
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
        let why = format!("{span} is too long: say at most {LONGEST_ELECTION}");
        return Err(wrong(place(field), why));
    }
    // They look every few milliseconds.
    let least = Span::millis(10);
    if sentinels.down_after < least {
        let after = sentinels.down_after;
        let why = format!("{after} is too short: say at least {least}");
        return Err(wrong(place("down_after"), why));
    }
    Ok(())
}
