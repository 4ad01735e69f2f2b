//! Reads, writes and checks plans in TOML.

#[cfg(feature = "locks")]
pub(crate) mod document;
mod faults;
#[cfg(feature = "locks")]
pub(crate) mod old_keys;
#[cfg(feature = "locks")]
mod shorthand;

#[cfg(feature = "locks")]
use std::fs;
#[cfg(feature = "locks")]
use std::path::{Path, PathBuf};

#[cfg(feature = "locks")]
use crate::plan::file::document::DocumentPart;
#[cfg(feature = "locks")]
pub use crate::plan::file::document::{Misreading, Position};
#[cfg(feature = "locks")]
pub use crate::plan::file::old_keys::{OldKey, old_keys};
#[cfg(feature = "locks")]
use crate::plan::file::shorthand::spell_out;
use crate::plan::time::SimTime;
use crate::plan::{Lacks, Lane, LockKind, Plan, WorkloadKind};

/// The error of a plan that cannot be run. Its message names the place of the error.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The file cannot be read.
    #[cfg(feature = "locks")]
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The file contains no plan.
    #[cfg(feature = "locks")]
    #[error("{path}:{}: {error}", error.at)]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The place in the file, and the reason.
        error: Misreading,
    },
    /// The plan cannot be written.
    #[cfg(feature = "locks")]
    #[error("{0}")]
    Write(#[from] toml::ser::Error),
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
    /// An error of a plan that was read from a file.
    #[cfg(feature = "locks")]
    #[error("{}: {error}", place(path, *at))]
    InFile {
        /// The file.
        path: PathBuf,
        /// The place in the file, if the file sets the wrong field.
        at: Option<Position>,
        /// The error.
        error: Box<PlanError>,
    },
}

/// Formats a file name, with a place in the file if there is one.
#[cfg(feature = "locks")]
pub(crate) fn place(path: &Path, at: Option<Position>) -> String {
    match at {
        Some(at) => format!("{}:{at}", path.display()),
        None => path.display().to_string(),
    }
}

impl PlanError {
    /// Returns the wrong field, if the error is about a field.
    #[cfg(feature = "locks")]
    pub(crate) fn field(&self) -> Option<String> {
        match self {
            PlanError::Impossible { place, .. } => Some(place.clone()),
            PlanError::Lacks(lacks) => lacks.field(),
            _ => None,
        }
    }
}

/// Reads and checks a plan from a file.
///
/// # Errors
/// Returns [`PlanError`] with the file and the place in it.
#[cfg(feature = "locks")]
pub fn read(path: &Path) -> Result<Plan, PlanError> {
    let io = |error| PlanError::Io {
        path: path.to_owned(),
        error,
    };
    let text = fs::read_to_string(path).map_err(io)?;
    parse(path, &text)
}

/// Reads and checks a plan from the text of a file.
///
/// # Errors
/// Returns the same errors as [`read`].
#[cfg(feature = "locks")]
pub fn parse(path: &Path, text: &str) -> Result<Plan, PlanError> {
    let syntax = |error| PlanError::Syntax {
        path: path.to_owned(),
        error,
    };
    let table = old_keys::parse_with_new_names(text).map_err(syntax)?;
    let (plan, table) = plan_of(text, table).map_err(syntax)?;
    check(&plan).map_err(|error| PlanError::InFile {
        path: path.to_owned(),
        at: error
            .field()
            .and_then(|field| document::locate(text, &table, &field)),
        error: Box::new(error),
    })?;
    Ok(plan)
}

/// Returns the plan of a table, before it is checked. Also returns the table with all shorthand expanded.
#[cfg(feature = "locks")]
pub(crate) fn plan_of<'a>(
    text: &str,
    mut table: DocumentPart<'a>,
) -> Result<(Plan, DocumentPart<'a>), Misreading> {
    spell_out(&mut table).map_err(|misfit| misfit.in_text(text))?;
    let mut plan: Plan = document::read(text, table.clone())?;
    let (clients, nodes) = (plan.clients, plan.nodes.count);
    for fault in &mut plan.faults {
        fault.strike_all(clients, nodes);
    }
    Ok((plan, table))
}

/// Writes a plan as TOML.
///
/// # Errors
/// Returns [`PlanError::Write`] if the plan cannot be written.
#[cfg(feature = "locks")]
pub fn write(plan: &Plan) -> Result<String, PlanError> {
    Ok(toml::to_string(plan)?)
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
    let between = |place: &str, value: u16, min: u16, max: u16| {
        if (min..=max).contains(&value) {
            Ok(())
        } else {
            Err(wrong(
                place,
                format!("{value} is not between {min} and {max}"),
            ))
        }
    };
    if plan.lane == Lane::Turmoil && cfg!(not(feature = "turmoil")) {
        let why = "this build has only the lane fast: turmoil needs the feature `turmoil` of quorlock-sim";
        return Err(wrong("lane", why));
    }
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
    between("workload.names", plan.workload.names, 1, 60)?;
    let ordered = |place: &str, min: SimTime, max: SimTime| {
        if min <= max {
            Ok(())
        } else {
            Err(wrong(place, format!("{min} is more than {max}")))
        }
    };
    let shortest = |place: &str, min: SimTime, value: SimTime| {
        if min <= value {
            Ok(())
        } else {
            Err(wrong(
                place,
                format!("{value} is too short: it must be at least {min}"),
            ))
        }
    };
    // Without a minimum, a client could loop forever while no time passes.
    shortest("network.min", SimTime::micros(1), plan.network.min)?;
    let wait = SimTime::millis(1);
    shortest("workload.poll_cap", wait, plan.workload.poll_cap)?;
    shortest("workload.backoff_cap", wait, plan.workload.backoff_cap)?;
    ordered("network.min", plan.network.min, plan.network.max)?;
    ordered(
        "workload.hold_min",
        plan.workload.hold_min,
        plan.workload.hold_max,
    )?;
    ordered(
        "workload.think_min",
        plan.workload.think_min,
        plan.workload.think_max,
    )?;
    let longest = |place: &str, value: SimTime, max: SimTime| {
        if value <= max {
            Ok(())
        } else {
            let why = format!("{value} is too long: it must be at most {max}");
            Err(wrong(place, why))
        }
    };
    shortest("workload.lease", SHORTEST_LEASE, plan.workload.lease)?;
    longest("workload.lease", plan.workload.lease, LONGEST_LEASE)?;
    shortest("duration", SimTime::millis(1), plan.duration)?;
    longest("duration", plan.duration, LONGEST)?;
    shortest("network.call_timeout", wait, plan.network.call_timeout)?;
    shortest(
        "network.connect_timeout",
        wait,
        plan.network.connect_timeout,
    )?;
    if plan.workload.kind == WorkloadKind::Reentrant && plan.lock == LockKind::Multi {
        let why =
            "a lock that acquires one name from each node has no owner that could re-enter it";
        return Err(wrong("workload.kind", why));
    }
    if plan.workload.kind == WorkloadKind::Leading && plan.lock == LockKind::Multi {
        let why = "a leader holds one name: set lock = \"single\" or \"redlock\"";
        return Err(wrong("workload.kind", why));
    }
    let is_of_the_product = matches!(
        plan.workload.kind,
        WorkloadKind::Fair
            | WorkloadKind::ReadWrite
            | WorkloadKind::CompetingTasks
            | WorkloadKind::Together
            | WorkloadKind::Sides
    );
    if plan.workload.kind == WorkloadKind::Together && plan.lock != LockKind::Multi {
        let why = "there is only one client whose locks could be combined: set lock = \"multi\"";
        return Err(wrong("workload.kind", why));
    }
    if plan.workload.kind == WorkloadKind::Sides && plan.lock == LockKind::Multi {
        let why = "an owner belongs to one client: set lock = \"single\" or \"redlock\"";
        return Err(wrong("workload.kind", why));
    }
    if plan.workload.kind == WorkloadKind::Fair && plan.lock == LockKind::Redlock {
        let why = "queues on several nodes have no common order: a fair lock needs lock = \"single\" or \"multi\"";
        return Err(wrong("workload.kind", why));
    }
    if is_of_the_product && !plan.variant.has_product_clients() {
        let why = "the simulator's own lock has neither queues nor readers nor owners: this work needs variant = \"product\", \
                   or one that is wrong about them";
        return Err(wrong("workload.kind", why));
    }
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
